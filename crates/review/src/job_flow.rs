//! JobFlows: whether their jobs can be put in an order.

use std::collections::BTreeMap;

use api::kind::Kind;
use serde_json::Value;

use crate::denials::others::{RING, UNKNOWN_TARGET};
use crate::fields::{items, text};
use crate::order::{self, Fault};
use crate::{Case, Rule, WRITES, Webhook};

pub(crate) const VALIDATE: Webhook = Webhook {
    path: "/jobflows/validate",
    name: "validatejobflow.volcano.sh",
    kind: Kind::JobFlow,
    operations: WRITES,
    rule: Rule::Validate(validate),
};

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    // Of two flows of one name the last counts, as upstream.
    let flows: BTreeMap<&str, Vec<&str>> = items(&case.object["spec"], "flows")
        .iter()
        .map(|flow| (text(flow, "name"), targets(flow)))
        .collect();
    match order::check(&flows) {
        Ok(()) => Ok(Vec::new()),
        Err(Fault::Unknown(name)) => Err(UNKNOWN_TARGET.with(&[("target", &name)])),
        Err(Fault::Ring) => Err(RING.plain()),
    }
}

fn targets(flow: &Value) -> Vec<&str> {
    let targets = items(&flow["dependsOn"], "targets");
    targets.iter().filter_map(Value::as_str).collect()
}
