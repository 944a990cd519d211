//! The hidden verbs of the binary: what runs between the plane and a pod's command.
//!
//! `container` enters and makes namespaces, then starts `init` in them; `init` is process 1 of a
//! container, sets up mounts, runs the command, reaps, passes signals on and ends everything when
//! the plane is gone; `exec` runs a command inside a running container, through `terminal` where
//! one is wanted; `network` holds the pod network. They are processes, because a process must be
//! alone in itself to change its user namespace, and because nothing here may be unsafe.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sched::{CloneFlags, setns, unshare};

use super::frame::{self, Enter, ExecPlan, FromChild};
use super::init;

pub(crate) const CONTAINER: &str = "__katmai-container";
pub(crate) const EXEC: &str = "__katmai-exec";
pub(crate) const INIT: &str = "__katmai-init";
pub(crate) const NETWORK: &str = "__katmai-network";
pub(crate) const TERMINAL: &str = "__katmai-terminal";

const VERBS: &[&str] = &[CONTAINER, EXEC, INIT, NETWORK, TERMINAL];

/// The running executable, whatever root directory or mounts are in force.
const SELF: &str = "/proc/self/exe";

/// Whether the process was started as a child of the node; `arguments` are those after the
/// program's name.
pub fn is_child(arguments: &[OsString]) -> bool {
    arguments
        .first()
        .and_then(|verb| verb.to_str())
        .is_some_and(|verb| VERBS.contains(&verb))
}

/// Does a hidden verb's work and ends the process. Call it first in `main`, before any thread
/// exists: user namespaces can only be changed by a process with one thread.
pub fn child_main(arguments: &[OsString]) -> ! {
    let verb = arguments.first().and_then(|verb| verb.to_str());
    let rest = arguments.get(1..).unwrap_or_default();
    if let Err(error) = heed_signals() {
        std::process::exit(complain(&format!("cannot heed signals: {error}")));
    }
    let code = match verb {
        Some(CONTAINER) => container(),
        Some(EXEC) => exec(),
        Some(INIT) => init::run(),
        Some(NETWORK) => crate::network::child(),
        Some(TERMINAL) => terminal(rest),
        _ => 2,
    };
    std::process::exit(code)
}

/// Lets what is executed from here on begin with no signal ignored, although whoever started the
/// plane had it ignore some (`nohup`, `&` in a script): a signal that is handled is the default again
/// once something is executed, one that is ignored stays so.
fn heed_signals() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.ok_or_else(|| io::Error::other("/proc/self/status tells no SigIgn"))?;
    let heard = Arc::new(AtomicBool::new(false));
    // Those above are of no terminal and no shell; some of them are the C library's own.
    let ignored = (1..=31).filter(|number| mask & (1 << (number - 1)) != 0);
    for number in ignored.filter(|number| !signal_hook::consts::FORBIDDEN.contains(number)) {
        signal_hook::flag::register(number, Arc::clone(&heard))?;
    }
    Ok(())
}

/// The exit code of a status as a shell counts it.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

fn container() -> i32 {
    let control = io::stdin();
    let enter: Enter = match frame::read_blocking(&control) {
        Ok(Some(enter)) => enter,
        Ok(None) => return 1,
        Err(error) => return fail(&error.to_string()),
    };
    if let Err(error) = enter_container(&enter) {
        return fail(&error);
    }
    let mut init = match Command::new(SELF).arg(INIT).spawn() {
        Ok(init) => init,
        Err(error) => return fail(&format!("cannot start the container's init: {error}")),
    };
    init.wait().map_or(1, exit_code)
}

fn fail(message: &str) -> i32 {
    let failed = FromChild::Failed {
        message: message.to_owned(),
    };
    // When the plane is gone there is nobody left to tell.
    let told = frame::write_blocking(&io::stdin(), &failed);
    i32::from(told.is_ok())
}

fn enter_container(enter: &Enter) -> Result<(), String> {
    for file in &enter.cgroups {
        std::fs::write(file, "0")
            .map_err(|error| format!("cannot enter cgroup {}: {error}", file.display()))?;
    }
    let user = enter.user.as_deref().map(open).transpose()?;
    let network = enter.network.as_deref().map(open).transpose()?;
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER)
            .map_err(|error| format!("cannot enter the user namespace: {error}"))?;
    }
    if let Some(network) = network {
        setns(network, CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("cannot enter the pod's network namespace: {error}"))?;
    }
    if enter.isolate {
        let flags = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS;
        unshare(flags).map_err(|error| format!("cannot make namespaces: {error}"))?;
        nix::unistd::sethostname(&enter.hostname)
            .map_err(|error| format!("cannot set the host name: {error}"))?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))
}

fn exec() -> i32 {
    let plan: ExecPlan = match frame::read_blocking(&io::stdin()) {
        Ok(Some(plan)) => plan,
        Ok(None) => return 126,
        Err(error) => return complain(&error.to_string()),
    };
    if let Err(error) = enter_running(&plan) {
        return complain(&error);
    }
    let mut command = exec_command(&plan);
    command.env_clear().envs(plan.env.iter().cloned());
    if let Some(directory) = &plan.working_dir {
        command.current_dir(directory);
    }
    if let Some(group) = plan.group {
        command.gid(group);
    }
    if let Some(user) = plan.user {
        command.uid(user);
    }
    match command.spawn() {
        Ok(mut child) => child.wait().map_or(126, exit_code),
        Err(error) => {
            let name = plan.command.first().map_or("", String::as_str);
            complain(&start_message(name, &error))
        }
    }
}

fn exec_command(plan: &ExecPlan) -> Command {
    match &plan.terminal {
        Some(terminal) => {
            let mut command = Command::new(SELF);
            command.arg(TERMINAL).arg(terminal);
            command.args(&plan.command);
            command
        }
        None => {
            let mut command = Command::new(plan.command.first().map_or("", String::as_str));
            command.args(plan.command.iter().skip(1));
            // The one on a terminal makes a session, which a group's leader could not.
            command.process_group(0);
            command
        }
    }
}

/// What a container runtime says about a command that cannot be started.
pub(crate) fn start_message(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if !name.contains('/') => {
            format!("exec: {name:?}: executable file not found in $PATH")
        }
        io::ErrorKind::NotFound => {
            format!("exec: {name:?}: stat {name}: no such file or directory")
        }
        io::ErrorKind::PermissionDenied => format!("exec: {name:?}: permission denied"),
        _ => format!("exec: {name:?}: {error}"),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "standard error is the exec session's error stream"
)]
fn complain(message: &str) -> i32 {
    eprintln!("{message}");
    126
}

fn enter_running(plan: &ExecPlan) -> Result<(), String> {
    let Some(process) = plan.enter else {
        return Ok(());
    };
    let mut kinds = vec![
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("uts", CloneFlags::CLONE_NEWUTS),
        ("net", CloneFlags::CLONE_NEWNET),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ];
    if plan.enter_user {
        kinds.insert(0, ("user", CloneFlags::CLONE_NEWUSER));
    }
    // All are opened before the first is entered: afterwards /proc may be another one.
    let mut opened = Vec::with_capacity(kinds.len());
    for (name, flag) in kinds {
        let path = format!("/proc/{process}/ns/{name}");
        opened.push((name, flag, open(Path::new(&path))?));
    }
    for (name, flag, file) in opened {
        setns(file, flag)
            .map_err(|error| format!("cannot enter the container's {name} namespace: {error}"))?;
    }
    Ok(())
}

/// Makes a terminal the controlling one of a new session and becomes the command.
fn terminal(arguments: &[OsString]) -> i32 {
    let [terminal, program, rest @ ..] = arguments else {
        return 126;
    };
    if let Err(error) = nix::unistd::setsid() {
        return complain(&format!("cannot make a session: {error}"));
    }
    // A session leader that opens a terminal gets it as its controlling one.
    let opened = File::options().read(true).write(true).open(terminal);
    let attached = opened.and_then(|file| {
        nix::unistd::dup2_stdin(&file)?;
        nix::unistd::dup2_stdout(&file)?;
        nix::unistd::dup2_stderr(&file)?;
        Ok(())
    });
    if let Err(error) = attached {
        return complain(&format!("cannot open the terminal: {error}"));
    }
    let error = Command::new(program).args(rest).exec();
    complain(&start_message(&program.to_string_lossy(), &error))
}
