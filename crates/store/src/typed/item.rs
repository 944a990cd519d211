//! What tells the items of a list apart.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::Element;
use crate::schema::{ListShape, Spot};

/// The element of a path by which an item goes.
///
/// # Errors
/// Why the item has none, in structured-merge-diff's words.
pub(super) fn element<'a>(
    item: &'a Value,
    shape: ListShape<'_>,
    spot: Spot<'_>,
) -> Result<Element<'a>, String> {
    let keys = match shape {
        ListShape::Atomic => return Err("invalid indexing of non-associative list".to_owned()),
        ListShape::Set => return set_element(item),
        // Without keys the items are values, whatever the list calls itself.
        ListShape::Keyed([]) => return set_element(item),
        ListShape::Keyed(keys) => keys,
    };
    let map = match item {
        Value::Object(map) => map,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    // The usual: one key, a plain name.
    if let ([key], Some(Value::String(text))) = (keys, keys.first().and_then(|key| map.get(&**key)))
    {
        let mut json = String::with_capacity(key.len() + text.len() + 7);
        json.push_str("{\"");
        json.push_str(key);
        json.push_str("\":\"");
        crate::fields::escape(text, &mut json);
        json.push_str("\"}");
        return Ok(Element::key(json));
    }
    let mut found = Map::new();
    for key in keys {
        if let Some(value) = map.get(&**key).or_else(|| spot.key_default(key)) {
            found.insert(key.to_string(), value.clone());
        }
    }
    if found.is_empty() {
        let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(Element::key(Value::Object(found).to_string()))
}

fn set_element(item: &Value) -> Result<Element<'_>, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        scalar => Ok(Element::value(scalar.to_string())),
    }
}

/// The items of a list in the order of their elements, those without one left out; `None` where two
/// have the same.
pub(super) fn apart<'a>(
    list: &'a [Value],
    shape: ListShape<'_>,
    spot: Spot<'_>,
) -> Option<Vec<(Element<'a>, &'a Value)>> {
    let items = list.iter();
    let items = items.filter_map(|item| Some((element(item, shape, spot).ok()?, item)));
    let mut found: Vec<(Element<'a>, &'a Value)> = items.collect();
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let is_apart = found.windows(2).all(|pair| pair[0].0 != pair[1].0);
    is_apart.then_some(found)
}

/// The items of a list by their elements; twins stand together, items without one are left out.
pub(super) fn by_element<'a>(
    list: &'a [Value],
    shape: ListShape<'_>,
    spot: Spot<'_>,
) -> BTreeMap<Element<'a>, Vec<&'a Value>> {
    let mut found: BTreeMap<Element<'a>, Vec<&'a Value>> = BTreeMap::new();
    for item in list {
        if let Ok(element) = element(item, shape, spot) {
            found.entry(element).or_default().push(item);
        }
    }
    found
}
