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
        let name = checked(Part::Name, &self.name)?;
        Ok(format!("{}/{}", self.collection, query_escape(name)))
    }
}

/// The path of a namespace's objects of a kind; `root` is that of the kind's version.
///
/// # Errors
/// The namespace cannot stand in a path.
pub(crate) fn collection(root: &str, namespace: &str, plural: &str) -> Result<String, Refusal> {
    let namespace = query_escape(checked(Part::Namespace, namespace)?);
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

/// A part of a path that users type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// An object's name.
    Name,
    /// Its namespace.
    Namespace,
}

/// What was typed, where it can stand in a path.
///
/// # Errors
/// It cannot, in client-go's words.
pub(crate) fn checked(part: Part, typed: &str) -> Result<&str, Refusal> {
    let (field, called, missing) = match part {
        Part::Name => (
            "metadata.name",
            "resource name",
            "resource name may not be empty",
        ),
        Part::Namespace => (
            "metadata.namespace",
            "namespace",
            "an empty namespace may not be set when a resource name is provided",
        ),
    };
    let message = match (typed, check_path_segment(typed).as_slice()) {
        ("", _) => missing.to_owned(),
        (typed, []) => return Ok(typed),
        (typed, why) => format!("invalid {called} {typed:?}: [{}]", why.join(" ")),
    };
    Err(Refusal {
        code: 422,
        reason: "Invalid".to_owned(),
        causes: vec![(field.to_owned(), message.clone())],
        message,
    })
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
