//! The order of defined groups and kinds in discovery: the real server goes through maps, so that it
//! is a matter of chance there. The order of the built-in ones is none, and stays as it came.

use serde_json::Value;

/// Discovery with what was defined at run time in the order of its names.
pub fn settled(mut body: Value) -> Value {
    match body["kind"].as_str() {
        Some("APIGroupDiscoveryList") => {
            reorder(&mut body["items"], "/metadata/name", is_defined);
            for group in body["items"].as_array_mut().into_iter().flatten() {
                if group["metadata"]["name"].as_str().is_some_and(is_defined) {
                    for version in group["versions"].as_array_mut().into_iter().flatten() {
                        reorder(&mut version["resources"], "/resource", |_| true);
                    }
                }
            }
        }
        Some("APIGroupList") => reorder(&mut body["groups"], "/name", is_defined),
        Some("APIResourceList") => {
            let version = body["groupVersion"].as_str().unwrap_or_default();
            if is_defined(version.split('/').next().unwrap_or_default()) {
                reorder(&mut body["resources"], "/name", |_| true);
            }
        }
        _ => {}
    }
    body
}

/// Built-in groups are words alone, or of `k8s.io`, of which one is defined by us.
fn is_defined(group: &str) -> bool {
    group == "snapshot.storage.k8s.io" || group.contains('.') && !group.ends_with(".k8s.io")
}

/// Sorts the chosen items among the places that they hold.
fn reorder(list: &mut Value, name: &str, chosen: fn(&str) -> bool) {
    let Some(list) = list.as_array_mut() else {
        return;
    };
    let name_of = |item: &Value| {
        item.pointer(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let places: Vec<usize> = (0..list.len())
        .filter(|at| name_of(&list[*at]).is_some_and(|name| chosen(&name)))
        .collect();
    let mut items: Vec<Value> = places.iter().map(|at| list[*at].clone()).collect();
    items.sort_by_key(name_of);
    for (at, item) in places.into_iter().zip(items) {
        list[at] = item;
    }
}
