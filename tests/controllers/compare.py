#!/usr/bin/env python3
"""Plays stories against two API servers with their controllers and compares what these did.

Each story gets a namespace on both sides. There is no kubelet: stories patch the status of pods,
whose template names a scheduler that does not exist. Compared are, for each object, the steps
that can be seen (`steps_of`), in order, the objects at the end, and the events.
"""

import argparse
import base64
import json
import pathlib
import re
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

PATIENCE_S = 40
CALM_S = 1.5
KINDS = {
    "pods": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "resourcequotas": "/api/v1",
    "configmaps": "/api/v1",
    "services": "/api/v1",
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "controllerrevisions": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
}
# Kinds without a namespace; stories remove what they make of them.
CLUSTER = ("nodes",)
# Fields that no two runs can agree on.
VOLATILE = {
    "creationTimestamp", "deletionTimestamp", "resourceVersion", "managedFields", "selfLink",
    "lastTransitionTime", "lastProbeTime", "lastUpdateTime", "lastHeartbeatTime", "startTime",
    "completionTime", "lastScheduleTime", "lastSuccessfulTime", "generation",
    "observedGeneration", "uid", "clusterIP", "clusterIPs",
}


class Side:
    """One server."""

    def __init__(self, name, kubeconfig):
        self.name = name
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.token = user.get("token")
        self.context = ssl.create_default_context(cadata=text_of(cluster, "certificate-authority"))
        certificate = text_of(user, "client-certificate")
        if certificate:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(certificate + "\n" + text_of(user, "client-key"))
                file.flush()
                self.context.load_cert_chain(file.name)

    def ask(self, method, path, body=None, kind="application/json", timeout=20):
        headers = {"Accept": "application/json", "Content-Type": kind}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=self.context, timeout=timeout)

    def get(self, path):
        with self.ask("GET", path) as answer:
            return json.load(answer)


def text_of(part, name):
    if name + "-data" in part:
        return base64.b64decode(part[name + "-data"]).decode()
    return pathlib.Path(part[name]).read_text() if name in part else None


class Play:
    """One story on one side: what was done, and every event that was seen."""

    def __init__(self, side, namespace):
        self.side, self.namespace, self.seen = side, namespace, []
        self.lock = threading.Lock()
        self.last = time.monotonic()
        self.over, self.taken = False, {}
        try:
            side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{side.name}: {error.read().decode()}") from None
        self.wait(lambda: side.get(self.path("serviceaccounts", "default")))
        for kind in KINDS:
            start = side.get(self.path(kind))["metadata"]["resourceVersion"]
            threading.Thread(target=self.watch, args=(kind, start), daemon=True).start()

    def path(self, kind, name=""):
        kind, _, sub = kind.partition("/")
        if kind in CLUSTER:
            base = f"/api/v1/{kind}"
            return base + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")
        base = f"{KINDS.get(kind, '/api/v1')}/namespaces/{self.namespace}/{kind}"
        return base + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    def watch(self, kind, start):
        path = f"{self.path(kind)}?watch=true&resourceVersion={start}"
        try:
            for line in self.side.ask("GET", path, timeout=600):
                event = json.loads(line)
                if event["type"] == "BOOKMARK":
                    continue
                if event["object"]["metadata"]["name"] == "kube-root-ca.crt":
                    continue
                with self.lock:
                    if self.over:
                        return
                    self.seen.append((kind, event["type"], event["object"]))
                    self.last = time.monotonic()
        except OSError:
            if not self.over:
                raise

    def wait(self, test):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                value = test()
                if value:
                    return value
            except (urllib.error.HTTPError, KeyError, IndexError, TypeError):
                pass
            if time.monotonic() > until:
                return None
            time.sleep(0.05)

    def calm(self):
        """Waits until nothing was seen for a while."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with self.lock:
                if time.monotonic() - self.last > CALM_S:
                    return
            time.sleep(0.05)

    def resolve(self, kind, name):
        """`*` is the oldest pod that neither ended nor is leaving, `*2` the second; `a*` begins so."""
        if "*" not in name:
            return name
        stem, place = name.split("*")
        place = int(place or 1)

        def find():
            alive = [
                one for one in self.side.get(self.path(kind))["items"]
                if one["metadata"]["name"].startswith(stem)
                and "deletionTimestamp" not in one["metadata"]
                and one.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            ]
            alive.sort(key=lambda one: self.age(one["metadata"]["uid"]))
            return alive[place - 1]["metadata"]["name"]

        found = self.wait(find)
        if not found:
            raise SystemExit(f"{self.side.name}: no {kind} {name} in {self.namespace}")
        return found

    def age(self, uid):
        with self.lock:
            for at, (_, _, thing) in enumerate(self.seen):
                if thing["metadata"]["uid"] == uid:
                    return at
        return 1 << 30

    def do(self, verb, words, body):
        text = json.dumps(body)
        for name, uid in self.taken.items():
            text = text.replace("${" + name + "}", uid)
        body = json.loads(text)
        kind = words[0]
        if verb == "+":
            self.send("POST", self.path(kind), body)
        elif verb == "~":
            kind = kind if body.keys() - {"status"} else f"{kind}/status"
            path = self.path(kind, self.resolve(kind.partition("/")[0], words[1]))
            self.send("PATCH", path, body, "application/merge-patch+json")
        elif verb == "-":
            options = {"propagationPolicy": words[2] if len(words) > 2 else "Background"}
            name = self.resolve(kind, words[1])
            self.send("DELETE", self.path(kind, name), {**options, **(body or {})})
        elif verb == "until":
            wanted = yaml.safe_load(words[3])

            def holds():
                value = self.side.get(self.path(kind, self.resolve(kind, words[1])))
                for step in words[2].split("."):
                    value = value[int(step)] if isinstance(value, list) else value.get(step)
                return [value] if value == wanted else None

            if not self.wait(holds):
                self.seen.append(("story", "FAILED", {"metadata": {"name": " ".join(words), "uid": "-"}}))
        elif verb == "=":
            found = self.wait(lambda: self.side.get(self.path(words[1], words[2])))
            self.taken[words[0]] = found["metadata"]["uid"]
        else:
            raise SystemExit(f"no such verb: {verb}")
        self.calm()

    def send(self, method, path, body, kind="application/json"):
        try:
            self.side.ask(method, path, body, kind).read()
        except urllib.error.HTTPError as error:
            said = json.loads(error.read()).get("message", "")
            self.seen.append(("story", "REFUSED", {"metadata": {"name": f"{method} {said}", "uid": "-"}}))

    def end(self):
        items = {kind: self.side.get(self.path(kind))["items"] for kind in KINDS}
        for one in [one for all in items.values() for one in all]:
            # Only the real server leaves these out of lists.
            one.pop("apiVersion", None), one.pop("kind", None)
        items["configmaps"] = [one for one in items["configmaps"] if one["metadata"]["name"] != "kube-root-ca.crt"]
        events = self.side.get(self.path("events"))["items"]
        with self.lock:
            self.over, self.seen = True, list(self.seen)
        self.side.ask("DELETE", f"/api/v1/namespaces/{self.namespace}").read()
        return items, events


class Names:
    """Random parts of names, replaced by what they stand for."""

    def __init__(self, play):
        self.words = {}
        count = {}
        for kind, _, thing in play.seen:
            meta = thing.get("metadata", {})
            for label in ("pod-template-hash", "controller.kubernetes.io/hash"):
                word = (meta.get("labels") or {}).get(label)
                if word and word not in self.words:
                    count[label] = count.get(label, 0) + 1
                    self.words[word] = f"HASH{count[label]}"
        for kind, _, thing in play.seen:
            meta = thing.get("metadata", {})
            stem, name = meta.get("generateName"), meta.get("name", "")
            if stem and name.startswith(stem) and not name[len(stem):].isdigit() and name not in self.words:
                count[stem] = count.get(stem, 0) + 1
                self.words[name] = f"{stem}#{count[stem]}"
        # Pods made at the same time may come in any order.
        for at, uid in enumerate(dict.fromkeys(thing["metadata"]["uid"] for _, _, thing in play.seen)):
            self.words.setdefault(uid, f"UID{at}" if uid == "-" else "UID")
        self.order = sorted(self.words, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, self.order)) or "$^")

    def plain(self, value):
        text = json.dumps(value, sort_keys=True)
        for _ in range(2):
            text = self.pattern.sub(lambda hit: self.words[hit[0]], text)
        return json.loads(text)


def without_volatile(value):
    if isinstance(value, dict):
        return {
            key: without_volatile(part) for key, part in value.items()
            if key not in VOLATILE and part not in ({}, None)
        }
    if isinstance(value, list):
        return [without_volatile(part) for part in value]
    return value


def steps_of(seen, names):
    """What happened to each object, in order: coming, conditions, sizes, leaving."""
    steps, before = {}, {}
    for kind, verb, thing in seen:
        thing = names.plain(thing)
        key = f"{kind}/{thing['metadata']['name']}"
        marks = marks_of(kind, verb, thing)
        new = [mark for mark in marks if mark not in before.get(key, [])]
        before[key] = marks
        steps.setdefault(key, []).extend(new)
    # Whether a deletion without grace is seen as one event or two is the API server's.
    for marks in steps.values():
        for at in range(len(marks) - 1, 0, -1):
            if marks[at] == "DELETED" and marks[at - 1] == "leaving":
                del marks[at - 1]
    return steps


def known_rows(folder):
    rows = (folder / "differences.txt").read_text().splitlines()
    return [row.split("  # ")[0] for row in rows if row and not row.startswith("#")]


def marks_of(kind, verb, thing):
    meta, spec, status = thing["metadata"], thing.get("spec") or {}, thing.get("status") or {}
    if verb in ("DELETED", "FAILED", "REFUSED"):
        return [verb]
    marks = ["here"]
    if "deletionTimestamp" in meta:
        marks.append("leaving")
    for finalizer in meta.get("finalizers") or []:
        marks.append(f"held by {finalizer}")
    if kind == "pods" and not meta.get("finalizers"):
        marks.append("free")
    for condition in status.get("conditions") or []:
        words = [condition.get(field, "") for field in ("type", "status", "reason", "message")]
        marks.append("{}={} {}: {}".format(*words))
    if kind in ("replicasets", "deployments", "statefulsets"):
        marks.append(f"size {spec.get('replicas')}")
    for field in ("deployment.kubernetes.io/revision",):
        value = (meta.get("annotations") or {}).get(field)
        if value and kind in ("replicasets", "deployments"):
            marks.append(f"{field}={value}")
    for field in ("completedIndexes", "failedIndexes", "disruptionsAllowed", "currentRevision"):
        if field in status:
            marks.append(f"{field}={status[field]}")
    return marks


def compare(story, ours, theirs, known):
    """Prints differences; how many there are."""
    count = 0

    def differ(what, our, their):
        nonlocal count
        line = f"{story}: {what}"
        if any(re.search(row, line) for row in known):
            return
        count += 1
        print(f"{line}\n    ours    {our}\n    theirs  {their}")

    plays, ends = (ours, theirs), [play.end() for play in (ours, theirs)]
    names = [Names(play) for play in plays]
    steps = [steps_of(play.seen, name) for play, name in zip(plays, names)]
    for key in sorted(steps[0].keys() | steps[1].keys()):
        one, other = steps[0].get(key), steps[1].get(key)
        if one != other:
            differ(f"steps of {key}", one, other)
    for kind in KINDS:
        final = []
        for (items, _), name in zip(ends, names):
            found = (without_volatile(name.plain(item)) for item in items[kind])
            final.append({item["metadata"]["name"]: item for item in found})
        for key in sorted(final[0].keys() & final[1].keys()):
            for path, our, their in parts(final[0][key], final[1][key], ""):
                differ(f"{kind}/{key}{path}", json.dumps(our), json.dumps(their))
    told = []
    for (_, events), name in zip(ends, names):
        lines = set()
        for event in map(name.plain, events):
            about = event["involvedObject"]
            lines.add(f"{about['kind']}/{about.get('name')} {event['type']} {event['reason']}: {event['message']}")
        told.append(lines)
    for line in sorted(told[0] - told[1]):
        differ(f"event {line}", "told", "not told")
    for line in sorted(told[1] - told[0]):
        differ(f"event {line}", "not told", "told")
    return count


def parts(our, their, path):
    if isinstance(our, dict) and isinstance(their, dict):
        for key in sorted(our.keys() | their.keys()):
            yield from parts(our.get(key), their.get(key), f"{path}.{key}")
    elif isinstance(our, list) and isinstance(their, list) and len(our) == len(their):
        for at, (one, other) in enumerate(zip(our, their)):
            yield from parts(one, other, f"{path}.{at}")
    elif our != their:
        yield path, our, their


def read(path):
    """Steps of a story: a verb, words, and YAML on the same line or indented below."""
    steps = []
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            steps[-1][2] += "\n" + line
        elif line and not line.startswith("#"):
            head, _, body = line.partition(" {")
            verb, *words = head.split(maxsplit=4)
            steps.append([verb, words, "{" + body if body else ""])
    return [(verb, words, yaml.safe_load(body) if body.strip() else None) for verb, words, body in steps]


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--ours", required=True, help="kubeconfig of a plane")
    asked.add_argument("--theirs", required=True, help="kubeconfig of the real server with its controllers")
    asked.add_argument("stories", nargs="*", help="only stories whose name begins so")
    given = asked.parse_args()
    folder = pathlib.Path(__file__).parent
    known = known_rows(folder)
    sides = [Side("ours", given.ours), Side("theirs", given.theirs)]
    total = count = 0
    for path in sorted((folder / "stories").glob("*.txt")):
        if given.stories and not path.stem.startswith(tuple(given.stories)):
            continue
        namespace = f"{path.stem.replace('_', '-')}-{int(time.time()) % 100000}"
        plays = [Play(side, namespace) for side in sides]
        for verb, words, body in read(path):
            threads = [threading.Thread(target=play.do, args=(verb, words, body)) for play in plays]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            total += 1
        count += compare(path.stem, *plays, known)
    print(f"{total} steps, {count} unknown differences, {len(known)} known")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
