//! Nobody grants what they do not have: a role's rules, or those of the role that a binding names,
//! must be covered by the writer's own, unless the verbs `escalate` or `bind` say otherwise.

use serde_json::Value;

use super::rule::{Rule, missing, quoted};
use super::{Asked, GROUP};
use crate::path::Target;
use crate::status::{About, Outcome, Refused};
use crate::store::Store;
use crate::strategy::Part;
use crate::write::{Writing, text};

impl Store {
    /// Checks a role or binding about to be written over `old`.
    pub(crate) fn check_escalation(
        &self,
        writing: &Writing<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Outcome<()> {
        let row = &writing.row;
        let user = &writing.request.user;
        if &*row.group != GROUP || writing.part != Part::Whole || user.is_master() {
            return Ok(());
        }
        if old.is_some_and(|old| changes_owners_only(object, old)) {
            return Ok(());
        }
        let namespace = &writing.target.namespace;
        let name = text(&object["metadata"]["name"]);
        let forbidden = |why: &str| Refused::forbidden(writing.about(&name), why);
        match &*row.plural {
            "clusterroles" | "roles" => {
                let asked = about_role("escalate", &row.plural, namespace, &writing.target.name);
                if self.access.find(user, &asked).is_ok() {
                    return Ok(());
                }
                self.holds(writing, namespace, &Rule::list(object))
                    .map_err(|why| forbidden(&why))?;
                let gathers = |role: &Value| !role["aggregationRule"].is_null();
                if (gathers(object) || old.is_some_and(gathers))
                    && self
                        .holds(writing, namespace, &Rule::full_authority())
                        .is_err()
                {
                    return Err(forbidden(
                        "must have cluster-admin privileges to use the aggregationRule",
                    ));
                }
                Ok(())
            }
            "clusterrolebindings" | "rolebindings" => {
                let role = &object["roleRef"];
                let kind = text(&role["kind"]);
                let plural = match &*kind {
                    "Role" => "roles",
                    _ => "clusterroles",
                };
                let asked = about_role("bind", plural, namespace, &text(&role["name"]));
                if self.access.find(user, &asked).is_ok() {
                    return Ok(());
                }
                let bound = text(&role["name"]);
                let rules = self.access.role(&kind, namespace, &bound).ok_or_else(|| {
                    Refused::not_found(About {
                        group: GROUP,
                        plural,
                        name: &bound,
                    })
                })?;
                self.holds(writing, namespace, rules)
                    .map_err(|why| forbidden(&why))
            }
            _ => Ok(()),
        }
    }

    /// Whether the user's own rules cover these; otherwise what is missing.
    fn holds(&self, writing: &Writing<'_>, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
        let user = &writing.request.user;
        let grants = self.access.grants(user, namespace);
        let held: Vec<&Rule> = grants.rules.iter().map(|grant| grant.rule).collect();
        let Some(lines) = missing(&held, wanted) else {
            return Ok(());
        };
        // Upstream asks its storage here, which calls every role by the request's own resource.
        let told: Vec<String> = grants
            .problems
            .iter()
            .map(|problem| match problem.split_once(' ') {
                Some((_, rest)) => format!("{}.{GROUP} {rest}", writing.row.plural),
                None => problem.clone(),
            })
            .collect();
        let problems = match told.is_empty() {
            true => String::new(),
            false => format!("; resolution errors: [{}]", told.join(" ")),
        };
        Err(format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{lines}{problems}",
            user.name,
            quoted(&user.groups)
        ))
    }
}

fn about_role(verb: &str, plural: &str, namespace: &str, name: &str) -> Asked {
    Asked {
        verb: verb.to_owned(),
        path: String::new(),
        target: Some(Target {
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        }),
    }
}

/// The collector of garbage may take owners and finalizers off roles whose rules it does not have.
fn changes_owners_only(object: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(meta) = object["metadata"].as_object_mut() {
            for key in ["finalizers", "managedFields", "ownerReferences", "selfLink"] {
                meta.remove(key);
            }
        }
        object
    };
    without(object) == without(old)
}
