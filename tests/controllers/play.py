"""One server, and one story on it: what was done there, and every event that was seen."""

import base64
import datetime
import json
import pathlib
import re
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request

import yaml

PATIENCE_S = 90
CALM_S = 1.5
# Where each kind lies; what is watched and compared.
KINDS = {
    "pods": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "resourcequotas": "/api/v1",
    "configmaps": "/api/v1",
    "secrets": "/api/v1",
    "services": "/api/v1",
    "endpoints": "/api/v1",
    "serviceaccounts": "/api/v1",
    "jobs": "/apis/batch/v1",
    "cronjobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "controllerrevisions": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "nodes": "/api/v1",
    "namespaces": "/api/v1",
    "persistentvolumes": "/api/v1",
    "storageclasses": "/apis/storage.k8s.io/v1",
    "volumeattributesclasses": "/apis/storage.k8s.io/v1",
}
# Kinds without a namespace: an object is a story's if its name begins with `story-NAME`.
CLUSTER = (
    "nodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses",
    "volumeattributesclasses",
)
# The names of all stories: that of one may begin with that of another.
STEMS = set()
# How often a node says that it lives.
BEAT_S = 5


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
        self.plays, self.lock, self.broken = {}, threading.Lock(), None
        for kind in KINDS:
            start = self.get(f"{KINDS[kind]}/{kind}")["metadata"]["resourceVersion"]
            threading.Thread(target=self.watch, args=(kind, start), daemon=True).start()

    def ask(self, method, path, body=None, kind="application/json", timeout=60):
        headers = {"Accept": "application/json", "Content-Type": kind}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        return urllib.request.urlopen(request, context=self.context, timeout=timeout)

    def get(self, path):
        for left in (2, 1, 0):
            try:
                with self.ask("GET", path) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError:
                raise
            except OSError:
                # A busy machine; reading once more changes nothing.
                if not left:
                    raise

    def watch(self, kind, start):
        """Hands what happens to the stories that it belongs to."""
        path = f"{KINDS[kind]}/{kind}?watch=true&timeoutSeconds=3000&resourceVersion={start}"
        try:
            for line in self.ask("GET", path, timeout=3000):
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    play = self.play_of(kind, event["object"]["metadata"])
                    if play:
                        play.see(kind, event["type"], event["object"])
            self.broken = f"{self.name}: the watch of {kind} ended"
        except (OSError, ValueError, KeyError) as error:
            self.broken = f"{self.name}: the watch of {kind} broke: {error}"

    def forget(self, namespace):
        with self.lock:
            self.plays.pop(namespace, None)

    def play_of(self, kind, meta):
        with self.lock:
            if kind not in CLUSTER:
                return self.plays.get(meta["namespace"])
            return next((one for one in self.plays.values() if one.owns(meta["name"])), None)


def text_of(part, name):
    if name + "-data" in part:
        return base64.b64decode(part[name + "-data"]).decode()
    return pathlib.Path(part[name]).read_text() if name in part else None


class Play:
    """One story on one side."""

    def __init__(self, side, story, namespace):
        self.side, self.story, self.namespace, self.seen = side, story, namespace, []
        self.lock = threading.Lock()
        self.last = time.monotonic()
        self.over, self.taken = False, {}
        with side.lock:
            side.plays[namespace] = self
        try:
            side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{side.name}: {error.read().decode()}") from None
        self.wait(lambda: side.get(self.path("serviceaccounts", "default")))
        self.wait(lambda: side.get(self.path("configmaps", "kube-root-ca.crt")))
        self.calm()

    def owns(self, name):
        stems = [stem for stem in STEMS if name == f"story-{stem}" or name.startswith(f"story-{stem}-")]
        return max(stems, key=len, default=None) == self.story

    def path(self, kind, name=""):
        kind, _, sub = kind.partition("/")
        # `kind@namespace`: in a namespace that the story made.
        kind, _, namespace = kind.partition("@")
        base = KINDS.get(kind, "/api/v1")
        if kind not in CLUSTER:
            base += f"/namespaces/{namespace or self.namespace}"
        return f"{base}/{kind}" + (f"/{name}" if name else "") + (f"/{sub}" if sub else "")

    def see(self, kind, verb, thing):
        with self.lock:
            if not self.over:
                self.seen.append((kind, verb, thing))
                self.last = time.monotonic()

    def say(self, verb, words):
        self.see("story", verb, {"metadata": {"name": words, "uid": "-"}})

    def wait(self, test):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                value = test()
                if value:
                    return value
            except (urllib.error.HTTPError, AttributeError, KeyError, IndexError, TypeError):
                pass
            if time.monotonic() > until:
                return None
            time.sleep(0.1)

    def calm(self):
        """Waits until nothing was seen for a while."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with self.lock:
                left = self.last + CALM_S - time.monotonic()
            if left <= 0:
                return
            time.sleep(left)

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
            self.say("FAILED", f"no {kind} {name}")
        return found

    def age(self, uid):
        with self.lock:
            for at, (_, _, thing) in enumerate(self.seen):
                if thing["metadata"]["uid"] == uid:
                    return at
        return 1 << 30

    def do(self, verb, words, body):
        body = self.filled(body)
        kind = words[0]
        if verb == "+":
            # `+ pods/eviction NAME {…}` is sent to a subresource.
            name = self.resolve(kind.partition("/")[0], words[1]) if "/" in kind else ""
            if name and body and "/" in kind:
                body = {**body, "metadata": {"name": name, **body.get("metadata", {})}}
            self.send("POST", self.path(kind, name or ""), body)
        elif verb == "~":
            kind = kind if body.keys() - {"status"} else f"{kind}/status"
            name = self.resolve(kind.partition("/")[0], words[1])
            # Whoever makes it may be slow.
            self.wait(lambda: self.side.get(self.path(kind.partition("/")[0], name)))
            if name:
                self.send("PATCH", self.path(kind, name), body, "application/merge-patch+json")
        elif verb == "-":
            options = {"propagationPolicy": words[2] if len(words) > 2 else "Background"}
            name = self.resolve(kind, words[1])
            if name:
                self.send("DELETE", self.path(kind, name), {**options, **(body or {})})
        elif verb in ("until", "gone"):
            if not self.wait(self.question(verb, kind, words)):
                self.say("FAILED", " ".join([verb, *words]))
        elif verb == "beat":
            threading.Thread(target=self.beat, args=(words[0],), daemon=True).start()
        elif verb == "pause":
            time.sleep(float(words[0]))
        elif verb == "=":
            found = self.wait(lambda: self.side.get(self.path(words[1], words[2])))
            self.taken[words[0]] = found["metadata"]["uid"]
        else:
            raise SystemExit(f"no such verb: {verb}")
        self.calm()

    def beat(self, node):
        """Renews the Lease of a node until the story is over."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"
        while not self.over:
            body = self.filled({"spec": {"renewTime": "${micro 0}"}})
            try:
                self.side.ask("PATCH", path, body, "application/merge-patch+json").read()
            except OSError:
                # The story has removed it, or the machine is busy: the next one tells.
                pass
            time.sleep(BEAT_S)

    def question(self, verb, kind, words):
        if verb == "gone":
            return lambda: self.is_gone(self.path(kind, words[1]))
        wanted = yaml.safe_load(words[3])

        def holds():
            value = self.side.get(self.path(kind, self.resolve(kind, words[1])))
            for step in words[2].split("."):
                value = value[int(step)] if isinstance(value, list) else value.get(step)
            return [value] if value == wanted else None

        return holds

    def is_gone(self, path):
        try:
            self.side.get(path)
        except urllib.error.HTTPError as error:
            return error.code == 404
        return False

    def filled(self, body):
        """`${owner}` is a uid that was taken, `${ago 90}` an instant, `${cron 90}` its minute in a schedule."""
        def word(hit):
            name, _, seconds = hit[1].partition(" ")
            if name in self.taken:
                return self.taken[name]
            if name == "namespace":
                return self.namespace
            at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=int(seconds))
            return at.strftime({"ago": "%Y-%m-%dT%H:%M:%SZ", "micro": "%Y-%m-%dT%H:%M:%S.000000Z", "cron": "%M %H * * *"}[name])

        return json.loads(re.sub(r"\$\{([^}]*)\}", word, json.dumps(body)))

    def send(self, method, path, body, kind="application/json"):
        try:
            self.side.ask(method, path, body, kind).read()
        except urllib.error.HTTPError as error:
            said = json.loads(error.read()).get("message", "")
            self.say("REFUSED", f"{method} {said}")

    def end(self):
        """What is there at the end, and the events that were written."""
        items = {kind: self.side.get(self.path(kind))["items"] for kind in KINDS}
        for kind, ones in items.items():
            if kind in CLUSTER:
                items[kind] = ones = [one for one in ones if self.owns(one["metadata"]["name"])]
            for one in ones:
                # Only the real server leaves these out of lists.
                one.pop("apiVersion", None), one.pop("kind", None)
                if one["metadata"]["name"] == "kube-root-ca.crt":
                    # Each side has an authority of its own.
                    one.pop("data", None)
        events = self.side.get(self.path("events"))["items"]
        events += [
            one for one in self.side.get("/api/v1/events")["items"]
            if self.owns(one["involvedObject"].get("name", "")) and one["metadata"]["namespace"] != self.namespace
        ]
        with self.lock:
            self.over, self.seen = True, list(self.seen)
        self.side.forget(self.namespace)
        self.leave(items)
        return items, events

    def leave(self, items):
        """Removes what the story made; nobody waits for it."""
        paths = [self.path("namespaces", self.namespace)]
        paths += [self.path(kind, one["metadata"]["name"]) for kind in CLUSTER for one in items[kind]]
        for path in paths:
            try:
                self.side.ask("DELETE", path).read()
            except urllib.error.HTTPError as error:
                if error.code not in (404, 409):
                    raise
