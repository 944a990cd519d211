//! What the containers that wait for a pod's peers do, run by `sh` with a clock, a DNS and a sleep of our
//! own: no test lasts longer than its programs need to start.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const PEERS: &str = include_str!("../vcjob/plugins/peers.sh");
const ADDRESSES: &str = include_str!("../vcjob/plugins/addresses.sh");

/// The programs that a script finds, and no others but `cat`. Names are known that are files in `known`,
/// and the clock is a file: who sleeps moves it on, and whatever is due then happens.
const PROGRAMS: [(&str, &str); 3] = [
    ("date", r#"cat "$ROOT/clock""#),
    (
        "sleep",
        r#"now=$(cat "$ROOT/clock"); now=$((now + $1)); echo "$now" > "$ROOT/clock"
if [ -e "$ROOT/at/$now" ]; then . "$ROOT/at/$now"; fi"#,
    ),
    (
        "getent",
        r#"[ "$1" = hosts ] || exit 2
echo "$2" >> "$ROOT/asked"; [ -e "$ROOT/known/$2" ] && echo "10.0.0.1 $2""#,
    ),
];

/// Where one script runs.
struct Stage {
    root: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let name = format!("katmai-waiting-{}-{name}", std::process::id());
        let stage = Stage {
            root: std::env::temp_dir().join(name),
        };
        for folder in ["programs", "known", "at", "files"] {
            fs::create_dir_all(stage.root.join(folder)).expect("it is ours");
        }
        stage.write("clock", "100");
        for (name, text) in PROGRAMS {
            stage.program(name, text);
        }
        let mut cats = ["/bin/cat", "/usr/bin/cat"].into_iter();
        let cat = cats.find(|it| Path::new(it).exists());
        let cat = cat.expect("every system has it");
        symlink(cat, stage.root.join("programs/cat")).expect("it is ours");
        stage
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).expect("it is ours");
    }

    fn program(&self, name: &str, text: &str) {
        let path = format!("programs/{name}");
        self.write(&path, &format!("#!/bin/sh\n{text}\n"));
        let path = self.root.join(path);
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// These names are known at once.
    fn know(&self, names: &[&str]) {
        for name in names {
            self.write(&format!("known/{name}.ml.svc.cluster.local"), "");
        }
    }

    /// This happens when the script has waited for so many seconds.
    fn after(&self, seconds: i64, what: &str) {
        self.write(&format!("at/{}", 100 + seconds), what);
    }

    /// Runs a script; how long it waited, and what it said.
    fn run(&self, script: &str, variables: &[(&str, &str)]) -> (i64, String) {
        let file = |name: &str| self.root.join("files").join(name).display().to_string();
        let files = format!("{} {}", file("ps.host"), file("w.host"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear();
        command.env("PATH", self.root.join("programs"));
        command.env("ROOT", &self.root);
        command.env("KATMAI_PEERS", files);
        command.env("KATMAI_PEERS_ENDED", file("ended"));
        command.env("KATMAI_PEERS_ADDRESSES", file("hosts"));
        command.env("KATMAI_PEERS_MOST", "128");
        command.env("KATMAI_PEERS_DOMAIN", "ml.svc.cluster.local");
        command.env("KATMAI_PEERS_SECONDS", "60");
        command.envs(variables.iter().copied());
        let output = command.output().expect("every system has a shell");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success(), "it ends well in any case");
        let clock = fs::read_to_string(self.root.join("clock")).expect("it is there");
        let clock: i64 = clock.trim().parse().expect("it is a number");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (clock - 100, said)
    }

    /// How often names were asked for.
    fn asked(&self) -> usize {
        let asked = fs::read_to_string(self.root.join("asked")).unwrap_or_default();
        asked.lines().count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clear away.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Three pods of two tasks, one of whose files ends without a line.
fn three(name: &str) -> Stage {
    let stage = Stage::new(name);
    stage.write("files/ps.host", "a-ps-0.a");
    stage.write("files/w.host", "a-w-0.a\na-w-1.a\n");
    stage
}

const ALL: (&str, &str) = ("KATMAI_PEERS_LEAST", "3");

/// S2.6: it waits until as many names are known as start together, and asks no more for those that are.
#[test]
fn s2_6_it_ends_with_the_last_name_that_is_certain() {
    let stage = three("all");
    stage.know(&["a-ps-0.a"]);
    stage.after(7, r#": > "$ROOT/known/a-w-1.a.ml.svc.cluster.local""#);
    stage.after(30, r#": > "$ROOT/known/a-w-0.a.ml.svc.cluster.local""#);
    assert_eq!(stage.run(PEERS, &[ALL]), (30, String::new()));
    // For the first once; for one until the seventh second, for the other until the thirtieth.
    assert_eq!(stage.asked(), 1 + 8 + 31);

    let stage = three("some");
    stage.know(&["a-ps-0.a", "a-w-1.a"]);
    let waited = stage.run(PEERS, &[("KATMAI_PEERS_LEAST", "2")]);
    assert_eq!(waited, (0, String::new()));
}

/// S2.4: it waits no longer than it is told, and says what it has missed.
#[test]
fn s2_4_it_gives_up_with_its_time_and_says_so() {
    let stage = three("late");
    stage.know(&["a-ps-0.a"]);
    let said = "after 60 s 1 of 3 names are known\n".to_owned();
    assert_eq!(stage.run(PEERS, &[ALL]), (60, said));
    // Without files there is nobody to wait for.
    let stage = Stage::new("none");
    assert_eq!(stage.run(PEERS, &[ALL]), (0, String::new()));
    assert_eq!(stage.asked(), 0);
}

/// S2.6: names of pods that have ended are gone, and who starts after them waits for the rest, also where
/// the file that says so comes while he waits, and whatever else stands in it.
#[test]
fn s2_6_it_does_not_wait_for_pods_that_have_ended() {
    let stage = three("ended");
    stage.know(&["a-w-1.a"]);
    stage.after(4, r#"echo nobody > "$ROOT/files/ended""#);
    stage.after(9, r#"printf 2 > "$ROOT/files/ended""#);
    assert_eq!(stage.run(PEERS, &[ALL]), (9, String::new()));
}

/// As many names as are waited for at most, counted after those that have ended.
#[test]
fn it_waits_for_so_many_names_at_most() {
    let stage = three("most");
    stage.know(&["a-ps-0.a"]);
    let waited = stage.run(PEERS, &[ALL, ("KATMAI_PEERS_MOST", "1")]);
    assert_eq!(waited, (0, String::new()));
    stage.write("files/ended", "1");
    let said = "after 60 s 1 of 2 names are known\n".to_owned();
    let waited = stage.run(PEERS, &[ALL, ("KATMAI_PEERS_MOST", "2")]);
    assert_eq!(waited, (60, said));
}

/// An image without `getent` asks with `nslookup`.
#[test]
fn it_asks_with_what_its_image_has() {
    let stage = three("nslookup");
    fs::remove_file(stage.root.join("programs/getent")).expect("it was there");
    let ask = r#"echo "$1" >> "$ROOT/asked"; [ -e "$ROOT/known/$1" ]"#;
    stage.program("nslookup", ask);
    stage.know(&["a-ps-0.a", "a-w-0.a", "a-w-1.a"]);
    assert_eq!(stage.run(PEERS, &[ALL]), (0, String::new()));
    assert_eq!(stage.asked(), 3);
}

/// S2.10: where addresses are told, it waits for them and asks nobody.
#[test]
fn s2_10_it_waits_for_the_addresses_that_are_told() {
    let stage = three("addresses");
    stage.write("files/hosts", "");
    stage.after(12, r#"echo 10.0.0.1 a-ps-0.a > "$ROOT/files/hosts""#);
    assert_eq!(stage.run(ADDRESSES, &[]), (12, String::new()));
    assert_eq!(stage.asked(), 0);
    let stage = three("untold");
    let said = "after 60 s no addresses are told\n".to_owned();
    assert_eq!(stage.run(ADDRESSES, &[]), (60, said));
}
