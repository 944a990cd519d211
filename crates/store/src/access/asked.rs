//! What a request asks for, as the authoriser sees it: before anybody looks whether it is served.

use crate::path::{Plus, Query, Target, percent_decode};
use crate::status::{About, Refused};

/// Parts of a namespace that are not a resource within it.
const NAMESPACE_PARTS: &[&str] = &["finalize", "status"];

/// A verb on objects or on a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `get`, `list`, `create` … or the method in small letters for a path.
    pub verb: String,
    /// The decoded path.
    pub path: String,
    /// What objects are meant; `None` for paths that are about the API itself.
    pub target: Option<Target>,
}

impl Asked {
    /// Reads a request line. `query` may be anything: what it says wrongly is refused later.
    pub fn read(method: &str, path: &str, query: &str) -> Asked {
        let path = percent_decode(path, Plus::Literal).unwrap_or_else(|| path.to_owned());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match &parts[..] {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => {
                return Asked {
                    verb: method.to_ascii_lowercase(),
                    target: None,
                    path,
                };
            }
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace] => (*namespace, rest),
            ["namespaces", namespace, part, ..] if NAMESPACE_PARTS.contains(part) => {
                (*namespace, rest)
            }
            ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (*namespace, inner),
            _ => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        let mut target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: part(0),
            name: part(1),
            subresource: part(2),
        };
        let verb = verb(method, query, &mut target).to_owned();
        Asked {
            verb,
            target: Some(target),
            path,
        }
    }

    /// `system:masters` was not among the groups and no rule permits it: the 403.
    pub fn forbidden(&self, user: &str, reason: &str) -> Refused {
        let target = self.target.clone().unwrap_or_default();
        let mut why = self.sentence(user);
        for (raw, shown) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
            why = why.replace(raw, shown);
        }
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let about = About {
            group: &target.group,
            plural: &target.plural,
            name: &target.name,
        };
        Refused::forbidden(about, &why)
    }

    fn sentence(&self, user: &str) -> String {
        let Some(target) = &self.target else {
            return format!("User {user:?} cannot {} path {:?}", self.verb, self.path);
        };
        let place = if target.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", target.namespace)
        };
        let resource = if target.subresource.is_empty() {
            target.plural.clone()
        } else {
            format!("{}/{}", target.plural, target.subresource)
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
            self.verb, target.group
        )
    }
}

/// The verb of a request for objects. A list that a field selector narrows to one name is about
/// that name.
fn verb(method: &str, query: &str, target: &mut Target) -> &'static str {
    match method {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "GET" | "HEAD" if !target.name.is_empty() => "get",
        "DELETE" if !target.name.is_empty() => "delete",
        "DELETE" => "deletecollection",
        "GET" | "HEAD" => {
            let query = Query::parse(query).unwrap_or_default();
            let selector = query.text("fieldSelector").split(',');
            let named = selector.filter_map(|term| term.split_once('='));
            for (field, value) in named {
                let name = value.trim_start_matches('=');
                if field == "metadata.name" && !name.is_empty() && !name.contains(['/', '%']) {
                    name.clone_into(&mut target.name);
                }
            }
            if query.is_on("watch") {
                "watch"
            } else {
                "list"
            }
        }
        _ => "",
    }
}
