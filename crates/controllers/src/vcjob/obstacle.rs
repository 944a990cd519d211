//! What can keep a vcjob from going on, with the word that its status carries.

use api::intent::ObjectKey;

/// So many obstacles of a kind are told at most, and so many names in one.
pub(super) const TOLD_MAX: usize = 10;
/// What one obstacle says at most, in bytes: paths and names of classes may be of any length.
const MESSAGE_BYTES_MAX: usize = 4_000;

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
    /// Volumes, mounted in all containers, are more than a pod can hold.
    TooManyMounts,
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
    Word::TooManyMounts,
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
            Word::TooManyMounts => "TooManyMounts",
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
            Word::TooManyMounts | Word::PodTaken => ("FailedCreate", ""),
            Word::Circle => ("InvalidDependsOn", ""),
        }
    }

    /// Whether what does not hang on it is made nevertheless.
    pub(super) const fn lets_go_on(self) -> bool {
        matches!(self, Word::ServiceNotReady | Word::PodTaken | Word::Circle)
    }
}

impl Obstacle {
    /// One obstacle that tells all: the first word, the first messages of every word. It waits for what
    /// it tells of alone: until that has come nothing else helps, and then the rest is told.
    pub(super) fn together(mut found: Vec<Obstacle>) -> Option<Obstacle> {
        found.sort_by_key(|obstacle| obstacle.word);
        let mut all = Obstacle {
            word: found.first()?.word,
            message: String::new(),
            waits_for: Vec::new(),
        };
        for kind in found.chunk_by(|one, other| one.word == other.word) {
            for obstacle in kind.iter().take(TOLD_MAX) {
                if !all.message.is_empty() {
                    all.message.push_str("; ");
                }
                all.message.push_str(beginning(&obstacle.message));
                all.waits_for.extend_from_slice(&obstacle.waits_for);
            }
            if let Some(more) = untold(kind.len()) {
                all.message.push_str(&format!("; and {more} more"));
            }
        }
        Some(all)
    }
}

/// Names for a message: the first of them, and how many more there are.
pub(super) fn listed(names: &[&str]) -> String {
    let told = &names[..names.len().min(TOLD_MAX)];
    let mut text = told.join(", ");
    if let Some(more) = untold(names.len()) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// How many of these are not told.
fn untold(count: usize) -> Option<usize> {
    count.checked_sub(TOLD_MAX).filter(|more| *more > 0)
}

/// As much of a message as is told.
fn beginning(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}
