//! Prometheus' exposition format 0.0.4, written line by line.

use std::fmt::Write as _;

use driver::timings::{Histogram, Scale};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by buckets.
    Histogram,
}

impl Type {
    /// The format's word.
    pub fn word(self) -> &'static str {
        match self {
            Type::Counter => "counter",
            Type::Gauge => "gauge",
            Type::Histogram => "histogram",
        }
    }
}

/// One metric that is being written: its head comes with the first sample, and without samples it has
/// none.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: String,
    help: &'a str,
    kind: Type,
    labels: &'a [&'a str],
    has_head: bool,
}

impl<'a> Family<'a> {
    pub(super) fn new(
        text: &'a mut String,
        name: String,
        (kind, help): (Type, &'a str),
        labels: &'a [&'a str],
    ) -> Family<'a> {
        Family {
            text,
            name,
            help,
            kind,
            labels,
            has_head: false,
        }
    }

    /// A sample with the values of the metric's labels, in their order.
    pub(super) fn sample(&mut self, values: &[&str], value: impl std::fmt::Display) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        self.head();
        let labels = braced(self.labels.iter().copied().zip(values.iter().copied()));
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    /// A sample that is a histogram in milliseconds.
    pub(super) fn histogram(&mut self, values: &[&str], scale: Scale, histogram: &Histogram) {
        self.head();
        let own = || self.labels.iter().copied().zip(values.iter().copied());
        let ends = scale.ends().into_iter().map(|end| end.to_string());
        let ends = ends.chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (end, within) in ends.zip(histogram.cumulated()) {
            let labels = braced(own().chain([("le", &*end)]));
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "{}_bucket{labels} {within}", self.name);
            count = within;
        }
        let labels = braced(own());
        let _ = writeln!(
            self.text,
            "{name}_sum{labels} {}\n{name}_count{labels} {count}",
            thousandth(histogram.micros()),
            name = self.name,
        );
    }

    fn head(&mut self) {
        if !std::mem::replace(&mut self.has_head, true) {
            let (name, kind) = (&self.name, self.kind.word());
            let help = self.help.replace('\\', "\\\\").replace('\n', "\\n");
            // Writing to a String cannot fail.
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
    }
}

/// A thousandth of a whole number, with all of its decimals.
pub(super) fn thousandth(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

/// A millionth of a whole number, with all of its decimals; none are negative.
pub(super) fn millionth(value: i64) -> String {
    let value = value.max(0);
    format!("{}.{:06}", value / 1_000_000, value % 1_000_000)
}

fn braced<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (label, value) in labels {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(label);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                letter => text.push(letter),
            }
        }
        text.push('"');
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_label_holds_cannot_end_it() {
        let mut text = String::new();
        let mut family = Family::new(
            &mut text,
            "made".to_owned(),
            (Type::Gauge, "A \\ and\na line."),
            &["of"],
        );
        family.sample(&["a\"b\\c\nd} 7"], 1);
        family.sample(&[""], "0.5");
        assert_eq!(
            text,
            "# HELP made A \\\\ and\\na line.\n# TYPE made gauge\nmade{of=\"a\\\"b\\\\c\\nd} 7\"} 1\nmade{of=\"\"} 0.5\n"
        );
    }

    #[test]
    fn without_a_sample_there_is_no_head() {
        let mut text = String::new();
        let _ = Family::new(&mut text, "made".to_owned(), (Type::Counter, "It."), &[]);
        assert_eq!(text, "");
        assert_eq!(
            (thousandth(1_001), millionth(1_500_000)),
            ("1.001".into(), "1.500000".into())
        );
    }
}
