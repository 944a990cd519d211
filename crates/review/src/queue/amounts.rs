//! A queue's own amounts: guarantee ≤ deserved ≤ capability, per dimension.

use api::core::ResourceList;
use api::volcano::QueueSpec;

use crate::denials::queues;
use crate::fields::{check_amounts, invalid};

/// Capability, deserved and guarantee; absent counts as empty.
pub(super) fn of(spec: &QueueSpec) -> [ResourceList; 3] {
    [
        spec.capability.clone().unwrap_or_default(),
        spec.deserved.clone().unwrap_or_default(),
        guarantee(spec),
    ]
}

/// What is kept for the queue; absent counts as empty.
pub(super) fn guarantee(spec: &QueueSpec) -> ResourceList {
    spec.guarantee
        .as_ref()
        .and_then(|guarantee| guarantee.resource.clone())
        .unwrap_or_default()
}

pub(super) fn check(spec: &QueueSpec, complaints: &mut Vec<String>) {
    let [capability, deserved, guarantee] = of(spec);
    check_amounts("requestBody.spec.capability", &capability, complaints);
    check_amounts("requestBody.spec.deserved", &deserved, complaints);
    for (name, kept) in &guarantee {
        let path = format!("requestBody.spec.guarantee.resource.{name}");
        crate::fields::check_amount(&path, name, kept, complaints);
        let path = format!("requestBody.spec.deserved.{name}");
        match deserved.get(name) {
            None => complaints.push(invalid(
                &path,
                "<nil>",
                &queues::NOTHING_DESERVED.with(&[("resource", name), ("kept", kept)]),
            )),
            Some(amount) if amount < kept => complaints.push(invalid(
                &path,
                &amount.to_string(),
                &queues::LESS_DESERVED.with(&[
                    ("resource", name),
                    ("amount", amount),
                    ("kept", kept),
                ]),
            )),
            Some(_) => {}
        }
    }
    for (name, amount) in &deserved {
        // A dimension that capability does not name is unlimited.
        if let Some(limit) = capability.get(name)
            && amount > limit
        {
            complaints.push(invalid(
                &format!("requestBody.spec.deserved.{name}"),
                &amount.to_string(),
                &queues::MORE_DESERVED.with(&[
                    ("resource", name),
                    ("amount", amount),
                    ("limit", limit),
                ]),
            ));
        }
    }
}
