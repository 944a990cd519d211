#!/usr/bin/env python3
"""Admission policies and webhooks on the real API server, asked the golden cases of `review`.

Three users send each request, without that anything is kept: of the administrator nobody is asked, so
that his answer is the server's own; alice is judged by the policies, bob by the webhooks. Then

- what the policies deny, the webhooks deny;
- where both pass, both make the same of the object;
- where the server's schema leaves the object as it was written, the webhooks answer as the case says;
- every sentence of a policy denies something, but for those that the server's schema says before
  (`SAID_BEFORE`), and every policy that changes objects changes one.
"""

import argparse
import collections
import copy
import http.client
import json
import pathlib
import re
import ssl
import sys
import time
import urllib.parse

from cases import File

# Kind: where its objects are.
PLACES = {
    "ConfigMap": ("v1", "configmaps", True),
    "CronJob": ("batch.volcano.sh/v1alpha1", "cronjobs", True),
    "HyperNode": ("topology.volcano.sh/v1alpha1", "hypernodes", False),
    "Job": ("batch.volcano.sh/v1alpha1", "jobs", True),
    "JobFlow": ("flow.volcano.sh/v1alpha1", "jobflows", True),
    "Namespace": ("v1", "namespaces", False),
    "Pod": ("v1", "pods", True),
    "PodGroup": ("scheduling.volcano.sh/v1beta1", "podgroups", True),
    "Queue": ("scheduling.volcano.sh/v1beta1", "queues", False),
    "ServiceAccount": ("v1", "serviceaccounts", True),
}
# What the definitions of the kinds refuse before any policy is asked.
SAID_BEFORE = {
    "katmai-hypernodes-validate: member must have at least one member",
    "katmai-jobs-validate: 'PartitionSize' must be greater than 0",
    "katmai-jobs-validate: 'TotalPartitions' must be greater than 0",
    "katmai-jobs-validate: 'minAvailable' must be >= 0 in task",
    "katmai-jobs-validate: 'replicas' must be >= 0 in task",
    "katmai-jobs-validate: job 'minAvailable' must be >= 0",
    "katmai-jobs-validate: mountPath is required",
    # The status is no part of what is written; it is a resource of its own.
    "katmai-queues-validate: queue state must be in [Open Closed]",
}
# Longest that the webhooks may take to hear of a world, or the server of a policy.
PATIENCE_SECONDS = 20
# An expression about a larger object may cost a server more time than a request has.
BYTES_MAX = 100_000
# What the processes are told; cases with other settings are left out.
SETTINGS = {"gates"}


class Asker:
    """One user of the server."""

    def __init__(self, url, authority, user):
        self.user = user
        address = urllib.parse.urlsplit(url)
        context = ssl.create_default_context(cafile=authority)
        self.connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=60)

    def ask(self, verb, path, body=None, sort="application/json"):
        headers = {"Authorization": f"Bearer {self.user}-token", "Content-Type": sort}
        self.connection.request(verb, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read() or b"{}")


def path_of(thing, named=True):
    version, plural, is_namespaced = PLACES[thing["kind"]]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    space = f"/namespaces/{thing['metadata'].get('namespace', 'default')}" if is_namespaced else ""
    return f"{root}{space}/{plural}" + (f"/{thing['metadata']['name']}" if named else "")


def whole(kind, thing):
    """The object with what every object has to say."""
    return {"apiVersion": PLACES[kind][0], **thing, "kind": kind}


class Rig:
    """The server, with its three users."""

    def __init__(self, url, authority):
        self.own, self.policies, self.webhooks = (Asker(url, authority, it) for it in ("admin", "alice", "bob"))

    def keep(self, thing):
        """Makes the object what is said, by nobody's leave; its answer where that cannot be."""
        code, found = self.own.ask("GET", path_of(thing))
        if code == 200 and thing["kind"] == "Namespace":
            wish = {"metadata": {"annotations": thing["metadata"].get("annotations")}}
            return self.own.ask("PATCH", path_of(thing), wish, "application/merge-patch+json")
        if code == 200:
            self.own.ask("DELETE", path_of(thing))
        code, told = self.own.ask("POST", path_of(thing, named=False), thing)
        if code == 201 and thing.get("status"):
            wish = {"status": thing["status"]}
            self.own.ask("PATCH", path_of(thing) + "/status", wish, "application/merge-patch+json")
        return code, told

    def dry(self, asker, case, thing):
        """Asks, and keeps nothing."""
        if case.verb == "create":
            return asker.ask("POST", path_of(thing, named=False) + "?dryRun=All", thing)
        if case.verb == "delete":
            return asker.ask("DELETE", path_of(thing) + "?dryRun=All")
        _, found = self.own.ask("GET", path_of(thing))
        version = found.get("metadata", {}).get("resourceVersion")
        thing = {**thing, "metadata": {**thing["metadata"], "resourceVersion": version}}
        return asker.ask("PUT", path_of(thing) + "?dryRun=All", thing)


def verdict(answer):
    """Who denied the request, and how; or `None` and what was made of the object."""
    code, body = answer
    if code < 300:
        return None, bare(body)
    text = body.get("message", "")
    by_policy = re.search(r"ValidatingAdmissionPolicy '(\S+)' with binding '\S+' denied request: (.*)", text, re.S)
    if by_policy:
        return "policy", f"{by_policy[1]}: {by_policy[2]}"
    by_webhook = re.search(r'admission webhook "(\S+)" denied the request: (.*)', text, re.S)
    if by_webhook:
        return "webhook", f"{by_webhook[1]}: {by_webhook[2]}"
    return "server", f"{code} {text}"


def bare(thing):
    """An object without what the server says of its making, and of when."""
    thing = copy.deepcopy(thing)
    for name in ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"):
        thing.get("metadata", {}).pop(name, None)
    status = thing.get("status")
    # Of what is deleted the answer may be one of the server itself, whose status is a word.
    for condition in status.get("conditions", []) if isinstance(status, dict) else []:
        condition.pop("lastTransitionTime", None)
    return thing


def is_found(thing, path, value):
    """Whether the value stands at the path, whose parts may have dots of their own."""
    if not path:
        return thing == value
    if isinstance(thing, list):
        part, _, rest = path.partition(".")
        return part.isdigit() and int(part) < len(thing) and is_found(thing[int(part)], rest, value)
    parts = thing if isinstance(thing, dict) else {}
    return any(is_found(parts[it], path[len(it) + 1 :], value) for it in parts if f"{path}.".startswith(f"{it}."))


class Run:
    """What was found."""

    def __init__(self, rig, policies):
        self.rig, self.wrong = rig, []
        self.count = collections.Counter()
        self.sentences = {
            f"{it['metadata']['name']}: {rule['message']}"
            for it in policies
            for rule in it["spec"].get("validations", [])
        }
        self.changing = {it["metadata"]["name"] for it in policies if it["kind"] == "MutatingAdmissionPolicy"}
        self.said, self.changed = set(), set()

    def file(self, path):
        file = File(path)
        world = [whole(it["kind"], it) for it in file.there]
        for thing in world:
            self.rig.keep(thing)
        for case in file.cases:
            if set(case.settings) - SETTINGS or file.path.stem == "given" and not case.settings:
                self.count["left out: other settings"] += 1
                continue
            self.case(file, case)
            for thing in world:
                if thing["kind"] == file.kind:
                    self.rig.keep(thing)
        for thing in world:
            wish = {**thing, "metadata": {**thing["metadata"], "annotations": {}}}
            self.rig.keep(wish) if thing["kind"] == "Namespace" else self.rig.own.ask("DELETE", path_of(thing))

    def case(self, file, case):
        old, new = whole(file.kind, case.old), whole(file.kind, case.new)
        if len(json.dumps(new)) > BYTES_MAX:
            self.count["left out: large objects"] += 1
            return
        if case.verb == "update" and self.rig.keep(old)[0] != 201:
            self.count["left out: the server does not keep what is updated"] += 1
            return
        own, found = verdict(self.rig.dry(self.rig.own, case, new))
        if own is None:
            self.compare(file, case, new, found)
        else:
            self.refused(file, case, new)
        if case.verb == "update":
            self.rig.own.ask("DELETE", path_of(old))

    def refused(self, file, case, new):
        """What the server takes from nobody becomes the same for both askers, if anything."""
        policy, made = verdict(self.rig.dry(self.rig.policies, case, new))
        webhook, given = verdict(self.rig.dry(self.rig.webhooks, case, new))
        self.count["refused by the server itself" if policy else "refused by the server, and mended by both"] += 1
        if policy != webhook or policy is None and made != given:
            self.fail(file, case, f"policies: {policy}, {made}\n    webhooks: {webhook}, {given}")

    def compare(self, file, case, new, own):
        is_as_written = case.verb == "delete" or within(new, own) and not case.new.get("status")
        policy, made = verdict(self.rig.dry(self.rig.policies, case, new))
        webhook, given = self.by_webhooks(case, new, is_as_written)
        if is_as_written:
            self.count["webhooks beside the case"] += 1
            if (webhook is None) != case.is_allowed():
                self.fail(file, case, f"the case says {case.answer[0]!r}, the webhooks {webhook}: {given}")
            for path, value in case.changes() if webhook is None else []:
                if not is_found(given, path, value):
                    self.fail(file, case, f"{path} is not {value!r}")
        if "server" in (policy, webhook):
            self.fail(file, case, f"the server itself refuses: {made}, {given}")
        elif policy == "policy":
            self.count["denied by both" if webhook else "denied by policies alone"] += 1
            self.said.add(made)
            if webhook is None:
                self.fail(file, case, f"the policy denies what the webhook passes: {made}")
        elif webhook:
            self.count["denied by webhooks alone"] += 1
        else:
            self.count["passed by both"] += 1
            if made != given:
                self.fail(file, case, f"policies make {made}\n    webhooks make {given}")
            if made != own:
                self.changed.add(f"katmai-{PLACES[file.kind][1]}-mutate")

    def by_webhooks(self, case, new, is_as_written):
        """Their answer, once they have heard of the world."""
        began = time.monotonic()
        while True:
            webhook, given = verdict(self.rig.dry(self.rig.webhooks, case, new))
            is_expected = not is_as_written or (webhook is None) == case.is_allowed()
            if is_expected or time.monotonic() - began > PATIENCE_SECONDS:
                return webhook, given
            time.sleep(0.05)

    def fail(self, file, case, why):
        self.wrong.append(f"{file.path.parent.name}/{file.path.name}: {case.title}: {why}")


def within(written, kept):
    """Whether all that was written is there."""
    if isinstance(written, dict) and isinstance(kept, dict):
        return all(within(value, kept.get(name)) for name, value in written.items())
    if isinstance(written, list) and isinstance(kept, list):
        return len(written) == len(kept) and all(map(within, written, kept))
    return written == kept or written in (None, {}, [])


def only_for(user, rules):
    """Asked about requests of this user alone."""
    rules.setdefault("matchConditions", []).append(
        {"name": "asker", "expression": f"request.userInfo.username == '{user}'"}
    )


# Kinds of objects that say whom the server asks, and where they are.
ASKED = {
    f"{sort}{what}": f"/apis/admissionregistration.k8s.io/v1/{sort.lower()}{plural}"
    for sort in ("Mutating", "Validating")
    for what, plural in (
        ("AdmissionPolicy", "admissionpolicies"),
        ("AdmissionPolicyBinding", "admissionpolicybindings"),
        ("WebhookConfiguration", "webhookconfigurations"),
    )
}


def install(rig, things):
    for thing in things:
        code, told = rig.own.ask("POST", ASKED[thing["kind"]], thing)
        if code != 201:
            sys.exit(f"{thing['kind']} {thing['metadata']['name']} is refused: {told.get('message')}")


# Installed last: once they speak, all before them do.
LAST = "katmai-zz-last"


def last_of(sort, rest):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, **rest}
    only_for("alice", spec)
    bound = {"policyName": LAST, **({"validationActions": ["Deny"]} if sort == "Validating" else {})}
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{sort}{kind}", "metadata": {"name": LAST}, "spec": it}
        for kind, it in (("AdmissionPolicy", spec), ("AdmissionPolicyBinding", bound))
    ]


def wait_for_policies(rig):
    patch = "[JSONPatch{op: 'add', path: '/data', value: {'seen': 'yes'}}]"
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    install(rig, last_of("Mutating", {"mutations": [mutation], "reinvocationPolicy": "Never"}))
    rule = {"expression": "!has(object.data) || !('seen' in object.data)", "message": "seen"}
    install(rig, last_of("Validating", {"validations": [rule]}))
    began = time.monotonic()
    canary = whole("ConfigMap", {"metadata": {"name": "canary", "namespace": "default"}})
    while rig.policies.ask("POST", path_of(canary, named=False) + "?dryRun=All", canary)[0] != 422:
        if time.monotonic() - began > PATIENCE_SECONDS:
            sys.exit("the server does not ask the policies")
        time.sleep(0.05)


def prepare(rig, rules, bindings, registrations):
    """Installs all of it, each for the one user that is to be asked about it."""
    for policy in rules:
        only_for("alice", policy["spec"])
    for registration in registrations:
        for webhook in registration["webhooks"]:
            only_for("bob", webhook)
    # Bindings come last, so that what is bound is known.
    install(rig, rules + bindings + registrations)
    for name in ("ml", "plain"):
        rig.keep(whole("Namespace", {"metadata": {"name": name}}))
        # Volumes of tokens have names by chance.
        account = {"metadata": {"name": "default", "namespace": name}, "automountServiceAccountToken": False}
        rig.keep(whole("ServiceAccount", account))


def main():
    parser = argparse.ArgumentParser()
    for name in ("server", "authority", "policies", "registrations", "cases"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--install", action="store_true", help="make what is asked, and ask nothing")
    typed = parser.parse_args()
    rig = Rig(typed.server, typed.authority)
    read = lambda path: json.loads(pathlib.Path(path).read_text())["items"]
    policies = read(typed.policies)
    rules = [it for it in policies if not it["kind"].endswith("Binding")]
    if typed.install:
        bindings = [it for it in policies if it["kind"].endswith("Binding")]
        return prepare(rig, rules, bindings, read(typed.registrations))
    wait_for_policies(rig)
    run = Run(rig, rules)
    for path in sorted(pathlib.Path(typed.cases).glob("*/*.txt")):
        run.file(path)
    for what, count in sorted(run.count.items()):
        print(f"  {what}: {count}")
    run.wrong += [f"nothing breaks {it}" for it in sorted(run.sentences - run.said - SAID_BEFORE)]
    run.wrong += [f"not only the schema says {it}" for it in sorted(SAID_BEFORE & run.said)]
    run.wrong += [f"{it} changes nothing" for it in sorted(run.changing - run.changed)]
    for why in run.wrong:
        print(f"FAIL  {why}")
    sys.exit(f"{len(run.wrong)} failed" if run.wrong else 0)


if __name__ == "__main__":
    main()
