//! HyperNodes: whether they have members, and whether patterns of names can be read.
//!
//! The rest is in the schema of the kind.

use api::kind::Kind;
use api::volcano::{MEMBER_PATTERN_BYTES_MAX, member_pattern};
use regex::RegexBuilder;
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
    let complaints = members.iter().filter_map(|member| {
        let matched = &member["selector"]["regexMatch"];
        if !matched.is_object() {
            return None;
        }
        let pattern = text(matched, "pattern");
        let fault = fault(pattern)?;
        let detail = BAD_PATTERN.with(&[("fault", &fault)]);
        Some(invalid(PATTERN, pattern, &detail))
    });
    aggregate(complaints.collect()).map(|()| Vec::new())
}

/// What is wrong with a pattern, in the words of Go's parser where it has any.
fn fault(pattern: &str) -> Option<String> {
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
    // What the scheduler would not compile selects nothing there.
    let compiled = RegexBuilder::new(&read)
        .size_limit(MEMBER_PATTERN_BYTES_MAX)
        .build();
    match compiled {
        Ok(_) => None,
        Err(regex::Error::CompiledTooBig(_)) => Some(format!("expression too large: `{pattern}`")),
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

    /// Go's words, which an answer tells behind a pattern of this length only.
    #[test]
    fn groups_within_groups_have_an_end() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        let told = fault(&nested(260)).expect("nobody reads that");
        assert!(told.starts_with("expression nests too deeply: `(((("));
        assert_eq!(fault(&nested(240)), None);
    }
}
