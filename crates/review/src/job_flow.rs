//! JobFlows: whether their jobs can be put in an order.

use std::collections::BTreeMap;

use api::kind::Kind;
use serde_json::Value;

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

const NO_ORDER: &str = "jobflow Flow is not DAG";

fn validate(case: &Case<'_>) -> Result<Vec<String>, String> {
    // Of two flows of one name the last counts, as upstream.
    let flows: BTreeMap<&str, Vec<&str>> = items(&case.object["spec"], "flows")
        .iter()
        .map(|flow| (text(flow, "name"), targets(flow)))
        .collect();
    match order::check(&flows) {
        Ok(()) => Ok(Vec::new()),
        Err(Fault::Unknown(name)) => Err(format!("{NO_ORDER}: vertex is not defined: {name}")),
        Err(Fault::Ring) => Err(NO_ORDER.to_owned()),
    }
}

fn targets(flow: &Value) -> Vec<&str> {
    let targets = items(&flow["dependsOn"], "targets");
    targets.iter().filter_map(Value::as_str).collect()
}
