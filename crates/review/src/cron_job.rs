//! Volcano's CronJobs: schedule, time zone and name.
//!
//! The template is not judged, as upstream: a job that cannot be made is told when it is due.

use api::cron::{Schedule, Zone};
use api::kind::Kind;
use api::names::{check_qualified, go_quote};

use crate::denials::Row;
use crate::denials::others::{
    BAD_NAME, BAD_SCHEDULE, EMPTY_ZONE, LOCAL_ZONE, LONG_NAME, NO_SCHEDULE, NO_ZONE, ODD_ZONE,
    ZONE_IN_SCHEDULE,
};
use crate::fields::text;
use crate::{Case, Rule, WRITES, Webhook};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/cronjobs/validate",
    name: "validatecronjob.volcano.sh",
    kind: Kind::VcCronJob,
    operations: WRITES,
    rule: Rule::Validate(validate),
};

/// A job's name is the CronJob's, a dash and ten digits, and may have 63 bytes.
const NAME_BYTES_MAX: usize = 52;

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    let spec = &case.object["spec"];
    let mut complaints = Vec::new();
    complaints.extend(schedule_complaint(text(spec, "schedule")).map(Row::plain));
    if let Some(zone) = spec["timeZone"].as_str() {
        zone_complaints(zone, &mut complaints);
    }
    complaints.extend(name_complaint(case.name));
    if complaints.is_empty() {
        return Ok(Vec::new());
    }
    Err(complaints.join("; "))
}

fn schedule_complaint(schedule: &str) -> Option<&'static Row> {
    if schedule.is_empty() {
        Some(&NO_SCHEDULE)
    } else if schedule.contains("TZ") {
        Some(&ZONE_IN_SCHEDULE)
    } else if Schedule::parse(schedule).is_err() {
        Some(&BAD_SCHEDULE)
    } else {
        None
    }
}

fn zone_complaints(zone: &str, complaints: &mut Vec<String>) {
    let mut complain = |row: &Row| complaints.push(row.plain());
    if zone.is_empty() {
        complain(&EMPTY_ZONE);
        return;
    }
    // Upstream says so once a part; once is enough.
    if zone.split('/').any(|part| !is_part(part)) {
        complain(&ODD_ZONE);
    }
    if zone.eq_ignore_ascii_case("Local") {
        complain(&LOCAL_ZONE);
    } else if Zone::find(zone).is_none() {
        complain(&NO_ZONE);
    }
}

/// A part of a zone's name, by the rules of the time zone database.
fn is_part(part: &str) -> bool {
    (1..=14).contains(&part.len())
        && part != "."
        && part != ".."
        && !part.starts_with('-')
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
}

fn name_complaint(name: &str) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return Some(LONG_NAME.plain());
    }
    let complaints = check_qualified(name);
    (!complaints.is_empty()).then(|| {
        BAD_NAME.with(&[
            ("name", &go_quote(name)),
            ("complaints", &complaints.join("; ")),
        ])
    })
}
