//! What is refused of vcjobs.

use api::admission::Operation;

use super::{holds, rows, tier_twice};
use crate::{CREATES, WRITES};

const UPDATES: &[Operation] = &[Operation::Update];

rows! {
    ROWS at "/jobs/validate":

    // What a job is made of.
    NO_TASKS CREATES, "No task specified in job spec", [
        holds("has(object.spec.tasks) && object.spec.tasks.size() > 0"),
    ];
    MIN_OVER_REPLICAS CREATES, "'minAvailable' is greater than 'replicas' in task: {task}, job: {job}", [
        holds("object.spec.tasks.all(t, !has(t.minAvailable) || t.minAvailable <= (has(t.replicas) ? t.replicas : 0))").on(WRITES),
    ];
    MIN_OVER_NEW_REPLICAS UPDATES, "'minAvailable' must be <= 'replicas' in task: {task}", [];
    NEGATIVE_REPLICAS UPDATES, "'replicas' must be >= 0 in task: {task}", [
        holds("object.spec.tasks.all(t, !has(t.replicas) || t.replicas >= 0)"),
    ];
    NEGATIVE_MIN UPDATES, "'minAvailable' must be >= 0 in task: {task}", [
        holds("object.spec.tasks.all(t, !has(t.minAvailable) || t.minAvailable >= 0)"),
    ];
    NEGATIVE_GANG UPDATES, "job 'minAvailable' must be >= 0", [
        holds("!has(object.spec.minAvailable) || object.spec.minAvailable >= 0"),
    ];
    GANG_OVER_REPLICAS CREATES, "job 'minAvailable' should not be greater than total replicas in tasks", [
        holds("!has(object.spec.minAvailable) || object.spec.minAvailable <= object.spec.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()").on(WRITES),
    ];
    GANG_OVER_NEW_REPLICAS UPDATES, "job 'minAvailable' must not be greater than total replicas", [];
    TASK_TWICE CREATES, "duplicated task name {task}", [
        holds("object.spec.tasks.all(t, !has(t.name) || t.name == '' || object.spec.tasks.filter(u, has(u.name) && u.name == t.name).size() == 1)"),
    ];
    TIER_TWICE WRITES, tier_twice!(), [
        holds("!has(object.spec.networkTopology) || !has(object.spec.networkTopology.highestTierAllowed) || !has(object.spec.networkTopology.highestTierName) || object.spec.networkTopology.highestTierAllowed == null || object.spec.networkTopology.highestTierName == ''"),
        holds("object.spec.tasks.all(t, !has(t.partitionPolicy) || !has(t.partitionPolicy.networkTopology) || !has(t.partitionPolicy.networkTopology.highestTierAllowed) || !has(t.partitionPolicy.networkTopology.highestTierName) || t.partitionPolicy.networkTopology.highestTierAllowed == null || t.partitionPolicy.networkTopology.highestTierName == '')"),
    ];
    NO_PARTITIONS WRITES, "'TotalPartitions' must be greater than 0", [
        holds("object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.totalPartitions > 0)"),
    ];
    EMPTY_PARTITIONS WRITES, "'PartitionSize' must be greater than 0", [
        holds("object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.partitionSize > 0)"),
    ];
    PARTITIONS_LEAVE_A_REST WRITES, "'Replicas' are not equal to TotalPartitions*PartitionSize", [
        holds("object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.totalPartitions * t.partitionPolicy.partitionSize == (has(t.replicas) ? t.replicas : 0))"),
    ];
    MIN_CUTS_PARTITIONS WRITES, "'MinAvailable' is not equal to MinPartitions*PartitionSize", [
        holds("object.spec.tasks.all(t, !has(t.partitionPolicy) || !has(t.partitionPolicy.minPartitions) || t.partitionPolicy.minPartitions <= 0 || !has(t.minAvailable) || t.partitionPolicy.minPartitions * t.partitionPolicy.partitionSize == t.minAvailable)"),
    ];
    /// Where one of those about partitions was found.
    IN_TASK WRITES, "{complaint} in task: {task}, job: {job}", [];
    BAD_JOB_NAME CREATES, "create job with name {name} validate failed {complaints}", [];
    BAD_POD_NAME CREATES, "create pod with name {name} validate failed {complaints}", [];
    BAD_TEMPLATE CREATES, "spec.task[{task}].{complaints}", [];
    CUT_CPU CREATES, "the cpu request isn't  an integer in spec.task[{task}] container[{container}].", [];
    NO_ORDER CREATES, "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)", [];

    // Policies of a job, and of its tasks.
    EVENT_AND_CODE CREATES, "must not specify event and exitCode simultaneously", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, !has(p.exitCode) || p.exitCode == null || ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0)))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.exitCode) || p.exitCode == null || ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0))))"),
    ];
    NEITHER_EVENT_NOR_CODE CREATES, "either event and exitCode should be specified", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, has(p.exitCode) || (has(p.event) && p.event != '') || (has(p.events) && p.events.size() > 0))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, has(p.exitCode) || (has(p.event) && p.event != '') || (has(p.events) && p.events.size() > 0)))"),
    ];
    CODE_ZERO CREATES, "0 is not a valid error code", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, !has(p.exitCode) || p.exitCode != 0)"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.exitCode) || p.exitCode != 0))"),
    ];
    CODE_TWICE CREATES, "duplicate exitCode {code}", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, !has(p.exitCode) || p.exitCode == null || object.spec.policies.filter(q, has(q.exitCode) && q.exitCode == p.exitCode).size() == 1)"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.exitCode) || p.exitCode == null || t.policies.filter(q, has(q.exitCode) && q.exitCode == p.exitCode).size() == 1))"),
    ];
    BAD_EVENT CREATES, "invalid policy event", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, !has(p.event) || !(p.event in {inner_events}))"),
        holds("!has(object.spec.policies) || object.spec.policies.all(p, !has(p.events) || p.events.all(e, !(e in {inner_events})))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.event) || !(p.event in {inner_events})))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.events) || p.events.all(e, !(e in {inner_events}))))"),
    ];
    BAD_ACTION CREATES, "invalid policy action", [
        holds("!has(object.spec.policies) || object.spec.policies.all(p, ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0)) || (has(p.action) && p.action in {actions}))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0)) || (has(p.action) && p.action in {actions})))"),
    ];
    EVENT_TWICE CREATES, "duplicate event {event}  across different policy", [];
    ANY_EVENT_AND_OTHERS CREATES, "if there's * here, no other policy should be here", [
        holds("!has(object.spec.policies) || !object.spec.policies.exists(p, (has(p.event) && p.event == '*') || (has(p.events) && '*' in p.events)) || object.spec.policies.all(p, (!has(p.event) || p.event in ['', '*']) && (!has(p.events) || p.events.all(e, e == '*')))"),
        holds("object.spec.tasks.all(t, !has(t.policies) || !t.policies.exists(p, (has(p.event) && p.event == '*') || (has(p.events) && '*' in p.events)) || t.policies.all(p, (!has(p.event) || p.event in ['', '*']) && (!has(p.events) || p.events.all(e, e == '*'))))"),
    ];
    /// What is wrong with policies, in the form of Go's multierror.
    ONE_FAULT CREATES, "1 error occurred:", [];
    FAULTS CREATES, "{count} errors occurred:", [];
    WHAT_IS_VALID CREATES, "valid events are [{events}], valid actions are [{actions}]", [];

    // Volumes.
    NO_MOUNT_PATH CREATES, "mountPath is required", [
        holds("!has(object.spec.volumes) || object.spec.volumes.all(v, has(v.mountPath) && v.mountPath != '')"),
    ];
    MOUNT_PATH_TWICE CREATES, "duplicated mountPath: {path}", [
        holds("!has(object.spec.volumes) || object.spec.volumes.all(v, object.spec.volumes.filter(w, w.mountPath == v.mountPath).size() == 1)"),
    ];
    NO_CLAIM CREATES, "either VolumeClaim or VolumeClaimName must be specified", [
        holds("!has(object.spec.volumes) || object.spec.volumes.all(v, (has(v.volumeClaimName) && v.volumeClaimName != '') || has(v.volumeClaim))"),
    ];
    TWO_CLAIMS CREATES, "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName", [
        holds("!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.volumeClaimName) || v.volumeClaimName == '' || !has(v.volumeClaim) || v.volumeClaim == null)"),
    ];
    BAD_CLAIM_NAME CREATES, "invalid VolumeClaimName {name} : {complaints}", [];

    // The queue.
    NO_QUEUE CREATES, "unable to find job queue: {error}", [];
    QUEUE_NOT_OPEN CREATES, "can only submit job to queue with state `Open`, queue `{queue}` status is `{state}`", [];
    ROOT_QUEUE CREATES, "can not submit job to root queue", [
        holds("!has(object.spec.queue) || object.spec.queue != 'root'"),
    ];
    QUEUE_WITH_CHILDREN CREATES, "can only submit job to leaf queue, queue `{queue}` has {count} child queues", [];

    // Plugins.
    NO_MASTER CREATES, "The specified mpi master task was not found", [];
    NO_PLUGIN CREATES, "unable to find job plugin: {plugin}", [
        holds("!has(object.spec.plugins) || object.spec.plugins.all(p, p in {plugins})"),
    ];
    /// Ours; upstream takes keys.
    PRIVATE_KEY CREATES, "arguments of job plugin {plugin} must not hold a private key: whoever may read the job could read it", [
        holds("!has(object.spec.plugins) || object.spec.plugins.all(p, object.spec.plugins[p] == null || object.spec.plugins[p].all(a, !a.contains('{pem}') && !a.matches('^-*{private_key}(=|$)')))")
            .saying("arguments of job plugins must not hold a private key"),
    ];

    // What an update may change.
    OTHER_TASKS UPDATES, "job updates may not add or remove tasks", [
        holds("object.spec.tasks.size() == oldObject.spec.tasks.size()"),
    ];
    FIXED UPDATES, "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`", [
        holds("!has(object.spec.queue) || object.spec.queue == '' || !has(oldObject.spec.queue) || object.spec.queue == oldObject.spec.queue"),
        holds("!has(object.spec.ttlSecondsAfterFinished) || !has(oldObject.spec.ttlSecondsAfterFinished) || object.spec.ttlSecondsAfterFinished == oldObject.spec.ttlSecondsAfterFinished"),
        holds("!has(object.spec.maxRetry) || !has(oldObject.spec.maxRetry) || object.spec.maxRetry == oldObject.spec.maxRetry"),
        holds("!has(object.spec.minSuccess) || !has(oldObject.spec.minSuccess) || object.spec.minSuccess == oldObject.spec.minSuccess"),
        holds("!has(object.spec.schedulerName) || object.spec.schedulerName == '' || !has(oldObject.spec.schedulerName) || oldObject.spec.schedulerName == '' || object.spec.schedulerName == oldObject.spec.schedulerName"),
        holds("!has(object.spec.plugins) || object.spec.plugins.all(p, has(oldObject.spec.plugins) && p in oldObject.spec.plugins)"),
        holds("!has(oldObject.spec.plugins) || oldObject.spec.plugins.all(p, has(object.spec.plugins) && p in object.spec.plugins)"),
        holds("(has(object.spec.policies) ? object.spec.policies.size() : 0) == (has(oldObject.spec.policies) ? oldObject.spec.policies.size() : 0)"),
    ];
}
