//! What a URL asks for: group, version, namespace, resource, name, subresource; and its query.

use crate::field::FieldError;
use crate::owning::MANAGER_BYTES_MAX;
use crate::request::Method;
use crate::status::{Outcome, Refused};

/// A path, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/api`, `/apis`, `/apis/batch`, `/apis/batch/v1`, `/openapi/v3…`, `/version`: its segments.
    Document(Vec<String>),
    /// Objects.
    Objects(Target),
}

/// Which objects a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Empty for all namespaces and for cluster-scoped resources.
    pub namespace: String,
    /// Plural name.
    pub plural: String,
    /// Empty for a collection.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
}

impl Route {
    /// Understands a percent-encoded path.
    pub fn parse(path: &str) -> Outcome<Route> {
        let mut segments = Vec::new();
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            segments.push(percent_decode(segment, Plus::Literal).ok_or_else(Refused::no_resource)?);
        }
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match &parts[..] {
            // The old way to ask for a watch: see `asks_to_watch`.
            ["api", version, "watch", rest @ ..] | ["api", version, rest @ ..]
                if !rest.is_empty() =>
            {
                ("", *version, rest)
            }
            ["apis", group, version, "watch", rest @ ..] | ["apis", group, version, rest @ ..]
                if !rest.is_empty() =>
            {
                (*group, *version, rest)
            }
            _ => return Ok(Route::Document(segments)),
        };
        let target = |namespace: &str, rest: &[&str]| {
            let (plural, rest) = rest.split_first().unwrap_or((&"", &[]));
            let (name, rest) = rest.split_first().unwrap_or((&"", &[]));
            Route::Objects(Target {
                group: group.to_owned(),
                version: version.to_owned(),
                namespace: namespace.to_owned(),
                plural: (*plural).to_owned(),
                name: (*name).to_owned(),
                subresource: rest.join("/"),
            })
        };
        Ok(match rest {
            // `namespaces/x/status` is about the namespace, `namespaces/x/pods` is in it.
            ["namespaces", _, sub] if matches!(*sub, "status" | "finalize") => target("", rest),
            ["namespaces", namespace, inner @ ..] if !inner.is_empty() => target(namespace, inner),
            _ => target("", rest),
        })
    }
}

/// Whether a path asks for a watch by itself: `/api/v1/watch/pods`.
pub(crate) fn asks_to_watch(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    matches!(
        &parts[..],
        ["api", _, "watch", _, ..] | ["apis", _, _, "watch", _, ..]
    )
}

/// Whether `+` means a space.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    Literal,
    Space,
}

/// Text in which bytes may be written as `%2F`; what is no such text stays as it is.
pub fn decoded(text: &str) -> String {
    percent_decode(text, Plus::Literal).unwrap_or_else(|| text.to_owned())
}

pub(crate) fn percent_decode(text: &str, plus: Plus) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                out.push((high * 16 + low) as u8);
            }
            b'+' if plus == Plus::Space => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok()
}

/// A query, understood as pairs in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`; empty parts are ignored (kube sends `?&…`).
    pub fn parse(query: &str) -> Outcome<Query> {
        let mut pairs = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let pair = percent_decode(key, Plus::Space).zip(percent_decode(value, Plus::Space));
            pairs.push(pair.ok_or_else(|| {
                Refused::bad_request(format!("invalid URL escape in query {query:?}"))
            })?);
        }
        Ok(Query(pairs))
    }

    /// The first value of a parameter; empty if it is absent.
    pub fn text(&self, key: &str) -> &str {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    }

    /// All values of a parameter.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The same query with one more parameter.
    pub(crate) fn with(mut self, key: &str, value: &str) -> Query {
        self.0.retain(|(name, _)| name != key);
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Whether a switch is on. A bare `?watch` counts as on, as upstream reads it.
    pub fn is_on(&self, key: &str) -> bool {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .is_some_and(|(_, value)| !matches!(&**value, "false" | "0" | "False" | "F" | "f"))
    }

    /// A whole number; `None` if absent, refused if it is none.
    pub fn number(&self, key: &str) -> Outcome<Option<i64>> {
        match self.text(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Refused::bad_request(format!(
                    "strconv.ParseInt: parsing {text:?}: invalid syntax"
                ))
            }),
        }
    }
}

/// How strictly a write's fields are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown and duplicate fields fall away in silence.
    Ignore,
    /// … with a warning.
    Warn,
    /// … are refused.
    Strict,
}

/// Whether a write is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is written.
    Real,
    /// Everything but the writing is done.
    DryRun,
}

/// What the query of a write says.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Whether it is carried out.
    pub effect: Effect,
    /// How strictly fields are checked.
    pub validation: FieldValidation,
}

impl WriteOptions {
    /// Reads them.
    pub fn parse(query: &Query, kind: OptionsKind) -> Outcome<WriteOptions> {
        let mut errors = Vec::new();
        let manager = query.text("fieldManager");
        let forces = !query.text("force").is_empty();
        if kind == OptionsKind::Apply && manager.is_empty() {
            let detail = "is required for apply patch";
            errors.push(FieldError::required("fieldManager", detail));
        }
        if kind == OptionsKind::Patch && forces {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden("force", detail));
        }
        errors.extend(manager_errors(manager));
        let mut effect = Effect::Real;
        for value in query.all("dryRun") {
            match value {
                "" => {}
                "All" => effect = Effect::DryRun,
                _ => {
                    let given: Vec<&str> = query.all("dryRun").collect();
                    errors.push(FieldError::not_supported("dryRun", given, &["All"]));
                }
            }
        }
        let validation = match query.text("fieldValidation") {
            // Upstream's default.
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &known));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Refused::invalid("meta.k8s.io", kind.name(), "", &errors));
        }
        Ok(WriteOptions { effect, validation })
    }
}

/// Whose options a query holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsKind {
    /// Server-side apply.
    Apply,
    /// POST.
    Create,
    /// DELETE.
    Delete,
    /// Any other patch.
    Patch,
    /// PUT.
    Update,
}

impl OptionsKind {
    fn name(self) -> &'static str {
        match self {
            OptionsKind::Create => "CreateOptions",
            OptionsKind::Delete => "DeleteOptions",
            OptionsKind::Apply | OptionsKind::Patch => "PatchOptions",
            OptionsKind::Update => "UpdateOptions",
        }
    }
}

/// What is wrong with the name of an owner.
fn manager_errors(manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(
            "fieldManager",
            MANAGER_BYTES_MAX as i64,
        ));
    }
    for (at, letter) in manager.char_indices().filter(|(_, one)| one.is_control()) {
        let detail = format!(
            "invalid character U+{:04X} (at position {at})",
            u32::from(letter)
        );
        errors.push(FieldError::invalid("fieldManager", manager, detail));
    }
    errors
}

/// The verb of the authoriser and of discovery.
pub fn verb(method: Method, target: &Target, query: &Query) -> &'static str {
    match (method, target.name.is_empty()) {
        (Method::Get, _) if query.is_on("watch") => "watch",
        (Method::Get, true) => "list",
        (Method::Get, false) => "get",
        (Method::Post, _) => "create",
        (Method::Put, _) => "update",
        (Method::Patch, _) => "patch",
        (Method::Delete, true) => "deletecollection",
        (Method::Delete, false) => "delete",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects_as_upstream_reads_them() {
        let rows = [
            ("/api/v1/pods", "|v1||pods||"),
            ("/api/v1/namespaces", "|v1||namespaces||"),
            ("/api/v1/namespaces/a", "|v1||namespaces|a|"),
            ("/api/v1/namespaces/a/status", "|v1||namespaces|a|status"),
            ("/api/v1/namespaces/a/pods/", "|v1|a|pods||"),
            ("/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "rbac.authorization.k8s.io|v1||clusterroles|system:node|",
            ),
        ];
        for (path, expected) in rows {
            let Ok(Route::Objects(at)) = Route::parse(path) else {
                panic!("{path} names no objects");
            };
            let seen = [
                at.group,
                at.version,
                at.namespace,
                at.plural,
                at.name,
                at.subresource,
            ]
            .join("|");
            assert_eq!(seen, expected, "{path}");
        }
        assert_eq!(
            Route::parse("/apis/batch/v1").ok(),
            Some(Route::Document(vec![
                "apis".into(),
                "batch".into(),
                "v1".into()
            ]))
        );
    }

    #[test]
    fn a_query_may_begin_oddly_and_is_decoded() {
        let query = Query::parse("&watch&labelSelector=a%3Db%2Cc&limit=5&x=a+b").expect("a query");
        assert!(query.is_on("watch"));
        assert_eq!(query.text("labelSelector"), "a=b,c");
        assert_eq!(query.number("limit").ok(), Some(Some(5)));
        assert_eq!(query.text("x"), "a b");
        assert!(Query::parse("a=%zz").is_err());
    }
}
