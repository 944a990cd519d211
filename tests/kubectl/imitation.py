"""Nodes for a server that has no kubelets and no scheduler: pods are placed on them and said to run.

    imitation.py KUBECTL KUBECONFIG NODE...

A pod becomes Running and Ready at once; where the command of its first container is `true` or
`false`, it ends instead, as that would. A pod that is deleted goes without grace. Runs until it is
killed.
"""

import itertools
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

KUBECTL, KUBECONFIG, NODES = sys.argv[1], sys.argv[2], sys.argv[3:]
BEAT = 8
numbers = itertools.count(2)
turns = itertools.cycle(NODES)


def open_door():
    """A door without locks: kubectl keeps the credentials."""
    proxy = subprocess.Popen(
        [KUBECTL, "--kubeconfig", KUBECONFIG, "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
    line = proxy.stdout.readline()
    return proxy, "http://" + line.split()[-1]


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def ask(method, path, body=None, kind="application/json", missing=(404, 409, 422)):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(DOOR + path, data, {"Content-Type": kind}, method=method)
    try:
        return json.load(urllib.request.urlopen(request, timeout=20))
    except urllib.error.HTTPError as error:
        if error.code in missing:
            return None
        print(method, path, error.code, error.read().decode(), flush=True)
        return None


def patch(path, body):
    return ask("PATCH", path, body, "application/strategic-merge-patch+json")


def condition(kind, status="True"):
    return {"type": kind, "status": status, "lastTransitionTime": now()}


def keep_nodes():
    """Makes the nodes and renews their leases, or the node controller gives them up."""
    room = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    for name in NODES:
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    while True:
        for name in NODES:
            # Again each time: where this program stood still for a minute they were given up.
            patch(f"/api/v1/nodes/{name}/status", {"status": {
                "capacity": room, "allocatable": room, "conditions": [dict(condition("Ready"), reason="KubeletReady")]}})
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
            spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": at}
            if ask("PATCH", f"{leases}/{name}", {"spec": spec}, "application/merge-patch+json") is None:
                ask("POST", leases, {"metadata": {"name": name}, "spec": spec})
        time.sleep(BEAT)


def open_nodes():
    """Where pods may go now: neither cordoned nor tainted."""
    listed = ask("GET", "/api/v1/nodes") or {"items": []}
    free = [item["metadata"]["name"] for item in listed["items"] if not item["spec"].get("unschedulable")
            and not [taint for taint in item["spec"].get("taints", []) if taint["effect"] != "PreferNoSchedule"]]
    return [name for name in NODES if name in free]


def place(pod, path):
    free = open_nodes()
    if not free or pod["spec"].get("schedulingGates"):
        return
    node = next(name for name in turns if name in free)
    ask("POST", path + "/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})


def container(of, state, ready):
    return {"name": of["name"], "image": of["image"], "imageID": of["image"], "containerID": "imitation://" + of["name"],
            "ready": ready, "started": ready, "restartCount": 0, "state": state}


def begin(pod, path):
    """What a kubelet would come to say, in one step."""
    spec = pod["spec"]
    command = (spec["containers"][0].get("command") or spec["containers"][0].get("args") or [""])[0]
    code = {"true": 0, "false": 1}.get(command)
    if code is None:
        phase, ready, state = "Running", True, {"running": {"startedAt": now()}}
    else:
        phase, ready = ("Succeeded", "Failed")[code], False
        word = ("Completed", "Error")[code]
        state = {"terminated": {"exitCode": code, "reason": word, "startedAt": now(), "finishedAt": now()}}
    address = f"10.244.0.{next(numbers)}"
    kinds = [condition(kind) for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized")]
    kinds += [condition(kind, str(ready)) for kind in ("ContainersReady", "Ready")]
    patch(path + "/status", {"status": {
        "phase": phase, "startTime": now(), "podIP": address, "podIPs": [{"ip": address}], "hostIP": "127.0.0.1",
        "conditions": kinds, "containerStatuses": [container(one, state, ready) for one in spec["containers"]]}})


def told(status):
    """Whether there is no more to say: it ended, or it is ready (nodes that are given up take that away)."""
    if status.get("phase") in ("Succeeded", "Failed"):
        return True
    return {"Ready": "True"}.items() <= {one["type"]: one["status"] for one in status.get("conditions", [])}.items()


def settle(pod):
    meta, spec = pod["metadata"], pod["spec"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
    if "deletionTimestamp" in meta:
        # Whoever holds it by a finalizer goes first; then the news of that come here.
        if meta.get("deletionGracePeriodSeconds"):
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
            ask("DELETE", path, dict(options, kind="DeleteOptions", apiVersion="v1"))
    elif "nodeName" not in spec:
        place(pod, path)
    elif spec["nodeName"] in NODES and not told(pod["status"]):
        begin(pod, path)


def follow():
    while True:
        listed = ask("GET", "/api/v1/pods") or {"items": [], "metadata": {"resourceVersion": "0"}}
        for pod in listed["items"]:
            settle(pod)
        since = listed["metadata"]["resourceVersion"]
        try:
            # A short watch: what waits for a node is looked at again by the next list.
            watch = urllib.request.urlopen(f"{DOOR}/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion={since}", timeout=20)
            for line in watch:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    settle(event["object"])
        except OSError as error:
            print("watch:", error, flush=True)


# Ended by a signal like by anything else: what was started here goes, too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
PROXY, DOOR = open_door()
try:
    threading.Thread(target=keep_nodes, daemon=True).start()
    follow()
finally:
    PROXY.kill()
