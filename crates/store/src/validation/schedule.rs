//! The grammar of cron schedules, with the words of the parser that the real server uses.

/// Bounds and names of a field.
struct Field {
    min: u64,
    max: u64,
    names: &'static [&'static str],
    first: u64,
}

const FIELDS: &[Field] = &[
    Field {
        min: 0,
        max: 59,
        names: &[],
        first: 0,
    },
    Field {
        min: 0,
        max: 23,
        names: &[],
        first: 0,
    },
    Field {
        min: 1,
        max: 31,
        names: &[],
        first: 0,
    },
    Field {
        min: 1,
        max: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        first: 1,
    },
    Field {
        min: 0,
        max: 6,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        first: 0,
    },
];

/// Schedules with a name.
const DESCRIPTORS: &[&str] = &[
    "@annually",
    "@daily",
    "@hourly",
    "@midnight",
    "@monthly",
    "@weekly",
    "@yearly",
];

/// Says what is wrong with a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if let Some(zoned) = schedule
        .strip_prefix("CRON_TZ=")
        .or_else(|| schedule.strip_prefix("TZ="))
    {
        let Some((zone, after)) = zoned.split_once(' ') else {
            return Err(format!("invalid schedule format: {schedule}"));
        };
        if let Some(why) = unknown_zone(zone) {
            return Err(format!("provided bad location {zone}: {why}"));
        }
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (text, field) in fields.iter().zip(FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            check_range(range, field)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) if api::duration::Duration::parse(duration).is_ok() => Ok(()),
        Some(duration) => Err(format!(
            "failed to parse duration {text}: time: invalid duration {duration:?}"
        )),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

fn check_range(range: &str, field: &Field) -> Result<(), String> {
    let parts: Vec<&str> = range.split('/').collect();
    let limits: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = if matches!(limits[0], "*" | "?") {
        (field.min, field.max)
    } else {
        let start = number_or_name(limits[0], field)?;
        let end = match limits.len() {
            1 => start,
            2 => number_or_name(limits[1], field)?,
            _ => return Err(format!("too many hyphens: {range}")),
        };
        (start, end)
    };
    let step = match parts.len() {
        1 => 1,
        2 => {
            if limits.len() == 1 {
                end = field.max;
            }
            number(parts[1])?
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    let (min, max) = (field.min, field.max);
    match () {
        () if start < min => Err(format!(
            "beginning of range ({start}) below minimum ({min}): {range}"
        )),
        () if end > max => Err(format!(
            "end of range ({end}) above maximum ({max}): {range}"
        )),
        () if start > end => Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        )),
        () if step == 0 => Err(format!(
            "step of range should be a positive number: {range}"
        )),
        () => Ok(()),
    }
}

fn number_or_name(text: &str, field: &Field) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match field.names.iter().position(|name| *name == lower) {
        Some(at) => Ok(field.first + at as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"
        ));
    }
    let number: i64 = text.parse().map_err(|_| {
        format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: value out of range"
        )
    })?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

fn unknown_zone(zone: &str) -> Option<String> {
    let is_known = matches!(zone, "" | "Local" | "UTC") || api::time::is_zone(zone);
    (!is_known).then(|| format!("unknown time zone {zone}"))
}

/// Longest part of a zone's name.
const PART_BYTES_MAX: usize = 14;

/// What is wrong with the zone of a schedule.
pub(super) fn check_zone(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+');
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= PART_BYTES_MAX
            && part.bytes().all(is_letter)
    };
    if !zone.split('/').all(is_part) {
        return vec![format!("unknown time zone {zone}")];
    }
    let mut wrong = Vec::new();
    if zone.eq_ignore_ascii_case("local") {
        wrong.push(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    wrong.extend(unknown_zone(zone));
    wrong
}
