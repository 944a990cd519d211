//! Segments come and go, disks fill up and stand still; no test waits for a clock.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use api::time::Time;
use driver::Driver;
use driver::log::{Encoder, Problem, Replay, Segment, Tokens, settings_of};
use serde_json::json;

use super::shelf::{Directory, Shelf, Sink};
use super::writer::{AGAIN_MS, Parcel, SEGMENTS_WANTED, Signals, Writer};
use super::{DecisionLog, FRAME_BYTES, KEY, SUFFIX, WAITING_MAX, Wish, name_of};

const HOUR_MS: i64 = 3_600_000;

/// A driver that decides nothing, which is enough to be logged.
fn driver() -> Driver {
    let settings = json!({
        "controllers": [], "schedulerNames": [], "inheritOwnerAnnotations": true,
        "volumesDirectory": "", "clusterCa": "", "serviceGate": "Observed",
        "serviceGateDeadlineMs": 0, "terminatedPodsMax": 0, "writesPerStepMax": 1,
        "podsAheadMax": 1, "heardSince": 0, "serviceAccounts": false, "engine": null,
        "limits": {
            "listPage": 500, "watchSeconds": 300, "writesInFlightMax": 64,
            "writesQueuedMax": 512, "notesQueuedMax": 100, "unseenMaxMs": 30_000,
            "failuresMax": null, "stepsPerTurnMax": 256, "cycleGapMs": 2,
            "volumesWaitMaxMs": 600_000, "noticesMax": 1_024,
        },
        "election": null, "seed": 1,
    });
    Driver::new(settings_of(&settings).expect("every setting is there"))
}

fn wish() -> Wish {
    Wish {
        directory: "the-log".into(),
        keep_ms: 24 * HOUR_MS,
        bytes_max: 1 << 30,
        segment_ms: HOUR_MS,
        binary: "1.2.3",
    }
}

fn tokens() -> Tokens {
    Tokens::keyed(*b"the key of tests")
}

fn begins() -> Time {
    Time::from_seconds(1_700_000_000)
}

/// Time passes for a driver, which makes two records.
fn live(driver: &mut Driver, now: Time) {
    driver.handle_time(now);
    while driver.poll_request(now).is_some() {}
}

/// A shelf in memory with room for so many bytes, and a door that may be shut.
#[derive(Clone)]
struct Memory(Arc<Mutex<Room>>);

#[derive(Default)]
struct Room {
    files: BTreeMap<String, Vec<u8>>,
    room: usize,
    /// A writer that comes tells the first, and waits for the second.
    door: Option<(Sender<()>, Receiver<()>)>,
}

struct Open {
    memory: Memory,
    name: String,
}

impl Memory {
    fn with_room(room: usize) -> Memory {
        Memory(Arc::new(Mutex::new(Room {
            room,
            ..Room::default()
        })))
    }

    fn room(&self) -> std::sync::MutexGuard<'_, Room> {
        self.0.lock().expect("no test panicked with it")
    }

    fn names(&self) -> Vec<String> {
        self.room().files.keys().cloned().collect()
    }

    /// Shuts the door: what tells that a writer came to it, and what opens it.
    fn shut(&self) -> (Receiver<()>, Sender<()>) {
        let (comes, came) = channel();
        let (opens, goes) = channel();
        self.room().door = Some((comes, goes));
        (came, opens)
    }

    /// Plays every segment; how many requests and other things happened in each.
    fn play(&self) -> Vec<u64> {
        let files = self.room().files.clone();
        files.values().map(|file| events(file)).collect()
    }
}

fn events(file: &[u8]) -> u64 {
    let segment = Segment::read(file).expect("it is whole");
    assert_eq!(segment.torn, None);
    let replay = Replay::new(&segment, tokens()).expect("its settings are known");
    let summary = replay.run(None, &mut |_| {}).expect("it is whole");
    assert_eq!(summary.difference, None);
    summary.events
}

impl Shelf for Memory {
    fn begin(&mut self, name: &str) -> io::Result<Box<dyn Sink>> {
        self.room().files.insert(name.to_owned(), Vec::new());
        Ok(Box::new(Open {
            memory: self.clone(),
            name: name.to_owned(),
        }))
    }

    fn all(&self) -> io::Result<Vec<(String, u64)>> {
        let room = self.room();
        let all = room.files.iter();
        Ok(all
            .map(|(name, file)| (name.clone(), file.len() as u64))
            .collect())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let gone = self.room().files.remove(name);
        gone.map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Sink for Open {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let door = self.memory.room().door.take();
        if let Some((comes, goes)) = door {
            comes.send(()).expect("the test listens");
            goes.recv().expect("the test opens");
        }
        let mut room = self.memory.room();
        let used: usize = room.files.values().map(Vec::len).sum();
        let fits = room.room.saturating_sub(used).min(bytes.len());
        let file = room.files.entry(self.name.clone()).or_default();
        file.extend_from_slice(&bytes[..fits]);
        match fits == bytes.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut room = self.memory.room();
        let file = room.files.entry(self.name.clone()).or_default();
        file.truncate(usize::try_from(length).expect("it is short"));
        Ok(())
    }
}

/// A driver, its log and the writer of it, without a thread between them.
struct Desk {
    driver: Driver,
    log: DecisionLog,
    taken: Receiver<Parcel>,
    returns: Sender<Encoder>,
    writer: Writer<Memory>,
    memory: Memory,
    now: Time,
}

impl Desk {
    fn new(memory: Memory, wish: Wish) -> Desk {
        let mut driver = driver();
        let signals = Arc::new(Signals::default());
        driver.record(begins());
        let (log, taken, returns) =
            DecisionLog::new(&tokens(), wish.segment_ms, Arc::clone(&signals), begins());
        Desk {
            driver,
            log,
            taken,
            returns,
            writer: Writer::new(wish, tokens(), memory.clone(), signals),
            memory,
            now: begins(),
        }
    }

    /// The writer is given what the driver did.
    fn hand_in(&mut self) {
        self.log.take(&mut self.driver, self.now);
        while let Ok(parcel) = self.taken.try_recv() {
            if let Some(encoder) = self.writer.take(parcel) {
                self.returns.send(encoder).expect("the log is there");
            }
        }
    }

    /// The driver lives for so many seconds, what it did is written, and a segment that is asked for
    /// begins.
    fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now = self.now.plus_ms(1_000);
            live(&mut self.driver, self.now);
        }
        self.hand_in();
    }
}

#[test]
fn a_segment_begins_every_hour_and_those_that_ended_a_day_ago_go() {
    let memory = Memory::with_room(usize::MAX);
    let mut driver = driver();
    let log = DecisionLog::begin_on(memory.clone(), tokens(), wish(), &mut driver, begins());
    let mut log = log.expect("a thread");
    for minutes in 1..=30 * 60 {
        let now = begins().plus_ms(minutes * 60_000);
        live(&mut driver, now);
        log.take(&mut driver, now);
    }
    log.end(&mut driver, begins().plus_ms(30 * HOUR_MS));
    let names = memory.names();
    // The one that ended 24 hours before the youngest began is still there.
    assert_eq!(names.len(), 26, "{names:?}");
    let began: Vec<&str> = names.iter().map(|name| &name[11..15]).collect();
    assert!(began.windows(2).all(|pair| pair[0] != pair[1]), "{began:?}");
    assert!(
        memory
            .play()
            .iter()
            .all(|events| (59..=62).contains(events))
    );
}

#[test]
fn a_clock_that_was_set_back_begins_a_segment() {
    let memory = Memory::with_room(usize::MAX);
    let mut driver = driver();
    let log = DecisionLog::begin_on(memory.clone(), tokens(), wish(), &mut driver, begins());
    let mut log = log.expect("a thread");
    for minutes in [1, 2, -600, -599, -598] {
        let now = begins().plus_ms(minutes * 60_000);
        live(&mut driver, now);
        log.take(&mut driver, now);
    }
    log.end(&mut driver, begins());
    // By its name the younger one stands first.
    assert_eq!(memory.play(), [1, 5]);
}

#[test]
fn segments_are_small_enough_that_the_oldest_can_go_before_there_are_too_many_bytes() {
    let bytes_max = 64 << 10;
    let wish = Wish {
        bytes_max,
        ..wish()
    };
    let mut desk = Desk::new(Memory::with_room(usize::MAX), wish);
    let mut first_gone = None;
    for turn in 0..400 {
        desk.pass(60);
        let all = desk.memory.all().expect("memory");
        let sum: u64 = all.iter().map(|(_, bytes)| bytes).sum();
        assert!(sum <= bytes_max, "{sum} bytes in turn {turn}");
        if first_gone.is_none() && !desk.memory.names().contains(&name_of(begins())) {
            first_gone = Some(all.len() as u64);
        }
    }
    assert_eq!(first_gone, Some(SEGMENTS_WANTED - 1));
    assert!(desk.memory.play().iter().all(|events| *events > 0));
    assert_eq!(desk.writer.notices, [""; 0]);
}

#[test]
fn a_full_disk_leaves_whole_frames_and_is_told_with_what_was_lost() {
    let mut desk = Desk::new(Memory::with_room(usize::MAX), wish());
    desk.pass(10);
    let before = desk.memory.play();
    assert_eq!(before, [10]);
    let used: u64 = desk
        .memory
        .all()
        .expect("memory")
        .iter()
        .map(|it| it.1)
        .sum();
    desk.memory.room().room = usize::try_from(used).expect("it is short") + 500;
    desk.pass(2_000);
    // The frame that did not fit is taken back to its last byte.
    assert_eq!(desk.memory.play(), before);
    let told = |desk: &mut Desk| std::mem::take(&mut desk.writer.notices);
    let stands_still = "the decision log in the-log stands still, a new segment is tried every 60 s: no storage space";
    assert_eq!(told(&mut desk), [stands_still]);
    // Later it is tried again: a segment that cannot begin leaves no file.
    for _ in 0..4 {
        desk.pass(AGAIN_MS / 1_000);
    }
    assert_eq!(desk.memory.names().len(), 1);
    assert_eq!(
        told(&mut desk).last().map(String::as_str),
        Some(stands_still)
    );
    // And once there is room, it goes on and tells what it lacks.
    desk.memory.room().room = usize::MAX;
    for _ in 0..4 {
        desk.pass(AGAIN_MS / 1_000);
    }
    let told = told(&mut desk);
    let lacks = told.last().expect("it tells");
    assert!(
        lacks.starts_with("the decision log in the-log lacks 4")
            && lacks.ends_with(" records that could not be written"),
        "{told:?}"
    );
    let after = desk.memory.play();
    assert_eq!(after.len(), 2);
    assert!(after[1] > 0, "{after:?}");
}

#[test]
fn a_writer_that_stands_still_is_given_no_more_than_it_can_hold_and_the_loss_is_told() {
    let memory = Memory::with_room(usize::MAX);
    let mut driver = driver();
    let log = DecisionLog::begin_on(memory.clone(), tokens(), wish(), &mut driver, begins());
    let mut log = log.expect("a thread");
    let mut now = begins();
    let mut turn = |driver: &mut Driver, log: &mut DecisionLog| {
        for _ in 0..4_096 {
            now = now.plus_ms(1);
            live(driver, now);
        }
        log.take(driver, now);
        log.signals.waiting.load(Ordering::Relaxed)
    };
    // The first time it comes it writes the checkpoint, then it stands before a frame.
    let (came, opens) = memory.shut();
    turn(&mut driver, &mut log);
    came.recv().expect("the writer comes to the door");
    let (came, opens_again) = memory.shut();
    opens.send(()).expect("the writer waits");
    let (mut most, mut told) = (0, Vec::new());
    while driver.metrics().records_lost < 100_000 {
        most = most.max(turn(&mut driver, &mut log));
        told.extend(std::iter::from_fn(|| driver.poll_notice()).map(|notice| notice.text));
    }
    came.recv().expect("the writer comes to the door");
    assert!(most >= WAITING_MAX, "{most}");
    assert!(most < WAITING_MAX + 2 * FRAME_BYTES, "{most}");
    assert!(driver.records_waiting() <= 100_000);
    // It says that there will be a gap, and where the log goes on.
    turn(&mut driver, &mut log);
    told.extend(std::iter::from_fn(|| driver.poll_notice()).map(|notice| notice.text));
    assert!(
        told[0].starts_with("the decision log falls behind: 100001 records are given up"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("the decision log goes on; "),
        "{told:?}"
    );
    opens_again.send(()).expect("the writer waits");
    log.end(&mut driver, now);
    // What was given up lies between segments, each of which is whole.
    assert!(memory.play().len() >= 2);
}

#[test]
fn nothing_is_on_disk_before_a_segment_has_its_checkpoint() {
    let mut desk = Desk::new(Memory::with_room(usize::MAX), wish());
    live(&mut desk.driver, desk.now);
    assert_eq!(desk.memory.names(), [""; 0]);
    desk.hand_in();
    assert_eq!(desk.memory.play(), [1]);
}

#[test]
fn a_directory_keeps_its_key_and_its_segments_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt;

    let path = std::env::temp_dir().join(format!("katmai-decisions-{}", std::process::id()));
    let wish = Wish {
        directory: path.clone(),
        ..wish()
    };
    for life in 0..2 {
        let mut driver = driver();
        let now = begins().plus_ms(life * 1_000);
        let log = DecisionLog::begin(wish.clone(), &mut driver, now).expect("a directory");
        live(&mut driver, now);
        log.end(&mut driver, now);
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&path).expect("it is there") {
        let entry = entry.expect("it is there");
        let mode = entry.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(
        names,
        [
            name_of(begins()),
            name_of(begins().plus_ms(1_000)),
            KEY.to_owned()
        ]
    );
    let key = Directory::open(&path)
        .and_then(|it| it.key())
        .expect("there is one");
    for name in &names[..2] {
        let file = std::fs::read(path.join(name)).expect("it is there");
        let segment = Segment::read(&file).expect("it is whole");
        assert!(segment.header.is_keyed_by(&Tokens::keyed(key)));
    }
    // Half of a key is no key, and nothing is logged under it.
    std::fs::write(path.join(KEY), b"half").expect("it is there");
    let again = DecisionLog::begin(wish, &mut driver(), begins());
    assert_eq!(
        again.err().map(|it| it.kind()),
        Some(io::ErrorKind::UnexpectedEof)
    );
    std::fs::remove_dir_all(&path).expect("it is there");
}

#[test]
fn names_sort_by_age() {
    let early = name_of(Time::from_seconds(1_700_000_000));
    let late = name_of(Time(1_700_000_000_000_001));
    assert!(early < late, "{early} {late}");
    assert!(!early.contains(':') && early.ends_with(SUFFIX));
    assert_eq!(Segment::read(b"KATMAIDL").unwrap_err(), Problem::Empty);
}
