//! Where two answers differ, after what must differ has been set aside.
//!
//! The list is [`RULES`]: each row is something that no two servers can agree on.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use crate::chance::settled;
use crate::side::Seen;
use crate::wire::Answer;

/// Headers that clients rely on.
const HEADERS: &[&str] = &[
    "allow",
    "cache-control",
    "content-encoding",
    "content-type",
    "etag",
    "location",
    "retry-after",
    "vary",
    "warning",
    "www-authenticate",
];

/// The rule about uids.
const UID: &str = "uid";
/// The rule about versions.
const VERSION: &str = "version of an object";

/// Something that differs by nature.
struct Rule {
    /// What takes its place in a comparison.
    name: &'static str,
    /// Where it may stand; a pattern over the path.
    place: &'static str,
    /// What it looks like.
    looks: &'static str,
    /// Whether what stands for one value on one side must stand for one value on the other.
    relation: Relation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Any two values are alike.
    Free,
    /// Same on one side, same on the other.
    Paired,
}

/// Bookmarks that come with time are set aside where streams are read, names that a script took
/// from an answer where texts are compared.
const RULES: &[Rule] = &[
    Rule {
        name: "age",
        place: r"cells\[\d+\]$",
        looks: r"^\d+(ms|s|m\d*s?)$",
        relation: Relation::Free,
    },
    Rule {
        name: "cluster address",
        place: "",
        looks: r"\b10\.96\.(\d+\.[1-9]\d*|[1-9]\d*\.0)\b",
        relation: Relation::Paired,
    },
    Rule {
        name: "continue token",
        place: r"\.continue$",
        looks: r".+",
        relation: Relation::Free,
    },
    Rule {
        name: "dump of a Go struct",
        place: r"message$",
        // Ours are left out, or in the form of the wire.
        looks: r#"\n(@@ .*\n([ +-].*\n)*)*|\{"(labels|metadata)":.*\}(: field is immutable)"#,
        relation: Relation::Free,
    },
    Rule {
        name: "node port",
        place: r"([nN]odePort|cells\[\d+\])$",
        looks: r"\b3[0-2]\d\d\d\b",
        relation: Relation::Free,
    },
    Rule {
        name: "server",
        place: "",
        looks: r"127\.0\.0\.1:\d+(/(ours|theirs)\b)?",
        relation: Relation::Free,
    },
    Rule {
        name: "tag",
        place: r"(etag|location|serverRelativeURL)$",
        looks: r"[0-9A-F]{64,128}",
        relation: Relation::Free,
    },
    Rule {
        name: "time",
        place: "",
        looks: r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        relation: Relation::Free,
    },
    Rule {
        name: "time with microseconds",
        place: "",
        looks: r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
        relation: Relation::Free,
    },
    Rule {
        name: "token",
        place: "",
        looks: r"\beyJ[\w-]+\.[\w-]+\.[\w-]+",
        relation: Relation::Free,
    },
    Rule {
        name: UID,
        place: "",
        looks: r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        relation: Relation::Paired,
    },
    Rule {
        name: "version of a list",
        place: r"LIST\.metadata\.resourceVersion$",
        looks: r"^[1-9]\d*$",
        relation: Relation::Free,
    },
    Rule {
        name: "version in a text",
        place: r"message$",
        looks: r#"(current: |object meta: |record \(|\d \(|resourceVersion\\":\\")\d+"#,
        relation: Relation::Free,
    },
    Rule {
        name: VERSION,
        place: r"resourceVersion$",
        looks: r"^[1-9]\d*$",
        relation: Relation::Paired,
    },
];

/// One place where answers differ.
#[derive(Clone, Debug)]
pub struct Finding {
    /// `code`, `header.warning`, `body.metadata.name`, `events[0].type` …
    pub path: String,
    /// What we said; `nothing` where there is nothing.
    pub ours: String,
    /// What the real one said.
    pub theirs: String,
}

/// Names of one side, longest first.
pub type Names = Vec<(String, String)>;

/// Compares; remembers which uid and version of ours stands for which of theirs in one script.
pub struct Judge {
    rules: Vec<(&'static Rule, Regex, Regex)>,
    pairs: BTreeMap<(&'static str, &'static str, String), String>,
    /// Versions of ours and theirs that stand for the same write.
    versions: BTreeMap<u64, u64>,
}

impl Judge {
    /// One that remembers nothing.
    pub fn new() -> anyhow::Result<Judge> {
        let rules = RULES
            .iter()
            .map(|rule| Ok((rule, Regex::new(rule.place)?, Regex::new(rule.looks)?)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Judge {
            rules,
            pairs: BTreeMap::new(),
            versions: BTreeMap::new(),
        })
    }

    /// Forgets which values belong together: a new script begins.
    pub fn forget(&mut self) {
        self.pairs.clear();
        self.versions.clear();
    }

    /// How many rows set something aside.
    pub fn rule_count() -> usize {
        // Bookmarks, taken names, the order of complaints and of definitions are four more.
        RULES.len() + 4
    }

    /// Where two sights differ.
    pub fn compare(&mut self, ours: (&Seen, &Names), theirs: (&Seen, &Names)) -> Vec<Finding> {
        let mut found = Comparison {
            judge: self,
            names: (ours.1, theirs.1),
            findings: Vec::new(),
        };
        match (ours.0, theirs.0) {
            (Seen::Answer(ours), Seen::Answer(theirs)) => found.answers(ours, theirs),
            (Seen::Values(ours), Seen::Values(theirs)) => found.events(ours, theirs),
            _ => found.add("step", "another kind of sight", "another kind of sight"),
        }
        found.findings
    }

    /// Whether the values that a paired rule set aside belong together.
    fn belong(&mut self, rule: &'static str, ours: &str, theirs: &str) -> bool {
        // Both ways: two of ours for one of theirs is as wrong as the opposite.
        let mut pair = |side, from: &str, to: &str| {
            let known = self
                .pairs
                .insert((rule, side, from.to_owned()), to.to_owned());
            known.is_none_or(|known| known == to)
        };
        let there = pair("ours", ours, theirs);
        let back = pair("theirs", theirs, ours);
        there && back && self.in_order(rule, ours, theirs)
    }
}

/// Lists whose order is a matter of chance on the real server: it goes through maps.
const UNORDERED: &[&str] = &[
    "details.causes",
    "status.nonResourceRules",
    "status.resourceRules",
];

/// What tells an owner of fields from others.
fn owner_of(owner: &Value) -> [String; 4] {
    ["manager", "operation", "subresource", "apiVersion"].map(|name| owner[name].to_string())
}

/// A list of complaints in one text, in an order that is no matter of chance.
fn ordered(text: &str) -> String {
    // A dump of a Go struct may hold lists, too, but then ends otherwise.
    let list = text.split_once(": [").filter(|_| text.ends_with(']'));
    let Some((head, rest)) = list else {
        return text.to_owned();
    };
    let mut parts: Vec<&str> = rest.trim_end_matches(']').split(", ").collect();
    parts.sort_unstable();
    format!("{head}: [{}]", parts.join(", "))
}

impl Judge {
    /// A map by keys without uids.
    fn plain_keys<'v>(&self, map: &'v Map<String, Value>) -> BTreeMap<String, &'v Value> {
        let uid = self.rules.iter().find(|(rule, ..)| rule.name == UID);
        map.iter()
            .map(|(key, value)| {
                let plain = uid.map(|(_, _, looks)| looks.replace_all(key, "<uid>").into_owned());
                (plain.unwrap_or_else(|| key.clone()), value)
            })
            .collect()
    }

    /// Versions grow: what is older on one side is older on the other.
    fn in_order(&mut self, rule: &'static str, ours: &str, theirs: &str) -> bool {
        let (VERSION, Ok(ours), Ok(theirs)) = (rule, ours.parse::<u64>(), theirs.parse::<u64>())
        else {
            return true;
        };
        let older = self.versions.range(..ours).next_back();
        let newer = self.versions.range(ours + 1..).next();
        let ordered = older.is_none_or(|(_, older)| *older < theirs)
            && newer.is_none_or(|(_, newer)| *newer > theirs);
        if ordered {
            self.versions.insert(ours, theirs);
        }
        ordered
    }
}

struct Comparison<'a> {
    judge: &'a mut Judge,
    names: (&'a Names, &'a Names),
    findings: Vec<Finding>,
}

impl Comparison<'_> {
    fn add(&mut self, path: &str, ours: impl Into<String>, theirs: impl Into<String>) {
        self.findings.push(Finding {
            path: path.replace("LIST", ""),
            ours: ours.into(),
            theirs: theirs.into(),
        });
    }

    fn answers(&mut self, ours: &Answer, theirs: &Answer) {
        if ours.code != theirs.code {
            // A refusal and an object have nothing more to be compared.
            self.add("code", summary(ours), summary(theirs));
            return;
        }
        for name in HEADERS {
            let all = |answer: &Answer| {
                let values = answer.headers.iter().filter(|(known, _)| known == name);
                values
                    .map(|(_, value)| value.clone())
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            self.texts(&format!("header.{name}"), &all(ours), &all(theirs));
        }
        self.values("body", &settled(body(ours)), &settled(body(theirs)));
    }

    fn events(&mut self, ours: &[Value], theirs: &[Value]) {
        if ours.len() != theirs.len() {
            let shape = |events: &[Value]| {
                let names = events.iter().map(|event| {
                    let kind = event["type"].as_str().unwrap_or_default();
                    let name = event["object"]["metadata"]["name"]
                        .as_str()
                        .unwrap_or_default();
                    format!("{kind} {name}")
                });
                names.collect::<Vec<_>>().join(", ")
            };
            self.add("events", shape(ours), shape(theirs));
        }
        for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            self.values(&format!("events[{at}]"), ours, theirs);
        }
    }

    fn values(&mut self, path: &str, ours: &Value, theirs: &Value) {
        match (ours, theirs) {
            (Value::Object(ours), Value::Object(theirs)) => {
                let list = theirs.contains_key("items") || theirs.contains_key("rows");
                let path = if list {
                    format!("{path}LIST")
                } else {
                    path.to_owned()
                };
                let (ours, theirs) = (self.judge.plain_keys(ours), self.judge.plain_keys(theirs));
                let mut keys: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
                keys.sort();
                keys.dedup();
                for key in keys {
                    let place = if key.contains(['.', '/']) {
                        format!("{path}[{key:?}]")
                    } else {
                        format!("{path}.{key}")
                    };
                    match (ours.get(key).copied(), theirs.get(key).copied()) {
                        (Some(ours), Some(theirs)) => self.values(&place, ours, theirs),
                        (Some(ours), None) => self.add(&place, ours.to_string(), "nothing"),
                        (None, theirs) => {
                            let theirs = theirs.map_or_else(String::new, Value::to_string);
                            self.add(&place, "nothing", theirs);
                        }
                    }
                }
            }
            (Value::Array(ours), Value::Array(theirs)) => {
                if ours.len() != theirs.len() {
                    let show =
                        |items: &[Value]| format!("{} items: {}", items.len(), Value::from(items));
                    self.add(path, show(ours), show(theirs));
                    return;
                }
                let (mut ours, mut theirs): (Vec<&Value>, Vec<&Value>) =
                    (ours.iter().collect(), theirs.iter().collect());
                if path.ends_with("managedFields") {
                    // The order of owners follows from their times, which are set aside.
                    ours.sort_by_key(|owner| owner_of(owner));
                    theirs.sort_by_key(|owner| owner_of(owner));
                }
                if UNORDERED.iter().any(|place| path.ends_with(place)) {
                    ours.sort_by_key(|item| item.to_string());
                    theirs.sort_by_key(|item| item.to_string());
                }
                for (at, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
                    self.values(&format!("{path}[{at}]"), ours, theirs);
                }
            }
            (Value::String(ours), Value::String(theirs)) => self.texts(path, ours, theirs),
            (Value::Number(ours), Value::Number(theirs)) => {
                self.texts(path, &ours.to_string(), &theirs.to_string());
            }
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => self.add(path, ours.to_string(), theirs.to_string()),
        }
    }

    fn texts(&mut self, path: &str, ours: &str, theirs: &str) {
        let mut reduced = (named(ours, self.names.0), named(theirs, self.names.1));
        if path.ends_with("message") {
            reduced = (ordered(&reduced.0), ordered(&reduced.1));
        }
        let mut aside = Vec::new();
        for (rule, place, looks) in &self.judge.rules {
            if !place.is_match(path) {
                continue;
            }
            let mark = format!("<{}>", rule.name);
            let taken = [&mut reduced.0, &mut reduced.1].map(|text| {
                let taken: Vec<String> = looks
                    .find_iter(text)
                    .map(|found| found.as_str().to_owned())
                    .collect();
                if !taken.is_empty() {
                    *text = looks.replace_all(text, regex::NoExpand(&mark)).into_owned();
                }
                taken
            });
            if rule.relation == Relation::Paired {
                aside.push((rule.name, taken));
            }
        }
        let mut alike = reduced.0 == reduced.1;
        for (rule, [ours, theirs]) in aside {
            for (ours, theirs) in ours.iter().zip(&theirs) {
                alike &= self.judge.belong(rule, ours, theirs);
            }
        }
        if !alike {
            let show = |text: &str| {
                if text.is_empty() {
                    "nothing".to_owned()
                } else {
                    text.to_owned()
                }
            };
            self.add(path, show(ours), show(theirs));
        }
    }
}

/// Puts names back for what a script took from answers.
fn named(text: &str, names: &Names) -> String {
    let mut text = text.to_owned();
    for (name, value) in names {
        if text.contains(value.as_str()) {
            text = text.replace(value.as_str(), &format!("${{{name}}}"));
        }
    }
    text
}

/// A code with what was said about it.
fn summary(answer: &Answer) -> String {
    let message = body(answer)["message"].as_str().map(str::to_owned);
    format!("{} {}", answer.code, message.unwrap_or_default())
        .trim()
        .to_owned()
}

/// A body as a value.
fn body(answer: &Answer) -> Value {
    let text = String::from_utf8_lossy(&answer.body);
    let kind = answer.header("content-type");
    let parsed = if kind.contains("json") {
        serde_json::from_str(&text).ok()
    } else if kind.contains("yaml") {
        serde_saphyr::from_str(&text).ok()
    } else {
        // The index of schemas calls itself a text.
        let value = serde_json::from_str(&text).ok();
        value.filter(Value::is_object)
    };
    parsed.unwrap_or_else(|| Value::from(text.into_owned()))
}
