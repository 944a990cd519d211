//! Roles and bindings, found by who is bound. Kept up with every write that becomes visible, so
//! that no request reads through objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::asked::Asked;
use super::rule::Rule;
use crate::request::User;

/// Which of the four kinds an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// Rules; in no namespace: a ClusterRole.
    Role,
    /// Who has them.
    Binding,
}

/// The rules of roles, by name.
type Roles = BTreeMap<Box<str>, Arc<[Rule]>>;

/// Everything that roles and bindings say. The empty namespace is the whole plane.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// By namespace and name.
    roles: BTreeMap<Box<str>, Roles>,
    scopes: BTreeMap<Box<str>, Scope>,
}

/// The bindings of one namespace.
#[derive(Debug, Default)]
struct Scope {
    bindings: BTreeMap<Box<str>, Binding>,
    users: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    groups: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
pub(crate) struct Binding {
    namespace: Box<str>,
    name: Box<str>,
    role_kind: Box<str>,
    role: Box<str>,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    bound: Bound,
    /// `Group "a"`, as a reason shows it.
    shown: String,
}

/// Who is meant, by the name that a request carries.
#[derive(Debug)]
enum Bound {
    User(Box<str>),
    Group(Box<str>),
    Nobody,
}

/// A rule that speaks for a user, and why it does.
#[derive(Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub(crate) rule: &'a Rule,
    binding: &'a Binding,
    subject: &'a Subject,
}

/// What a user holds somewhere, and what could not be read.
#[derive(Default)]
pub(crate) struct Grants<'a> {
    pub(crate) rules: Vec<Grant<'a>>,
    /// Bindings to roles that do not exist.
    pub(crate) problems: Vec<String>,
}

impl Index {
    /// Takes the newest state of an object; `None` when it is gone.
    pub(crate) fn take(&mut self, holding: Holding, key: &str, object: Option<&Value>) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        match holding {
            Holding::Role => {
                let roles = self.roles.entry(namespace.into()).or_default();
                match object {
                    Some(role) => roles.insert(name.into(), Rule::list(role).into()),
                    None => roles.remove(name),
                };
                if roles.is_empty() {
                    self.roles.remove(namespace);
                }
            }
            Holding::Binding => {
                let scope = self.scopes.entry(namespace.into()).or_default();
                scope.take(name, object.map(|it| Binding::read(namespace, name, it)));
                if scope.bindings.is_empty() {
                    self.scopes.remove(namespace);
                }
            }
        }
    }

    /// The rules of the role that a reference names, for a binding in `namespace`.
    pub(crate) fn role(&self, kind: &str, namespace: &str, name: &str) -> Option<&Arc<[Rule]>> {
        let namespace = if kind == "Role" { namespace } else { "" };
        self.roles.get(namespace)?.get(name)
    }

    /// The first rule that permits it; otherwise what could not be read on the way.
    pub(crate) fn find(&self, user: &User, asked: &Asked) -> Result<Grant<'_>, Vec<String>> {
        let namespace = asked.target.as_ref().map_or("", |it| &it.namespace);
        let mut problems = Vec::new();
        for (binding, subject) in self.bindings_of(user, namespace) {
            match self.rules_of(binding) {
                Ok(rules) => {
                    if let Some(rule) = rules.iter().find(|rule| rule.permits(asked)) {
                        return Ok(Grant {
                            rule,
                            binding,
                            subject,
                        });
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        Err(problems)
    }

    /// All rules of a user in a namespace and in the whole plane.
    pub(crate) fn grants(&self, user: &User, namespace: &str) -> Grants<'_> {
        let mut grants = Grants::default();
        for (binding, subject) in self.bindings_of(user, namespace) {
            match self.rules_of(binding) {
                Ok(rules) => grants.rules.extend(rules.iter().map(|rule| Grant {
                    rule,
                    binding,
                    subject,
                })),
                Err(problem) => grants.problems.push(problem),
            }
        }
        grants
    }

    fn rules_of(&self, binding: &Binding) -> Result<&[Rule], String> {
        self.role(&binding.role_kind, &binding.namespace, &binding.role)
            .map(|rules| &**rules)
            .ok_or_else(|| {
                format!(
                    "{}.rbac.authorization.k8s.io {:?} not found",
                    binding.role_kind.to_ascii_lowercase(),
                    binding.role
                )
            })
    }

    /// Bindings of the whole plane first, then the namespace's; each by name.
    fn bindings_of(&self, user: &User, namespace: &str) -> Vec<(&Binding, &Subject)> {
        let mut found = Vec::new();
        let own = (!namespace.is_empty()).then_some(namespace);
        for scope in [Some(""), own].into_iter().flatten() {
            if let Some(scope) = self.scopes.get(scope) {
                scope.bindings_of(user, &mut found);
            }
        }
        found
    }
}

impl Scope {
    fn take(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.bindings.remove(name) {
            for subject in &old.subjects {
                let (map, who) = match &subject.bound {
                    Bound::User(who) => (&mut self.users, who),
                    Bound::Group(who) => (&mut self.groups, who),
                    Bound::Nobody => continue,
                };
                if let Some(names) = map.get_mut(who) {
                    names.remove(name);
                    if names.is_empty() {
                        map.remove(who);
                    }
                }
            }
        }
        let Some(binding) = binding else {
            return;
        };
        for subject in &binding.subjects {
            let (map, who) = match &subject.bound {
                Bound::User(who) => (&mut self.users, who),
                Bound::Group(who) => (&mut self.groups, who),
                Bound::Nobody => continue,
            };
            map.entry(who.clone()).or_default().insert(name.into());
        }
        self.bindings.insert(name.into(), binding);
    }

    fn bindings_of<'a>(&'a self, user: &User, found: &mut Vec<(&'a Binding, &'a Subject)>) {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let by_user = self.users.get(&*user.name);
        let by_group = user.groups.iter().filter_map(|it| self.groups.get(&**it));
        for list in by_user.into_iter().chain(by_group) {
            names.extend(list.iter().map(|name| &**name));
        }
        for name in names {
            let Some(binding) = self.bindings.get(name) else {
                continue;
            };
            let subjects = binding.subjects.iter();
            if let Some(subject) = subjects.into_iter().find(|it| it.bound.is(user)) {
                found.push((binding, subject));
            }
        }
    }
}

impl Binding {
    fn read(namespace: &str, name: &str, object: &Value) -> Binding {
        let text = |value: &Value| Box::<str>::from(value.as_str().unwrap_or_default());
        let subjects = object["subjects"].as_array();
        Binding {
            namespace: namespace.into(),
            name: name.into(),
            role_kind: text(&object["roleRef"]["kind"]),
            role: text(&object["roleRef"]["name"]),
            subjects: subjects
                .into_iter()
                .flatten()
                .map(|subject| Subject::read(namespace, subject))
                .collect(),
        }
    }
}

impl Subject {
    fn read(binding_namespace: &str, subject: &Value) -> Subject {
        let text = |key: &str| subject[key].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let namespace = match text("namespace") {
            "" => binding_namespace,
            own => own,
        };
        match kind {
            "ServiceAccount" => Subject {
                bound: if namespace.is_empty() {
                    Bound::Nobody
                } else {
                    Bound::User(format!("system:serviceaccount:{namespace}:{name}").into())
                },
                shown: format!("{kind} {:?}", format!("{name}/{namespace}")),
            },
            _ => Subject {
                bound: match kind {
                    "User" => Bound::User(name.into()),
                    "Group" => Bound::Group(name.into()),
                    _ => Bound::Nobody,
                },
                shown: format!("{kind} {name:?}"),
            },
        }
    }
}

impl Bound {
    fn is(&self, user: &User) -> bool {
        match self {
            Bound::User(name) => **name == *user.name,
            Bound::Group(name) => user.groups.iter().any(|group| **group == **name),
            Bound::Nobody => false,
        }
    }
}

impl Grant<'_> {
    /// Why it is permitted, as an access review says it.
    pub(crate) fn reason(&self) -> String {
        let binding = self.binding;
        let (kind, name) = if binding.namespace.is_empty() {
            ("ClusterRoleBinding", binding.name.to_string())
        } else {
            (
                "RoleBinding",
                format!("{}/{}", binding.name, binding.namespace),
            )
        };
        format!(
            "RBAC: allowed by {kind} {name:?} of {} {:?} to {}",
            binding.role_kind, binding.role, self.subject.shown
        )
    }
}

/// Problems as a refusal ends with them.
pub(crate) fn reason_of(problems: &[String]) -> String {
    match problems {
        [] => String::new(),
        [only] => format!("RBAC: {only}"),
        several => format!("RBAC: [{}]", several.join(", ")),
    }
}
