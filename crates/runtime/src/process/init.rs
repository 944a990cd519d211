//! Process 1 of a container.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::child::start_message;
use super::frame::{self, ContainerPlan, FromChild, ToInit};
use super::rootfs;

pub(crate) fn run() -> i32 {
    let control = io::stdin();
    match serve(&control) {
        Ok(code) => code,
        Err(message) => {
            // When the plane is gone there is nobody left to tell.
            let told = frame::write_blocking(&control, &FromChild::Failed { message });
            i32::from(told.is_ok())
        }
    }
}

fn serve(control: &io::Stdin) -> Result<i32, String> {
    let text = |action: &str, error: Errno| format!("cannot {action}: {error}");
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| text("tie the container to the plane", error))?;
    // Where there is no process namespace, orphans come to this process all the same.
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| text("collect orphaned processes", error))?;
    let plan: ContainerPlan = match frame::read_blocking(control) {
        Ok(Some(plan)) => plan,
        Ok(None) => return Ok(1),
        Err(error) => return Err(error.to_string()),
    };
    let init = host_process()?;
    rootfs::build(&plan)?;

    let mut watched = SigSet::empty();
    watched.add(Signal::SIGCHLD);
    watched
        .thread_block()
        .map_err(|error| text("hold signals back", error))?;
    let signals = SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|error| text("watch for signals", error))?;

    let command = start(&plan)?;
    frame::write_blocking(control, &FromChild::Started { init })
        .map_err(|error| error.to_string())?;
    let code = follow(control, &signals, command);
    end_everything();
    Ok(code)
}

/// This process as the host counts it. Until the root changes, `/proc` is still the host's.
/// The one that started it knows the number too, but could only tell it after the command runs.
fn host_process() -> Result<u32, String> {
    std::fs::read_link("/proc/self")
        .ok()
        .and_then(|link| link.to_str()?.parse().ok())
        .ok_or_else(|| "cannot read /proc/self".to_owned())
}

fn start(plan: &ContainerPlan) -> Result<Pid, String> {
    let name = plan.command.first().map_or("", String::as_str);
    let mut command = Command::new(name);
    command
        .args(plan.command.iter().skip(1))
        .env_clear()
        .envs(plan.env.iter().cloned())
        .stdin(Stdio::null())
        .process_group(0);
    if let Some(directory) = &plan.working_dir {
        // A runtime makes a missing working directory; where that is forbidden the start says so.
        if std::fs::create_dir_all(directory).is_err() && !std::path::Path::new(directory).is_dir()
        {
            return Err(format!("working directory {directory:?} cannot be made"));
        }
        command.current_dir(directory);
    }
    if let Some(group) = plan.group {
        command.gid(group);
    }
    if let Some(user) = plan.user {
        command.uid(user);
    }
    let child = command
        .spawn()
        .map_err(|error| start_message(name, &error))?;
    i32::try_from(child.id())
        .map(Pid::from_raw)
        .map_err(|_| "the process id is out of range".to_owned())
}

/// Follows the command to its end, or to the plane's.
fn follow(control: &io::Stdin, signals: &SignalFd, command: Pid) -> i32 {
    loop {
        let mut ready = [
            PollFd::new(control.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return 1,
        }
        let heard = ready[0].any().unwrap_or(true);
        while let Ok(Some(_)) = signals.read_signal() {}
        if let Some(exited) = reap(command) {
            // A plane that is gone does not hear it; everything ends here anyway.
            return i32::from(frame::write_blocking(control, &exited).is_err());
        }
        if !heard {
            continue;
        }
        match frame::read_blocking(control) {
            Ok(Some(ToInit::Signal(9))) => return 137,
            Ok(Some(ToInit::Signal(number))) => {
                if let Ok(signal) = Signal::try_from(number) {
                    // It may have ended in between; the next round sees that.
                    let _ended = kill(command, signal);
                }
            }
            Ok(None) | Err(_) => return 1,
        }
    }
}

fn reap(command: Pid) -> Option<FromChild> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => {
                return Some(FromChild::Exited { code, signal: 0 });
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => {
                return Some(FromChild::Exited {
                    code: 128 + signal as i32,
                    signal: signal as i32,
                });
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Ends every process of the container. In a process namespace the end of process 1 does that;
/// without one, descendants are found by their parents until none is left.
fn end_everything() {
    if nix::unistd::getpid() == Pid::from_raw(1) {
        return;
    }
    loop {
        let children = descendants();
        if children.is_empty() {
            return;
        }
        for child in children {
            // Whoever has ended already needs no signal.
            let _ended = kill(child, Signal::SIGKILL);
        }
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        std::thread::yield_now();
    }
}

fn descendants() -> Vec<Pid> {
    let mut found = Vec::new();
    let mut open = vec![nix::unistd::getpid()];
    while let Some(parent) = open.pop() {
        let path = format!("/proc/{parent}/task/{parent}/children");
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        for child in text.split_whitespace().filter_map(|word| word.parse().ok()) {
            found.push(Pid::from_raw(child));
            open.push(Pid::from_raw(child));
        }
    }
    found
}
