//! Names that Volcano has, so that one which is not here yet is not taken for a slip of the pen.
//!
//! Source: `specs/volcano.md`, sections 3.4 and 3.5. What there is here is the engine's to say.

/// Volcano's actions.
pub(super) const ACTIONS: &[&str] = &[
    "allocate",
    "backfill",
    "enqueue",
    "gangpreempt",
    "gangreclaim",
    "preempt",
    "reclaim",
    "shuffle",
];

/// Arguments of Volcano's actions.
pub(super) const ACTION_ARGUMENTS: &[(&str, &[&str])] = &[
    // The second is the agent scheduler's.
    (
        "allocate",
        &["predicateErrorCacheEnable", "candidateNodeCount"],
    ),
    ("backfill", &["predicateErrorCacheEnable"]),
    ("gangpreempt", &["maxDomains", "allowWholeBundle"]),
    ("gangreclaim", &["maxDomains", "allowWholeBundle"]),
    (
        "preempt",
        &[
            "predicateErrorCacheEnable",
            "enableTopologyAwarePreemption",
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
        ],
    ),
    ("reclaim", &["predicateErrorCacheEnable"]),
    // No action: what MindCluster's plugins are told at their start.
    (
        "init-params",
        &["useClusterInfoManager", "self-maintain-available-card"],
    ),
];

/// Volcano's plugins.
pub(super) const PLUGINS: &[&str] = &[
    "binpack",
    "capacity",
    "cdp",
    "conformance",
    "deviceshare",
    "drf",
    "extender",
    "gang",
    "network-topology-aware",
    "nodegroup",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "rescheduling",
    "resource-strategy-fit",
    "resourcequota",
    "sla",
    "task-topology",
    "tdm",
    "usage",
];
