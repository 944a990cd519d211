//! What is refused of CronJobs, HyperNodes, JobFlows, PodGroups and pods.

use super::{holds, rows, tier_twice};
use crate::{CREATES, WRITES};

rows! {
    CRON_JOBS at "/cronjobs/validate":

    NO_SCHEDULE WRITES, "schedule is required, but got empty", [
        holds("has(object.spec.schedule) && object.spec.schedule != ''"),
    ];
    ZONE_IN_SCHEDULE WRITES, "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field", [
        holds("!has(object.spec.schedule) || !object.spec.schedule.contains('TZ')"),
    ];
    BAD_SCHEDULE WRITES, "schedule is not a valid cron expression", [];
    EMPTY_ZONE WRITES, "timeZone must be nil or non-empty string, got empty string", [
        holds("!has(object.spec.timeZone) || object.spec.timeZone != ''"),
    ];
    ODD_ZONE WRITES, "unknown timeZone", [];
    LOCAL_ZONE WRITES, "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones", [
        holds("!has(object.spec.timeZone) || object.spec.timeZone.lowerAscii() != 'local'"),
    ];
    NO_ZONE WRITES, "invalid timeZone", [];
    LONG_NAME WRITES, "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)", [
        holds("object.metadata.name.size() <= 52"),
    ];
    BAD_NAME WRITES, "invalid cronJob name {name}: {complaints}", [];
}

rows! {
    HYPER_NODES at "/hypernodes/validate":

    NO_MEMBER WRITES, "member must have at least one member", [
        holds("has(object.spec.members) && object.spec.members.size() > 0"),
    ];
    BAD_PATTERN WRITES, "member regexMatch pattern is invalid: error parsing regexp: {fault}", [];
}

rows! {
    JOB_FLOWS at "/jobflows/validate":

    UNKNOWN_TARGET WRITES, "jobflow Flow is not DAG: vertex is not defined: {target}", [
        holds("object.spec.flows.exists(f, object.spec.flows.filter(g, g.name == f.name).size() > 1) || object.spec.flows.all(f, !has(f.dependsOn) || !has(f.dependsOn.targets) || f.dependsOn.targets.all(x, object.spec.flows.exists(g, g.name == x)))"),
    ];
    RING WRITES, "jobflow Flow is not DAG", [
        holds("object.spec.flows.exists(f, object.spec.flows.filter(g, g.name == f.name).size() > 1) || object.spec.flows.all(f, !has(f.dependsOn) || !has(f.dependsOn.targets) || !(f.name in f.dependsOn.targets))"),
    ];
}

rows! {
    POD_GROUPS at "/podgroups/validate":

    NO_QUEUE CREATES, "unable to find queue: {error}", [];
    QUEUE_NOT_OPEN CREATES, "can only submit PodGroup to queue with state `Open`, queue `{queue}` status is `{state}`.", [];
    TIER_TWICE CREATES, concat!(tier_twice!(), "."), [
        holds("!has(object.spec.networkTopology) || !has(object.spec.networkTopology.highestTierAllowed) || !has(object.spec.networkTopology.highestTierName) || object.spec.networkTopology.highestTierAllowed == null || object.spec.networkTopology.highestTierName == ''")
            .saying(tier_twice!()),
    ];
    TIER_TWICE_BELOW CREATES, concat!("in subGroupPolicy '{policy}': ", tier_twice!(), "."), [
        holds("!has(object.spec.subGroupPolicy) || object.spec.subGroupPolicy.all(s, !has(s.networkTopology) || !has(s.networkTopology.highestTierAllowed) || !has(s.networkTopology.highestTierName) || s.networkTopology.highestTierAllowed == null || s.networkTopology.highestTierName == '')")
            .saying(tier_twice!()),
    ];
}

rows! {
    PODS at "/pods/validate":

    TWO_BUDGETS CREATES, "not allow configure multiple annotations <[{annotations}]> at same time", [
        holds("!has(object.metadata.annotations) || !{annotations}.all(k, k in object.metadata.annotations)")
            .saying("not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time"),
    ];
    NOT_POSITIVE CREATES, "invalid value <{value}> for {annotation}, it must be a positive integer", [
        holds("!has(object.metadata.annotations) || {annotations}.all(k, !(k in object.metadata.annotations) || (object.metadata.annotations[k].matches('[1-9]') && !object.metadata.annotations[k].startsWith('-') && !object.metadata.annotations[k].matches('^[1-9][0-9][0-9]+%$')))")
            .saying("it must be a positive integer, or a valid percentage which between 1% ~ 99%"),
    ];
    NO_NUMBER CREATES, "invalid value strconv.Atoi: parsing {digits}: invalid syntax for {annotation}", [];
    NO_PERCENTAGE CREATES, "invalid value <{value}> for {annotation}, it must be a valid percentage which between 1% ~ 99%", [];
}
