//! Places in JSON: `.spec.containers[0].name`, `.conditions[type=Ready].status`, `.annotations["a.b/c"]`.

use serde_json::Value;

/// What stands at a place.
pub fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = value;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (inner, behind) = bracket.split_once(']')?;
            at = match inner.split_once('=') {
                _ if inner.starts_with('"') => at.get(inner.trim_matches('"'))?,
                Some((key, wanted)) => at.as_array()?.iter().find(|item| item[key] == wanted)?,
                None => at.get(inner.parse::<usize>().ok()?)?,
            };
            rest = behind;
        } else {
            let dotted = rest.strip_prefix('.').unwrap_or(rest);
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            if end > 0 {
                at = at.get(&dotted[..end])?;
            }
            rest = &dotted[end..];
            if end == 0 && !rest.starts_with('[') {
                return rest.is_empty().then_some(at);
            }
        }
    }
    Some(at)
}

/// A value as plain text.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_by_name_number_and_key() {
        let value = serde_json::json!({"a": [{"t": "x", "v": 1}, {"t": "y", "v": {"b/c.d": "z"}}]});
        let at = |path| find(&value, path).map(text);
        assert_eq!(at(".a[0].v").as_deref(), Some("1"));
        assert_eq!(at(".a[t=y].v[\"b/c.d\"]").as_deref(), Some("z"));
        assert_eq!(at(".a[2]"), None);
    }
}
