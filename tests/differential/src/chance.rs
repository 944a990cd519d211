//! The order of defined kinds in discovery: the real server goes through maps, so that it is a matter
//! of chance there. The order of the built-in ones is none, and stays as it came.

use serde_json::Value;

/// Discovery with the kinds that were defined at run time in the order of their names.
pub fn settled(mut body: Value) -> Value {
    match body["kind"].as_str() {
        Some("APIGroupDiscoveryList") => {
            for group in body["items"].as_array_mut().into_iter().flatten() {
                if group["metadata"]["name"].as_str().is_some_and(is_defined) {
                    for version in group["versions"].as_array_mut().into_iter().flatten() {
                        reorder(&mut version["resources"], "/resource");
                    }
                }
            }
        }
        Some("APIResourceList") => {
            let version = body["groupVersion"].as_str().unwrap_or_default();
            if is_defined(version.split('/').next().unwrap_or_default()) {
                reorder(&mut body["resources"], "/name");
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

/// Sorts a list by a name.
fn reorder(list: &mut Value, name: &str) {
    let Some(list) = list.as_array_mut() else {
        return;
    };
    list.sort_by_key(|item| {
        item.pointer(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
}
