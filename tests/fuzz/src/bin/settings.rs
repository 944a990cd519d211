//! What operators write in files, flags, annotations and plugin arguments: all of it is read or refused.
#![no_main]

use api::cron::{Schedule, Zone};
use api::duration::Duration;
use api::time::Time;
use api::volcano::device_config::DeviceConfig;
use api::volcano::scheduler_conf::{Remarks, SchedulerConf};
use api::volcano::{DiscoveryConf, JOB_PLUGINS, ShardingConf};
use katmai_fuzz::choose;

const READERS: [fn(&str); 7] = [
    |text| drop(SchedulerConf::read(text.as_bytes(), &mut Remarks::default())),
    |text| drop(ShardingConf::read(text)),
    |text| drop(DeviceConfig::read(text)),
    |text| drop(DiscoveryConf::read(text)),
    schedule,
    |text| drop(Duration::parse(text)),
    arguments,
];

/// A schedule's times go forward.
fn schedule(text: &str) {
    let Ok(schedule) = Schedule::parse(text) else { return };
    let zone = Zone::find("Europe/Berlin").expect("everybody has it");
    let mut at = Time::from_seconds(1_800_000_000);
    for _ in 0..4 {
        let Some(next) = schedule.next(at, &zone) else { return };
        assert!(next > at, "{text}: {next:?} after {at:?}");
        at = next;
    }
}

fn arguments(text: &str) {
    let words: Vec<Box<str>> = text.split_whitespace().map(Into::into).collect();
    for plugin in JOB_PLUGINS {
        let read = plugin.read(&words);
        assert!(read.given.len() <= words.len(), "{text}");
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((reader, bytes)) = choose(&READERS, bytes) else { return };
    if let Ok(text) = std::str::from_utf8(bytes) {
        reader(text);
    }
});
