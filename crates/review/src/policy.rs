//! What of the rules can be said in CEL, as ValidatingAdmissionPolicies (and, in [`changes`], as
//! MutatingAdmissionPolicies): an API server evaluates them itself, so that nobody needs to be asked.
//!
//! Invariant: a policy denies nothing that the rule of the same row allows. Each expression that cannot
//! be evaluated passes (`failurePolicy: Ignore`), and the rule behind it, if it is served, still judges.
//!
//! The sentences are those of the rows of [`denials`](crate::denials) that have an expression.
//!
//! What a policy cannot say: anything about other objects (is the queue there, open, a leaf; sums over
//! siblings; children of a queue that is deleted), order in a graph (rings of tasks, flows and queues),
//! whole pod templates, cron schedules, time zones and patterns.

mod changes;
mod jobs;

use api::admission::Operation;
use serde_json::{Value, json};

pub use self::changes::Mutation;
use crate::denials::jobs as jobs_denied;
use crate::denials::{Holds, Row, TABLES, queues};
use crate::{PluginKeys, RootQueue, Settings, Webhook};

const UPDATES: &[Operation] = &[Operation::Update];

/// One validation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// CEL over `object`, `oldObject` and `request`: true for what is accepted.
    pub expression: String,
    /// What is said where it is false.
    pub message: String,
}

impl Webhook {
    /// What of its rule can be said in CEL; none of those who change objects, and not all of the others.
    pub fn validations(&self, settings: &Settings) -> Vec<Validation> {
        let rows = TABLES.iter().copied().flatten();
        let own = rows.filter(|row| row.path == self.path && counts(row, settings));
        own.flat_map(|row| row.holds.iter().map(move |holds| (row, holds)))
            .map(|(row, holds)| Validation {
                expression: guarded(row, holds, self.operations),
                message: holds.message(row),
            })
            .collect()
    }

    /// Its policy and the binding that makes it count, Validating or Mutating; nothing where there is
    /// nothing that can be said.
    pub fn policy(&self, settings: &Settings) -> Vec<Value> {
        let (rest, sort) = match self.mutates() {
            true => (self.changing(settings), "Mutating"),
            false => (self.judging(settings), "Validating"),
        };
        let Some(mut spec) = rest else {
            return Vec::new();
        };
        spec["failurePolicy"] = "Ignore".into();
        spec["matchConstraints"] = json!({ "resourceRules": [self.resource_rule()] });
        if let Some(expression) = self.condition(settings) {
            spec["matchConditions"] = json!([{ "name": "ours", "expression": expression }]);
        }
        let name = format!("katmai{}", self.path.replace('/', "-"));
        let mut bound = json!({ "policyName": name });
        if !self.mutates() {
            bound["validationActions"] = json!(["Deny"]);
        }
        let object = |kind: String, spec: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": { "name": name },
                "spec": spec,
            })
        };
        vec![
            object(format!("{sort}AdmissionPolicy"), spec),
            object(format!("{sort}AdmissionPolicyBinding"), bound),
        ]
    }

    /// The rest of the policy of its validations; `None` where there are none.
    fn judging(&self, settings: &Settings) -> Option<Value> {
        let validations = self.validations(settings);
        let validations: Vec<Value> = validations
            .into_iter()
            .map(|it| json!({ "expression": it.expression, "message": it.message }))
            .collect();
        (!validations.is_empty()).then(|| json!({ "validations": validations }))
    }
}

/// Whether anything is refused by that row with these settings.
fn counts(row: &Row, settings: &Settings) -> bool {
    match row.id {
        id if id == jobs_denied::PRIVATE_KEY.id => settings.plugin_keys == PluginKeys::Refused,
        id if id == queues::ROOT_AMOUNTS.id => settings.root_queue == RootQueue::Protected,
        _ => true,
    }
}

/// The expression, which holds for requests of other sorts.
fn guarded(row: &Row, holds: &Holds, all: &[Operation]) -> String {
    let expression = holds.written();
    match guard(holds.requests(row), all) {
        Some(guard) => format!("!({guard}) || ({expression})"),
        None => expression,
    }
}

/// Whether a request is of these sorts, in CEL; `None` where all are.
fn guard(on: &[Operation], all: &[Operation]) -> Option<String> {
    if on == all {
        return None;
    }
    let words = on
        .iter()
        .map(|it| format!("'{}'", crate::registration::word(*it)));
    let words: Vec<String> = words.collect();
    Some(format!("request.operation in [{}]", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WEBHOOKS;

    #[test]
    fn each_webhook_that_judges_has_a_policy_and_its_binding() {
        let judging = WEBHOOKS.iter().filter(|webhook| !webhook.mutates());
        for webhook in judging {
            assert_eq!(webhook.policy(&Settings::default()).len(), 2);
        }
    }
}
