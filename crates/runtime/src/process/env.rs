//! A container's environment: `$(NAME)` references and the search path, as pure functions.

use std::collections::BTreeMap;

/// Replaces `$(NAME)` by the value of a variable known so far; `$$` stands for `$`; references to
/// unknown names stay as they are (`k8s.io/kubernetes/third_party/forked/golang/expansion`).
pub(crate) fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some(inner) = after.strip_prefix('(') {
            match inner.split_once(')') {
                Some((name, tail)) => {
                    match known.get(name) {
                        Some(value) => out.push_str(value),
                        None => {
                            out.push_str("$(");
                            out.push_str(name);
                            out.push(')');
                        }
                    }
                    rest = tail;
                }
                None => {
                    out.push_str("$(");
                    rest = inner;
                }
            }
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Variables in order of definition; a later one of the same name replaces the earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, String>,
    order: Vec<String>,
}

impl Variables {
    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        if self.values.insert(name.to_owned(), value).is_none() {
            self.order.push(name.to_owned());
        }
    }

    /// What a reference may name.
    pub(crate) fn known(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// All of them, in order.
    pub(crate) fn into_pairs(mut self) -> Vec<(String, String)> {
        self.order
            .into_iter()
            .filter_map(|name| self.values.remove_entry(&name))
            .collect()
    }
}

/// Whether a name can be a variable's name: `envFrom` leaves others out.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| (0x20..0x7f).contains(&byte) && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_expand_as_kubernetes_expands_them() {
        let known = BTreeMap::from([
            ("A".to_owned(), "1".to_owned()),
            ("B".to_owned(), "$(A)".to_owned()),
        ]);
        for (text, expanded) in [
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(NONE)", "$(NONE)"),
            ("$(B)", "$(A)"),
            ("$(A", "$(A"),
            ("$A", "$A"),
            ("end$", "end$"),
            ("", ""),
        ] {
            assert_eq!(expand(text, &known), expanded, "{text}");
        }
    }

    #[test]
    fn a_later_variable_replaces_an_earlier_one_in_its_place() {
        let mut variables = Variables::default();
        variables.set("A", "1".to_owned());
        variables.set("B", "2".to_owned());
        variables.set("A", "3".to_owned());
        let pairs = variables.into_pairs();
        assert_eq!(
            pairs,
            [("A", "3"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
