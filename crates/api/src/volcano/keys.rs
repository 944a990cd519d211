//! Annotations, labels and finalizers that Volcano, its users and its tools agree on.

/// Pod label and annotation: task name.
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Pod label and annotation: index within the task.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// Pod label and annotation: job name.
pub const JOB_NAME: &str = "volcano.sh/job-name";
/// Pod label: job namespace.
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Pod label and annotation: the job's queue.
pub const QUEUE_NAME: &str = "volcano.sh/queue-name";
/// Pod annotation: the job's `status.version` when the pod was made.
pub const JOB_VERSION: &str = "volcano.sh/job-version";
/// Pod annotation: the job's `status.retryCount` when the pod was made.
pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
/// Pod annotation: `<job>-<task>`, pods with equal values are alike.
pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
/// Pod label: which partition of its task.
pub const PARTITION_ID: &str = "volcano.sh/partition-id";
/// Pod annotation: the controller itself stops this pod, no policy answers.
pub const OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";
/// Job and pod annotation: forwarded to another cluster.
pub const JOB_FORWARDING: &str = "volcano.sh/job-forwarding";
/// Job and pod annotation: which cluster.
pub const FORWARD_CLUSTER: &str = "volcano.sh/forward-cluster";
/// Job annotation: when a CronJob meant it to start, RFC 3339.
pub const CRONJOB_TIMESTAMP: &str = "volcano.sh/cronjob-scheduled-timestamp";
/// Job label and annotation: `<namespace>.<name>` of its template.
pub const CREATED_BY_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";
/// Job label and annotation: `<namespace>.<name>` of its flow.
pub const CREATED_BY_FLOW: &str = "volcano.sh/createdByJobFlow";
/// Pod annotation: its gang.
pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Pod annotation: its gang, the other spelling.
pub const GROUP_NAME_ALTERNATIVE: &str = "scheduling.volcano.sh/group-name";
/// Annotation of an owner of plain pods: size of their gang.
pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// Pod and namespace annotation: which queue.
pub const QUEUE_OF_POD: &str = "scheduling.volcano.sh/queue-name";
/// Pod annotation and name of a scheduling gate: wait for the queue.
pub const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";
/// Label or annotation of a pod, gang or job: may be evicted.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// Pod label or annotation: not evicted so soon again.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// Pod, job and node: a zone whose nodes are lent at times.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// Job annotation: so many pods are never evicted at a time.
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// Job annotation: at most so many pods are evicted at a time.
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// Job and gang annotation: which tasks are to be on one node, `a,b;c`.
pub const TASK_TOPOLOGY_AFFINITY: &str = "volcano.sh/task-topology-affinity";
/// The same: which tasks are to be on nodes apart.
pub const TASK_TOPOLOGY_ANTI_AFFINITY: &str = "volcano.sh/task-topology-anti-affinity";
/// The same: which tasks choose first, `a,b,c`.
pub const TASK_TOPOLOGY_ORDER: &str = "volcano.sh/task-topology-task-order";
/// Pod annotation: how it sits on NUMA nodes.
pub const NUMA_TOPOLOGY_POLICY: &str = "volcano.sh/numa-topology-policy";
/// Pod annotation: how much it should get on which NUMA node, JSON.
pub const TOPOLOGY_DECISION: &str = "volcano.sh/topology-decision";
/// Pod annotation of our own: which units it should get, JSON; they are kept for it until its node has
/// told what it did get.
pub const NUMA_UNITS: &str = "katmai.dev/numa-units";
/// Key of our own in a job's `status.controlledResources`: the uid of its Service that DNS has known.
pub const SERVICE_KNOWN: &str = "katmai.dev/service-known";
/// Pod annotation: which node is the better one for it, `LeastAllocated` or `MostAllocated`.
pub const RESOURCE_STRATEGY: &str = "volcano.sh/resource-strategy-scoring-type";
/// The same: which of its resources count, and how much, JSON.
pub const RESOURCE_STRATEGY_WEIGHT: &str = "volcano.sh/resource-strategy-weight";
/// Job and gang annotation: longest wait.
pub const SLA_WAITING_TIME: &str = "volcano.sh/sla-waiting-time";
/// The same without prefix, also read.
pub const SLA_WAITING_TIME_SHORT: &str = "sla-waiting-time";
/// Queue annotation: path, `root/a/b`.
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
/// Queue annotation: weights along the path, `100/50/50`.
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
/// Node label: its group.
pub const NODE_GROUP: &str = "volcano.sh/nodegroup-name";
/// Queue annotation: amounts per group, JSON.
pub const NODE_GROUP_LIMITS: &str = "volcano.sh/nodegroup-resource-limits";
/// Queue annotation: closed because the queue above was.
pub const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
/// Pod annotation: the agent's class of service.
pub const QOS_LEVEL: &str = "volcano.sh/qos-level";
/// Pod annotation: `hard` or `soft`.
pub const TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
/// Pod annotation: greatest tier.
pub const TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// Pod annotation: the group of rules that admission applies.
pub const RESOURCE_GROUP: &str = "volcano.sh/resource-group";
/// Gang annotation: where the scheduler put the job.
pub const JOB_HYPERNODE: &str = "volcano.sh/job-allocated-hypernode";
/// Pod annotation: rank of an Ascend device.
pub const HCCL_RANK: &str = "hccl/rankIndex";
