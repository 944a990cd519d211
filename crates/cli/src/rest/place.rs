//! Where objects are: no name that a user types leads elsewhere.

use api::call::query_escape;
use api::names::check_path_segment;

use super::Refusal;

/// One object's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Path of the collection.
    pub collection: String,
    /// Name; empty where the server is to choose one.
    pub name: String,
}

impl Place {
    /// The path of the object.
    ///
    /// # Errors
    /// The name cannot stand in a path, or is none: that path would be the whole collection's.
    pub(crate) fn path(&self) -> Result<String, Refusal> {
        let name = checked_name(&self.name)?;
        Ok(format!("{}/{}", self.collection, query_escape(name)))
    }
}

/// The path of a namespace's objects of a kind; `root` is that of the kind's version.
///
/// # Errors
/// The namespace cannot stand in a path.
pub(crate) fn collection(root: &str, namespace: &str, plural: &str) -> Result<String, Refusal> {
    let namespace = query_escape(checked_namespace(namespace)?);
    Ok(format!("{root}/namespaces/{namespace}/{plural}"))
}

/// The same, with all namespaces' where none is named.
///
/// # Errors
/// The namespace cannot stand in a path.
pub(crate) fn listed(root: &str, namespace: &str, plural: &str) -> Result<String, Refusal> {
    match namespace {
        "" => Ok(format!("{root}/{plural}")),
        namespace => collection(root, namespace, plural),
    }
}

/// A name that can stand in a path.
///
/// # Errors
/// It cannot, in client-go's words.
pub(crate) fn checked_name(name: &str) -> Result<&str, Refusal> {
    match (name, check_path_segment(name).as_slice()) {
        ("", _) => Err(refused(
            "metadata.name",
            "resource name may not be empty".to_owned(),
        )),
        (name, []) => Ok(name),
        (name, why) => Err(refused(
            "metadata.name",
            format!("invalid resource name {name:?}: [{}]", why.join(" ")),
        )),
    }
}

/// A namespace that can stand in a path.
///
/// # Errors
/// It cannot, in client-go's words.
pub(crate) fn checked_namespace(namespace: &str) -> Result<&str, Refusal> {
    match (namespace, check_path_segment(namespace).as_slice()) {
        ("", _) => Err(refused(
            "metadata.namespace",
            "an empty namespace may not be set when a resource name is provided".to_owned(),
        )),
        (namespace, []) => Ok(namespace),
        (namespace, why) => Err(refused(
            "metadata.namespace",
            format!("invalid namespace {namespace:?}: [{}]", why.join(" ")),
        )),
    }
}

fn refused(field: &str, message: String) -> Refusal {
    Refusal {
        code: 422,
        reason: "Invalid".to_owned(),
        causes: vec![(field.to_owned(), message.clone())],
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(namespace: &str, name: &str) -> String {
        let path = collection("/apis/g/v1", namespace, "jobs").and_then(|collection| {
            Place {
                collection,
                name: name.to_owned(),
            }
            .path()
        });
        path.unwrap_or_else(|refusal| refusal.to_string())
    }

    #[test]
    fn what_is_typed_stays_one_part_of_a_path() {
        for (namespace, name, path) in [
            ("a", "b", "/apis/g/v1/namespaces/a/jobs/b"),
            ("a", "?", "/apis/g/v1/namespaces/a/jobs/%3F"),
            ("a?", "#b", "/apis/g/v1/namespaces/a%3F/jobs/%23b"),
            ("a", "", "resource name may not be empty"),
            (
                "a",
                "/%",
                "invalid resource name \"/%\": [may not contain '/' may not contain '%']",
            ),
            ("a", "..", "invalid resource name \"..\": [may not be '..']"),
            (
                "a/jobs/b?",
                "c",
                "invalid namespace \"a/jobs/b?\": [may not contain '/']",
            ),
            (
                "",
                "c",
                "an empty namespace may not be set when a resource name is provided",
            ),
        ] {
            assert_eq!(told(namespace, name), path);
        }
        assert_eq!(
            listed("/api/v1", "", "pods").expect("all namespaces'"),
            "/api/v1/pods"
        );
    }
}
