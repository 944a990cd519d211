#!/usr/bin/env python3
"""Plays stories against two API servers with their controllers and compares what these did.

Each story gets a namespace on both sides, and many are played at a time. There is no kubelet:
stories patch the status of pods, whose template names a scheduler that does not exist. Compared
are, for each object, the steps that can be seen (`steps_of`), in order, the objects at the end,
and the events. What differs is looked at in a second play: controllers race with each other on
both sides, and what chance brought does not come twice.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import re
import sys
import threading
import time

import yaml

from play import KINDS, STEMS, Play, Side

# How many stories are played at a time.
ABREAST = 10
# What `$pod` stands for in a story: the spec of a pod that nobody runs.
POD = "schedulerName: nobody, automountServiceAccountToken: false, containers: [{name: main, image: i}]"
# Fields that no two runs can agree on.
VOLATILE = {
    "creationTimestamp", "deletionTimestamp", "resourceVersion", "managedFields", "selfLink",
    "lastTransitionTime", "lastProbeTime", "lastUpdateTime", "lastHeartbeatTime", "startTime",
    "completionTime", "lastScheduleTime", "lastSuccessfulTime", "generation", "timeAdded",
    "observedGeneration", "uid", "clusterIP", "clusterIPs", "nodePort", "lastPhaseTransitionTime",
}


class Names:
    """Random parts of names, replaced by what they stand for."""

    def __init__(self, play):
        self.words, self.of_uid, count = {}, {}, {}
        for _, _, thing in play.seen:
            for label in ("pod-template-hash", "controller.kubernetes.io/hash"):
                word = (thing["metadata"].get("labels") or {}).get(label)
                if word and word not in self.words:
                    count[label] = count.get(label, 0) + 1
                    self.words[word] = f"HASH{count[label]}"
        for _, _, thing in play.seen:
            meta = thing["metadata"]
            stem, name, uid = meta.get("generateName"), meta["name"], meta["uid"]
            # The pods of a StatefulSet have a stem, too, and a number.
            is_random = stem and name.startswith(stem) and not re.fullmatch("[0-9]{1,3}", name[len(stem):])
            if is_random and uid not in self.of_uid:
                count[stem] = count.get(stem, 0) + 1
                # On our side a name may come again once its pod has gone: it stands for another then.
                self.of_uid[uid] = f"{stem}#{count[stem]}"
                self.words.setdefault(name, self.of_uid[uid])
        # Pods made at the same time may come in any order.
        for uid in {thing["metadata"]["uid"] for _, _, thing in play.seen} - {"-"}:
            self.words.setdefault(uid, "UID")
        order = sorted(self.words, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, order)) or "$^")

    def plain(self, value):
        text = json.dumps(value, sort_keys=True)
        for _ in range(2):
            text = self.pattern.sub(lambda hit: self.words[hit[0]], text)
        # The name of a pod that was refused.
        text = re.sub(r'(pods \\"[a-z0-9-]*-)[a-z0-9]{5}(\\" is forbidden)', r"\1#\2", text)
        return json.loads(text)

    def name_of(self, thing):
        """The name of an object that was seen."""
        name = self.of_uid.get(thing["metadata"]["uid"], thing["metadata"]["name"])
        return self.plain(name)


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
        key = f"{kind}/{names.name_of(thing)}"
        marks = marks_of(kind, verb, names.plain(thing))
        new = [mark for mark in marks if mark not in before.get(key, [])]
        before[key] = marks
        steps.setdefault(key, []).extend(new)
    # Whether a deletion without grace is seen as one event or two is the API server's.
    for marks in steps.values():
        for at in range(len(marks) - 1, 0, -1):
            if marks[at] == "DELETED" and marks[at - 1] == "leaving":
                del marks[at - 1]
    return by_name(steps.items())


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


def compare(plays):
    """What differs: a line that tells it, ours and theirs."""
    found = []

    def differ(what, our, their):
        found.append((f"{plays[0].story}: {what}", our, their))

    ends = [play.end() for play in plays]
    names = [Names(play) for play in plays]
    steps = [steps_of(play.seen, name) for play, name in zip(plays, names)]
    for key in sorted(steps[0].keys() | steps[1].keys()):
        one, other = steps[0].get(key, []), steps[1].get(key, [])
        for our, their in apart(one, other):
            differ(f"steps of {key}", our, their)
    for kind in KINDS:
        final = []
        for (items, _), name in zip(ends, names):
            final.append(by_name((name.name_of(item), without_volatile(name.plain(item))) for item in items[kind]))
        for key in sorted(final[0].keys() & final[1].keys()):
            for one, other in apart(final[0][key], final[1][key]):
                for path, our, their in parts(one, other, ""):
                    if path != ".metadata.name":
                        differ(f"{kind}/{key}{path}", json.dumps(our), json.dumps(their))
    told = [told_in(events, name) for (_, events), name in zip(ends, names)]
    for line in sorted(told[0] - told[1]):
        differ(f"event {line}", "told", "not told")
    for line in sorted(told[1] - told[0]):
        differ(f"event {line}", "not told", "told")
    return found


def by_name(pairs):
    """Things by their names. Those with random names of one stem are alike: which of them the
    controllers choose, where nothing else tells them apart, is a matter of chance."""
    found = {}
    for name, thing in pairs:
        found.setdefault(alike(name), []).append(json.loads(alike(json.dumps(thing))))
    return found


def alike(text):
    return re.sub("#[0-9]+", "#", text)


def apart(ours, theirs):
    """What is left of two lists without what is in both, in pairs."""
    ours, theirs = list(ours), list(theirs)
    for one in list(ours):
        if one in theirs:
            ours.remove(one)
            theirs.remove(one)
    order = lambda thing: json.dumps(thing, sort_keys=True)
    return list(itertools.zip_longest(sorted(ours, key=order), sorted(theirs, key=order)))


def told_in(events, names):
    lines = set()
    for event in map(names.plain, events):
        about = event["involvedObject"]
        line = f"{about['kind']}/{about.get('name')} {event['type']} {event['reason']}: {event['message']}"
        # Writes that met others', or a busy machine, and were done again.
        if not re.search("the object has been modified|context deadline exceeded", line):
            lines.add(alike(line))
    return lines


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
    for line in path.read_text().replace("$pod", POD).splitlines():
        if line.startswith(" "):
            steps[-1][2] += "\n" + line
        elif line and not line.startswith("#"):
            head, _, body = line.partition(" {")
            verb, *words = head.split(maxsplit=4)
            steps.append([verb, words, "{" + body if body else ""])
    return [(verb, words, yaml.safe_load(body) if body.strip() else None) for verb, words, body in steps]


def tell(path, sides, turn):
    """Plays one story on both sides at the same time; what differs."""
    stem, began = path.stem.replace("_", "-"), time.monotonic()
    namespace = f"{stem}-{int(time.time()) % 100000}-{turn}"
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            plays = list(both.map(lambda side: Play(side, stem, namespace), sides))
            for verb, words, body in read(path):
                # Both sides begin each step together.
                list(both.map(lambda play: play.do(verb, words, body), plays))
        return compare(plays)
    except OSError as error:
        # A server that does not answer is a difference like others.
        return [(f"{stem}: broke off: {error}", "-", "-")]
    finally:
        for side in sides:
            side.forget(namespace)
        print(f"{stem}: {time.monotonic() - began:.0f} s", flush=True)


class Known:
    """Rows of `differences.txt`."""

    def __init__(self, folder):
        rows = (folder / "differences.txt").read_text().splitlines()
        self.rows = [row.partition("  # ")[0] for row in rows if row and not row.startswith("#")]
        self.used = set()

    def unknown(self, found):
        """What no row tells."""
        left = []
        for one in found:
            rows = {row for row in self.rows if re.search(row, one[0])}
            self.used |= rows
            if not rows:
                left.append(one)
        return left


def play_all(paths, sides, known, turn):
    """The stories that differ, with what is unknown of it."""
    differing = {}
    with concurrent.futures.ThreadPoolExecutor(ABREAST) as pool:
        telling = {pool.submit(tell, path, sides, turn): path for path in paths}
        for told in concurrent.futures.as_completed(telling):
            left = known.unknown(told.result())
            if left:
                differing[telling[told]] = left
    return differing


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--ours", required=True, help="kubeconfig of a plane")
    asked.add_argument("--theirs", required=True, help="kubeconfig of the real server with its controllers")
    asked.add_argument("stories", nargs="*", help="only stories whose name begins so")
    asked.add_argument("--once", action="store_true", help="no second look at what differs")
    given = asked.parse_args()
    folder = pathlib.Path(__file__).parent
    known = Known(folder)
    sides = [Side("ours", given.ours), Side("theirs", given.theirs)]
    stories = sorted((folder / "stories").glob("*.txt"))
    STEMS.update(path.stem.replace("_", "-") for path in stories)
    paths = [
        path for path in stories
        if not given.stories or path.stem.startswith(tuple(given.stories))
    ]
    began = time.monotonic()
    # The longest first, so that none is waited for alone.
    paths.sort(key=lambda path: -len(read(path)))
    first = play_all(paths, sides, known, 1)
    again = first if given.once else play_all(sorted(first), sides, known, 2)
    count = 0
    for path in sorted(first):
        before = {line for line, _, _ in first[path]}
        stays = [one for one in again.get(path, []) if one[0] in before]
        count += len(stays)
        for line, our, their in stays:
            print(f"{line}\n    ours    {our}\n    theirs  {their}")
        for line in sorted(before - {one[0] for one in stays}):
            print(f"by chance: {line}")
    for broken in filter(None, (side.broken for side in sides)):
        count += 1
        print(broken)
    if not given.stories:
        for row in known.rows:
            if row not in known.used:
                print(f"not seen: {row}")
    steps = sum(len(read(path)) for path in paths)
    print(
        f"{len(paths)} stories, {steps} steps, {count} unknown differences, {len(known.used)} known, "
        f"{len(first)} played twice, {time.monotonic() - began:.0f} s"
    )
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
