//! What a write writes, in the log's form.

use std::fmt;

use api::kind::Kind;
use api::token::{Tokens, holds_data};
use serde_json::Value;

use super::form::{self, Form};
use super::names::Names;

/// JSON in the log's form: quick to make of a value, and to compare. Empty where nothing is written.
#[derive(Clone, Debug, Default)]
pub struct Body(Form);

impl Body {
    /// A value's.
    pub fn of(value: &Value) -> Body {
        let mut form = Form::roomy();
        // Keys of a value are texts, so that there are no names, and nothing that cannot be put down.
        match form::put(value, &mut Names::of_reader(), &mut form) {
            Ok(()) => Body(form),
            Err(_) => Body::default(),
        }
    }

    /// A form's, if it is one.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Body, &'static str> {
        form::json(&bytes, &Names::of_reader())?;
        Ok(Body(Form {
            bytes,
            parts: Vec::new(),
            may_hide: true,
        }))
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// The value; null where nothing is written.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.to_string()).unwrap_or_default()
    }

    /// The same with tokens.
    #[must_use]
    pub fn told(&self, kind: Kind, tokens: &Tokens) -> Body {
        let mut told = Form::default();
        self.tell(kind, tokens, &mut told);
        Body(told)
    }

    /// Its form with tokens.
    pub(super) fn tell(&self, kind: Kind, tokens: &Tokens, told: &mut Form) {
        match self.0.may_hide || holds_data(kind) {
            true => form::told(&self.0.bytes, kind, tokens, &Names::of_reader(), told),
            false => told.become_of(&self.0),
        }
    }

    /// Its form.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl Eq for Body {}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&form::json(&self.0.bytes, &Names::of_reader()).unwrap_or_default())
    }
}
