//! One instance: etcd, the API server and, if wanted, the controller manager in a directory.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use api::call::Call;
use client::Cluster;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wishes::{Deed, Wanted, Wishes};
use super::{binaries, credentials};
use crate::say;

/// No instance takes longer to become ready.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Another program may take a free port before ours does; then other ports are tried.
const TRIES: usize = 3;
/// The list of processes of an instance: `PID PROGRAM` a line, the first to be ended first.
const PROCESSES: &str = "processes";

/// `cargo xtask realkube`.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let wishes = Wishes::parse(arguments)?;
    match wishes.deed {
        Deed::Build => binaries::folder().map(|folder| say(&folder.display().to_string())),
        Deed::Up => up(&wishes),
        Deed::Down => down(&wishes.directory),
        Deed::Env => tell(&wishes.directory),
    }
}

/// What to paste into a shell.
fn tell(directory: &Path) -> anyhow::Result<()> {
    let url = std::fs::read_to_string(directory.join("url"))
        .with_context(|| format!("no instance is up in {}", directory.display()))?;
    say(&format!(
        "export KUBECONFIG={}",
        directory.join("kubeconfig").display()
    ));
    say(&format!("export REALKUBE_URL={url}"));
    say(&format!(
        "export REALKUBE_CA={}",
        directory.join("ca.crt").display()
    ));
    say(&format!(
        "export REALKUBE_TOKEN={}",
        credentials::token("admin")
    ));
    Ok(())
}

fn up(wishes: &Wishes) -> anyhow::Result<()> {
    let programs = binaries::folder()?;
    let directory = &wishes.directory;
    if living(directory).next().is_some() {
        bail!("an instance is up in {}", directory.display());
    }
    for attempt in 1..=TRIES {
        clear(directory)?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        credentials::write(directory)?;
        match start(wishes, &programs) {
            Ok(()) => return tell(directory),
            Err(error) if attempt == TRIES => return Err(error),
            Err(error) => say(&format!("trying again: {error:#}")),
        }
    }
    Ok(())
}

fn start(wishes: &Wishes, programs: &Path) -> anyhow::Result<()> {
    let mut family = Family {
        programs,
        wishes,
        children: Vec::new(),
    };
    match family.start() {
        Ok(()) => Ok(()),
        Err(error) => {
            for (_, child) in &mut family.children {
                // It may have ended before; that may be why we are here.
                drop(child.kill());
                drop(child.wait());
            }
            Err(error)
        }
    }
}

/// The processes of an instance that starts.
struct Family<'a> {
    programs: &'a Path,
    wishes: &'a Wishes,
    children: Vec<(&'static str, Child)>,
}

impl Family<'_> {
    fn start(&mut self) -> anyhow::Result<()> {
        let [clients, peers, secure, controllers] = free_ports()?;
        let url = format!("https://127.0.0.1:{secure}");
        let directory = &self.wishes.directory;
        let kubeconfig = credentials::kubeconfig(directory, &url)?;
        credentials::keep(directory, "kubeconfig", &kubeconfig)?;

        let etcd = format!("http://127.0.0.1:{clients}");
        self.spawn("etcd", &self.etcd_flags(&etcd, peers))?;
        self.spawn("kube-apiserver", &self.server_flags(&etcd, secure))?;
        self.await_answer("/readyz", "the API server")?;
        // Made by a loop of the server's own, after it calls itself ready.
        self.await_answer("/api/v1/namespaces/default", "its first namespaces")?;
        self.await_answer("/api/v1/namespaces/kube-node-lease", "its first namespaces")?;
        if self.wishes.controllers == Wanted::Yes {
            self.spawn("kube-controller-manager", &self.manager_flags(controllers))?;
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            self.await_answer(account, "the controllers")?;
        }
        credentials::keep(&self.wishes.directory, "url", &url)
    }

    fn etcd_flags(&self, clients: &str, peers: u16) -> Vec<String> {
        let peers = format!("http://127.0.0.1:{peers}");
        let mut flags = vec![
            "--name=realkube".to_owned(),
            format!("--data-dir={}", self.file("etcd.data")),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=realkube={peers}"),
            "--log-level=warn".to_owned(),
        ];
        if self.wishes.fsync == Wanted::No {
            flags.push("--unsafe-no-fsync".to_owned());
        }
        flags
    }

    fn server_flags(&self, etcd: &str, port: u16) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers={etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            // No other host is meant to find this server, and a loopback address is no endpoint.
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--tls-cert-file={}", self.file("serving.crt")),
            format!("--tls-private-key-file={}", self.file("serving.key")),
            format!("--client-ca-file={}", self.file("ca.crt")),
            format!("--token-auth-file={}", self.file("tokens.csv")),
            "--anonymous-auth=false".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!(
                "--service-account-key-file={}",
                self.file("service-account.pub")
            ),
            format!(
                "--service-account-signing-key-file={}",
                self.file("service-account.key")
            ),
        ];
        if !self.wishes.admission.is_empty() {
            flags.push(format!(
                "--enable-admission-plugins={}",
                self.wishes.admission
            ));
        }
        flags.extend(self.feature_gates());
        flags.extend(self.wishes.more.iter().cloned());
        flags
    }

    fn manager_flags(&self, port: u16) -> Vec<String> {
        let kubeconfig = self.file("kubeconfig");
        let mut flags = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!("--root-ca-file={}", self.file("ca.crt")),
            format!(
                "--service-account-private-key-file={}",
                self.file("service-account.key")
            ),
            format!("--cluster-signing-cert-file={}", self.file("ca.crt")),
            format!("--cluster-signing-key-file={}", self.file("ca.key")),
        ];
        flags.extend(self.feature_gates());
        flags
    }

    fn feature_gates(&self) -> Option<String> {
        let gates = &self.wishes.feature_gates;
        (!gates.is_empty()).then(|| format!("--feature-gates={gates}"))
    }

    fn file(&self, name: &str) -> String {
        self.wishes.directory.join(name).display().to_string()
    }

    /// Starts a program that outlives this one, and notes it down.
    fn spawn(&mut self, program: &'static str, flags: &[String]) -> anyhow::Result<()> {
        let directory = &self.wishes.directory;
        let log = File::create(directory.join(format!("{program}.log")))?;
        let child = Command::new(self.programs.join(program))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        self.children.push((program, child));
        let lines: Vec<String> = self
            .children
            .iter()
            .rev()
            .map(|(program, child)| format!("{} {program}", child.id()))
            .collect();
        credentials::keep(directory, PROCESSES, &(lines.join("\n") + "\n"))
    }

    /// Asks until the answer is 200.
    fn await_answer(&mut self, path: &str, what: &str) -> anyhow::Result<()> {
        let directory = self.wishes.directory.clone();
        let until = Instant::now() + PATIENCE;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let call = Call {
            method: "GET",
            target: path.to_owned(),
            content_type: "",
            body: Vec::new(),
        };
        runtime.block_on(async {
            let cluster =
                Cluster::from_kubeconfig(Some(&directory.join("kubeconfig")), None).await?;
            loop {
                if cluster
                    .send(&call)
                    .await
                    .is_ok_and(|answer| answer.code == 200)
                {
                    return Ok(());
                }
                for (program, child) in &mut self.children {
                    if let Some(status) = child.try_wait()? {
                        bail!(
                            "{program} ended with {status}: {}",
                            end_of_log(&directory, program)
                        );
                    }
                }
                if Instant::now() > until {
                    bail!(
                        "{what} did not become ready: {}",
                        end_of_log(&directory, "kube-apiserver")
                    );
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        })
    }
}

/// Four ports that nothing listens on.
fn free_ports() -> anyhow::Result<[u16; 4]> {
    // All are held before any is given back, so that no two are the same.
    let mut held = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn end_of_log(directory: &Path, program: &str) -> String {
    let text = std::fs::read_to_string(directory.join(format!("{program}.log")));
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// Processes of the instance that run. A number that now belongs to another program is none.
fn living(directory: &Path) -> impl Iterator<Item = i32> {
    let list = std::fs::read_to_string(directory.join(PROCESSES)).unwrap_or_default();
    let rows: Vec<(i32, String)> = list
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(pid, program)| Some((pid.parse().ok()?, program.to_owned())))
        .collect();
    rows.into_iter().filter_map(|(pid, program)| {
        let running = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        (running.file_name()? == program.as_str()).then_some(pid)
    })
}

fn down(directory: &Path) -> anyhow::Result<()> {
    // Nothing of an instance is to be kept, so nothing is asked to end by itself.
    for pid in living(directory) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).context("cannot end a process")?;
    }
    let until = Instant::now() + PATIENCE;
    while living(directory).next().is_some() {
        if Instant::now() > until {
            bail!("processes of {} do not end", directory.display());
        }
        std::thread::sleep(ASK_EVERY);
    }
    clear(directory)
}

/// Removes what an instance left. A directory of something else stays.
fn clear(directory: &Path) -> anyhow::Result<()> {
    let foreign =
        |path: &PathBuf| !path.join(PROCESSES).exists() && !path.join("tokens.csv").exists();
    let path = directory.to_owned();
    if !path.exists() {
        return Ok(());
    }
    if std::fs::read_dir(&path)?.next().is_none() {
        return Ok(());
    }
    if foreign(&path) {
        bail!("{} is not the directory of an instance", path.display());
    }
    std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))
}
