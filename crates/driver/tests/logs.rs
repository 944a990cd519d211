//! The decision log of a small plane, written, played again, asked about and damaged.

mod world;

use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use controllers::{Controller, Step};
use driver::log::{
    Encoder, Header, Problem, Record, Replay, Segment, Tokens, frame, opening, settings_of,
};
use driver::{EngineSettings, Settings};
use engine::Engine;
use serde_json::json;
use world::{World, settings};

const KEY: [u8; 16] = *b"the key of tests";

/// Looks at Jobs, so that they are seen, and leaves them as they are.
const ONLOOKER: Controller = Controller {
    name: "onlooker",
    component: "test",
    tells_refused: &[],
    watches: &[Kind::VcJob],
    keys: |_, _, _| {},
    step: |_| Step::idle(),
};

fn placing() -> Settings {
    let mut settings = settings(&[ONLOOKER]);
    settings.engine = Some(EngineSettings::new(Engine::with_defaults()));
    settings
}

/// A node with one and a half CPUs and a queue, recorded from the beginning.
fn plane() -> World {
    let mut world = World::new(placing());
    world.driver.record(world.now);
    node(&mut world, "1500m");
    world.put_queues();
    world
}

fn node(world: &mut World, cpu: &str) {
    let node =
        json!({ "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "110" } } });
    world.put_object(Kind::Node, "node-1", &node);
}

/// A gang of pods with a CPU each, owned by a Job.
fn gang(world: &mut World, pods: u32) {
    let job = json!({ "metadata": { "uid": "uid-training" }, "spec": {} });
    world.put_object(Kind::VcJob, "training", &job);
    let group = json!({
        "metadata": { "ownerReferences": [{
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "training",
            "uid": "uid-training", "controller": true,
        }]},
        "spec": { "minMember": pods, "queue": "default" },
        "status": { "phase": "Pending" },
    });
    world.put_object(Kind::PodGroup, "training-1", &group);
    for at in 0..pods {
        let pod = json!({
            "metadata": { "annotations": {
                "scheduling.k8s.io/group-name": "training-1",
                "volcano.sh/task-spec": "worker",
            }},
            "spec": {
                "schedulerName": "volcano",
                "containers": [{
                    "name": "c",
                    "env": [{ "name": "PASSWORD", "value": "hunter2" }],
                    "resources": { "requests": { "cpu": "1" } },
                }],
            },
            "status": { "phase": "Pending" },
        });
        world.put_object(Kind::Pod, &format!("worker-{at}"), &pod);
    }
}

/// Two pods wait for room until their node grows.
fn story() -> World {
    let mut world = plane();
    world.pass_ms(1_000);
    gang(&mut world, 2);
    world.pass_ms(60_000);
    node(&mut world, "2");
    world.pass_ms(2_000);
    world
}

/// What a driver did so far, as a file of frames of so many bytes at least.
fn segment(world: &mut World, settings: &Settings, frame_bytes: usize) -> Vec<u8> {
    let tokens = Tokens::keyed(KEY);
    let mut encoder = Encoder::new(tokens.clone());
    let header = Header::new(settings, &tokens, "1.2.3", 0, Time::from_seconds(1_000));
    let mut file = opening(&header);
    let mut records = Vec::new();
    for record in world.driver.take_records() {
        encoder.put(&record, &mut records);
        if records.len() >= frame_bytes || matches!(record, Record::Began { .. }) {
            file.extend_from_slice(&frame(&std::mem::take(&mut records)));
        }
    }
    file.extend_from_slice(&frame(&records));
    file
}

/// What is told of an object when the story is played again.
fn explained(key: ObjectKey) -> Vec<String> {
    let file = segment(&mut story(), &placing(), 1_000);
    let segment = Segment::read(&file).expect("it was written just now");
    let replay = Replay::by(&segment, placing(), Tokens::keyed(KEY)).expect("it is undamaged");
    let mut told = Vec::new();
    let summary = replay
        .explaining(key)
        .run(None, &mut |moment| {
            let seconds = moment.now.micros() / 1_000_000 - 1_000;
            let lines = moment.steps.iter();
            told.extend(lines.map(|line| format!("{seconds} s: {line}")));
        })
        .expect("it was written just now");
    assert_eq!(summary.difference, None);
    told
}

#[test]
fn the_verdicts_of_cycles_are_told_for_the_gang_of_an_object() {
    let wanted = [
        "1 s: a cycle: its gang ns/training-1 waits (NoFit): \
         1 of 2 tasks fit: worker-1 needs 1 cpu, node-1 has 500m left",
        "61 s: a cycle: its gang ns/training-1 is whole; \
         places worker-0 on node-1, worker-1 on node-1",
    ];
    let told = [
        (Kind::PodGroup, "training-1"),
        (Kind::Pod, "worker-0"),
        (Kind::VcJob, "training"),
    ];
    for (kind, name) in told {
        assert_eq!(
            explained(ObjectKey::new(kind, "ns", name)),
            wanted,
            "{name}"
        );
    }
    let other = ObjectKey::new(Kind::Pod, "ns", "somebody");
    assert_eq!(explained(other), [""; 0]);
}

/// Reads and plays; `false` where what comes out is something else.
fn play(bytes: &[u8]) -> Result<bool, Problem> {
    let segment = Segment::read(bytes)?;
    let replay = Replay::by(&segment, placing(), Tokens::keyed(KEY))?;
    let summary = replay.run(None, &mut |_| {})?;
    Ok(summary.difference.is_none())
}

/// Takes a file's frames apart: where each begins, and what it holds.
fn frames(file: &[u8]) -> Vec<(usize, &[u8])> {
    let mut at = 10;
    let mut all = Vec::new();
    while at < file.len() {
        let length = file[at..at + 4].try_into().expect("four bytes");
        let end = at + 12 + u32::from_le_bytes(length) as usize;
        all.push((at, &file[at + 12..end]));
        at = end;
    }
    all
}

#[test]
fn a_log_that_ends_at_any_byte_is_played_as_far_as_it_goes_or_is_said_to_be_empty() {
    let whole = segment(&mut story(), &placing(), 400);
    let starts: Vec<usize> = frames(&whole).iter().map(|(at, _)| *at).collect();
    assert!(starts.len() > 8, "{starts:?}");
    let mut played = 0;
    for end in 0..whole.len() {
        let cut = &whole[..end];
        // The header and a frame of records make the shortest log.
        if end < starts[2] {
            assert_eq!(play(cut).unwrap_err(), Problem::Empty, "cut at {end}");
            continue;
        }
        let segment = Segment::read(cut).expect("two frames are whole");
        let last = starts
            .iter()
            .rfind(|at| **at <= end)
            .expect("some begin before");
        let left = (end - last) as u64;
        assert_eq!(
            segment.torn.map(|torn| (torn.offset, torn.bytes)),
            (left > 0).then_some((*last as u64, left)),
            "cut at {end}"
        );
        // The tail of a frame is left out, so that each frame's beginnings all play the same.
        if left <= 1 {
            assert_eq!(play(cut), Ok(true), "cut at {end}");
            played += 1;
        }
    }
    assert!(played > 10, "{played} cuts left something to play");
}

#[test]
fn a_byte_that_changed_anywhere_is_told_with_its_place_or_cuts_off_the_tail() {
    let whole = segment(&mut story(), &placing(), 400);
    let last = frames(&whole).last().expect("there are some").0;
    let mut is_tail_played = false;
    for at in 0..whole.len() {
        for mask in [1 << (at % 8), 0xff] {
            let mut broken = whole.clone();
            broken[at] ^= mask;
            match Segment::read(&broken) {
                Ok(segment) => {
                    assert!(at >= last + 8, "byte {at} may not change unnoticed");
                    assert_eq!(segment.torn.map(|torn| torn.offset), Some(last as u64));
                    if !is_tail_played {
                        assert_eq!(play(&broken), Ok(true));
                        is_tail_played = true;
                    }
                }
                Err(Problem::Damaged { offset, .. }) => {
                    assert!(offset <= at as u64, "byte {at} was told as {offset}");
                }
                Err(problem) => assert!(at < 10, "byte {at}: {problem}"),
            }
        }
    }
    assert!(is_tail_played);
}

/// The file with another payload in one of its frames, under a right sum.
fn forged(whole: &[u8], start: usize, old: usize, payload: &[u8]) -> Vec<u8> {
    let mut forged = whole[..start].to_vec();
    forged.extend_from_slice(&frame(payload));
    forged.extend_from_slice(&whole[start + 12 + old..]);
    forged
}

fn changed(payload: &[u8], at: usize) -> Vec<u8> {
    let mut payload = payload.to_vec();
    payload[at] ^= if at.is_multiple_of(2) {
        1 << (at % 8)
    } else {
        0xff
    };
    payload
}

#[test]
fn a_byte_that_changed_under_its_sum_is_told_or_makes_another_log() {
    let whole = segment(&mut story(), &placing(), 400);
    let (mut told, mut differs, mut same) = (0, 0, 0);
    for (start, payload) in &frames(&whole)[1..] {
        for at in 0..payload.len() {
            let forged = forged(&whole, *start, payload.len(), &changed(payload, at));
            match play(&forged) {
                Ok(true) => same += 1,
                Ok(false) => differs += 1,
                Err(Problem::Damaged { offset, .. }) => {
                    assert!(offset <= forged.len() as u64, "{offset}");
                    told += 1;
                }
                Err(problem) => panic!("byte {at}: {problem}"),
            }
        }
    }
    let counts = [told, differs, same];
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_header_that_changed_under_its_sum_is_told_or_names_other_settings() {
    let whole = segment(&mut story(), &settings(&[]), 400);
    let (start, header) = frames(&whole)[0];
    let (mut unreadable, mut unknown) = (0, 0);
    for at in 0..header.len() {
        let forged = forged(&whole, start, header.len(), &changed(header, at));
        match Segment::read(&forged) {
            Err(Problem::Damaged { offset: 22, .. }) => unreadable += 1,
            Err(problem) => panic!("byte {at}: {problem}"),
            Ok(segment) => {
                // Whatever the settings have become, they are compared; those that cannot be
                // understood are named.
                segment.header.differs_from(&settings(&[]));
                let known = settings_of(&segment.header.settings);
                let what = known.err().unwrap_or_default();
                unknown += u32::from(!what.is_empty());
            }
        }
    }
    assert!(unreadable > 0 && unknown > 0, "{unreadable} {unknown}");
}

#[test]
fn features_that_were_off_are_off_when_the_log_is_played_again() {
    let off = mirror::Features {
        device_claims: false,
        spread_label_keys: false,
        ..mirror::Features::default()
    };
    let mut settings = settings(&[]);
    settings.engine = Some(EngineSettings {
        features: off,
        ..EngineSettings::new(Engine::with_defaults())
    });
    let tokens = Tokens::keyed(KEY);
    let header = Header::new(&settings, &tokens, "1.2.3", 0, Time::from_seconds(1_000));
    let read = settings_of(&header.settings).expect("they are understood");
    assert_eq!(read.engine.expect("it places").features, off);
}

#[test]
fn what_is_foreign_newer_or_made_by_unknown_settings_is_refused_by_name() {
    let whole = segment(&mut story(), &placing(), 400);
    let foreign = play(b"apiVersion: v1").unwrap_err();
    assert_eq!(foreign.to_string(), "this is no decision log");
    let mut newer = whole.clone();
    newer[8] = 9;
    assert_eq!(
        play(&newer).unwrap_err().to_string(),
        "the log has format 9, and this version of katmai reads up to 2"
    );
    let mut older = whole.clone();
    older[8] = 1;
    assert_eq!(
        play(&older).unwrap_err().to_string(),
        "the log has format 1, and this version of katmai reads format 2"
    );
    // The onlooker is the test's own.
    let segment = Segment::read(&whole).expect("it was written just now");
    let problem = Replay::new(&segment, Tokens::keyed(KEY)).expect_err("nobody knows the onlooker");
    assert_eq!(
        problem.to_string(),
        "the log was made by settings that are not understood: no controller is called onlooker"
    );
    let differs: Vec<String> = segment
        .header
        .differs_from(&settings(&[]))
        .iter()
        .map(ToString::to_string)
        .filter(|line| !line.starts_with("engine"))
        .collect();
    assert_eq!(
        differs,
        [r#"controllers: ["onlooker"] in the log, [] here"#]
    );
}
