//! Rules that taint devices: the store of a plane serves none, as Kubernetes' own does not unless it is told
//! to. In a rehearsal they are defined beside it, so that they stand where a cluster has them: they are applied,
//! checked and deleted as anything else, and the driver reads them. No slice is altered by them.

use api::call::Call;
use api::dialect;
use api::kind::Kind;
use serde_json::{Value, json};

use crate::calls;

/// Where an API takes definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What Kubernetes calls a label's name: a domain may stand before it.
const NAME: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// And a label's value.
const VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// The call that defines them.
pub(super) fn defined() -> Call {
    let row = Kind::DeviceTaintRule.row();
    let versions = dialect::versions(row.kind).map(|version| {
        json!({
            "name": version, "served": true, "storage": version == row.version,
            "schema": { "openAPIV3Schema": schema() }, "subresources": { "status": {} },
        })
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", row.plural, row.group),
            // Groups of Kubernetes' own need a word on where their shape was agreed upon.
            "annotations": { "api-approved.kubernetes.io": "unapproved, a copy of Kubernetes' own" },
        },
        "spec": {
            "group": row.group, "scope": "Cluster",
            "names": { "kind": row.name, "plural": row.plural, "singular": row.name.to_lowercase() },
            "versions": versions.collect::<Vec<_>>(),
        },
    });
    calls::post(DEFINITIONS, &definition)
}

/// As Kubernetes checks one (KEP-5055). Until 1.34 a selector could ask about a class and attributes, too.
fn schema() -> Value {
    let name = json!({ "type": "string", "minLength": 1 });
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "type": "object", "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object", "required": ["taint"],
                "properties": {
                    "deviceSelector": { "type": "object", "properties": {
                        "driver": name, "pool": name, "device": name, "deviceClassName": name,
                        "selectors": { "type": "array", "items": free },
                    } },
                    "taint": {
                        "type": "object", "required": ["key", "effect"],
                        "properties": {
                            "key": { "type": "string", "pattern": NAME },
                            "value": { "type": "string", "pattern": VALUE },
                            "effect": { "type": "string", "enum": ["NoExecute", "NoSchedule", "None"] },
                            "timeAdded": { "type": "string", "format": "date-time" },
                        },
                    },
                },
            },
            "status": free,
        },
    })
}
