//! Rows that processes share.

use super::flag::{Group, Takes, ignored, kept, mapped};

const BY_COUNT: &str =
    "requests are bounded by how many are under way, and the server's 429 is obeyed";
const ONE_STREAM: &str =
    "log lines go to standard error, where whoever starts the process keeps them";

/// How the API is reached.
pub(super) const CONNECTION: Group = Group {
    title: "The API",
    flags: &[
        kept(
            "kubeconfig",
            Takes::Text,
            "",
            "Kubeconfig file; otherwise $KUBECONFIG, the user's file, or the pod's own account",
        ),
        kept(
            "master",
            Takes::Text,
            "",
            "URL of the API server, or its HOST:PORT, instead of the kubeconfig's",
        ),
    ],
};

/// The same, where upstream's allows many requests.
pub(super) const FAST: Group = Group {
    title: "The API",
    flags: &[
        ignored(
            "kube-api-qps",
            Takes::Rate,
            "2000",
            "Requests a second",
            BY_COUNT,
        ),
        ignored(
            "kube-api-burst",
            Takes::Whole(i64::MIN, i64::MAX),
            "2000",
            "Requests at once",
            BY_COUNT,
        ),
    ],
};

/// The same, where it allows few.
pub(super) const SLOW: Group = Group {
    title: "The API",
    flags: &[
        ignored(
            "kube-api-qps",
            Takes::Rate,
            "50",
            "Requests a second",
            BY_COUNT,
        ),
        ignored(
            "kube-api-burst",
            Takes::Whole(i64::MIN, i64::MAX),
            "100",
            "Requests at once",
            BY_COUNT,
        ),
    ],
};

/// Who may decide.
pub(super) const ELECTION: Group = Group {
    title: "Who may decide",
    flags: &[
        kept(
            "leader-elect",
            Takes::Switch,
            "true",
            "Hold a Lease before anything is decided",
        ),
        kept(
            "leader-elect-lease-duration",
            Takes::Duration,
            "15s",
            "How long others wait for a sign of life before they take over",
        ),
        kept(
            "leader-elect-renew-deadline",
            Takes::Duration,
            "10s",
            "How long to go on after the last sign of life that was taken",
        ),
        kept(
            "leader-elect-retry-period",
            Takes::Duration,
            "2s",
            "How long to wait between two tries",
        ),
        kept(
            "leader-elect-resource-lock",
            Takes::Text,
            "leases",
            "What is held: a Lease, whatever is said",
        ),
        kept(
            "leader-elect-resource-namespace",
            Takes::Text,
            "volcano-system",
            "Where the Lease lies",
        ),
        mapped(
            "lock-object-namespace",
            Takes::Text,
            "",
            "Where the Lease lies",
            "deprecated, use --leader-elect-resource-namespace, which holds where both are given",
        ),
    ],
};

/// The Lease's name, where it is made of the names that are served.
pub(super) const LEASE_OF_NAMES: Group = Group {
    title: "Who may decide",
    flags: &[kept(
        "leader-elect-resource-name",
        Takes::Text,
        "",
        "Name of the Lease; without it one for each --scheduler-name, called like it as far as an object can be",
    )],
};

/// How it is told whether the process is well.
pub(super) const HEALTH: Group = Group {
    title: "What can be asked of it",
    flags: &[
        kept(
            "enable-healthz",
            Takes::Switch,
            "false",
            "Serve /healthz, /livez and /readyz",
        ),
        kept(
            "healthz-address",
            Takes::Text,
            ":11251",
            "Where they are served, as HOST:PORT",
        ),
        kept(
            "tls-cert-file",
            Takes::Text,
            "",
            "Certificate to serve with, as a chain in PEM; together with its key and the authority",
        ),
        kept("tls-private-key-file", Takes::Text, "", "Its key"),
        kept(
            "ca-cert-file",
            Takes::Text,
            "",
            "Certificates of the authority",
        ),
    ],
};

/// Where metrics are served.
pub(super) const METRICS_8080: Group = Group {
    title: "What can be asked of it",
    flags: &[
        kept("enable-metrics", Takes::Switch, "false", "Serve /metrics"),
        kept(
            "listen-address",
            Takes::Text,
            ":8080",
            "Where /metrics is served, as HOST:PORT",
        ),
    ],
};
/// The same for other processes.
pub(super) const METRICS_8081: Group = Group {
    title: "What can be asked of it",
    flags: &[
        kept("enable-metrics", Takes::Switch, "false", "Serve /metrics"),
        kept(
            "listen-address",
            Takes::Text,
            ":8081",
            "Where /metrics is served, as HOST:PORT",
        ),
    ],
};

/// What is said, and where.
pub(super) const LOGGING: Group = Group {
    title: "What it says",
    flags: &[
        mapped(
            "v",
            Takes::Whole(i64::MIN, i64::MAX),
            "0",
            "How much is logged",
            "3 and more log what is being done, 6 and more every detail; KATMAI_LOG says it by room",
        ),
        ignored(
            "vmodule",
            Takes::Text,
            "",
            "How much is logged by source file",
            "rooms are chosen with KATMAI_LOG",
        ),
        ignored(
            "logtostderr",
            Takes::Switch,
            "true",
            "Log to standard error",
            ONE_STREAM,
        ),
        ignored(
            "alsologtostderr",
            Takes::Switch,
            "false",
            "Log to standard error as well as to files",
            ONE_STREAM,
        ),
        ignored(
            "alsologtostderrthreshold",
            Takes::Text,
            "0",
            "From which severity on lines of files go to standard error, too",
            ONE_STREAM,
        ),
        ignored(
            "legacy-stderr-threshold-behavior",
            Takes::Switch,
            "true",
            "Whether --logtostderr is for all severities",
            ONE_STREAM,
        ),
        ignored(
            "stderrthreshold",
            Takes::Text,
            "INFO",
            "From which severity on lines go to standard error, too",
            ONE_STREAM,
        ),
        ignored(
            "log-dir",
            Takes::Text,
            "",
            "Directory of log files",
            ONE_STREAM,
        ),
        ignored("log-file", Takes::Text, "", "Log file", ONE_STREAM),
        ignored(
            "log-file-max-size",
            Takes::Whole(0, i64::MAX),
            "1800",
            "Size of a log file, in megabytes",
            ONE_STREAM,
        ),
        ignored(
            "log-flush-frequency",
            Takes::Duration,
            "5s",
            "How often log files are flushed",
            "a line is written at once",
        ),
        ignored(
            "log-backtrace-at",
            Takes::Text,
            ":0",
            "Line of source that logs who called it",
            "there is no such line here",
        ),
        ignored(
            "add-dir-header",
            Takes::Switch,
            "false",
            "Log the directory of source files",
            "lines have no source file",
        ),
        ignored(
            "one-output",
            Takes::Switch,
            "false",
            "Log a line to the file of its severity only",
            ONE_STREAM,
        ),
        ignored(
            "skip-headers",
            Takes::Switch,
            "false",
            "Log without headers",
            "headers are short",
        ),
        ignored(
            "skip-log-headers",
            Takes::Switch,
            "false",
            "Begin log files without headers",
            ONE_STREAM,
        ),
        kept(
            "version",
            Takes::Switch,
            "false",
            "Print the version and end",
        ),
    ],
};
