//! How objects are called in lines for people.

use api::intent::ObjectKey;

/// An object's name in a log line.
pub(super) struct Named<'a>(pub(super) &'a ObjectKey);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ObjectKey {
            kind,
            namespace,
            name,
        } = self.0;
        let kind = kind.row().name;
        if namespace.is_empty() {
            write!(f, "{kind} {name}")
        } else {
            write!(f, "{kind} {namespace}/{name}")
        }
    }
}
