//! What is left of a process that cannot say what it has to: nothing.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn a_plane_that_nobody_hears_leaves_no_directory() {
    let name = format!("katmai-unheard-{}", std::process::id());
    let place: PathBuf = std::env::temp_dir().join(name);
    let (scratch, state) = (place.join("scratch"), place.join("state"));
    std::fs::create_dir_all(&scratch).expect("a directory can be made");
    let full = File::options().write(true).open("/dev/full");
    let ended = Command::new(env!("CARGO_BIN_EXE_katmai"))
        .args(["up", "--ephemeral", "--network=host", "--data-dir"])
        .arg(&state)
        .env("TMPDIR", &scratch)
        .stdout(full.expect("there is such a device"))
        .output()
        .expect("the binary can be started");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
    let left = std::fs::read_dir(&scratch).expect("it can be read");
    let left: Vec<PathBuf> = left.map(|it| it.expect("it is one").path()).collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::remove_dir_all(&place).expect("cleaned up");
}
