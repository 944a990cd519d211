//! What is refused of queues.
//!
//! What is said of amounts follows the field and the value, in the form of Kubernetes' `field.Error`; a policy
//! says the field first.

use api::admission::Operation;

use super::{holds, rows};
use crate::WRITES;

const CREATES: &[Operation] = &[Operation::Create];
const UPDATES: &[Operation] = &[Operation::Update];
const DELETES: &[Operation] = &[Operation::Delete];

/// Whether an amount of a resource that there are only whole ones of is none: a fraction, or thousandths.
macro_rules! whole {
    ($of:literal) => {
        concat!(
            "!has(", $of, ") || ", $of, ".all(r, !(r in {integer_resources} || (r.contains('/') && !r.split('/')[0].endsWith('kubernetes.io') && !r.startsWith('requests.'))) || !string(", $of, "[r]).matches('^[+]?([0-9]+[.][0-9]*[1-9][0-9]*|[0-9.]*[1-9][0-9]?[0-9]?m)$'))"
        )
    };
}

/// Whether the root queue's amounts are what they were.
macro_rules! as_before {
    ($has_new:literal, $new:literal, $has_old:literal, $old:literal) => {
        concat!(
            "object.metadata.name != 'root' || ((!(",
            $has_new,
            ") || ",
            $new,
            ".all(r, ",
            $has_old,
            " && r in ",
            $old,
            " && quantity(string(",
            $new,
            "[r])).compareTo(quantity(string(",
            $old,
            "[r]))) == 0)) && (!(",
            $has_old,
            ") || ",
            $old,
            ".all(r, ",
            $has_new,
            " && r in ",
            $new,
            ")))"
        )
    };
}

rows! {
    ROWS at "/queues/validate":

    // Its own amounts.
    NEGATIVE WRITES, "must be greater than or equal to 0", [
        holds("!has(object.spec.capability) || object.spec.capability.all(r, !quantity(string(object.spec.capability[r])).isLessThan(quantity('0')))")
            .saying("requestBody.spec.capability: must be greater than or equal to 0"),
        holds("!has(object.spec.deserved) || object.spec.deserved.all(r, !quantity(string(object.spec.deserved[r])).isLessThan(quantity('0')))")
            .saying("requestBody.spec.deserved: must be greater than or equal to 0"),
        holds("!has(object.spec.guarantee) || !has(object.spec.guarantee.resource) || object.spec.guarantee.resource.all(r, !quantity(string(object.spec.guarantee.resource[r])).isLessThan(quantity('0')))")
            .saying("requestBody.spec.guarantee.resource: must be greater than or equal to 0"),
    ];
    NOT_WHOLE WRITES, "must be an integer", [
        holds(whole!("object.spec.capability")).saying("requestBody.spec.capability: must be an integer"),
        holds(whole!("object.spec.deserved")).saying("requestBody.spec.deserved: must be an integer"),
        holds(concat!("!has(object.spec.guarantee) || ", whole!("object.spec.guarantee.resource")))
            .saying("requestBody.spec.guarantee.resource: must be an integer"),
    ];
    NOTHING_DESERVED WRITES, "deserved[{resource}] must be >= guarantee[{resource}]={kept}", [];
    LESS_DESERVED WRITES, "deserved[{resource}]={amount} must be >= guarantee[{resource}]={kept}", [
        holds("!has(object.spec.guarantee) || !has(object.spec.guarantee.resource) || object.spec.guarantee.resource.all(r, has(object.spec.deserved) && r in object.spec.deserved && !quantity(string(object.spec.deserved[r])).isLessThan(quantity(string(object.spec.guarantee.resource[r]))))")
            .saying("deserved must be >= guarantee"),
    ];
    MORE_DESERVED WRITES, "deserved[{resource}]={amount} must be <= capability[{resource}]={limit}", [
        holds("!has(object.spec.deserved) || !has(object.spec.capability) || object.spec.deserved.all(r, !(r in object.spec.capability) || !quantity(string(object.spec.deserved[r])).isGreaterThan(quantity(string(object.spec.capability[r]))))")
            .saying("deserved must be <= capability"),
    ];

    // Its state.
    BAD_STATE WRITES, "queue state must be in [Open Closed]", [
        holds("!has(object.status) || !has(object.status.state) || object.status.state in ['', 'Open', 'Closed']"),
    ];

    // The annotations that place it in a tree of weights.
    OTHER_LENGTH WRITES, "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights", [
        holds("!has(object.metadata.annotations) || !('volcano.sh/hierarchy' in object.metadata.annotations) || !('volcano.sh/hierarchy-weights' in object.metadata.annotations) || object.metadata.annotations['volcano.sh/hierarchy'].split('/').size() == object.metadata.annotations['volcano.sh/hierarchy-weights'].split('/').size()"),
        holds("!has(object.metadata.annotations) || !('volcano.sh/hierarchy' in object.metadata.annotations) || 'volcano.sh/hierarchy-weights' in object.metadata.annotations || !object.metadata.annotations['volcano.sh/hierarchy'].contains('/')"),
    ];
    NO_WEIGHT WRITES, "{weight} in the {weights} is invalid number: strconv.ParseFloat: parsing {quoted}: invalid syntax", [];
    HUGE_WEIGHT WRITES, "{weight} in the {weights} is invalid number: strconv.ParseFloat: parsing {quoted}: value out of range", [];
    /// Ours; upstream takes `inf` and `NaN`.
    ENDLESS_WEIGHT WRITES, "{weight} in the {weights} must be a finite number", [];
    LITTLE_WEIGHT WRITES, "{weight} in the {weights} must be larger than 0", [
        holds("!has(object.metadata.annotations) || !('volcano.sh/hierarchy-weights' in object.metadata.annotations) || object.metadata.annotations['volcano.sh/hierarchy-weights'] == '' || object.metadata.annotations['volcano.sh/hierarchy-weights'].split('/').all(w, w.matches('[1-9]') && !w.startsWith('-'))")
            .saying("weights in volcano.sh/hierarchy-weights must be numbers larger than 0"),
    ];
    ABOVE_ANOTHER WRITES, "{path} is not allowed to be in the sub path of {other} of queue {queue}", [];

    // The queue above it.
    OWN_PARENT WRITES, "queue {queue} cannot use itself as parent", [
        holds("!has(object.spec.parent) || object.spec.parent == 'root' || object.spec.parent != object.metadata.name").on(CREATES)
            .saying("a queue cannot use itself as parent"),
        holds("!has(object.spec.parent) || object.spec.parent == 'root' || object.spec.parent != object.metadata.name || (has(oldObject.spec.parent) && oldObject.spec.parent == object.spec.parent)").on(UPDATES)
            .saying("a queue cannot use itself as parent"),
    ];
    /// Ours; upstream closes the ring, and then looks up and down it for ever.
    PARENT_BELOW WRITES, "queue {queue} cannot use queue {parent} as parent, which is below it", [];
    TOO_DEEP WRITES, "queue {queue} exceeds the maximum allowed depth of {depth}", [];
    NO_PARENT WRITES, "failed to get parent queue {parent} of queue {queue}: {error}", [];
    PARENT_WITH_PODS WRITES, "queue {parent} cannot be the parent queue of queue {queue} because it has allocated Pods: {pods}", [];
    ROOT_AMOUNTS UPDATES, "root queue's resource attributes (capability, deserved, guarantee) cannot be modified", [
        holds(as_before!("has(object.spec.capability)", "object.spec.capability", "has(oldObject.spec.capability)", "oldObject.spec.capability")),
        holds(as_before!("has(object.spec.deserved)", "object.spec.deserved", "has(oldObject.spec.deserved)", "oldObject.spec.deserved")),
        holds(as_before!("has(object.spec.guarantee) && has(object.spec.guarantee.resource)", "object.spec.guarantee.resource", "has(oldObject.spec.guarantee) && has(oldObject.spec.guarantee.resource)", "oldObject.spec.guarantee.resource")),
    ];

    // Amounts above, beside and below it.
    PARENT_UNKNOWN WRITES, "parent queue {parent} not found: {error}", [];
    MORE_THAN_SHARED WRITES, "{who} validation failed: sum of children's {what} ({sum}) exceeds parent's {what} limit ({limit})", [];
    MORE_THAN_ABOVE WRITES, "queue {queue} capability[{resource}]={amount} exceeds its ancestor's capability={limit}", [];
    LESS_THAN_BELOW WRITES, "queue {queue} capability[{resource}]={amount} is smaller than its descendants' max capability={limit}", [];

    // Its end.
    KEPT_QUEUE DELETES, "`{queue}` queue can not be deleted", [
        holds("!(oldObject.metadata.name in {kept_queues})")
            .saying("the queues `default` and `root` can not be deleted"),
    ];
    QUEUE_WITH_PODS DELETES, "queue {queue} cannot be deleted because it has allocated Pods: {pods}", [];
    QUEUE_WITH_CHILDREN DELETES, "queue {queue} can not be deleted because it has {count} child queues: {children}", [];
}
