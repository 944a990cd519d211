//! Who may do what: `system:masters` everything, others what stored RBAC rules say.

use serde_json::{Value, json};

use crate::path::Target;
use crate::request::{Begin, Response, User};
use crate::status::Outcome;
use crate::store::Store;
use crate::write::{Writing, text};

/// Resources that every authenticated user may create: questions about themselves.
const SELF_REVIEWS: &[&str] = &[
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
];

impl Store {
    /// Whether `user` may do `verb` there.
    pub fn allows(&self, user: &User, verb: &str, target: &Target) -> bool {
        if user.groups.iter().any(|group| group == "system:masters") {
            return true;
        }
        if verb == "create" && SELF_REVIEWS.contains(&&*target.plural) {
            return true;
        }
        self.rules_for(user, &target.namespace)
            .iter()
            .any(|rule| permits(rule, verb, target))
    }

    /// All rules that bind `user` in a namespace, and in the whole plane.
    fn rules_for(&self, user: &User, namespace: &str) -> Vec<Value> {
        let mut rules = Vec::new();
        for binding in self.rbac("clusterrolebindings", "") {
            if binds(&binding, user) {
                rules.extend(self.role_rules(&binding["roleRef"], ""));
            }
        }
        if namespace.is_empty() {
            return rules;
        }
        for binding in self.rbac("rolebindings", namespace) {
            if binds(&binding, user) {
                rules.extend(self.role_rules(&binding["roleRef"], namespace));
            }
        }
        rules
    }

    fn rbac(&self, plural: &str, namespace: &str) -> Vec<Value> {
        let Some(id) = self.registry.find("rbac.authorization.k8s.io", plural) else {
            return Vec::new();
        };
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}/")
        };
        self.shelf(id)
            .range(&prefix)
            .map(|(_, entry)| entry.value())
            .collect()
    }

    fn role_rules(&self, role: &Value, namespace: &str) -> Vec<Value> {
        let (plural, namespace) = match role["kind"].as_str() {
            Some("Role") => ("roles", namespace),
            _ => ("clusterroles", ""),
        };
        let name = text(&role["name"]);
        let key = crate::read::key_of(namespace, &name);
        self.registry
            .find("rbac.authorization.k8s.io", plural)
            .and_then(|id| self.shelf(id).get(&key))
            .map(|entry| entry.value()["rules"].take())
            .and_then(|rules| rules.as_array().cloned())
            .unwrap_or_default()
    }

    /// Requests that are answered without being stored: questions about access.
    pub(crate) fn virtual_create(&self, writing: &Writing<'_>) -> Outcome<Option<Begin>> {
        let group = &*writing.row.group;
        if !matches!(group, "authorization.k8s.io" | "authentication.k8s.io") {
            return Ok(None);
        }
        let mut object = self.decode(writing)?.value;
        self.name_type(writing, &mut object)?;
        let user = &writing.request.user;
        object["metadata"] = json!({ "creationTimestamp": null });
        object["status"] = match &*writing.row.plural {
            "selfsubjectreviews" => json!({ "userInfo": user_info(user) }),
            "selfsubjectaccessreviews" => self.access_status(user, &object["spec"]),
            "selfsubjectrulesreviews" => {
                self.rules_status(user, &text(&object["spec"]["namespace"]))
            }
            "tokenreviews" => json!({
                "authenticated": false,
                "error": "tokens are checked by the server before a request reaches its store",
            }),
            _ => self.access_status(&named_user(&object["spec"]), &object["spec"]),
        };
        Ok(Some(Begin::Done(Response::json(201, &object))))
    }

    fn access_status(&self, user: &User, spec: &Value) -> Value {
        let asked = &spec["resourceAttributes"];
        let (verb, target) = (
            text(&asked["verb"]),
            Target {
                group: text(&asked["group"]),
                version: text(&asked["version"]),
                namespace: text(&asked["namespace"]),
                plural: text(&asked["resource"]),
                name: text(&asked["name"]),
                subresource: text(&asked["subresource"]),
            },
        );
        let is_master = user.groups.iter().any(|group| group == "system:masters");
        let allowed = is_master || (asked.is_object() && self.allows(user, &verb, &target));
        json!({ "allowed": allowed })
    }

    fn rules_status(&self, user: &User, namespace: &str) -> Value {
        let rules = if user.groups.iter().any(|group| group == "system:masters") {
            vec![json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] })]
        } else {
            self.rules_for(user, namespace)
        };
        json!({
            "resourceRules": rules,
            "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version"] }],
            "incomplete": false,
        })
    }
}

fn user_info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    info
}

/// The user that a SubjectAccessReview asks about.
fn named_user(spec: &Value) -> User {
    User {
        name: text(&spec["user"]),
        groups: spec["groups"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect(),
        uid: text(&spec["uid"]),
    }
}

fn binds(binding: &Value, user: &User) -> bool {
    let subjects = binding["subjects"].as_array();
    subjects.into_iter().flatten().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => user.name == name,
            Some("Group") => user.groups.iter().any(|group| group == name),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        }
    })
}

fn permits(rule: &Value, verb: &str, target: &Target) -> bool {
    let has = |key: &str, wanted: &str| {
        rule[key]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one == "*" || one == wanted))
    };
    let resource = if target.subresource.is_empty() {
        target.plural.clone()
    } else {
        format!("{}/{}", target.plural, target.subresource)
    };
    let named = rule["resourceNames"]
        .as_array()
        .filter(|names| !names.is_empty())
        .is_none_or(|names| names.iter().any(|name| name == target.name.as_str()));
    has("verbs", verb) && has("apiGroups", &target.group) && has("resources", &resource) && named
}
