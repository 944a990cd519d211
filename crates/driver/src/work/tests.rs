//! Laws of the work queue, over seeded runs against a plain model of one key.

use proptest::prelude::*;

use super::*;
use api::kind::Kind;

#[derive(Clone, Copy, Debug)]
enum Act {
    /// An event about the key.
    Event,
    /// News of an object that a key may wait for.
    News,
    /// So many milliseconds pass.
    Pass(u16),
    /// The key is stepped, if it is handed out: it stands so, with that many writes.
    Step(u8, u8),
    /// One write ends so, if any is open.
    Write(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::Event),
        Just(Act::News),
        (0_u16..200).prop_map(Act::Pass),
        (0_u8..4, 0_u8..3).prop_map(|(standing, writes)| Act::Step(standing, writes)),
        (0_u8..3).prop_map(Act::Write),
    ]
}

/// What a key may wait for.
fn other() -> ObjectKey {
    ObjectKey::new(Kind::ConfigMap, "ns", "other")
}

fn standing(at: u8) -> Standing {
    match at {
        0 => Standing::Idle,
        1 => Standing::Waits {
            waits_for: vec![other()],
        },
        2 => Standing::Retry,
        _ => Standing::Fatal,
    }
}

fn ended(at: u8) -> Ended {
    match at {
        0 => Ended::Done,
        1 => Ended::Outdated,
        _ => Ended::Failed { retry_after_ms: 0 },
    }
}

/// When a key that has failed may be handed out again.
#[derive(Clone, Copy, Debug)]
struct Rest {
    by_itself: Time,
    /// Where an event is about it.
    by_event: Time,
    /// Where there is news of what it waits for.
    by_news: Time,
}

/// What must hold of the one key, kept apart from the queue.
#[derive(Debug, Default)]
struct Expected {
    failures: u32,
    open: u32,
    /// Something of this round failed, and whether all of that was outdated only.
    failed: Option<bool>,
    not_before: Option<Rest>,
    limit: Option<u32>,
    /// Something happened since the last round ended.
    has_event: bool,
    /// Whether it waits for the other, and whether there was news of that since its last step.
    waits: bool,
    has_news: bool,
}

impl Expected {
    fn end_round(&mut self, now: Time) {
        let Some(is_outdated) = self.failed.take() else {
            // Success, and nothing else, clears the counter.
            self.failures = 0;
            return;
        };
        self.failures += 1;
        let by_itself = now.plus_ms(Backoff::KEY.delay_ms(self.failures));
        if is_outdated {
            // What has happened while it was written counts, too.
            self.not_before = Some(Rest {
                by_itself,
                by_event: now,
                by_news: now,
            });
            return;
        }
        self.has_event = false;
        let is_stuck = self.limit.is_some_and(|limit| self.failures > limit);
        let pause = now.plus_ms(NEWS_PAUSE_MS);
        self.not_before = Some(match is_stuck {
            true => Rest {
                by_itself: by_itself.max(pause),
                by_event: pause,
                by_news: pause,
            },
            false => Rest {
                by_itself,
                by_event: by_itself,
                by_news: by_itself.min(pause),
            },
        });
    }

    fn note(&mut self, ended: Ended) {
        match ended {
            Ended::Done => {}
            Ended::Outdated => self.failed = Some(self.failed.unwrap_or(true)),
            Ended::Failed { .. } => self.failed = Some(false),
        }
    }
}

proptest! {
    #[test]
    fn s0_10_counters_clear_on_success_only_and_no_key_is_handed_out_too_early(
        limit in proptest::option::of(0_u32..4),
        gives_up in proptest::bool::ANY,
        acts in proptest::collection::vec(act(), 1..200),
    ) {
        let work = WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", "a")));
        let mut queue = WorkQueue::new(Backoff::KEY, Patience { failures_max: limit, gives_up });
        let mut expected = Expected { limit, ..Expected::default() };
        let mut now = Time(0);
        for act in acts {
            match act {
                Act::Event => {
                    expected.has_event = true;
                    queue.wake(work.clone(), now);
                }
                Act::News => {
                    expected.has_event |= expected.waits;
                    expected.has_news |= expected.waits;
                    queue.appeared(&other(), now);
                }
                Act::Pass(ms) => {
                    now = now.plus_ms(i64::from(ms));
                    queue.advance(now);
                }
                Act::Step(kind, writes) => {
                    let Some((key, last)) = queue.next() else {
                        continue;
                    };
                    prop_assert_eq!(&key, &work);
                    prop_assert_eq!(last.failures, expected.failures);
                    prop_assert_eq!(expected.open, 0, "handed out while a write is unseen");
                    if let Some(rest) = expected.not_before.take() {
                        let at = match (expected.has_news, expected.has_event) {
                            (true, _) => rest.by_news,
                            (false, true) => rest.by_event,
                            (false, false) => rest.by_itself,
                        };
                        prop_assert!(now >= at, "handed out while backing off");
                    }
                    (expected.has_event, expected.has_news) = (false, false);
                    let standing = standing(kind);
                    expected.waits = matches!(standing, Standing::Waits { .. });
                    expected.failed = (standing == Standing::Retry).then_some(false);
                    expected.open = u32::from(writes);
                    queue.stepped(&work, standing, None, expected.open, now);
                    if expected.open == 0 {
                        expected.end_round(now);
                    }
                }
                Act::Write(kind) => {
                    if expected.open == 0 {
                        continue;
                    }
                    let ended = ended(kind);
                    expected.open -= 1;
                    expected.note(ended);
                    queue.write_ended(&work, ended, now);
                    if expected.open == 0 {
                        expected.end_round(now);
                    }
                }
            }
        }
        // Whatever has been in its way: news of what it waits for makes it due, in a while at most.
        if expected.open == 0 && expected.failures > 0 && expected.waits {
            queue.appeared(&other(), now);
            now = now.plus_ms(NEWS_PAUSE_MS);
            queue.advance(now);
            prop_assert!(queue.is_ready(), "news of what it waits for is not heard");
        }
        // Nothing is forgotten: a key that failed is due again by itself, or, where it was given up, as
        // soon as something happens about it.
        if expected.open == 0 && expected.failures > 0 {
            let end = now.plus_ms(Backoff::KEY.max_ms);
            queue.advance(end);
            if gives_up && !queue.is_ready() {
                let is_over = limit.is_some_and(|limit| expected.failures > limit);
                prop_assert!(is_over, "given up before the limit");
                queue.wake(work, end);
            }
            prop_assert!(queue.is_ready(), "a failed key is never tried again");
        }
    }
}

#[test]
fn a_key_stands_once_however_many_events_name_it() {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    let key = |name: &str| WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", name)));
    for name in ["a", "b", "a", "a", "b"] {
        queue.wake(key(name), Time(0));
    }
    assert_eq!(queue.ready_count(), 2);
    let (first, _) = queue.next().expect("two are ready");
    assert_eq!(first, key("a"));
}

#[test]
fn keys_at_rest_are_forgotten() {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    for at in 0..1_000 {
        let work = WorkKey::new(
            0,
            Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", &format!("k{at}"))),
        );
        queue.wake(work.clone(), Time(0));
        queue.next();
        queue.stepped(&work, Standing::Idle, None, 0, Time(0));
    }
    assert_eq!(queue.known_count(), 0);
}

/// Else what is told in the end would rest anew with each event.
#[test]
fn since_when_a_key_lets_rest_what_it_tells_is_known_until_it_tells() {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    let work = WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", "a")));
    let mut step = |at: i64, rests: bool, writes: u32| {
        let now = Time(at);
        queue.wake(work.clone(), now);
        let (_, last) = queue.next().expect("it is ready");
        queue.rests(&work, rests, now);
        let wake_at = rests.then_some(Time(90));
        queue.stepped(&work, Standing::Idle, wake_at, writes, now);
        for _ in 0..writes {
            queue.write_ended(&work, Ended::Done, now);
        }
        last.rests_since
    };
    assert_eq!(step(1, true, 0), None);
    assert_eq!(step(2, true, 1), Some(Time(1)));
    assert_eq!(step(3, false, 0), Some(Time(1)));
    assert_eq!(step(4, true, 0), None);
    assert_eq!(step(5, true, 0), Some(Time(4)));
}

/// What was refused once costs one write at a try; what was let through lets twice as many follow.
#[test]
fn s0_10_a_key_that_failed_makes_one_at_once_and_twice_as_many_after_each_success() {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    let work = WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", "a")));
    let mut now = Time(0);
    let mut step = |writes: &[Ended]| {
        now = now.plus_ms(60_000);
        queue.advance(now);
        queue.wake(work.clone(), now);
        let (_, last) = queue.next().expect("it is ready");
        let count = u32::try_from(writes.len()).expect("they are few");
        // Something wants to be looked at again, so that the key is not forgotten.
        let wake_at = Some(now.plus_ms(600_000));
        queue.stepped(&work, Standing::Idle, wake_at, count, now);
        for end in writes {
            queue.write_ended(&work, *end, now);
        }
        last.pace
    };
    let failed = Ended::Failed { retry_after_ms: 0 };
    assert_eq!(step(&[Ended::Done, failed, Ended::Done]), None);
    assert_eq!(step(&[failed]), Some(1));
    assert_eq!(step(&[Ended::Done]), Some(1));
    // A step without writes, or one that knew an old world, proves nothing.
    assert_eq!(step(&[]), Some(2));
    assert_eq!(step(&[Ended::Outdated]), Some(2));
    assert_eq!(step(&[Ended::Done]), Some(2));
    assert_eq!(step(&[Ended::Done, Ended::Done]), Some(4));
    assert_eq!(step(&[failed]), Some(8));
    for doublings in 0..10 {
        assert_eq!(step(&[Ended::Done]), Some(1 << doublings));
    }
    assert_eq!(step(&[]), None);
}

#[test]
fn s0_10_a_limit_is_kept_by_those_rows_only_that_have_one() {
    let patience = Patience {
        failures_max: Some(1),
        gives_up: true,
    };
    let mut queue = WorkQueue::new(Backoff::KEY, patience).trying_on([1]);
    let key = |row| WorkKey::new(row, Arc::new(ObjectKey::new(Kind::Pod, "ns", "a")));
    let mut now = Time(0);
    queue.wake(key(0), now);
    queue.wake(key(1), now);
    let mut tries = [0; 2];
    for _ in 0..3 {
        while let Some((work, _)) = queue.next() {
            tries[usize::from(work.row)] += 1;
            queue.stepped(&work, Standing::Retry, None, 0, now);
        }
        now = now.plus_ms(Backoff::KEY.max_ms);
        queue.advance(now);
    }
    // The limit and one more, and then nothing; or so many as there was time for.
    assert_eq!(tries, [2, 3]);
    assert_eq!([queue.gives_up(0), queue.gives_up(1)], [true, false]);
}

/// A key whose write is refused again and again while it waits for the other: how often it is tried in so many
/// milliseconds, each of which brings news of the other where `is_restless`.
fn tries_in(ms: i64, is_restless: bool) -> usize {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    let work = WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", "a")));
    queue.wake(work.clone(), Time(0));
    let mut tries = 0;
    for at in 0..ms {
        let now = Time(0).plus_ms(at);
        queue.advance(now);
        if is_restless {
            queue.appeared(&other(), now);
        }
        while let Some((work, _)) = queue.next() {
            tries += 1;
            queue.stepped(&work, standing(1), None, 1, now);
            let refused = Ended::Failed { retry_after_ms: 0 };
            queue.write_ended(&work, refused, now);
        }
    }
    tries
}

#[test]
fn what_a_refused_write_waits_for_may_change_a_thousand_times_a_second() {
    let minute = 60 * NEWS_PAUSE_MS;
    // Pauses that double until they are as long as one that news ends, and those from then on.
    assert_eq!(tries_in(minute, false), 14);
    assert_eq!(tries_in(minute, true), 8 + 59);
}

#[test]
fn news_of_what_a_refused_write_waits_for_ends_its_long_pause_at_once() {
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    let work = WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", "a")));
    let refused = Ended::Failed { retry_after_ms: 0 };
    let mut now = Time(0);
    queue.wake(work.clone(), now);
    for _ in 0..15 {
        queue.next().expect("it is due");
        queue.stepped(&work, standing(1), None, 1, now);
        queue.write_ended(&work, refused, now);
        now = queue.next_timer().expect("it backs off");
        queue.advance(now);
    }
    queue.next().expect("it is due");
    queue.stepped(&work, standing(1), None, 1, now);
    queue.write_ended(&work, refused, now);
    now = now.plus_ms(5 * NEWS_PAUSE_MS);
    queue.wake(work.clone(), now);
    assert!(!queue.is_ready(), "any event does not end it");
    queue.appeared(&other(), now);
    assert!(queue.is_ready());
    // News that comes while the write is on its way is heard, too.
    queue.next().expect("it is due");
    queue.stepped(&work, standing(1), None, 1, now);
    queue.appeared(&other(), now);
    queue.write_ended(&work, refused, now);
    assert!(!queue.is_ready());
    assert_eq!(queue.next_timer(), Some(now.plus_ms(NEWS_PAUSE_MS)));
    // What a server asks for is kept all the same.
    queue.advance(now.plus_ms(NEWS_PAUSE_MS));
    queue.next().expect("it is due");
    queue.stepped(&work, standing(1), None, 1, now);
    let retry_after_ms = 7 * NEWS_PAUSE_MS;
    queue.write_ended(&work, Ended::Failed { retry_after_ms }, now);
    queue.appeared(&other(), now);
    assert_eq!(queue.next_timer(), Some(now.plus_ms(retry_after_ms)));
}

#[test]
fn keys_whose_names_have_one_sum_are_two() {
    let now = Time::from_seconds(0);
    let key = |name: &str| WorkKey::new(0, Arc::new(ObjectKey::new(Kind::ConfigMap, "ns", name)));
    let mut by_sum = BTreeMap::new();
    let alike = (0..1_000_000).find_map(|at| {
        let name = format!("k{at}");
        let sum = key(&name).sum;
        by_sum.insert(sum, name.clone()).map(|other| (other, name))
    });
    let (one, other) = alike.expect("there are as many names as sums");
    let mut queue = WorkQueue::new(Backoff::KEY, Patience::default());
    for name in [&one, &other, &one] {
        queue.wake(key(name), now);
    }
    let handed_out =
        [queue.next(), queue.next()].map(|it| it.map(|(work, _)| work.key.name.clone()));
    assert_eq!(handed_out, [Some(one.into()), Some(other.into())]);
    assert!(queue.next().is_none());
}
