//! One rule of a role: what it permits, and whether a set of rules covers another.

use serde_json::{Value, json};

use super::asked::Asked;
use crate::field::go_quoted;

/// A `rbac.authorization.k8s.io/v1` PolicyRule, read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<Box<str>>,
    pub(crate) groups: Vec<Box<str>>,
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) names: Vec<Box<str>>,
    pub(crate) urls: Vec<Box<str>>,
}

impl Rule {
    /// The rules of a role.
    pub(crate) fn list(role: &Value) -> Vec<Rule> {
        let rules = role["rules"].as_array();
        rules.into_iter().flatten().map(Rule::read).collect()
    }

    fn read(rule: &Value) -> Rule {
        let texts = |key: &str| {
            let list = rule[key].as_array();
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(Box::from).collect()
        };
        Rule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// Everything there is.
    pub(crate) fn full_authority() -> [Rule; 2] {
        let any = || vec![Box::from("*")];
        let objects = Rule {
            verbs: any(),
            groups: any(),
            resources: any(),
            ..Rule::default()
        };
        let paths = Rule {
            verbs: any(),
            urls: any(),
            ..Rule::default()
        };
        [objects, paths]
    }

    /// Whether this rule permits what is asked.
    pub(crate) fn permits(&self, asked: &Asked) -> bool {
        if !has(&self.verbs, &asked.verb) {
            return false;
        }
        let Some(target) = &asked.target else {
            return self.urls.iter().any(|url| url_covers(url, &asked.path));
        };
        has(&self.groups, &target.group)
            && self
                .resources
                .iter()
                .any(|resource| resource_permits(resource, &target.plural, &target.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| **name == target.name))
    }

    /// This rule as many that each name one thing.
    fn pieces(&self) -> Vec<Rule> {
        let mut pieces = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let piece = Rule {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Rule::default()
                    };
                    if self.names.is_empty() {
                        pieces.push(piece.clone());
                    }
                    pieces.extend(self.names.iter().map(|name| Rule {
                        names: vec![name.clone()],
                        ..piece.clone()
                    }));
                }
            }
        }
        for url in &self.urls {
            pieces.extend(self.verbs.iter().map(|verb| Rule {
                verbs: vec![verb.clone()],
                urls: vec![url.clone()],
                ..Rule::default()
            }));
        }
        pieces
    }

    /// Whether whoever holds this rule holds all of a piece.
    fn covers(&self, piece: &Rule) -> bool {
        let all = |held: &[Box<str>], wanted: &[Box<str>]| wanted.iter().all(|one| has(held, one));
        all(&self.verbs, &piece.verbs)
            && all(&self.groups, &piece.groups)
            && piece.resources.iter().all(|wanted| self.reaches(wanted))
            && piece
                .urls
                .iter()
                .all(|wanted| self.urls.iter().any(|held| url_covers(held, wanted)))
            && (self.names.is_empty()
                || (!piece.names.is_empty()
                    && piece.names.iter().all(|name| self.names.contains(name))))
    }

    fn reaches(&self, wanted: &str) -> bool {
        has(&self.resources, wanted)
            || wanted.split_once('/').is_some_and(|(_, sub)| {
                self.resources
                    .iter()
                    .any(|held| held.strip_prefix("*/") == Some(sub))
            })
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`, as a refusal shows a rule.
    fn shown(&self) -> String {
        let parts: Vec<String> = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ]
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
        format!("{{{}}}", parts.join(", "))
    }

    /// The rule as a SelfSubjectRulesReview tells it: resources, then paths.
    pub(crate) fn told(&self) -> (Option<Value>, Option<Value>) {
        let mut objects = json!({ "verbs": self.verbs });
        for (key, list) in [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
        ] {
            if !list.is_empty() {
                objects[key] = json!(list);
            }
        }
        let paths = json!({ "verbs": self.verbs, "nonResourceURLs": self.urls });
        (
            (!self.resources.is_empty()).then_some(objects),
            (!self.urls.is_empty()).then_some(paths),
        )
    }
}

/// What of `wanted` is not covered by `held`, one line a rule, sorted; `None` if nothing is missing.
pub(crate) fn missing(held: &[&Rule], wanted: &[Rule]) -> Option<String> {
    let mut lacking: Vec<Rule> = Vec::new();
    for piece in wanted.iter().flat_map(Rule::pieces) {
        if held.iter().any(|rule| rule.covers(&piece)) {
            continue;
        }
        // Pieces that differ in their verb only are told together, paths each for itself.
        let same = lacking.iter_mut().find(|rule| {
            piece.urls.is_empty()
                && rule.urls.is_empty()
                && (&rule.groups, &rule.resources, &rule.names)
                    == (&piece.groups, &piece.resources, &piece.names)
        });
        match same {
            Some(rule) => rule.verbs.extend(piece.verbs),
            None => lacking.push(piece),
        }
    }
    let mut lines: Vec<String> = lacking.iter().map(Rule::shown).collect();
    lines.sort();
    lines.dedup();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// `["a" "b"]`, as Go writes a list of texts.
pub(crate) fn quoted<S: AsRef<str>>(list: &[S]) -> String {
    let texts: Vec<String> = list.iter().map(|one| go_quoted(one.as_ref())).collect();
    format!("[{}]", texts.join(" "))
}

fn has(list: &[Box<str>], wanted: &str) -> bool {
    list.iter().any(|one| **one == *wanted || **one == *"*")
}

fn resource_permits(rule: &str, plural: &str, sub: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => sub.is_empty() && rule == plural,
        Some((resource, part)) => {
            !sub.is_empty() && part == sub && (resource == "*" || resource == plural)
        }
    }
}

fn url_covers(rule: &str, path: &str) -> bool {
    rule == path
        || rule
            .ends_with('*')
            .then(|| rule.trim_end_matches('*'))
            .is_some_and(|prefix| path.starts_with(prefix))
}
