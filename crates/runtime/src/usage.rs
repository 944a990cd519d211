//! What this process uses of its machine, as Linux tells it below `/proc/self`.

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

/// What was used up to now, and is held now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on processors, its own and that of the system on its behalf, in microseconds.
    pub cpu_micros: u64,
    /// Files, sockets and the like that are open.
    pub open_files: Option<u64>,
    /// So many may be; `None` where there is no limit.
    pub open_files_max: Option<u64>,
    /// Memory that is in the machine's, in bytes.
    pub resident_bytes: u64,
    /// Memory that is set aside by name, in bytes.
    pub virtual_bytes: u64,
    /// So much may be; `None` where there is no limit.
    pub virtual_bytes_max: Option<u64>,
    /// When it began, in microseconds since 1970.
    pub began_micros: Option<u64>,
}

/// What it uses now; `None` where the system does not tell.
pub fn usage() -> Option<Usage> {
    let units = Units {
        ticks: setting(SysconfVar::CLK_TCK)?,
        page_bytes: setting(SysconfVar::PAGE_SIZE)?,
    };
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok();
    let booted = system.as_deref().and_then(booted);
    let open = std::fs::read_dir("/proc/self/fd").ok();
    // The directory that is being read is one of them.
    let open = open.map(|files| (files.count() as u64).saturating_sub(1));
    Some(Usage {
        open_files: open,
        open_files_max: limit(Resource::RLIMIT_NOFILE),
        virtual_bytes_max: limit(Resource::RLIMIT_AS),
        ..read(&line, &units, booted)?
    })
}

/// What the system counts in.
struct Units {
    /// Ticks in a second.
    ticks: u64,
    page_bytes: u64,
}

fn setting(which: SysconfVar) -> Option<u64> {
    let value = sysconf(which).ok().flatten()?;
    u64::try_from(value).ok().filter(|value| *value > 0)
}

fn limit(which: Resource) -> Option<u64> {
    let (soft, _) = getrlimit(which).ok()?;
    (soft != nix::libc::RLIM_INFINITY).then_some(soft)
}

/// When the machine started, in seconds since 1970, from the lines of `/proc/stat`.
fn booted(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("btime "));
    line?.trim().parse().ok()
}

/// The line of `/proc/self/stat` (proc_pid_stat(5)). The second of its fields is the program's name in
/// brackets, which may hold anything; those behind it are numbers, but for the first.
fn read(line: &str, units: &Units, booted: Option<u64>) -> Option<Usage> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // By their numbers in the manual, where the first behind the name is 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let micros = |ticks: u64| ticks.saturating_mul(1_000_000) / units.ticks;
    let began = micros(field(22)?);
    Some(Usage {
        cpu_micros: micros(field(14)?.saturating_add(field(15)?)),
        virtual_bytes: field(23)?,
        resident_bytes: field(24)?.saturating_mul(units.page_bytes),
        began_micros: booted.map(|seconds| seconds.saturating_mul(1_000_000).saturating_add(began)),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_by_the_numbers_of_its_fields() {
        let line = "7 (a) b (c)) S 1 7 7 0 -1 4194560 500 0 0 0 250 50 0 0 20 0 9 0 12345 1048576 256 18446744073709551615 1";
        let units = Units {
            ticks: 100,
            page_bytes: 4_096,
        };
        let usage = read(line, &units, Some(1_000)).expect("it is such a line");
        assert_eq!(
            (usage.cpu_micros, usage.virtual_bytes, usage.resident_bytes),
            (3_000_000, 1_048_576, 1_048_576)
        );
        assert_eq!(usage.began_micros, Some(1_123_450_000));
        assert_eq!(read("7 (a) S 1", &units, None), None);
        assert_eq!(booted("cpu 1 2\nbtime 1700\n"), Some(1_700));
    }

    #[test]
    fn this_process_uses_something() {
        let usage = usage().expect("the system tells");
        assert!(usage.resident_bytes > 1 << 16 && usage.virtual_bytes >= usage.resident_bytes);
        assert!(usage.open_files.is_some_and(|open| open >= 3));
        let began = usage.began_micros.expect("it tells when it began");
        let now = u64::try_from(crate::clock::now().micros()).expect("it is after 1970");
        // A tick more, and what the second that the machine started in leaves open.
        assert!(began < now + 1_100_000, "{began} {now}");
    }
}
