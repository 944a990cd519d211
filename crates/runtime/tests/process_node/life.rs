//! How containers of a pod begin and end together.

use super::*;

/// A directory of the host that containers write their story into.
fn story(world: &World) -> (PathBuf, Value, Value) {
    let directory = world.directory.join("story");
    let volume =
        json!({"name": "out", "hostPath": {"path": directory, "type": "DirectoryOrCreate"}});
    let mount = json!([{"name": "out", "mountPath": "/out"}]);
    (directory.join("log"), volume, mount)
}

fn tells(name: &str, mount: &Value) -> Value {
    let script = format!(
        "trap 'echo {name} ends >> /out/log; exit 0' TERM; echo {name} >> /out/log; touch /out/{name}; sleep 1000 & wait"
    );
    json!({"name": name, "image": "any", "command": ["sh", "-c", script], "volumeMounts": mount})
}

fn runs(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

fn is_ready(status: &Value) -> bool {
    status["containerStatuses"][0]["ready"] == true
}

pub(super) async fn hooks(world: World) {
    if !world.isolated() {
        return;
    }
    let (log, volume, mount) = story(&world);
    let mut container = tells("main", &mount);
    container["lifecycle"] = json!({
        "postStart": runs("until test -e /out/main; do :; done; echo started >> /out/log"),
        "preStop": runs("echo stopping >> /out/log"),
    });
    world.pod("p", json!({"containers": [container], "volumes": [volume]}));
    world.wait("p", "ready", is_ready).await;
    world.delete("p", 30).await;
    let told = std::fs::read_to_string(log).unwrap();
    assert_eq!(told, "main\nstarted\nstopping\nmain ends\n");

    world.pod(
        "q",
        json!({"restartPolicy": "Never", "containers": [{
        "name": "c", "image": "sleeper", "lifecycle": {"postStart": runs("exit 3")}}]}),
    );
    let status = world.phase("q", "Failed").await;
    assert_eq!(ended(&status)["exitCode"], 143);
    assert!(world.noted("FailedPostStartHook"), "the reason is told");
}

pub(super) async fn sidecars(world: World) {
    if !world.isolated() {
        return;
    }
    let (log, volume, mount) = story(&world);
    let mut side = tells("side", &mount);
    side["restartPolicy"] = json!("Always");
    side["startupProbe"] = runs("test -e /out/side");
    side["startupProbe"]["periodSeconds"] = json!(1);
    let then = json!({"name": "then", "image": "any", "command": ["sh", "-c", "echo then >> /out/log"], "volumeMounts": mount});
    world.pod("p", json!({"initContainers": [side, then], "containers": [tells("main", &mount)], "volumes": [volume]}));
    world.wait("p", "ready", is_ready).await;
    let mut lines = String::new();
    while !lines.ends_with("main\n") {
        lines = std::fs::read_to_string(&log).unwrap();
        tokio::task::yield_now().await;
    }
    world.delete("p", 30).await;
    let told = std::fs::read_to_string(log).unwrap();
    assert_eq!(told, "side\nthen\nmain\nmain ends\nside ends\n");
}

pub(super) async fn heartbeats(world: World) {
    let lease = ObjectKey::new(Kind::Lease, "kube-node-lease", "node-1");
    let node = ObjectKey::new(Kind::Node, "", "node-1");
    let found = world.until(|memory| memory.get(&lease)).await;
    assert_eq!(found["spec"]["holderIdentity"], "node-1");
    assert_eq!(found["spec"]["leaseDurationSeconds"], 40);
    let mut doubted = world.memory.get(&node).unwrap();
    doubted["status"]["conditions"][3]["status"] = json!("Unknown");
    world.memory.put(node.clone(), doubted);
    let ready = |memory: &Memory| {
        let node = memory.get(&node)?;
        (node["status"]["conditions"][3]["status"] == "True").then_some(node)
    };
    world.until(ready).await;
}
