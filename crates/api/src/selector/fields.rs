//! Field selectors: `status.phase=Running,spec.nodeName!=n1`.

/// All terms must hold; none at all matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One comparison of a field with a text; an absent field is the empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path.
    pub field: Box<str>,
    /// Whether it must be equal, or must differ.
    pub equal: bool,
    /// The text.
    pub value: Box<str>,
}

impl FieldSelector {
    /// Reads the text of a `fieldSelector` parameter. The error is Kubernetes' text.
    /// In values, `\,`, `\=` and `\\` stand for the signs themselves.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut parts = split(text);
        parts.sort_unstable();
        let terms = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| term(text, part))
            .collect::<Result<Vec<_>, String>>()?;
        Ok(FieldSelector { terms })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// The text that this field must equal, if the selector says so.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && &*term.field == field)
            .map(|term| &*term.value)
    }

    /// Whether fields match, looked up by path; an absent field is the empty text.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        self.terms
            .iter()
            .all(|term| (field(&term.field) == *term.value) == term.equal)
    }
}

/// Splits at commas that no backslash escapes.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn term(selector: &str, part: &str) -> Result<FieldTerm, String> {
    let unclear = || format!("invalid selector: '{selector}'; can't understand '{part}'");
    let start = part.find(['=', '!']).ok_or_else(unclear)?;
    // A lone `!` may belong to the field's name.
    let operator_at = |at: usize| {
        ["!=", "==", "="]
            .into_iter()
            .find(|operator| part[at..].starts_with(operator))
            .map(|operator| (at, operator))
    };
    let (at, operator) = part[start..]
        .char_indices()
        .find_map(|(offset, _)| operator_at(start + offset))
        .ok_or_else(unclear)?;
    Ok(FieldTerm {
        field: part[..at].into(),
        equal: operator != "!=",
        value: unescape(&part[at + operator.len()..])?.into(),
    })
}

fn unescape(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

impl std::fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let operator = if term.equal { "=" } else { "!=" };
            write!(f, "{}{operator}", term.field)?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}
