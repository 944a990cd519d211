//! What dashboard and alerts ask, read as Prometheus does, as far as they go: whether there is each metric,
//! whether it has each label that is asked of it, with that value, and whether the sides of an operator can
//! match: two that ask for other values of one label never do, unless the operator says which labels count.

use std::collections::{BTreeMap, BTreeSet};

use super::{asked, samples_of_tables};

/// Operators, those that hold weakest first.
const OPERATORS: &[&[&str]] = &[
    &["or"],
    &["and", "unless"],
    &["==", "!=", ">", "<", ">=", "<="],
    &["+", "-"],
    &["*", "/"],
];
/// What sums up, where labels go.
const SUMS: &[&str] = &["avg", "count", "max", "min", "sum"];

/// What is known of a metric's samples.
pub(super) struct Sample {
    pub(super) labels: BTreeSet<String>,
    /// What its table says of it; a value that is asked for is a word of it.
    pub(super) text: String,
}

/// What an expression comes to: the labels that it may have, and what was asked of them.
#[derive(Clone, Default)]
struct Series {
    labels: BTreeSet<String>,
    matchers: BTreeSet<String>,
}

struct Reader<'a> {
    known: &'a BTreeMap<String, Sample>,
    tokens: Vec<&'a str>,
    at: usize,
    faults: Vec<String>,
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')
}

/// Words and numbers, texts in quotes, and signs of which some have two letters.
fn tokens(mut rest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            _ if is_of_word(first) => rest
                .find(|letter| !is_of_word(letter))
                .unwrap_or(rest.len()),
            '=' | '!' | '<' | '>' if rest[1..].starts_with(['=', '~']) => 2,
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after;
    }
    found.retain(|token| !token.trim().is_empty());
    found
}

impl<'a> Reader<'a> {
    fn next(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn take(&mut self) -> &'a str {
        let token = self.next();
        self.at += 1;
        token
    }

    fn expect(&mut self, wanted: &str) {
        let token = self.take();
        if token != wanted {
            self.faults.push(format!("{wanted} is wanted, not {token}"));
        }
    }

    /// Whether a label is where it is asked for.
    fn has(&mut self, label: &str, series: &Series) {
        if !series.labels.contains(label) {
            self.faults.push(format!("there is no label {label}"));
        }
    }

    /// Two sides of an operator that holds as weakly as this, or one that holds better; `None` where it is
    /// a number.
    fn sides(&mut self, weakness: usize) -> Option<Series> {
        let Some(operators) = OPERATORS.get(weakness) else {
            return self.operand();
        };
        let mut left = self.sides(weakness + 1);
        while operators.contains(&self.next()) {
            let operator = self.take();
            let matching = self.listed(&["on", "ignoring"]);
            let right = self.sides(weakness + 1);
            left = match (left, right) {
                (Some(left), Some(right)) => Some(self.matched(operator, matching, (left, right))),
                (left, right) => left.or(right),
            };
        }
        left
    }

    fn matched(
        &mut self,
        operator: &str,
        matching: Option<(&str, BTreeSet<String>)>,
        (mut left, right): (Series, Series),
    ) -> Series {
        let Some((word, labels)) = matching else {
            // Of `or` the sides need not match.
            if operator == "or" {
                left.labels.extend(right.labels);
            } else if left.matchers != right.matchers {
                self.faults
                    .push(format!("the sides of {operator} never match"));
            }
            return left;
        };
        for label in &labels {
            self.has(label, &left);
            self.has(label, &right);
        }
        match (operator, word) {
            ("and" | "or" | "unless", _) => {}
            (_, "on") => left.labels = labels,
            _ => left.labels.retain(|label| !labels.contains(label)),
        }
        left
    }

    /// One of these words and the labels that it lists, if they come next.
    fn listed(&mut self, words: &[&str]) -> Option<(&'a str, BTreeSet<String>)> {
        if !words.contains(&self.next()) {
            return None;
        }
        let word = self.take();
        self.expect("(");
        let mut labels = BTreeSet::new();
        while !matches!(self.next(), ")" | "") {
            labels.insert(self.take().to_owned());
            if self.next() == "," {
                self.take();
            }
        }
        self.expect(")");
        Some((word, labels))
    }

    fn operand(&mut self) -> Option<Series> {
        let token = self.take();
        let is_number = token.starts_with(|first: char| first.is_ascii_digit());
        if token == "(" {
            let inner = self.sides(0);
            self.expect(")");
            inner
        } else if token.starts_with('"') || is_number {
            None
        } else if SUMS.contains(&token) {
            Some(self.sum())
        } else if self.next() == "(" {
            self.function(token)
        } else {
            Some(self.metric(token))
        }
    }

    fn sum(&mut self) -> Series {
        let by = self.listed(&["by", "without"]);
        let mut inner = self
            .arguments()
            .pop()
            .and_then(|(_, it)| it)
            .unwrap_or_default();
        let by = by.or_else(|| self.listed(&["by", "without"]));
        for label in by.iter().flat_map(|(_, labels)| labels) {
            self.has(label, &inner);
        }
        inner.matchers.clear();
        match by {
            Some(("without", labels)) => inner.labels.retain(|label| !labels.contains(label)),
            by => inner.labels = by.map(|(_, labels)| labels).unwrap_or_default(),
        }
        inner
    }

    /// What a function is given: each with its first word.
    fn arguments(&mut self) -> Vec<(&'a str, Option<Series>)> {
        let mut found = Vec::new();
        self.expect("(");
        while !matches!(self.next(), ")" | "") {
            found.push((self.next(), self.sides(0)));
            if self.next() == "," {
                self.take();
            }
        }
        self.expect(")");
        found
    }

    fn function(&mut self, name: &str) -> Option<Series> {
        let given = self.arguments();
        let mut series = given.iter().find_map(|(_, series)| series.clone())?;
        match (name, &*given) {
            ("histogram_quantile", _) => {
                self.has("le", &series);
                series.labels.remove("le");
            }
            ("label_replace", [_, (made, _), _, (from, _), _]) => {
                self.has(from.trim_matches('"'), &series);
                series.labels.insert(made.trim_matches('"').to_owned());
            }
            _ => {}
        }
        Some(series)
    }

    fn metric(&mut self, name: &str) -> Series {
        let known = self.known;
        let Some(sample) = known.get(name) else {
            self.faults.push(format!("there is no metric {name}"));
            return Series::default();
        };
        let mut series = Series {
            labels: sample.labels.clone(),
            matchers: BTreeSet::new(),
        };
        if self.next() == "{" {
            self.take();
            while !matches!(self.next(), "}" | "") {
                let (label, sign, value) = (self.take(), self.take(), self.take());
                self.has(label, &series);
                let mut words = sample
                    .text
                    .split(|letter| !is_of_word(letter) && letter != '-');
                if !words.any(|word| word == value.trim_matches('"')) {
                    self.faults
                        .push(format!("{label} of {name} is never {value}"));
                }
                series.matchers.insert(format!("{label}{sign}{value}"));
                if self.next() == "," {
                    self.take();
                }
            }
            self.take();
        }
        if self.next() == "[" {
            self.at += 2;
            self.expect("]");
        }
        series
    }
}

/// What is wrong with an expression, and with a text that shows labels of what it comes to.
fn faults(known: &BTreeMap<String, Sample>, expression: &str, text: &str) -> Vec<String> {
    let mut reader = Reader {
        known,
        tokens: tokens(expression),
        at: 0,
        faults: Vec::new(),
    };
    let series = reader.sides(0).unwrap_or_default();
    if reader.at < reader.tokens.len() {
        reader.faults.push(format!("what is {}", reader.next()));
    }
    let shown = text
        .split("{{")
        .skip(1)
        .filter_map(|it| it.split_once("}}"));
    for label in shown
        .map(|(label, _)| label.trim())
        .filter(|it| *it != "$value")
    {
        reader.has(label.trim_start_matches("$labels."), &series);
    }
    reader.faults
}

#[test]
fn dashboard_and_alerts_ask_for_what_there_is() {
    let known = samples_of_tables();
    for (expression, text) in asked() {
        assert_eq!(
            faults(&known, &expression, &text),
            [""; 0],
            "{expression} {text}"
        );
    }
}

#[test]
fn what_cannot_be_answered_is_found() {
    let sample = |labels: &[&str]| Sample {
        labels: labels.iter().map(|&it| it.to_owned()).collect(),
        text: "one, or two.".replace('.', " "),
    };
    let known = [
        ("a".to_owned(), sample(&["x", "y"])),
        ("b".to_owned(), sample(&["z", "le"])),
    ]
    .into();
    for (expression, text, wanted) in [
        ("a{x=\"one\"} > 2", "{{x}}", ""),
        ("c / 2", "", "there is no metric c"),
        ("a{z=\"one\"}", "", "there is no label z"),
        ("rate(a{x=\"three\"}[5m])", "", "x of a is never \"three\""),
        ("sum by (x, z) (a)", "", "there is no label z"),
        (
            "sum(a) by (x)",
            "{{ $labels.y }} {{ $value }}",
            "there is no label y",
        ),
        ("sum without (x) (a)", "{{x}}", "there is no label x"),
        ("max(a) or b", "{{z}}", ""),
        ("histogram_quantile(0.5, sum by (le) (rate(b[5m])))", "", ""),
        (
            "histogram_quantile(0.5, sum by (z) (rate(b[5m])))",
            "",
            "there is no label le",
        ),
        ("a and on (z) b", "", "there is no label z"),
        (
            "a and on (z) label_replace(a, \"z\", \"$1\", \"x\", \"(.*)\")",
            "",
            "there is no label z",
        ),
        (
            "a * on (x) label_replace(b, \"x\", \"$1\", \"z\", \"(.*)\")",
            "{{x}}",
            "",
        ),
        (
            "label_replace(a, \"z\", \"$1\", \"w\", \"(.*)\")",
            "",
            "there is no label w",
        ),
        (
            "a{x=\"one\"} > 0.1 * a{x=\"two\"}",
            "",
            "the sides of > never match",
        ),
        ("a{x=\"one\"} > ignoring (x) 2 * a{x=\"two\"}", "{{y}}", ""),
        (
            "a{x=\"one\"} > ignoring (x) 2 * a{x=\"two\"}",
            "{{x}}",
            "there is no label x",
        ),
        ("sum(a{x=\"one\"}) / sum(a{x=\"two\"})", "", ""),
        (
            "max(a{x=\"one\"} / a) < 1 or a",
            "",
            "the sides of / never match",
        ),
        ("(time() - a > 1", "", ") is wanted, not "),
        ("a) > 1", "", "what is )"),
    ] {
        assert_eq!(
            faults(&known, expression, text).join("; "),
            wanted,
            "{expression} {text}"
        );
    }
}
