//! Paths that a rule may point at: `.spec.name`, `['a-b'].c`.

use serde_json::Value;

/// The path in the form that errors show (`spec.name`, `m[a-b]`), if it leads to a field of the
/// schema.
pub fn field_path(schema: &Value, path: &str) -> Option<String> {
    let mut at = schema;
    let mut out = String::new();
    let mut rest = path.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        let properties = &at["properties"];
        if properties.is_object() {
            at = properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            at = at
                .get("additionalProperties")
                .filter(|inner| inner.is_object())?;
            out.push_str(&format!("[{name}]"));
        }
        rest = after;
    }
    Some(out)
}

/// The first name of a path, and what follows it.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix("['") {
        let mut name = String::new();
        let mut letters = rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\'' => return Some((name, rest[at + 1..].strip_prefix(']')?)),
                '\\' => name.push(match letters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    quoted @ ('\'' | '\\') => quoted,
                    _ => return None,
                }),
                other => name.push(other),
            }
        }
        return None;
    }
    let rest = path.strip_prefix('.')?;
    let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
    (end > 0).then(|| (rest[..end].to_owned(), &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_must_lead_to_a_field() {
        let text = json!({"type": "string"});
        let schema = json!({"properties": {
            "a": {"properties": {"b-c": text, "d": {"additionalProperties": text}}},
        }});
        let rows = [
            (".a", Some("a")),
            (".a['b-c']", Some("a.b-c")),
            (".a.d.x", Some("a.d[x]")),
            (".a.d['x.y']", Some("a.d[x.y]")),
            (".b", None),
            ("a", None),
            (".a.", None),
            (".a['b-c", None),
            ("", None),
        ];
        for (path, expected) in rows {
            assert_eq!(field_path(&schema, path).as_deref(), expected, "{path}");
        }
    }
}
