//! The decision log of a driver, each segment as a file, and such a file played again.

use api::time::Time;
use driver::log::{Encoder, Header, Record, Replay, Segment, Summary, Tokens, frame, opening};

use super::World;

const KEY: [u8; 16] = *b"the key of tests";

/// What a driver did so far: each segment as a file, under the settings that it began by.
pub fn segments(world: &mut World) -> Vec<Vec<u8>> {
    let tokens = Tokens::keyed(KEY);
    let mut files: Vec<Vec<u8>> = Vec::new();
    let mut encoder = Encoder::new(tokens.clone());
    for record in world.driver.take_records() {
        if let Record::Began { settings, .. } = &record {
            let header = Header::new(settings, &tokens, "1.2.3", 0, Time::from_seconds(1_000));
            files.push(opening(&header));
            encoder = Encoder::new(tokens.clone());
        }
        let mut records = Vec::new();
        encoder.put(&record, &mut records);
        let file = files.last_mut().expect("a segment begins first");
        file.extend_from_slice(&frame(&records));
    }
    files
}

/// Plays a segment again, which must come to the same.
pub fn played(file: &[u8]) -> Summary {
    let segment = Segment::read(file).expect("it was written just now");
    let replay = Replay::new(&segment, Tokens::keyed(KEY)).expect("its settings are known");
    let summary = replay.run(None, &mut |_| {}).expect("it is undamaged");
    assert_eq!(summary.difference, None);
    summary
}

/// Plays again what a driver did that was checkpointed in between.
pub fn all_played(world: &mut World) {
    let files = segments(world);
    assert!(files.len() > 1, "it is checkpointed in between");
    for file in files {
        played(&file);
    }
}
