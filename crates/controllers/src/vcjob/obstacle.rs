//! What can keep a vcjob from going on, with the word that its status carries.

use api::intent::ObjectKey;

/// One obstacle, or several of them told together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Obstacle {
    /// The kind of obstacle.
    pub(super) word: Word,
    /// What is wrong, for people.
    pub(super) message: String,
    /// What ends the wait.
    pub(super) waits_for: Vec<ObjectKey>,
}

/// The kinds of obstacle, the one that is told first standing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// A claim that the job refers to does not exist, or is being deleted.
    ClaimNotFound,
    /// The name of a claim of ours is somebody else's.
    ClaimTaken,
    /// A claim cannot be mounted by as many pods.
    AccessMode,
    /// A claim names a class that does not exist.
    ClassNotFound,
    /// A claim names no class, and none is the default.
    NoDefaultClass,
    /// A claim asks for nothing.
    ZeroCapacity,
    /// The name of the job's PodGroup is somebody else's.
    GroupTaken,
    /// The queue does not exist.
    QueueNotFound,
    /// A plugin is unknown, or cannot do its work.
    Plugin,
    /// Pods wait for the job's Service, or for what else the plugins made and is on its way out.
    ServiceNotReady,
    /// The name of a pod is somebody else's.
    PodTaken,
    /// Tasks wait for each other.
    Circle,
}

/// Every word, in order.
pub(super) const WORDS: &[Word] = &[
    Word::ClaimNotFound,
    Word::ClaimTaken,
    Word::AccessMode,
    Word::ClassNotFound,
    Word::NoDefaultClass,
    Word::ZeroCapacity,
    Word::GroupTaken,
    Word::QueueNotFound,
    Word::Plugin,
    Word::ServiceNotReady,
    Word::PodTaken,
    Word::Circle,
];

/// Reasons in the status of a job that cannot go on, or goes on without something.
pub fn blocked_reasons() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.reason())
}

impl Word {
    /// The reason in the job's status.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Word::ClaimNotFound => "PersistentVolumeClaimNotFound",
            Word::ClaimTaken => "PersistentVolumeClaimConflict",
            Word::AccessMode => "AccessModeIncompatible",
            Word::ClassNotFound => "StorageClassNotFound",
            Word::NoDefaultClass => "NoDefaultStorageClass",
            Word::ZeroCapacity => "ZeroCapacity",
            Word::GroupTaken => "PodGroupConflict",
            Word::QueueNotFound => "QueueNotFound",
            Word::Plugin => "PluginError",
            Word::ServiceNotReady => "ServiceNotReady",
            Word::PodTaken => "PodConflict",
            Word::Circle => "InvalidDependsOn",
        }
    }

    /// The reason of the event, which is upstream's where it has one, and what upstream's text begins with: what
    /// only waits, and what upstream tells nobody, is told as it is.
    pub(super) const fn event(self) -> (&'static str, &'static str) {
        match self {
            Word::ClaimNotFound
            | Word::ClaimTaken
            | Word::AccessMode
            | Word::ClassNotFound
            | Word::NoDefaultClass
            | Word::ZeroCapacity => ("PVCError", "Failed to create PVC, err: "),
            Word::GroupTaken => ("PodGroupError", "Failed to create PodGroup, err: "),
            Word::QueueNotFound => ("PodGroupError", ""),
            Word::Plugin => ("PluginError", "Execute plugin when job add failed, err: "),
            Word::ServiceNotReady => ("PluginError", ""),
            Word::PodTaken => ("FailedCreate", ""),
            Word::Circle => ("InvalidDependsOn", ""),
        }
    }

    /// Whether what does not hang on it is made nevertheless.
    pub(super) const fn lets_go_on(self) -> bool {
        matches!(self, Word::ServiceNotReady | Word::PodTaken | Word::Circle)
    }
}

impl Obstacle {
    /// One obstacle that tells all: the first word, every message.
    pub(super) fn together(mut found: Vec<Obstacle>) -> Option<Obstacle> {
        found.sort_by_key(|obstacle| obstacle.word);
        let mut rest = found.into_iter();
        let mut all = rest.next()?;
        for obstacle in rest {
            all.message = format!("{}; {}", all.message, obstacle.message);
            all.waits_for.extend(obstacle.waits_for);
        }
        Some(all)
    }
}
