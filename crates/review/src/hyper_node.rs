//! HyperNodes: whether they have members, and whether patterns of names can be read.
//!
//! The rest is in the schema of the kind.

use std::collections::BTreeMap;

use api::kind::Kind;
use api::volcano::{MEMBER_PATTERN_BYTES_MAX, PatternRoom, member_pattern};
use regex_automata::meta::{Config, Regex};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Error, ErrorKind};

use crate::denials::others::{BAD_PATTERN, NO_MEMBER};
use crate::fields::{aggregate, invalid, items, text};
use crate::{Case, Rule, WRITES, Webhook};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/hypernodes/validate",
    name: "validatehypernodes.volcano.sh",
    kind: Kind::HyperNode,
    operations: WRITES,
    rule: Rule::Validate(validate),
};

/// Upstream begins the path with a name that is empty, which Kubernetes prints so.
const PATTERN: &str = "[].spec.members.selector.regexMatch.pattern";
/// Groups within groups: as many as whoever compiles the pattern takes; upstream's takes 1,000.
const NEST_MAX: u32 = 250;

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    let members = items(&case.object["spec"], "members");
    if members.is_empty() {
        return Err(NO_MEMBER.plain());
    }
    let mut patterns = Patterns::default();
    let complaints = members.iter().filter_map(|member| {
        let matched = &member["selector"]["regexMatch"];
        if !matched.is_object() {
            return None;
        }
        let pattern = text(matched, "pattern");
        let fault = patterns.fault(pattern)?;
        let detail = BAD_PATTERN.with(&[("fault", &fault)]);
        Some(invalid(PATTERN, pattern, &detail))
    });
    aggregate(complaints.collect()).map(|()| Vec::new())
}

/// The patterns of a hyper-node.
#[derive(Default)]
struct Patterns<'a> {
    room: PatternRoom,
    /// What is wrong with those that were looked at.
    known: BTreeMap<&'a str, Option<String>>,
}

impl<'a> Patterns<'a> {
    fn fault(&mut self, pattern: &'a str) -> Option<String> {
        if let Some(known) = self.known.get(pattern) {
            return known.clone();
        }
        let fault = fault(pattern, &mut self.room);
        self.known.insert(pattern, fault.clone());
        fault
    }
}

/// What is wrong with a pattern, in the words of Go's parser where it has any.
fn fault(pattern: &str, room: &mut PatternRoom) -> Option<String> {
    let read = match member_pattern(pattern) {
        Ok(read) => read,
        Err(fault) => return Some(fault),
    };
    let parser = ParserBuilder::new()
        .nest_limit(NEST_MAX)
        .build()
        .parse(&read);
    if let Err(error) = parser {
        return Some(words(&error, pattern, &read));
    }
    // What the scheduler would not compile selects nothing there, nor what would be too large with those
    // before it; nobody finds out how large that is.
    let too_large = || Some(format!("expression too large: `{pattern}`"));
    if !room.is_left() {
        return too_large();
    }
    let config = Config::new()
        .nfa_size_limit(Some(MEMBER_PATTERN_BYTES_MAX))
        .onepass(false);
    match Regex::builder().configure(config).build(&read) {
        Ok(compiled) if room.takes(Some(compiled.memory_usage())) => None,
        Ok(_) => too_large(),
        Err(error) if error.size_limit().is_some() => {
            room.takes(None);
            too_large()
        }
        // Classes of letters that nobody knows.
        Err(_) => Some(format!("invalid character class range: `{pattern}`")),
    }
}

/// Of a pattern as it was written, and as it was read.
fn words(error: &Error, pattern: &str, read: &str) -> String {
    let span = error.span();
    let part = &read[span.start.offset..span.end.offset];
    let rest = &read[span.start.offset..];
    match error.kind() {
        ErrorKind::GroupUnclosed => format!("missing closing ): `{pattern}`"),
        ErrorKind::GroupUnopened => format!("unexpected ): `{pattern}`"),
        ErrorKind::ClassUnclosed => format!("missing closing ]: `{rest}`"),
        ErrorKind::ClassRangeInvalid => format!("invalid character class range: `{part}`"),
        ErrorKind::EscapeUnexpectedEof => "trailing backslash at end of expression: ``".to_owned(),
        ErrorKind::ClassEscapeInvalid
        | ErrorKind::EscapeUnrecognized
        | ErrorKind::UnsupportedBackreference => {
            format!("invalid escape sequence: `{part}`")
        }
        ErrorKind::RepetitionMissing => {
            let operator = rest.chars().next().unwrap_or_default();
            format!("missing argument to repetition operator: `{operator}`")
        }
        ErrorKind::RepetitionCountInvalid => format!("invalid repeat count: `{part}`"),
        ErrorKind::UnsupportedLookAround => {
            format!("invalid or unsupported Perl syntax: `{part}`")
        }
        ErrorKind::NestLimitExceeded(_) => format!("expression nests too deeply: `{pattern}`"),
        other => format!("{other}: `{part}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(pattern: &str) -> Option<String> {
        super::fault(pattern, &mut PatternRoom::default())
    }

    /// Go's words, which an answer tells behind a pattern of this length only.
    #[test]
    fn groups_within_groups_have_an_end() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        let told = fault(&nested(260)).expect("nobody reads that");
        assert!(told.starts_with("expression nests too deeply: `(((("));
        assert_eq!(fault(&nested(240)), None);
    }

    #[test]
    fn patterns_of_a_hyper_node_are_compiled_up_to_a_bound() {
        let members: Vec<_> = (0..2_000)
            .map(|at| json!({ "selector": { "regexMatch": { "pattern": format!("{at}\\pL{{9}}") } } }))
            .collect();
        let mut patterns = Patterns::default();
        let texts = members
            .iter()
            .map(|it| text(&it["selector"]["regexMatch"], "pattern"));
        let faults: Vec<_> = texts.map(|text| patterns.fault(text)).collect();
        assert_eq!(faults[0], None);
        let fitting = faults.iter().take_while(|fault| fault.is_none()).count();
        assert!(fitting < 100, "{fitting} of them are compiled");
        let told = faults[fitting..].iter().flatten();
        assert_eq!(told.clone().count(), faults.len() - fitting);
        assert!(
            told.clone()
                .all(|fault| fault.starts_with("expression too large: `"))
        );
    }

    #[test]
    fn what_nobody_can_want_is_not_even_read() {
        for pattern in ["a".repeat(70_000), r"[\w\pL]".repeat(300)] {
            let told = fault(&pattern).expect("it is refused");
            assert!(told.starts_with("expression too large: `"));
        }
        let names: Vec<String> = (0..1_000).map(|at| format!("rack-7-node-{at}")).collect();
        assert_eq!(fault(&format!("^({})$", names.join("|"))), None);
    }
}
