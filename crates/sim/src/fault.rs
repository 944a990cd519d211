//! What can go wrong, by name: one table, after section 5.4 of the reliability anchors.
//!
//! A fault is injected where it would happen: on the wire, in the store, at a node, at a clock. None
//! is played inside a room that decides.

use Strikes::{Every, OnceIn, OnceInFew};

/// One thing that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Fault {
    /// Somebody beside the API answers with what cannot be meant, or at too great length.
    AnswerGarbage,
    /// Somebody beside the API answers up to a minute later.
    AnswerLate,
    /// Somebody beside the API never answers.
    AnswerNever,
    /// The server ends and starts again from its journal; nobody can resume a watch.
    ApiRestart,
    /// The bind of one pod is not allowed, while those of its gang go through.
    BindRefused,
    /// The clock of one driver leaps, by ten minutes at most, forwards or backwards.
    ClockJump,
    /// Somebody else changes an object just before a write to it arrives.
    Conflict,
    /// A node is cordoned after a bind to it was decided and before it arrives.
    Cordon,
    /// Somebody writes an expression or a pattern that would cost without bound.
    CostBomb,
    /// The driver dies between two writes and starts again with an empty memory.
    Crash,
    /// A kind of the drivers is not served any more, for a while; what is stored of it stays.
    CrdRemoved,
    /// The disk under the journal is full: every write is refused for minutes.
    DiskFull,
    /// The name server hears nothing of EndpointSlices for up to half a minute.
    DnsDelay,
    /// A line of a watch is told twice.
    DuplicateEvent,
    /// Another scheduler binds a pod of its own to one of our nodes.
    ForeignBind,
    /// Somebody writes what no scheduler can serve, or nobody can mean.
    HostileManifest,
    /// The journal does not take one record.
    JournalRefused,
    /// A kubelet does not take a pod that was bound to it.
    KubeletRefusal,
    /// A line of a watch, and all that follow it, come up to a minute later.
    LateEvent,
    /// Lines of a watch are lost; the server then says that the watch has expired.
    LostEvent,
    /// A node says that it is not ready, and a little later that it is.
    NodeFlap,
    /// A node goes, and comes back.
    NodeLoss,
    /// A node has less than before for a while.
    NodeShrink,
    /// An object comes close to the largest that is stored, so that writes to it are refused.
    ObjectTooLarge,
    /// The pages of a list that were asked for expire before the last one.
    PartialList,
    /// The driver that decides stands still, past the end of its Lease.
    Pause,
    /// Whoever tends directories cannot do what a volume wants, and tries again.
    ProvisionerFailing,
    /// Whoever tends directories takes up to a minute.
    ProvisionerSlow,
    /// The driver's identity loses its rights for a while.
    RbacRevoked,
    /// A line of a watch is overtaken by later ones, which no real server allows.
    ReorderedEvent,
    /// A write is lost before it is done, and with it the answer.
    RequestLost,
    /// The server answers 500.
    ServerError,
    /// The sidecar of a running pod dies and is started again; the pod is not ready meanwhile.
    SidecarDeath,
    /// A request and its answer take up to a minute.
    SlowApi,
    /// Somebody puts a key of his own where a job's keys are.
    SshKeyAbuse,
    /// A read is answered from an older revision.
    StaleRead,
    /// A write is done, and its answer is lost.
    TimeoutAfterCommit,
    /// A write is told to be lost, and is done a little later.
    TimeoutBeforeCommit,
    /// The driver's token has expired: 401 for a while.
    TokenExpired,
    /// The server answers 429 and says when to come again.
    TooManyRequests,
    /// The server dies while it writes a record, of which half is on the disk.
    TornTail,
    /// The driver that decides stands still, and what it had sent arrives under its successor.
    TwoLeaders,
    /// The driver that decides is replaced by one of another version, for a while.
    TwoVersions,
    /// A watch ends after a line.
    WatchDrop,
    /// A watch that is to be opened has expired: everything is listed again.
    WatchExpired,
    /// Somebody's webhook that must agree to every pod and job does not answer.
    WebhookDown,
}

/// What a fault's rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strikes {
    /// Once in so many chances: lines, requests, writes.
    OnceIn,
    /// The same, of chances that come seldom.
    OnceInFew,
    /// Every so many seconds on average.
    Every,
}

/// One fault that can be injected.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which.
    pub fault: Fault,
    /// What it is called in commands, scenarios and reports.
    pub name: &'static str,
    /// What its rate counts.
    pub strikes: Strikes,
    /// Where it is injected.
    pub place: &'static str,
    /// The row of the fault table that asks for it.
    pub asked: &'static str,
}

const fn row(
    fault: Fault,
    name: &'static str,
    strikes: Strikes,
    place: &'static str,
    asked: &'static str,
) -> Row {
    Row {
        fault,
        name,
        strikes,
        place,
        asked,
    }
}

const STREAMS: &str = "Watch drop, 410 Gone, slow relist";
const EVENTS: &str = "Lost, duplicate, reordered events";
const BUSY: &str = "429 and slow API";
const LEADERS: &str = "Leader loss mid-bind, split brain, long pause";
const NODES: &str = "Node loss, flap, allocatable shrink, cordon between plan and bind";
const VOLUMES: &str = "Volume provisioner slow or failing";
const DISK: &str = "OOM kill, disk full for the log, torn log tail";
const ACCESS: &str = "RBAC revoked at runtime, token expiry";
const BODIES: &str = "Huge or compressed bodies";
const UNKNOWN: &str = "Unknown result (timeout after commit)";

/// All faults that can be injected, by name; each stands at its own number.
pub const FAULTS: &[Row] = &[
    row(
        Fault::AnswerGarbage,
        "answer-garbage",
        OnceInFew,
        "wire",
        BODIES,
    ),
    row(Fault::AnswerLate, "answer-late", OnceInFew, "wire", BODIES),
    row(
        Fault::AnswerNever,
        "answer-never",
        OnceInFew,
        "wire",
        BODIES,
    ),
    row(
        Fault::ApiRestart,
        "api-restart",
        Every,
        "store",
        "API server restart, rolling",
    ),
    row(
        Fault::BindRefused,
        "bind-refused",
        OnceInFew,
        "wire",
        "Partial gang bind failure",
    ),
    row(
        Fault::ClockJump,
        "clock-jump",
        Every,
        "clock",
        "Clock skew, jump back, DST",
    ),
    row(
        Fault::Conflict,
        "conflict",
        OnceIn,
        "store",
        "Conflict storm (409), partial update loss",
    ),
    row(Fault::Cordon, "cordon", OnceInFew, "store", NODES),
    row(
        Fault::CostBomb,
        "cost-bomb",
        Every,
        "store",
        "CEL/regex cost bombs, wasm loops",
    ),
    row(Fault::Crash, "crash", OnceIn, "process", LEADERS),
    row(
        Fault::CrdRemoved,
        "crd-removed",
        Every,
        "wire",
        "CRD version removed or downgraded",
    ),
    row(Fault::DiskFull, "disk-full", Every, "journal", DISK),
    row(
        Fault::DnsDelay,
        "dns-delay",
        Every,
        "wire",
        "DNS propagation",
    ),
    row(
        Fault::DuplicateEvent,
        "duplicate-event",
        OnceIn,
        "wire",
        EVENTS,
    ),
    row(
        Fault::ForeignBind,
        "foreign-bind",
        Every,
        "store",
        "Foreign scheduler binds on our nodes",
    ),
    row(
        Fault::HostileManifest,
        "hostile-manifest",
        Every,
        "store",
        "Malicious manifests",
    ),
    row(
        Fault::JournalRefused,
        "journal-refused",
        OnceIn,
        "journal",
        "etcd compaction, quota full, defrag pause",
    ),
    row(
        Fault::KubeletRefusal,
        "kubelet-refusal",
        OnceInFew,
        "node",
        "Kubelet rejects (OutOfcpu, UnexpectedAdmissionError)",
    ),
    row(Fault::LateEvent, "late-event", OnceIn, "wire", EVENTS),
    row(Fault::LostEvent, "lost-event", OnceIn, "wire", EVENTS),
    row(Fault::NodeFlap, "node-flap", Every, "store", NODES),
    row(Fault::NodeLoss, "node-loss", Every, "store", NODES),
    row(Fault::NodeShrink, "node-shrink", Every, "store", NODES),
    row(
        Fault::ObjectTooLarge,
        "object-too-large",
        OnceInFew,
        "store",
        "Object too large (>1.5 MiB), status bloat",
    ),
    row(
        Fault::PartialList,
        "partial-list",
        OnceInFew,
        "wire",
        STREAMS,
    ),
    row(Fault::Pause, "pause", Every, "process", LEADERS),
    row(
        Fault::ProvisionerFailing,
        "provisioner-failing",
        OnceInFew,
        "node",
        VOLUMES,
    ),
    row(
        Fault::ProvisionerSlow,
        "provisioner-slow",
        OnceInFew,
        "node",
        VOLUMES,
    ),
    row(Fault::RbacRevoked, "rbac-revoked", Every, "store", ACCESS),
    row(
        Fault::ReorderedEvent,
        "reordered-event",
        OnceIn,
        "wire",
        EVENTS,
    ),
    row(Fault::RequestLost, "request-lost", OnceIn, "wire", UNKNOWN),
    row(Fault::ServerError, "server-error", OnceIn, "wire", BUSY),
    row(
        Fault::SidecarDeath,
        "sidecar-death",
        Every,
        "node",
        "Sidecar death",
    ),
    row(Fault::SlowApi, "slow-api", OnceIn, "wire", BUSY),
    row(
        Fault::SshKeyAbuse,
        "ssh-key-abuse",
        Every,
        "store",
        "SSH key plugin abuse",
    ),
    row(
        Fault::StaleRead,
        "stale-read",
        OnceIn,
        "store",
        "Watch going back in time / stale follower read",
    ),
    row(
        Fault::TimeoutAfterCommit,
        "timeout-after-commit",
        OnceIn,
        "wire",
        UNKNOWN,
    ),
    row(
        Fault::TimeoutBeforeCommit,
        "timeout-before-commit",
        OnceIn,
        "wire",
        UNKNOWN,
    ),
    row(Fault::TokenExpired, "token-expired", Every, "wire", ACCESS),
    row(
        Fault::TooManyRequests,
        "too-many-requests",
        OnceIn,
        "wire",
        BUSY,
    ),
    row(Fault::TornTail, "torn-tail", OnceIn, "journal", DISK),
    row(Fault::TwoLeaders, "two-leaders", Every, "process", LEADERS),
    row(
        Fault::TwoVersions,
        "two-versions",
        Every,
        "process",
        "Upgrade/rollback mid-flight; two versions together",
    ),
    row(Fault::WatchDrop, "watch-drop", OnceIn, "wire", STREAMS),
    row(
        Fault::WatchExpired,
        "watch-expired",
        OnceIn,
        "wire",
        STREAMS,
    ),
    row(
        Fault::WebhookDown,
        "webhook-down",
        Every,
        "wire",
        "Webhook down, CA rotated, conversion broken",
    ),
];

/// A fault that cannot be injected here, and why.
#[derive(Clone, Copy, Debug)]
pub struct NotYet {
    /// Its name, once it can.
    pub name: &'static str,
    /// The row of the fault table that asks for it.
    pub asked: &'static str,
    /// Why not, or where else it is tried.
    pub why: &'static str,
}

const fn not_yet(name: &'static str, asked: &'static str, why: &'static str) -> NotYet {
    NotYet { name, asked, why }
}

/// What the fault table asks for beyond [`FAULTS`].
pub const NOT_YET: &[NotYet] = &[
    not_yet(
        "backup-repository",
        "Backup repo slow, corrupt, partial, auth expired; snapshot deleted mid-restore",
        "there are no backups",
    ),
    not_yet(
        "conversion-broken",
        "Webhook down, CA rotated, conversion broken",
        "no kind of a simulated world has a converter; the store's own tests break one",
    ),
    not_yet(
        "huge-body",
        "Huge or compressed bodies",
        "there is no socket here; the server's tests send them, and those of runtime's questions get them",
    ),
];

impl Fault {
    /// Its row.
    pub fn row(self) -> &'static Row {
        &FAULTS[self as usize]
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The fault of a name.
    pub fn find(name: &str) -> Option<Fault> {
        let row = FAULTS.iter().find(|row| row.name == name);
        row.map(|row| row.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_stands_at_its_number_and_by_name() {
        for (at, row) in FAULTS.iter().enumerate() {
            assert_eq!(row.fault as usize, at, "{}", row.name);
            assert_eq!(Fault::find(row.name), Some(row.fault));
        }
        assert!(FAULTS.is_sorted_by_key(|row| row.name));
        assert!(NOT_YET.is_sorted_by_key(|row| row.name));
    }
}
