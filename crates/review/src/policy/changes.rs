//! What of the changes can be said in CEL, as MutatingAdmissionPolicies: whole rules only, since
//! two who each do half of one would be told apart by nobody.
//!
//! Invariant: what a policy makes of an object is what the rule of the same row makes of it, but
//! for resource groups and for objects without a spec, which a policy leaves alone.

use api::admission::Operation;
use serde_json::{Value, json};

use super::{UPDATES, guard, jobs};
use crate::{CREATES, Settings, WRITES, Webhook};

const JOBS: &str = "/jobs/mutate";
const QUEUES: &str = "/queues/mutate";
const PODGROUPS: &str = "/podgroups/mutate";
const PODS: &str = "/pods/mutate";

/// One change that a rule makes.
struct Change {
    /// The row that makes it, too.
    path: &'static str,
    /// For these requests.
    on: &'static [Operation],
    /// Holds where there is something to change.
    when: &'static str,
    /// What is set, as a JSON pointer.
    at: &'static str,
    /// What it becomes, in CEL.
    value: &'static str,
}

const fn make(
    path: &'static str,
    on: &'static [Operation],
    when: &'static str,
    at: &'static str,
    value: &'static str,
) -> Change {
    Change {
        path,
        on,
        when,
        at,
        value,
    }
}

/// A path of the hierarchy that does not begin at the root, and its weights.
const UNROOTED: &str = "has(object.metadata.annotations) && 'volcano.sh/hierarchy' in object.metadata.annotations && 'volcano.sh/hierarchy-weights' in object.metadata.annotations && object.metadata.annotations['volcano.sh/hierarchy'] != '' && object.metadata.annotations['volcano.sh/hierarchy-weights'] != '' && !object.metadata.annotations['volcano.sh/hierarchy'].startsWith('root')";

/// All but those of jobs, by path; those of one path in their order, each of which sees what those before it
/// made.
const CHANGES: &[Change] = &[
    make(
        PODGROUPS,
        CREATES,
        "has(object.spec.queue) && object.spec.queue == 'default' && has(namespaceObject.metadata.annotations) && 'scheduling.volcano.sh/queue-name' in namespaceObject.metadata.annotations && namespaceObject.metadata.annotations['scheduling.volcano.sh/queue-name'] != ''",
        "/spec/queue",
        "namespaceObject.metadata.annotations['scheduling.volcano.sh/queue-name']",
    ),
    make(
        PODGROUPS,
        UPDATES,
        "has(object.spec.queue) && object.spec.queue == 'default' && has(oldObject.spec.queue) && has(namespaceObject.metadata.annotations) && 'scheduling.volcano.sh/queue-name' in namespaceObject.metadata.annotations && oldObject.spec.queue != '' && oldObject.spec.queue == namespaceObject.metadata.annotations['scheduling.volcano.sh/queue-name'] && !(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(it, has(it.controller) && it.controller))",
        "/spec/queue",
        "oldObject.spec.queue",
    ),
    make(
        PODS,
        CREATES,
        "object.metadata.annotations['scheduling.volcano.sh/queue-allocation-gate'] == 'true' && (!has(object.spec.schedulingGates) || object.spec.schedulingGates == null)",
        "/spec/schedulingGates",
        "[{'name': 'scheduling.volcano.sh/queue-allocation-gate'}]",
    ),
    make(
        PODS,
        CREATES,
        "object.metadata.annotations['scheduling.volcano.sh/queue-allocation-gate'] == 'true' && has(object.spec.schedulingGates) && !object.spec.schedulingGates.exists(g, g.name == 'scheduling.volcano.sh/queue-allocation-gate')",
        "/spec/schedulingGates/-",
        "{'name': 'scheduling.volcano.sh/queue-allocation-gate'}",
    ),
    make(
        QUEUES,
        WRITES,
        UNROOTED,
        "/metadata/annotations/volcano.sh~1hierarchy-weights",
        "'1/' + object.metadata.annotations['volcano.sh/hierarchy-weights']",
    ),
    make(
        QUEUES,
        WRITES,
        UNROOTED,
        "/metadata/annotations/volcano.sh~1hierarchy",
        "'root/' + object.metadata.annotations['volcano.sh/hierarchy']",
    ),
    make(
        QUEUES,
        CREATES,
        "has(object.spec) && (!has(object.spec.reclaimable) || object.spec.reclaimable == null)",
        "/spec/reclaimable",
        "true",
    ),
    make(
        QUEUES,
        CREATES,
        "has(object.spec) && (!has(object.spec.weight) || object.spec.weight == null || object.spec.weight == 0)",
        "/spec/weight",
        "1",
    ),
    make(
        QUEUES,
        UPDATES,
        "has(object.spec) && (!has(object.spec.reclaimable) || object.spec.reclaimable == null) && has(oldObject.spec) && has(oldObject.spec.reclaimable) && oldObject.spec.reclaimable != null",
        "/spec/reclaimable",
        "oldObject.spec.reclaimable",
    ),
    make(
        QUEUES,
        UPDATES,
        "has(object.spec) && (!has(object.spec.weight) || object.spec.weight == null || object.spec.weight == 0) && has(oldObject.spec) && has(oldObject.spec.weight) && oldObject.spec.weight != null",
        "/spec/weight",
        "oldObject.spec.weight",
    ),
];

/// One mutation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// A list of the object, as a JSON pointer, each item of which may be changed; it is called `task`
    /// below and its number `place`.
    pub each: Option<&'static str>,
    /// CEL over `object`, `oldObject`, `request` and `namespaceObject`: whether there is something
    /// to change.
    pub when: String,
    /// What is set, as a JSON pointer into the object or the item.
    pub at: String,
    /// What it becomes, in CEL over the same.
    pub value: String,
}

impl Mutation {
    /// The JSON patch that it is, in CEL.
    fn expression(&self) -> String {
        let Mutation {
            when, at, value, ..
        } = self;
        let Some(each) = self.each else {
            return format!(
                "({when}) ? [JSONPatch{{op: 'add', path: '{at}', value: {value}}}] : []"
            );
        };
        let list = format!("object{}", each.replace('/', "."));
        format!(
            "has({list}) ? {list}.transformList(place, task, {when}, JSONPatch{{op: 'add', path: '{each}/' + string(place) + '{at}', value: {value}}}) : []"
        )
    }
}

impl Webhook {
    /// What it changes, where all of that can be said in CEL; in order.
    pub fn mutations(&self, settings: &Settings) -> Vec<Mutation> {
        if !self.is_wanted(settings) || !settings.resource_groups.is_empty() && self.path == PODS {
            return Vec::new();
        }
        if self.path == JOBS {
            return jobs::mutations(settings);
        }
        let own = CHANGES.iter().filter(|it| it.path == self.path);
        own.map(|it| Mutation {
            each: None,
            when: match guard(it.on, self.operations) {
                Some(guard) => format!("{guard} && {}", it.when),
                None => it.when.to_owned(),
            },
            at: it.at.to_owned(),
            value: it.value.to_owned(),
        })
        .collect()
    }

    /// The rest of the policy of its mutations; `None` where there are none.
    pub(super) fn changing(&self, settings: &Settings) -> Option<Value> {
        let mutations = self.mutations(settings);
        let mutations: Vec<Value> = mutations
            .iter()
            .map(|it| {
                let patch = json!({ "expression": it.expression() });
                json!({ "patchType": "JSONPatch", "jsonPatch": patch })
            })
            .collect();
        (!mutations.is_empty())
            .then(|| json!({ "mutations": mutations, "reinvocationPolicy": "IfNeeded" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_by_path_and_each_path_is_a_webhook_that_changes() {
        assert!(CHANGES.is_sorted_by_key(|it| it.path));
        for change in CHANGES {
            let webhook = Webhook::at(change.path).expect("it is a row");
            assert!(webhook.mutates());
            assert!(change.on.iter().all(|it| webhook.operations.contains(it)));
        }
    }

    #[test]
    fn a_mutation_is_a_patch_where_there_is_something_to_change() {
        let webhook = Webhook::at(QUEUES).expect("it is a row");
        let mutations = webhook.mutations(&Settings::default());
        let weight = mutations
            .iter()
            .find(|it| it.value == "1")
            .expect("a weight");
        assert_eq!(
            weight.expression(),
            "(request.operation in ['CREATE'] && has(object.spec) && (!has(object.spec.weight) || object.spec.weight == null || object.spec.weight == 0)) ? [JSONPatch{op: 'add', path: '/spec/weight', value: 1}] : []"
        );
    }
}
