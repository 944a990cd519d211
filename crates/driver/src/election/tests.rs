//! One candidate at a time, told with times.

use api::intent::Action;

use super::*;

struct Tale {
    election: Election,
    now: Time,
    asked: u64,
}

fn at(seconds: i64) -> Time {
    Time::from_seconds(1_000).plus_ms(seconds * 1_000)
}

fn done(revision: u64) -> WriteOutcome {
    WriteOutcome::Done {
        revision,
        uid: "u".into(),
    }
}

fn conflict() -> WriteOutcome {
    WriteOutcome::Refused(Refusal {
        code: 409,
        reason: "Conflict".into(),
        message: "".into(),
        retry_after_seconds: None,
    })
}

fn lease(holder: &str, renewed: i64, revision: u64) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.uid = "u".into();
    lease.metadata.resource_version = revision.to_string().into();
    lease.spec.holder_identity = holder.into();
    lease.spec.lease_duration_seconds = Some(15);
    lease.spec.renew_time = Some(at(renewed));
    lease.spec.lease_transitions = Some(3);
    lease
}

impl Tale {
    fn new() -> Tale {
        Tale::with(ElectionSettings::new("ns", "volcano", "me"))
    }

    fn with(settings: ElectionSettings) -> Tale {
        Tale {
            election: Election::new(&settings, 7),
            now: at(0),
            asked: 0,
        }
    }

    fn pass_to(&mut self, seconds: i64) -> Turn {
        self.now = at(seconds);
        self.election.turn(self.now)
    }

    fn ask(&mut self) -> Option<Request> {
        self.asked += 1;
        self.election.poll(RequestId(self.asked), self.now)
    }

    /// The next request, which must be a read, is answered.
    fn reads(&mut self, found: Option<&Lease>) {
        let asked = self.ask();
        assert!(matches!(asked, Some(Request::Get { .. })), "{asked:?}");
        self.election
            .got(RequestId(self.asked), Ok(found), self.now);
    }

    /// The next request, which must be a write, is answered; its spec.
    fn writes(&mut self, outcome: &WriteOutcome) -> serde_json::Value {
        let asked = self.ask();
        let Some(Request::Write(intent)) = asked else {
            panic!("{asked:?}");
        };
        self.election
            .written(RequestId(self.asked), outcome, self.now);
        match intent.action {
            Action::Create { body } => body["spec"].clone(),
            Action::Patch { patch, .. } => patch["spec"].clone(),
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self) {
        self.election.turn(self.now);
        self.reads(None);
        self.writes(&done(1));
        assert_eq!(self.election.turn(self.now), Turn::Won);
    }
}

#[test]
fn a_lease_that_is_not_there_is_made_and_renewed_every_two_seconds() {
    let mut tale = Tale::new();
    tale.reads(None);
    let spec = tale.writes(&done(1));
    assert_eq!(spec["holderIdentity"], "me");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(spec["renewTime"], "1970-01-01T00:16:40.000000Z");
    assert_eq!(tale.pass_to(0), Turn::Won);
    assert_eq!(tale.election.wake(), Some(at(2)));
    tale.pass_to(2);
    let spec = tale.writes(&done(2));
    assert_eq!(spec["acquireTime"], "1970-01-01T00:16:40.000000Z");
    assert_eq!(spec["renewTime"], "1970-01-01T00:16:42.000000Z");
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(tale.ask(), None);
}

#[test]
fn a_lease_is_taken_once_it_was_seen_unchanged_for_as_long_as_its_holder_said() {
    let mut tale = Tale::new();
    // What the other's clock says does not count: it may be hours ahead or behind.
    for second in [0, 5, 10] {
        tale.pass_to(second);
        tale.reads(Some(&lease("other", -9_999, 8)));
        assert_eq!(tale.ask(), None, "at {second} s");
        let (key, holder) = tale.election.held_elsewhere(tale.now).expect("held");
        assert_eq!((&*key.name, holder), ("volcano", "other"));
    }
    tale.pass_to(15);
    tale.reads(Some(&lease("other", -9_999, 8)));
    let spec = tale.writes(&done(9));
    assert_eq!(spec["leaseTransitions"], 4);
    assert_eq!(spec["acquireTime"], spec["renewTime"]);
    assert_eq!(tale.pass_to(15), Turn::Won);
}

#[test]
fn a_sign_of_life_begins_the_wait_anew() {
    let mut tale = Tale::new();
    for second in [0, 5, 10, 15, 20, 25] {
        tale.pass_to(second);
        tale.reads(Some(&lease("other", second, 8)));
        assert_eq!(tale.ask(), None, "at {second} s");
    }
}

#[test]
fn a_lease_that_was_let_go_is_taken_at_once() {
    let mut tale = Tale::new();
    let mut free = lease("", 0, 8);
    free.spec.lease_duration_seconds = Some(1);
    tale.reads(Some(&free));
    assert_eq!(tale.writes(&done(9))["leaseTransitions"], 4);
    assert_eq!(tale.pass_to(0), Turn::Won);
}

#[test]
fn a_lease_that_was_deleted_under_its_holder_is_waited_out() {
    let mut tale = Tale::new();
    tale.reads(Some(&lease("other", 0, 8)));
    tale.pass_to(5);
    tale.reads(None);
    assert_eq!(tale.ask(), None);
    for second in [10, 15, 20] {
        tale.pass_to(second);
        if second < 15 {
            tale.reads(None);
        }
    }
    tale.reads(None);
    tale.writes(&done(12));
    assert_eq!(tale.pass_to(20), Turn::Won);
}

#[test]
fn a_holder_that_cannot_renew_stops_ten_seconds_after_it_asked_last() {
    let mut tale = Tale::new();
    tale.lead();
    tale.pass_to(2);
    tale.writes(&done(2));
    for second in [4, 6, 8, 10] {
        assert_eq!(tale.pass_to(second), Turn::Same);
        while let Some(request) = tale.ask() {
            let id = RequestId(tale.asked);
            let lost = WriteOutcome::Unknown { message: "".into() };
            match request {
                Request::Write(_) => tale.election.written(id, &lost, tale.now),
                _ => tale.election.got(id, Err(&refusal_503()), tale.now),
            }
        }
    }
    assert!(tale.election.may_write(at(11)));
    assert_eq!(tale.election.wake(), Some(at(12)));
    assert!(!tale.election.may_write(at(12)));
    assert_eq!(tale.pass_to(12), Turn::Lost);
}

fn refusal_503() -> Refusal {
    Refusal {
        code: 503,
        reason: "ServiceUnavailable".into(),
        message: "".into(),
        retry_after_seconds: None,
    }
}

#[test]
fn a_renewal_that_meets_a_conflict_reads_at_once_and_goes_on_or_stops() {
    let mut tale = Tale::new();
    tale.lead();
    tale.pass_to(2);
    tale.writes(&conflict());
    // Somebody edited a label: the record is still ours.
    tale.reads(Some(&lease("me", 0, 5)));
    assert_eq!(tale.writes(&done(6))["leaseTransitions"], 3);
    assert_eq!(tale.pass_to(4), Turn::Same);
    tale.writes(&conflict());
    tale.reads(Some(&lease("other", 3, 7)));
    assert!(!tale.election.may_write(tale.now));
    assert_eq!(tale.pass_to(4), Turn::Lost);
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for_longer_than_half_the_deadline() {
    let mut tale = Tale::new();
    tale.lead();
    tale.pass_to(2);
    assert!(matches!(tale.ask(), Some(Request::Write(_))));
    let late = RequestId(tale.asked);
    tale.pass_to(6);
    assert_eq!(tale.ask(), None);
    assert_eq!(tale.election.wake(), Some(at(7)));
    tale.pass_to(7);
    tale.reads(Some(&lease("me", 2, 2)));
    tale.election.written(late, &conflict(), tale.now);
    tale.writes(&done(3));
    assert_eq!(tale.pass_to(16), Turn::Same);
}

#[test]
fn a_holder_for_which_time_goes_back_stops_and_one_that_slept_has_stopped() {
    let mut tale = Tale::new();
    tale.lead();
    assert!(!tale.election.may_write(at(-1)));
    assert_eq!(tale.pass_to(-600), Turn::Lost);
    let mut tale = Tale::new();
    tale.lead();
    assert!(!tale.election.may_write(at(60)));
    assert_eq!(tale.pass_to(60), Turn::Lost);
}

#[test]
fn who_waits_does_not_take_a_leap_of_its_clock_for_silence() {
    let mut tale = Tale::new();
    tale.reads(Some(&lease("other", 0, 8)));
    tale.pass_to(600);
    tale.reads(Some(&lease("other", 0, 8)));
    assert_eq!(tale.ask(), None);
}

/// S1.3: the clock went back by nearly as long as the process stood still, which it cannot see.
#[test]
fn who_learns_that_its_clock_was_set_holds_nothing_until_the_next_renewal() {
    let mut tale = Tale::new();
    tale.lead();
    tale.now = at(3);
    assert!(tale.election.may_write(tale.now));
    tale.election.leapt(tale.now);
    assert_eq!(tale.pass_to(3), Turn::Lost);
    tale.reads(Some(&lease("me", 0, 1)));
    tale.writes(&done(9));
    assert_eq!(tale.pass_to(3), Turn::Won);
}

#[test]
fn letting_go_tells_others_that_they_need_not_wait() {
    let mut tale = Tale::new();
    tale.lead();
    tale.election.release(tale.now);
    assert_eq!(tale.election.wake(), Some(Time(i64::MIN)));
    let spec = tale.writes(&done(2));
    assert_eq!(spec["holderIdentity"], "");
    assert_eq!(spec["leaseDurationSeconds"], 1);
    assert!(!tale.election.may_write(tale.now));
    assert_eq!(tale.pass_to(3), Turn::Same);
    assert_eq!(tale.ask(), None);
    assert_eq!(tale.election.wake(), None);
}

/// S1.3: the answer to the renewal is not waited for, and it was granted.
#[test]
fn letting_go_while_a_renewal_is_on_its_way_reads_the_lease_and_lets_it_go_as_it_is() {
    let mut tale = Tale::new();
    tale.lead();
    tale.pass_to(2);
    assert!(matches!(tale.ask(), Some(Request::Write(_))));
    tale.election.release(tale.now);
    tale.writes(&conflict());
    tale.reads(Some(&lease("me", 2, 2)));
    assert_eq!(tale.writes(&conflict())["holderIdentity"], "");
    // Once more, and that was all.
    assert_eq!(tale.ask(), None);
    assert_eq!(tale.election.wake(), None);
}

#[test]
fn letting_go_after_a_doubtful_renewal_reads_first_and_leaves_what_is_not_ours() {
    for (holder, is_written) in [("me", true), ("other", false)] {
        let mut tale = Tale::new();
        tale.lead();
        tale.pass_to(2);
        tale.writes(&WriteOutcome::Unknown { message: "".into() });
        tale.election.release(tale.now);
        tale.reads(Some(&lease(holder, 2, 2)));
        assert_eq!(tale.ask().is_some(), is_written, "{holder}");
    }
}

#[test]
fn a_lease_says_no_less_than_what_its_holder_counts_on() {
    let mut tale = Tale::with(ElectionSettings {
        lease_ms: 15_900,
        renew_ms: 15_500,
        ..ElectionSettings::new("ns", "volcano", "me")
    });
    tale.reads(None);
    let spec = tale.writes(&done(1));
    assert!(tale.election.may_write(at(15)));
    // Who saw it at once takes it after so long.
    assert_eq!(spec["leaseDurationSeconds"], 16);
}

#[test]
fn of_several_leases_all_are_held_and_asked_for_in_their_order() {
    let mut settings = ElectionSettings::new("ns", "volcano", "me");
    settings.names = vec!["volcano".into(), "agent".into(), "volcano".into()];
    let mut tale = Tale::with(settings);
    tale.reads(None);
    tale.writes(&done(1));
    assert_eq!(tale.pass_to(0), Turn::Same);
    tale.reads(Some(&lease("other", 0, 8)));
    let (key, holder) = tale.election.held_elsewhere(tale.now).expect("held");
    assert_eq!((&*key.name, holder), ("volcano", "other"));
    assert!(!tale.election.may_write(tale.now));
}

#[test]
fn times_that_cannot_work_are_refused_in_upstreams_words() {
    let settings = |lease_ms, renew_ms, retry_ms| {
        let usual = ElectionSettings::new("ns", "volcano", "me");
        let settings = ElectionSettings {
            lease_ms,
            renew_ms,
            retry_ms,
            ..usual
        };
        settings.problem().unwrap_or("fine")
    };
    assert_eq!(settings(15_000, 10_000, 2_000), "fine");
    assert_eq!(
        settings(10_000, 10_000, 2_000),
        "leaseDuration must be greater than renewDeadline"
    );
    assert_eq!(
        settings(15_000, 2_400, 2_000),
        "renewDeadline must be greater than retryPeriod*JitterFactor"
    );
}

#[test]
fn every_scheduler_name_has_a_lease_of_its_own() {
    let leases = |names: &[&str]| {
        ElectionSettings::of_names("ns", names.iter().copied(), "", "me")
            .names
            .join(" ")
    };
    assert_eq!(leases(&["volcano"]), "volcano");
    assert_eq!(leases(&["b", "agent-scheduler", "b"]), "agent-scheduler b");
    assert_eq!(leases(&["b", "a"]), leases(&["a", "b"]));
    let none = ElectionSettings::of_names("ns", [], "", "me");
    assert_eq!(
        none.problem(),
        Some("an election needs the name of a lease")
    );
}

/// How long after the last renewal of a holder that died all its Leases are held by one that waited, in
/// milliseconds.
fn takeover_ms(names: &[&str], seed: u64) -> i64 {
    let mut settings = ElectionSettings::new("ns", "", "me");
    settings.names = names.iter().map(|name| (*name).into()).collect();
    let mut election = Election::new(&settings, seed);
    let phase = i64::try_from(seed * 37 % 2_000).expect("it is small");
    let died = at(20).plus_ms(phase);
    let renewed_ms =
        |now: Time| (now.min(died).micros() / 1_000 - phase).div_euclid(2_000) * 2_000 + phase;
    let (mut now, mut asked, mut taken) = (at(0).plus_ms(phase), 0, BTreeMap::new());
    while now < at(90) {
        if election.turn(now) == Turn::Won {
            return (now.micros() - died.micros()) / 1_000;
        }
        asked += 1;
        match election.poll(RequestId(asked), now) {
            None => {
                now = election
                    .wake()
                    .map_or(at(90), |wake| wake.max(now.plus_ms(1)))
            }
            Some(Request::Get { key }) => {
                let mut found = lease("other", 0, 2);
                found.spec.renew_time = Some(Time(renewed_ms(now) * 1_000));
                let found = taken.get(&key).unwrap_or(&found);
                election.got(RequestId(asked), Ok(Some(found)), now);
            }
            Some(Request::Write(intent)) => {
                taken.insert(intent.target, lease("me", 0, 3));
                election.written(RequestId(asked), &done(3), now);
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("nobody takes over: {names:?} {seed}")
}

#[test]
fn s1_3_whoever_dies_is_followed_within_its_lease_and_one_retry_however_many_leases_it_held() {
    for names in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let took: Vec<i64> = (0..500).map(|seed| takeover_ms(names, seed)).collect();
        let (least, most) = (took.iter().min(), took.iter().max());
        assert!(most <= Some(&17_000), "{names:?}: {most:?}");
        // Never before the holder has stopped.
        assert!(least >= Some(&15_000), "{names:?}: {least:?}");
    }
}

#[test]
fn a_lease_whose_turn_it_is_not_is_read_and_left() {
    let mut settings = ElectionSettings::new("ns", "", "me");
    settings.names = vec!["a".into(), "b".into()];
    let mut tale = Tale::with(settings);
    tale.reads(Some(&lease("other", 0, 2)));
    tale.reads(None);
    assert!(tale.ask().is_none());
    assert!(tale.election.wake() > Some(tale.now));
}

#[test]
fn s1_9_what_may_be_read_and_not_written_is_told_once() {
    let mut election = Election::new(&ElectionSettings::new("ns", "volcano", "me"), 7);
    let refused = |message: &str| Refusal {
        code: 403,
        reason: "Forbidden".into(),
        message: message.into(),
        retry_after_seconds: None,
    };
    let (no, other) = (refused("no"), refused("namespaces \"ns\" not found"));
    let mut said = Vec::new();
    for refusal in [&no, &no, &other, &other, &no] {
        assert_eq!(election.trouble(Deed::Read, None), None);
        said.extend(election.trouble(Deed::Write, Some(refusal)));
    }
    assert_eq!(said, [&*no.message, &*other.message, &*no.message]);
    assert_eq!(election.trouble(Deed::Write, None), None);
    assert!(election.trouble(Deed::Write, Some(&no)).is_some());
}
