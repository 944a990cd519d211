//! What a container finds in its volumes and in its root.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

pub(super) async fn volumes(world: World) {
    if !world.isolated() {
        return;
    }
    let map = |text: &str| {
        let key = ObjectKey::new(Kind::ConfigMap, "default", "map");
        world.memory.put(
            key,
            json!({"metadata": {"name": "map", "namespace": "default"}, "data": {"key": text, "other": "x"}}),
        );
    };
    map("old");
    world.memory.put(
        ObjectKey::new(Kind::Secret, "default", "keys"),
        json!({"metadata": {"name": "keys", "namespace": "default"}, "data": {"token": "c2VjcmV0"}}),
    );
    let script = "cd /p; for f in key deep/secret token; do stat -L -c '%a %n' $f; done; readlink key; \
        cat token namespace deep/secret; echo; ls /none; cat /one; echo; \
        echo up > /dev/termination-log; until grep -q new key; do :; done; cat key note /one";
    world.pod("p", json!({"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "any", "command": ["sh", "-c", script], "volumeMounts": [
            {"name": "p", "mountPath": "/p"}, {"name": "none", "mountPath": "/none"},
            {"name": "p", "mountPath": "/one", "subPath": "key"}]}],
        "volumes": [{"name": "none", "configMap": {"name": "none", "optional": true}},
            {"name": "p", "projected": {"defaultMode": 0o640, "sources": [
                {"configMap": {"name": "map", "items": [{"key": "key", "path": "key", "mode": 0o600}]}},
                {"secret": {"name": "keys", "items": [{"key": "token", "path": "deep/secret"}]}},
                {"secret": {"name": "keys", "optional": true, "items": [{"key": "missing", "path": "missing"}]}},
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "note", "fieldRef": {"fieldPath": "metadata.annotations['note']"}}]}}]}}]}));
    world.phase("p", "Running").await;
    map("new ");
    // Whoever looks at the pod anew looks at its volumes, too.
    let mut object = world.memory.get(&pod_key("p")).unwrap();
    object["metadata"]["annotations"] = json!({"note": "noted "});
    world.memory.put(pod_key("p"), object);
    world.phase("p", "Succeeded").await;
    assert_eq!(
        world.log("p", "c").await,
        "600 key\n640 deep/secret\n640 token\n..data/key\n\
         token of default for pdefaultsecret\nold\nnew noted old"
    );
}

pub(super) async fn made_claims(world: World) {
    if !world.isolated() {
        return;
    }
    let claim = |owner: &str| {
        let key = ObjectKey::new(Kind::PersistentVolumeClaim, "default", "p-scratch");
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": true});
        world.memory.put(
            key,
            json!({"metadata": {"name": "p-scratch", "namespace": "default", "ownerReferences": [owner]},
                   "spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}),
        );
    };
    let directory = world.directory.join("scratch");
    world.memory.put(
        ObjectKey::new(Kind::PersistentVolume, "", "pv"),
        json!({"metadata": {"name": "pv"}, "spec": {"hostPath": {"path": directory}}}),
    );
    claim("uid-another");
    world.pod(
        "p",
        json!({"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "any", "command": ["sh", "-c", "echo kept > /s/out"],
            "volumeMounts": [{"name": "scratch", "mountPath": "/s"}]}],
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}),
    );
    let refused = |memory: &Memory| {
        let objects = memory.objects.lock().unwrap();
        let mut notes = objects.values().filter(|it| it["reason"] == "FailedMount");
        notes.find_map(|it| Some(it["message"].as_str()?.to_owned()))
    };
    assert_eq!(
        world.until(refused).await,
        "MountVolume.SetUp failed for volume \"scratch\" : PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    );
    claim("uid-p");
    world.phase("p", "Succeeded").await;
    assert_eq!(
        std::fs::read_to_string(directory.join("out")).unwrap(),
        "kept\n"
    );
}

/// A directory with a shell, what it needs, and a mark.
fn root(directory: &std::path::Path) {
    for program in ["/bin/sh", "/bin/cat", "/bin/ls"] {
        let list = Command::new("ldd").arg(program).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        let needed = list.split_whitespace().filter(|word| word.starts_with('/'));
        for file in needed.chain([program]) {
            let target = directory.join(&file[1..]);
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            std::fs::copy(file, target).unwrap();
        }
    }
    std::fs::create_dir_all(directory.join("etc")).unwrap();
    std::fs::write(directory.join("etc/mark"), "mine\n").unwrap();
}

pub(super) async fn roots(world: World) {
    if !world.isolated() {
        return;
    }
    let directory = world.directory.join("rootfs");
    root(&directory);
    // What nobody but the superuser may enter takes a mount all the same.
    let closed = directory.join("closed");
    std::fs::create_dir(&closed).unwrap();
    let mode = |bits| std::fs::set_permissions(&closed, Permissions::from_mode(bits)).unwrap();
    mode(0o000);
    let script = "cat /etc/mark /v/key /closed/in/key; echo; cat /etc/hostname; ls /etc/passwd || echo alone; echo x > /etc/made; cat /etc/made; ls -d /proc/self /dev/null /tmp/deep";
    let key = ObjectKey::new(Kind::ConfigMap, "default", "map");
    world.memory.put(
        key,
        json!({"metadata": {"name": "map", "namespace": "default"}, "data": {"key": "value"}}),
    );
    world.pod("p", json!({"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "rooted:1", "args": ["-c", script], "workingDir": "/tmp/deep",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/closed/in"}]}],
        "volumes": [{"name": "v", "configMap": {"name": "map"}}]}));
    world.phase("p", "Succeeded").await;
    mode(0o700);
    let log = world.log("p", "c").await;
    let told: Vec<&str> = log
        .lines()
        .filter(|line| !line.contains("cannot access"))
        .collect();
    assert_eq!(
        told,
        [
            "mine",
            "valuevalue",
            "p",
            "alone",
            "x",
            "/dev/null",
            "/proc/self",
            "/tmp/deep"
        ]
    );
    assert!(
        !directory.join("etc/made").exists(),
        "the image stays as it is"
    );
}

/// More addresses than a datagram holds: the C library asks again by connection.
pub(super) async fn names(world: World) {
    if !world.isolated() {
        return;
    }
    let put = |kind, name: &str, body: Value| {
        world
            .memory
            .put(ObjectKey::new(kind, "default", name), body);
    };
    put(
        Kind::Service,
        "big",
        json!({"metadata": {"name": "big", "namespace": "default"}, "spec": {"clusterIP": "None"}}),
    );
    let endpoints: Vec<Value> = (1..=100)
        .map(|last| json!({"addresses": [format!("10.1.0.{last}")]}))
        .collect();
    put(
        Kind::EndpointSlice,
        "big-1",
        json!({"metadata": {"name": "big-1", "namespace": "default",
        "labels": {"kubernetes.io/service-name": "big"}}, "addressType": "IPv4", "endpoints": endpoints}),
    );
    let script = "getent ahostsv4 big | cut -d' ' -f1 | sort -u | wc -l";
    world.pod(
        "p",
        json!({"restartPolicy": "Never", "containers": shell(script)}),
    );
    world.phase("p", "Succeeded").await;
    assert_eq!(world.log("p", "c").await, "100\n");
}
