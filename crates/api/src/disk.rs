//! What is written on a volume of the directory provisioner for whoever tends its directory.

/// Set on a claim that waits for its first consumer: the node where that consumer goes.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Keeps a volume until its directory is gone, or is to stay.
pub const DIRECTORY: &str = "katmai.dev/directory";
/// The handle of the snapshot that a new volume is to be filled from.
pub const FROM_SNAPSHOT: &str = "katmai.dev/from-snapshot";
/// The name of the volume that a new volume is to be filled from.
pub const FROM_VOLUME: &str = "katmai.dev/from-volume";
/// Says that what was to be in a new volume is in it.
pub const FILLED: &str = "katmai.dev/filled";
/// Says why a volume could not be filled.
pub const FILL_FAILED: &str = "katmai.dev/fill-failed";
/// Who makes such volumes, and snapshots of them.
pub const DRIVER: &str = "katmai.dev/directory";
