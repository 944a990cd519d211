"""The golden cases of `crates/review/tests/cases`: a world, an object, changes to it, an answer.

Their form is told at the head of `crates/review/tests/cases.rs`.
"""

import copy
import pathlib

import yaml


class File:
    """A file of cases: objects of the world, the kind, and the cases about it."""

    def __init__(self, path):
        self.path, self.there, self.kind, base, self.cases = path, [], None, None, []
        for line in pathlib.Path(path).read_text().splitlines():
            word, _, rest = line.partition(" ")
            if line.startswith("* "):
                self.cases.append(Case(rest, base))
            elif self.cases:
                self.cases[-1].read(line)
            elif word == "there":
                self.there.append(yaml.safe_load(rest))
            elif word == "kind":
                self.kind = rest.strip()
            elif word == "base":
                base = yaml.safe_load(rest)


class Case:
    """A request and what is to be answered."""

    def __init__(self, title, base):
        self.title, self.verb, self.settings, self.answer = title, None, [], []
        self.old, self.new = copy.deepcopy(base), copy.deepcopy(base)

    def read(self, line):
        if line.startswith(">"):
            self.answer.append(line[1:].lstrip())
        elif line.startswith("  with "):
            self.settings.append(line.split()[1])
        elif line.startswith("  was "):
            change(self.old, line[6:])
            change(self.new, line[6:])
        elif line.startswith("  "):
            change(self.new, line[2:])
        elif line:
            self.verb = line

    def is_allowed(self):
        return self.answer[0] == "allowed"

    def changes(self):
        """Path and value of every field that is changed."""
        pairs = (line.partition(" = ") for line in self.answer[1:] if not line.startswith("warning"))
        return [(path, yaml.safe_load(value)) for path, _, value in pairs]


def parts(path):
    """`spec.tasks.0."a.b"` in pieces."""
    found = []
    while path:
        if path.startswith('"'):
            part, _, path = path[1:].partition('"')
            path = path.removeprefix(".")
        else:
            part, _, path = path.partition(".")
        found.append(part)
    return found


def key(place, part):
    return int(part) if isinstance(place, list) else part


def change(thing, line):
    """`path: value`, `path: N x value`, or `- path` for what is taken away."""
    path, _, value = line.partition(": ")
    removed = line.startswith("- ")
    *above, last = parts(line[2:] if removed else path)
    place = thing
    for part in above:
        inner = place[key(place, part)] if isinstance(place, list) else place.get(part)
        if inner is None:
            inner = place[key(place, part)] = {}
        place = inner
    if removed:
        place.pop(last, None)
        return
    count, is_list, item = value.partition(" x ")
    if is_list and count.isdigit():
        item = yaml.safe_load(item)
        value = [numbered(item, str(number)) for number in range(int(count))]
    else:
        value = yaml.safe_load(value)
    place[key(place, last)] = value


def numbered(value, number):
    """The value with its number for each `#` of a text."""
    if isinstance(value, str):
        return value.replace("#", number)
    if isinstance(value, list):
        return [numbered(item, number) for item in value]
    if isinstance(value, dict):
        return {name: numbered(item, number) for name, item in value.items()}
    return value
