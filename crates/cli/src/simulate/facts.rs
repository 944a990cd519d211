//! A report as one JSON object. Times are in milliseconds, ratios in thousandths.

use serde_json::{Value, json};
use sim::{QueueSum, Report, ResourceSum, Waits, Workload};

/// The shape of this object; it changes when a field goes or means something else.
const VERSION: u32 = 1;

pub(super) fn of(report: &Report) -> Value {
    let Report {
        seed,
        lasted_ms,
        nodes,
        makespan_ms,
        workloads,
        turned_away,
        waits: all,
        queues,
        resources,
        shared,
        fairness_milli,
        findings,
        left_out,
        undated,
    } = report;
    let turned = turned_away.iter();
    let broken = findings.iter();
    json!({
        "version": VERSION,
        "seed": seed,
        "lastedMs": lasted_ms,
        "nodes": nodes,
        "makespanMs": makespan_ms,
        "waits": waits(all),
        "queues": queues.iter().map(queue).collect::<Vec<_>>(),
        "resources": resources.iter().map(resource).collect::<Vec<_>>(),
        "sharedResource": shared,
        "fairnessMilli": fairness_milli,
        "evictions": workloads.iter().map(|it| it.evictions).sum::<u64>(),
        "failedPods": workloads.iter().map(|it| it.failed_pods).sum::<u64>(),
        "workloads": workloads.iter().map(workload).collect::<Vec<_>>(),
        "refused": turned
            .map(|it| json!({ "atMs": it.at_ms, "name": it.name, "reason": it.reason }))
            .collect::<Vec<_>>(),
        "brokenLaws": broken
            .map(|it| json!({ "law": it.law, "text": it.text }))
            .collect::<Vec<_>>(),
        "leftOut": left_out,
        "defaultDurations": undated,
    })
}

fn waits(waits: &Waits) -> Value {
    let Waits {
        count,
        p50_ms,
        p95_ms,
        max_ms,
    } = waits;
    json!({ "started": count, "p50Ms": p50_ms, "p95Ms": p95_ms, "maxMs": max_ms })
}

fn queue(queue: &QueueSum) -> Value {
    let QueueSum {
        name,
        weight,
        workloads,
        completed,
        waits: own,
        used_milli_hours,
        fair_milli_hours,
        share_milli,
        fair_share_milli,
    } = queue;
    json!({
        "name": name,
        "weight": weight,
        "workloads": workloads,
        "completed": completed,
        "waits": waits(own),
        "usedMilliHours": used_milli_hours,
        "fairMilliHours": fair_milli_hours,
        "shareMilli": share_milli,
        "fairShareMilli": fair_share_milli,
    })
}

fn resource(resource: &ResourceSum) -> Value {
    let ResourceSum {
        name,
        room_milli,
        mean_milli,
        peak_milli,
        course_milli,
    } = resource;
    json!({
        "name": name,
        "roomMilli": room_milli,
        "meanMilli": mean_milli,
        "peakMilli": peak_milli,
        "courseMilli": course_milli,
    })
}

fn workload(workload: &Workload) -> Value {
    let Workload {
        kind,
        namespace,
        name,
        queue,
        arrived_ms,
        started_ms,
        ended_ms,
        phase,
        pods,
        failed_pods,
        evictions,
        is_endless,
        reason,
    } = workload;
    json!({
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "queue": queue,
        "arrivedMs": arrived_ms,
        "startedMs": started_ms,
        "endedMs": ended_ms,
        "phase": phase,
        "pods": pods,
        "failedPods": failed_pods,
        "evictions": evictions,
        "endless": is_endless,
        "reason": reason,
    })
}
