//! A value and the way to it, and the list of what is wrong.
//!
//! The way is a chain on the stack: a check that finds nothing wrong spells no path.

use api::names;
use api::quantity::Quantity;
use serde_json::Value;

use crate::field::FieldError;

/// A field of an object.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'v, 'p> {
    pub(crate) value: &'v Value,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root(&'p str),
    Field(&'p Step<'p>, &'p str),
    Index(&'p Step<'p>, usize),
    Key(&'p Step<'p>, &'p str),
}

impl Step<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Step::Root(path) => out.push_str(path),
            Step::Field(parent, name) => {
                parent.write(out);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Step::Index(parent, index) => {
                parent.write(out);
                out.push_str(&format!("[{index}]"));
            }
            Step::Key(parent, key) => {
                parent.write(out);
                out.push('[');
                out.push_str(key);
                out.push(']');
            }
        }
    }
}

impl<'v, 'p> Spot<'v, 'p> {
    /// A value at a path that is known as a whole.
    pub(crate) fn new(value: &'v Value, path: &'p str) -> Self {
        Spot {
            value,
            step: Step::Root(path),
        }
    }

    /// A field.
    pub(crate) fn at<'a>(&'a self, name: &'a str) -> Spot<'v, 'a>
    where
        'p: 'a,
    {
        Spot {
            value: &self.value[name],
            step: Step::Field(&self.step, name),
        }
    }

    /// A field that the real server calls by another name than the wire does.
    pub(crate) fn called<'a>(&'a self, name: &str, path: &'a str) -> Spot<'v, 'a>
    where
        'p: 'a,
    {
        Spot {
            value: &self.value[name],
            step: Step::Field(&self.step, path),
        }
    }

    /// An entry of a map.
    pub(crate) fn key<'a>(&'a self, name: &'a str) -> Spot<'v, 'a>
    where
        'p: 'a,
    {
        Spot {
            value: &self.value[name],
            step: Step::Key(&self.step, name),
        }
    }

    /// An item of a list.
    pub(crate) fn item<'a>(&'a self, index: usize) -> Spot<'v, 'a>
    where
        'p: 'a,
    {
        Spot {
            value: &self.value[index],
            step: Step::Index(&self.step, index),
        }
    }

    /// The items of a list.
    pub(crate) fn items<'a>(&'a self) -> impl Iterator<Item = Spot<'v, 'a>>
    where
        'p: 'a,
    {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(index, value)| Spot {
            value,
            step: Step::Index(&self.step, index),
        })
    }

    /// The entries of a map, with their keys.
    pub(crate) fn entries<'a>(&'a self) -> impl Iterator<Item = (&'v str, Spot<'v, 'a>)>
    where
        'v: 'a,
        'p: 'a,
    {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| {
            let step = Step::Key(&self.step, key);
            (key.as_str(), Spot { value, step })
        })
    }

    /// The path as the real server spells it.
    pub(crate) fn path(&self) -> String {
        let mut path = String::new();
        self.step.write(&mut path);
        path
    }

    /// The text; empty where there is none.
    pub(crate) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The whole number; zero where there is none.
    pub(crate) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// The whole number, where there is one.
    pub(crate) fn maybe(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// The quantity, where there is one.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        Quantity::parse(self.value.as_str()?).ok()
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn is_true(&self) -> bool {
        *self.value == Value::Bool(true)
    }

    /// How many items or entries.
    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }

    /// Whether there is nothing: no value, an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

/// What is wrong with an object, in the order in which the real server finds it.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(super) Vec<FieldError>);

impl Faults {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn push(&mut self, fault: FieldError) {
        self.0.push(fault);
    }

    pub(crate) fn required(&mut self, at: &Spot<'_, '_>, detail: &str) {
        self.0.push(FieldError::required(&at.path(), detail));
    }

    pub(crate) fn forbidden(&mut self, at: &Spot<'_, '_>, detail: &str) {
        self.0.push(FieldError::forbidden(&at.path(), detail));
    }

    /// The value itself is shown.
    pub(crate) fn invalid(&mut self, at: &Spot<'_, '_>, detail: &str) {
        self.invalid_as(at, at.value.clone(), detail);
    }

    /// A text is shown, empty where there is none.
    pub(crate) fn invalid_text(&mut self, at: &Spot<'_, '_>, detail: &str) {
        self.invalid_as(at, at.text(), detail);
    }

    /// Something else than the value is shown.
    pub(crate) fn invalid_as(
        &mut self,
        at: &Spot<'_, '_>,
        shown: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.0.push(FieldError::invalid(&at.path(), shown, detail));
    }

    /// Nothing is shown.
    pub(crate) fn wrong(&mut self, at: &Spot<'_, '_>, detail: &str) {
        let mut fault = FieldError::invalid(&at.path(), Value::Null, detail);
        fault.value = None;
        self.0.push(fault);
    }

    pub(crate) fn duplicate(&mut self, at: &Spot<'_, '_>, shown: impl Into<Value>) {
        self.0.push(FieldError::duplicate(&at.path(), shown));
    }

    pub(crate) fn not_found(&mut self, at: &Spot<'_, '_>, shown: impl Into<Value>) {
        self.0.push(FieldError::not_found(&at.path(), shown));
    }

    pub(crate) fn too_long(&mut self, at: &Spot<'_, '_>, most: i64) {
        self.0.push(FieldError::too_long(&at.path(), most));
    }

    pub(crate) fn too_many(&mut self, at: &Spot<'_, '_>, most: i64) {
        self.0
            .push(FieldError::too_many(&at.path(), at.len(), most));
    }

    pub(crate) fn not_supported(&mut self, at: &Spot<'_, '_>, known: &[&str]) {
        let shown = at.text();
        self.0
            .push(FieldError::not_supported(&at.path(), shown, known));
    }

    /// A text must not be empty.
    pub(crate) fn need(&mut self, at: &Spot<'_, '_>) {
        if at.is_empty() {
            self.required(at, "");
        }
    }

    /// A text must be one of the known ones; an empty one is missing.
    pub(crate) fn one_of(&mut self, at: &Spot<'_, '_>, known: &[&str]) {
        match at.text() {
            "" => self.required(at, ""),
            text if known.contains(&text) => {}
            _ => self.not_supported(at, known),
        }
    }

    /// A text, if it is there, must be one of the known ones; an empty one is not.
    pub(crate) fn known(&mut self, at: &Spot<'_, '_>, known: &[&str]) {
        if at.is_there() && !known.contains(&at.text()) {
            self.not_supported(at, known);
        }
    }

    /// A number, if it is there, must not be below zero.
    pub(crate) fn not_negative(&mut self, at: &Spot<'_, '_>) {
        if let Some(number) = at.maybe().filter(|number| *number < 0) {
            self.invalid_as(at, number, "must be greater than or equal to 0");
        }
    }

    /// The same for several fields.
    pub(crate) fn none_negative(&mut self, of: &Spot<'_, '_>, names: &[&str]) {
        for name in names {
            self.not_negative(&of.at(name));
        }
    }

    /// A number must be above zero.
    pub(crate) fn positive(&mut self, at: &Spot<'_, '_>) {
        if at.number() <= 0 {
            self.invalid_as(at, at.number(), "must be greater than zero");
        }
    }

    /// A number, if it is there, must lie between the bounds.
    pub(crate) fn within(&mut self, at: &Spot<'_, '_>, low: i64, high: i64) {
        if let Some(number) = at.maybe().filter(|number| !(low..=high).contains(number)) {
            let detail = format!("must be between {low} and {high}, inclusive");
            self.invalid_as(at, number, detail);
        }
    }

    /// A port number; zero counts as given.
    pub(crate) fn port(&mut self, at: &Spot<'_, '_>) {
        let number = at.number();
        if !(1..=65_535).contains(&number) {
            self.invalid_as(at, number, "must be between 1 and 65535, inclusive");
        }
    }

    /// What a rule about names says of a text.
    pub(crate) fn name(&mut self, at: &Spot<'_, '_>, rule: fn(&str) -> Vec<String>) {
        self.name_as(at, at.text(), rule);
    }

    /// The same of another text.
    pub(crate) fn name_as(&mut self, at: &Spot<'_, '_>, text: &str, rule: fn(&str) -> Vec<String>) {
        for detail in rule(text) {
            self.invalid_as(at, text, detail);
        }
    }

    /// A text, unless it is empty, must follow the rule.
    pub(crate) fn name_if(&mut self, at: &Spot<'_, '_>, rule: fn(&str) -> Vec<String>) {
        if !at.is_empty() {
            self.name(at, rule);
        }
    }

    /// A text must be there and follow the rule.
    pub(crate) fn need_name(&mut self, at: &Spot<'_, '_>, rule: fn(&str) -> Vec<String>) {
        if at.is_empty() {
            self.required(at, "");
        } else {
            self.name(at, rule);
        }
    }

    /// A map of labels.
    pub(crate) fn labels(&mut self, at: &Spot<'_, '_>) {
        for (key, value) in at.value.as_object().into_iter().flatten() {
            self.name_as(at, key, names::check_qualified);
            let value = value.as_str().unwrap_or_default();
            self.name_as(at, value, names::check_label_value);
        }
    }

    /// The field must be what it was.
    pub(crate) fn unchanged(&mut self, at: &Spot<'_, '_>, old: &Value) {
        if at.value != old {
            self.invalid(at, crate::validation::IMMUTABLE);
        }
    }
}
