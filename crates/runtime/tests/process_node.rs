//! The process node against an API in memory: real processes, real namespaces, real names.
//!
//! The test binary is its own child: the node starts it again with a hidden verb, so it has a
//! `main` of its own instead of the usual harness.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test with a main of its own"
)]

#[path = "process_node/files.rs"]
mod files;
#[path = "process_node/life.rs"]
mod life;

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::intent::{Action, Intent, ObjectKey, Refusal, WriteOutcome};
use api::kind::Kind;
use client::kubelet::{ExecRequest, Kubelet, LogRequest, PodRef};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use runtime::network::LevelKind;
use runtime::process::{
    Followed, ImageMap, ImageRow, NetworkWish, NodeApi, ProcessNode, ReadError, Settings,
    TokenRequest, child_main, is_child,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{broadcast, watch};

const PATIENCE: Duration = Duration::from_secs(20);
const HANGUP: u64 = 1;

type Test = fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>;

const TESTS: &[(&str, Test)] = &[
    ("a_command_ends_and_its_code_and_log_are_told", |w| {
        Box::pin(ends(w))
    }),
    ("a_container_without_a_command_says_what_to_do", |w| {
        Box::pin(unmapped(w))
    }),
    ("a_claim_made_for_another_pod_is_not_mounted", |w| {
        Box::pin(files::made_claims(w))
    }),
    ("a_long_list_of_addresses_comes_by_connection", |w| {
        Box::pin(files::names(w))
    }),
    ("a_missing_command_is_a_start_error", |w| {
        Box::pin(missing(w))
    }),
    ("a_node_gives_signs_of_life", |w| {
        Box::pin(life::heartbeats(w))
    }),
    ("an_image_may_have_a_root_of_its_own", |w| {
        Box::pin(files::roots(w))
    }),
    (
        "containers_restart_by_policy_and_keep_their_last_end",
        |w| Box::pin(restarts(w)),
    ),
    ("deletion_ends_a_container_and_then_the_pod", |w| {
        Box::pin(deletion(w))
    }),
    ("environment_and_volumes_come_from_their_sources", |w| {
        Box::pin(sources(w))
    }),
    (
        "exec_enters_the_container_with_and_without_a_terminal",
        |w| Box::pin(exec(w)),
    ),
    ("files_of_volumes_follow_their_sources", |w| {
        Box::pin(files::volumes(w))
    }),
    ("hooks_run_after_the_start_and_before_the_end", |w| {
        Box::pin(life::hooks(w))
    }),
    ("init_containers_run_in_order_and_limits_kill", |w| {
        Box::pin(init(w))
    }),
    ("peers_find_each_other_by_name_and_share_a_port", |w| {
        Box::pin(peers(w))
    }),
    ("probes_decide_readiness_and_restarts", |w| {
        Box::pin(probes(w))
    }),
    ("sidecars_begin_before_the_others_and_end_after_them", |w| {
        Box::pin(life::sidecars(w))
    }),
    (
        "what_ran_before_a_restart_of_the_plane_ends_with_137",
        |w| Box::pin(restarted(w)),
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if is_child(&arguments) {
        child_main(&arguments);
    }
    if arguments.first().is_some_and(|first| first == "__plane") {
        return plane(arguments[1].clone().into());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    if ignored(&status) & HANGUP == 0 {
        return as_a_script_would(&arguments);
    }
    let filter = arguments
        .iter()
        .filter_map(|word| word.to_str())
        .find(|word| !word.starts_with('-'));
    let mut failed = 0;
    for (name, test) in TESTS {
        if filter.is_none_or(|filter| name.contains(filter)) {
            failed += u32::from(!passes(name, || run(name, *test)));
        }
    }
    let name = "nothing_is_left_when_the_plane_is_killed";
    if filter.is_none_or(|filter| name.contains(filter)) {
        failed += u32::from(!passes(name, killed));
    }
    ExitCode::from(u8::from(failed > 0))
}

/// Which signals of shells and terminals a process ignores, as a mask, by its `/proc/N/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & 0x7fff_ffff
}

/// Starts this again as `nohup` or a script in the background would: what runs in pods is not to
/// ignore what the plane does.
fn as_a_script_would(arguments: &[std::ffi::OsString]) -> ExitCode {
    let error = Command::new("sh")
        .args(["-c", "trap '' HUP QUIT; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(arguments)
        .exec();
    panic!("{error}");
}

fn passes(name: &str, test: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    let passed = std::panic::catch_unwind(test).is_ok();
    eprintln!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    passed
}

fn run(name: &str, test: Test) {
    let in_time = within_a_minute(name, test);
    assert!(in_time, "an end within a minute");
}

/// Whether the test ended in time; a failed assertion unwinds as ever.
fn within_a_minute(name: &str, test: Test) -> bool {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (directory, ended) = runtime.block_on(async {
        let world = World::new(name).await;
        let directory = world.directory.clone();
        let ended = tokio::time::timeout(Duration::from_secs(60), test(world)).await;
        (directory, ended.is_ok())
    });
    if !ended {
        tell_processes();
    }
    // The node is still there, and may be writing; with the runtime it ends.
    drop(runtime);
    std::fs::remove_dir_all(directory).unwrap();
    ended
}

/// What hangs, for whoever reads the log.
fn tell_processes() {
    let list = Command::new("ps")
        .args(["-eo", "pid,ppid,stat,wchan:24,args", "--forest"])
        .output();
    if let Ok(list) = list {
        eprintln!("{}", String::from_utf8_lossy(&list.stdout));
    }
}

/// An API server in memory, as far as a node needs one.
struct Memory {
    objects: Mutex<BTreeMap<ObjectKey, Value>>,
    revision: Mutex<u64>,
    news: broadcast::Sender<(Kind, Followed)>,
    changed: watch::Sender<u64>,
}

impl Memory {
    fn new() -> Arc<Memory> {
        Arc::new(Memory {
            objects: Mutex::default(),
            revision: Mutex::new(0),
            news: broadcast::channel(10_000).0,
            changed: watch::channel(0).0,
        })
    }

    fn put(&self, key: ObjectKey, mut object: Value) -> u64 {
        let mut revision = self.revision.lock().unwrap();
        *revision += 1;
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        self.objects
            .lock()
            .unwrap()
            .insert(key.clone(), object.clone());
        let _nobody = self.news.send((key.kind, Followed::Applied(object)));
        self.changed.send_replace(*revision);
        *revision
    }

    fn take(&self, key: &ObjectKey) {
        let gone = self.objects.lock().unwrap().remove(key);
        if let Some(object) = gone {
            let _nobody = self.news.send((key.kind, Followed::Deleted(object)));
            self.changed.send_modify(|revision| *revision += 1);
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<Value> {
        self.objects.lock().unwrap().get(key).cloned()
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

struct Door(Arc<Memory>);

impl NodeApi for Door {
    fn follow(&self, kind: Kind, _selector: Option<String>) -> BoxStream<'static, Followed> {
        let news = self.0.news.subscribe();
        let objects = self.0.objects.lock().unwrap();
        let all = objects.iter().filter(|(key, _)| key.kind == kind);
        let listed = Followed::Listed(all.map(|(_, object)| object.clone()).collect());
        let changes = stream::unfold(news, move |mut news| async move {
            loop {
                match news.recv().await {
                    Ok((of, change)) if of == kind => return Some((change, news)),
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        });
        stream::once(async { listed }).chain(changes).boxed()
    }

    fn token(
        &self,
        request: TokenRequest,
    ) -> BoxFuture<'static, Result<Option<String>, ReadError>> {
        let text = format!("token of {} for {}", request.account, request.pod.0);
        Box::pin(async { Ok(Some(text)) })
    }

    fn read(&self, key: ObjectKey) -> BoxFuture<'static, Result<Option<Value>, ReadError>> {
        let found = self.0.get(&key);
        Box::pin(async { Ok(found) })
    }

    fn write(&self, intent: Intent) -> BoxFuture<'static, WriteOutcome> {
        let refused = |code| {
            WriteOutcome::Refused(Refusal {
                code,
                reason: "Refused".into(),
                message: "refused".into(),
                retry_after_seconds: None,
            })
        };
        let key = intent.target;
        let outcome = match (self.0.get(&key), intent.action) {
            (None, Action::Create { body }) => {
                let revision = self.0.put(key, body);
                WriteOutcome::Done {
                    revision,
                    uid: "".into(),
                }
            }
            (
                Some(mut object),
                Action::Patch {
                    uid,
                    resource_version,
                    patch,
                    ..
                },
            ) => {
                let meta = &object["metadata"];
                if meta["uid"].as_str().unwrap_or("") != &*uid
                    || meta["resourceVersion"] != *resource_version
                {
                    refused(409)
                } else {
                    merge(&mut object, &patch);
                    let revision = self.0.put(key, object);
                    WriteOutcome::Done { revision, uid }
                }
            }
            (Some(_), Action::Delete { uid, .. }) => {
                self.0.take(&key);
                WriteOutcome::Done { revision: 0, uid }
            }
            (None, _) => refused(404),
            (Some(_), _) => refused(409),
        };
        Box::pin(async { outcome })
    }
}

struct World {
    memory: Arc<Memory>,
    node: Arc<ProcessNode>,
    directory: PathBuf,
}

fn settings(directory: PathBuf) -> Settings {
    let mut settings = Settings::new("node-1", directory, std::env::current_exe().unwrap());
    settings.images = ImageMap {
        images: vec![
            ImageRow {
                pattern: "rooted".to_owned(),
                command: vec!["/bin/sh".to_owned()],
                root: Some(settings.state_dir.join("rootfs")),
            },
            ImageRow {
                pattern: "sleeper".to_owned(),
                command: vec!["sleep".to_owned(), "1000".to_owned()],
                root: None,
            },
        ],
    };
    if std::env::var_os("KATMAI_TEST_HOST_LEVEL").is_some() {
        settings.network = NetworkWish::Host;
    }
    settings
}

fn pod_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Pod, "default", name)
}

impl World {
    async fn new(name: &str) -> World {
        let directory = std::env::temp_dir().join(format!("katmai-{}-{name}", std::process::id()));
        let _absent = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        World::over(Memory::new(), directory).await
    }

    async fn over(memory: Arc<Memory>, directory: PathBuf) -> World {
        let api = Arc::new(Door(memory.clone()));
        let node = ProcessNode::start(settings(directory.clone()), api)
            .await
            .unwrap();
        World {
            memory,
            node,
            directory,
        }
    }

    fn isolated(&self) -> bool {
        self.node.level().kind == LevelKind::Pod
    }

    fn pod(&self, name: &str, spec: Value) {
        self.memory.put(pod_key(name), pod(name, spec));
    }

    async fn wait(&self, name: &str, what: &str, good: impl Fn(&Value) -> bool) -> Value {
        let mut changed = self.memory.changed.subscribe();
        let seen = async {
            loop {
                changed.borrow_and_update();
                if let Some(object) = self.memory.get(&pod_key(name))
                    && good(&object["status"])
                {
                    return object["status"].clone();
                }
                changed.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, seen).await {
            Ok(status) => status,
            Err(_) => panic!(
                "{name} is not {what}: {:#}\nlog: {}",
                self.memory.get(&pod_key(name)).unwrap_or_default()["status"],
                self.log(name, "c").await
            ),
        }
    }

    /// What a look at the API finds, as soon as it finds it.
    async fn until<T>(&self, look: impl Fn(&Memory) -> Option<T>) -> T {
        let mut changed = self.memory.changed.subscribe();
        let seen = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = look(&self.memory) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        let found = tokio::time::timeout(PATIENCE, seen).await;
        found.expect("it is there in time")
    }

    /// Deletes a pod as a user does, and waits until it is gone.
    async fn delete(&self, name: &str, grace: i64) {
        let mut object = self.memory.get(&pod_key(name)).unwrap();
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        self.memory.put(pod_key(name), object);
        let gone = |memory: &Memory| memory.get(&pod_key(name)).is_none().then_some(());
        self.until(gone).await;
    }

    /// Whether an event with this reason was written.
    fn noted(&self, reason: &str) -> bool {
        let objects = self.memory.objects.lock().unwrap();
        objects.values().any(|object| object["reason"] == reason)
    }

    async fn phase(&self, name: &str, phase: &str) -> Value {
        self.wait(name, phase, |status| status["phase"] == phase)
            .await
    }

    fn reference(&self, name: &str) -> PodRef {
        PodRef {
            node: "node-1".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
        }
    }

    async fn log(&self, name: &str, container: &str) -> String {
        self.read_log(name, container, |_| {}).await
    }

    async fn read_log(
        &self,
        name: &str,
        container: &str,
        change: impl Fn(&mut LogRequest),
    ) -> String {
        let mut request = LogRequest {
            pod: self.reference(name),
            container: container.to_owned(),
            follow: false,
            previous: false,
            timestamps: false,
            tail_lines: None,
            since_micros: None,
            limit_bytes: None,
        };
        change(&mut request);
        match self.node.logs(request).await {
            Ok(chunks) => {
                let all: Vec<_> = chunks.map(|chunk| chunk.unwrap().to_vec()).collect().await;
                String::from_utf8(all.concat()).unwrap()
            }
            Err(error) => format!("no log: {error}"),
        }
    }

    async fn run(&self, name: &str, command: &[&str], tty: bool, input: &[u8]) -> (i32, String) {
        let request = ExecRequest {
            pod: self.reference(name),
            container: "c".to_owned(),
            command: command.iter().map(|word| word.to_string()).collect(),
            stdin: true,
            tty,
        };
        let mut session = self.node.exec(request).await.unwrap();
        session.resize.send((132, 43)).await.ok();
        session.stdin.send(input.to_vec().into()).await.unwrap();
        if !tty {
            drop(session.stdin);
        }
        let mut text = Vec::new();
        while let Some((_, bytes)) = session.output.recv().await {
            text.extend_from_slice(&bytes);
        }
        (
            session.exit.await.unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }
}

fn pod(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
                     "labels": {"app": "x", "name": name}},
        "spec": spec, "status": {"phase": "Pending"},
    })
}

fn shell(script: &str) -> Value {
    json!([{"name": "c", "image": "any", "command": ["/bin/sh", "-c", script]}])
}

fn ended(status: &Value) -> &Value {
    &status["containerStatuses"][0]["state"]["terminated"]
}

async fn ends(world: World) {
    world.pod("good", json!({"restartPolicy": "Never", "containers": shell("echo one; echo two >&2; echo three")}));
    world.pod(
        "bad",
        json!({"restartPolicy": "Never", "containers": shell("exit 3")}),
    );
    world.pod(
        "heeds",
        json!({"restartPolicy": "Never", "containers": shell("grep SigIgn /proc/self/status")}),
    );
    world.phase("heeds", "Succeeded").await;
    assert_eq!(ignored(&world.log("heeds", "c").await), 0);
    let good = world.phase("good", "Succeeded").await;
    assert_eq!(ended(&good)["reason"], "Completed");
    assert_eq!(good["conditions"][2]["reason"], "PodCompleted");
    let bad = world.phase("bad", "Failed").await;
    assert_eq!(
        (&ended(&bad)["exitCode"], &ended(&bad)["reason"]),
        (&json!(3), &json!("Error"))
    );
    assert_eq!(world.log("good", "c").await, "one\ntwo\nthree\n");
    let tail = world
        .read_log("good", "c", |request| request.tail_lines = Some(1))
        .await;
    assert_eq!(tail, "three\n");
    let followed = world
        .read_log("good", "c", |request| {
            (request.follow, request.timestamps) = (true, true)
        })
        .await;
    assert!(
        followed.starts_with("20") && followed.lines().count() == 3,
        "{followed}"
    );
}

async fn unmapped(world: World) {
    world.pod(
        "p",
        json!({"containers": [{"name": "c", "image": "nginx"}]}),
    );
    let waits = |status: &Value| {
        status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImageMapMissing"
    };
    let status = world.wait("p", "refused", waits).await;
    let message = status["containerStatuses"][0]["state"]["waiting"]["message"].to_string();
    assert!(message.contains("--image-map"), "{message}");
    world.pod(
        "q",
        json!({"containers": [{"name": "c", "image": "sleeper:1"}]}),
    );
    world.phase("q", "Running").await;
}

async fn missing(world: World) {
    let containers = json!([{"name": "c", "image": "x", "command": ["no-such-command"]}]);
    world.pod(
        "p",
        json!({"restartPolicy": "Never", "containers": containers}),
    );
    let status = world.phase("p", "Failed").await;
    assert_eq!(ended(&status)["reason"], "StartError");
    let message = ended(&status)["message"].to_string();
    assert!(
        message.contains("executable file not found in $PATH"),
        "{message}"
    );
}

async fn restarts(world: World) {
    world.pod(
        "p",
        json!({"restartPolicy": "OnFailure", "containers": shell("echo run; exit 1")}),
    );
    let backs_off = |status: &Value| {
        status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    };
    let status = world.wait("p", "backing off", backs_off).await;
    let own = &status["containerStatuses"][0];
    assert_eq!(own["restartCount"], 1);
    assert_eq!(own["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(status["phase"], "Running");
    assert_eq!(
        world
            .read_log("p", "c", |request| request.previous = true)
            .await,
        "run\n"
    );
}

async fn deletion(world: World) {
    world.pod("p", json!({"containers": shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")}));
    world.pod(
        "deaf",
        json!({"containers": shell("trap '' TERM; echo up; while :; do sleep 0.05; done")}),
    );
    for (name, grace) in [("p", 20), ("deaf", 1)] {
        world.phase(name, "Running").await;
        let up = world
            .read_log(name, "c", |request| {
                (request.follow, request.limit_bytes) = (true, Some(3))
            })
            .await;
        assert_eq!(up, "up\n");
        world.delete(name, grace).await;
        assert!(!world.directory.join(format!("pods/uid-{name}")).exists());
    }
}

async fn sources(world: World) {
    if !world.isolated() {
        return;
    }
    let put = |kind, name: &str, body: Value| {
        world
            .memory
            .put(ObjectKey::new(kind, "default", name), body)
    };
    let meta = |name: &str| json!({"name": name, "namespace": "default", "uid": name});
    put(
        Kind::ConfigMap,
        "settings",
        json!({"metadata": meta("settings"), "data": {"LEVEL": "3", "file.txt": "hello"}}),
    );
    put(
        Kind::Secret,
        "keys",
        json!({"metadata": meta("keys"), "data": {"token": "c2VjcmV0"}}),
    );
    put(
        Kind::PersistentVolumeClaim,
        "claim",
        json!({"metadata": meta("claim"), "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}),
    );
    let shared = world.directory.join("claim");
    world.memory.put(
        ObjectKey::new(Kind::PersistentVolume, "", "pv"),
        json!({"metadata": {"name": "pv"}, "spec": {"hostPath": {"path": shared}}}),
    );
    let script = "echo $LEVEL $TOKEN $WHO $CPU $(cat /config/file.txt) $(cat /deep/in/here/labels | head -1) $(hostname); \
        cat /etc/one.txt; echo; (echo x > /config/y) 2>/dev/null || echo read-only; echo kept > /data/sub/out; \
        echo mine > /etc/mine && cat /etc/mine; echo tmp > /cache/a && cat /cache/a; echo $1 $0";
    world.pod("p", json!({"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "any", "command": ["/bin/sh", "-c", script, "$(WHO)"], "args": ["$(LEVEL)-$$(LEVEL)"],
            "resources": {"limits": {"cpu": "1500m"}},
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
                    {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "WHO", "value": "<$(ME)>"},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            "volumeMounts": [{"name": "config", "mountPath": "/config"}, {"name": "down", "mountPath": "/deep/in/here"},
                             {"name": "config", "mountPath": "/etc/one.txt", "subPath": "file.txt"},
                             {"name": "cache", "mountPath": "/cache"}, {"name": "data", "mountPath": "/data"}]}],
        "initContainers": [{"name": "i", "image": "any", "command": ["mkdir", "/data/sub"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "settings"}}, {"name": "cache", "emptyDir": {}},
                    {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]}));
    world.phase("p", "Succeeded").await;
    assert_eq!(
        world.log("p", "c").await,
        "3 secret <p> 2 hello app=\"x\" p\nhello\nread-only\nmine\ntmp\n3-$(LEVEL) <p>\n"
    );
    assert_eq!(
        std::fs::read_to_string(shared.join("sub/out")).unwrap(),
        "kept\n"
    );
    assert!(
        !std::path::Path::new("/etc/mine").exists() && !std::path::Path::new("/config").exists()
    );
}

async fn exec(world: World) {
    world.pod("p", json!({"containers": [{"name": "c", "image": "sleeper", "env": [{"name": "A", "value": "b"}]}]}));
    world.phase("p", "Running").await;
    let (code, text) = world
        .run(
            "p",
            &["sh", "-c", "cat; echo $A; hostname; exit 7"],
            false,
            b"in\n",
        )
        .await;
    let hostname = if world.isolated() {
        "p\n".to_owned()
    } else {
        text.lines().last().unwrap().to_owned() + "\n"
    };
    assert_eq!((code, text), (7, format!("in\nb\n{hostname}")));
    let (code, text) = world
        .run("p", &["sh"], true, b"tty; stty size; exit 4\n")
        .await;
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("/dev/pts/"), "{text}");
    if world.isolated() {
        hangs_up(&world).await;
    }
    let (code, text) = world.run("p", &["no-such"], false, b"").await;
    assert!(code == 126 && text.contains("not found"), "{code} {text}");
    let asked = ["grep", "SigIgn", "/proc/self/status"];
    for is_terminal in [false, true] {
        let (code, text) = world.run("p", &asked, is_terminal, b"").await;
        assert_eq!((code, ignored(&text)), (0, 0), "{text}");
    }
}

/// Whoever leaves a terminal takes what runs on it along.
async fn hangs_up(world: &World) {
    let request = ExecRequest {
        pod: world.reference("p"),
        container: "c".to_owned(),
        command: ["sh", "-c", "echo up; exec tail -f /dev/null"]
            .map(str::to_owned)
            .to_vec(),
        stdin: true,
        tty: true,
    };
    let mut session = world.node.exec(request).await.unwrap();
    assert!(session.output.recv().await.unwrap().1.starts_with(b"up"));
    drop(session);
    let wait = "while cat /proc/[0-9]*/comm 2>/dev/null | grep -q '^tail$'; do :; done; echo gone";
    let (_, text) = world.run("p", &["sh", "-c", wait], false, b"").await;
    assert_eq!(text, "gone\n");
}

async fn init(world: World) {
    let step = |name: &str, script: &str| json!({"name": name, "image": "any", "command": ["sh", "-c", script], "volumeMounts": [{"name": "v", "mountPath": "/dev/shm"}]});
    if world.isolated() {
        world.pod(
            "p",
            json!({"restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}],
            "initContainers": [step("a", "echo a > /dev/shm/x"), step("b", "echo b >> /dev/shm/x")],
            "containers": [step("c", "cat /dev/shm/x")]}),
        );
        world.phase("p", "Succeeded").await;
        assert_eq!(world.log("p", "c").await, "a\nb\n");
    }
    world.pod(
        "q",
        json!({"restartPolicy": "Never", "containers": shell("true"),
        "initContainers": [{"name": "a", "image": "any", "command": ["false"]}]}),
    );
    world.phase("q", "Failed").await;
    if world.node.limits_absent().is_none() {
        world.pod(
            "big",
            json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "any",
            "command": ["sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x)"],
            "resources": {"limits": {"memory": "64Mi"}}}]}),
        );
        let status = world.phase("big", "Failed").await;
        assert_eq!(ended(&status)["reason"], "OOMKilled", "{status:#}");
    }
}

async fn peers(world: World) {
    if !world.isolated() {
        return;
    }
    let service = |name: &str, spec: Value| {
        let key = ObjectKey::new(Kind::Service, "default", name);
        world.memory.put(
            key,
            json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}),
        );
    };
    service(
        "gang",
        json!({"clusterIP": "None", "selector": {"app": "x"}, "publishNotReadyAddresses": true}),
    );
    service(
        "front",
        json!({"clusterIP": "10.96.3.4", "selector": {"name": "a"},
        "ports": [{"port": 80, "targetPort": 8080}]}),
    );
    let serve = "python3 -u -c \"
import socket
s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('0.0.0.0',8080)); s.listen()
while True:
    c,_=s.accept(); c.sendall(socket.gethostname().encode()); c.close()
\"";
    service(
        "echo",
        json!({"clusterIP": "10.96.3.5", "selector": {"name": "u"},
        "ports": [{"port": 7, "targetPort": "echo", "protocol": "UDP"}]}),
    );
    let echo = "python3 -u -c \"
import socket
s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0',7777))
while True:
    m,f=s.recvfrom(99); s.sendto(m+b'!',f)
\"";
    world.pod(
        "u",
        json!({"containers": [{"name": "c", "image": "any", "command": ["/bin/sh", "-c", echo],
            "ports": [{"name": "echo", "containerPort": 7777, "protocol": "UDP"}],
            "readinessProbe": {"exec": {"command": ["grep", "-q", ":1E61 ", "/proc/net/udp"]}, "periodSeconds": 1}}]}),
    );
    for name in ["a", "b"] {
        world.pod(
            name,
            json!({"hostname": format!("host-{name}"), "subdomain": "gang", "containers": [{
            "name": "c", "image": "any", "command": ["/bin/sh", "-c", serve],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}]}),
        );
    }
    let ready = |status: &Value| status["containerStatuses"][0]["ready"] == true;
    let a = world.wait("a", "ready", ready).await;
    let b = world.wait("b", "ready", ready).await;
    assert_ne!(a["podIP"], b["podIP"]);
    world.wait("u", "ready", ready).await;
    let datagram = "import socket
s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect(('echo',7)); s.send(b'hey'); print(s.recv(99).decode())";
    let ask = "import socket,sys
s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5); print(s.recv(99).decode())";
    let script = format!(
        "getent hosts host-b.gang; getent hosts gang.default.svc.cluster.local | wc -l; \
        for to in 'host-a.gang 8080' 'host-b.gang 8080' 'front 80' 'front.default.svc.cluster.local 80'; do python3 -c \"{ask}\" $to; done; python3 -c \"{datagram}\""
    );
    world.pod(
        "z",
        json!({"restartPolicy": "Never", "subdomain": "gang", "containers": shell(&script)}),
    );
    world.phase("z", "Succeeded").await;
    let log = world.log("z", "c").await;
    let mut lines = log.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with(b["podIP"].as_str().unwrap())
            && first.contains("host-b.gang.default.svc.cluster.local"),
        "{log}"
    );
    assert_eq!(
        lines.collect::<Vec<_>>()[1..],
        ["host-a", "host-b", "host-a", "host-a", "hey!"],
        "{log}"
    );
    let mut stream = world.node.dial(world.reference("b"), 8080).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "host-b");
}

async fn probes(world: World) {
    world.pod("p", json!({"containers": [{"name": "c", "image": "any", "command": ["sh", "-c", "sleep 1000"],
        "livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1},
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}}]}));
    let restarted =
        |status: &Value| status["containerStatuses"][0]["restartCount"].as_u64() > Some(0);
    let status = world.wait("p", "restarted", restarted).await;
    assert_eq!(
        status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"],
        143
    );
}

async fn restarted(world: World) {
    let object = |policy: &str, name: &str| {
        let mut object = pod(
            name,
            json!({"restartPolicy": policy, "containers": shell("echo again")}),
        );
        object["status"] = json!({"phase": "Running", "containerStatuses": [{"name": "c", "restartCount": 2,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]});
        object
    };
    let memory = Memory::new();
    for (policy, name) in [("Never", "never"), ("OnFailure", "again")] {
        memory.put(pod_key(name), object(policy, name));
    }
    let world = World::over(memory, world.directory.clone()).await;
    let never = world.phase("never", "Failed").await;
    assert_eq!(
        (&ended(&never)["reason"], &ended(&never)["exitCode"]),
        (&json!("NodeRestarted"), &json!(137))
    );
    let again = world.phase("again", "Succeeded").await;
    assert_eq!(again["containerStatuses"][0]["restartCount"], 3);
    assert_eq!(
        again["containerStatuses"][0]["lastState"]["terminated"]["reason"],
        "NodeRestarted"
    );
}

/// A plane with one pod, for ever.
fn plane(directory: PathBuf) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::over(Memory::new(), directory).await;
        let script =
            "setsid sh -c 'sleep 98765 & sleep 98765' & trap '' TERM HUP INT; sleep 98765 & echo up; wait";
        world.pod("p", json!({"containers": shell(script)}));
        world.phase("p", "Running").await;
        let up = |request: &mut LogRequest| (request.follow, request.limit_bytes) = (true, Some(3));
        assert_eq!(world.read_log("p", "c", up).await, "up\n");
        println!("running");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

fn killed() {
    use std::io::BufRead;
    let directory = std::env::temp_dir().join(format!("katmai-{}-killed", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut plane = Command::new(std::env::current_exe().unwrap())
        .arg("__plane")
        .arg(&directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(plane.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "running\n");
    let marker = directory.to_str().unwrap().to_owned();
    let all = descendants(plane.id());
    plane.kill().unwrap();
    plane.wait().unwrap();
    assert!(all.len() >= 4, "{marker} {all:?}");
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let left: Vec<_> = all.iter().filter(|process| alive(**process)).collect();
        if left.is_empty() {
            break;
        }
        assert!(std::time::Instant::now() < until, "still there: {left:?}");
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(directory).unwrap();
}

fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        for thread in std::fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in text.split_whitespace().filter_map(|word| word.parse().ok()) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

fn alive(process: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
