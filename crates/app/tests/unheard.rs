//! What is left of a process that cannot say what it has to: nothing.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Several at once: what they do in their first moments is done at different paces.
const PLANES: usize = 8;

#[test]
fn a_plane_that_nobody_hears_leaves_no_directory() {
    let name = format!("katmai-unheard-{}", std::process::id());
    let place: PathBuf = std::env::temp_dir().join(name);
    let start = |index: usize| {
        let scratch = place.join(format!("scratch-{index}"));
        std::fs::create_dir_all(&scratch).expect("a directory can be made");
        let full = File::options().write(true).open("/dev/full");
        let started = Command::new(env!("CARGO_BIN_EXE_katmai"))
            .args(["up", "--ephemeral", "--network=host", "--data-dir"])
            .arg(place.join(format!("state-{index}")))
            .env("TMPDIR", &scratch)
            .stdout(full.expect("there is such a device"))
            .stderr(Stdio::piped())
            .spawn();
        (started.expect("the binary can be started"), scratch)
    };
    let planes: Vec<_> = (0..PLANES).map(start).collect();
    for (plane, scratch) in planes {
        let ended = plane.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot write to standard output"), "{said}");
        let left = std::fs::read_dir(&scratch).expect("it can be read");
        let left: Vec<PathBuf> = left.map(|it| it.expect("it is one").path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    std::fs::remove_dir_all(&place).expect("cleaned up");
}
