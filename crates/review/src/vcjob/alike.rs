//! Whether two specs of a job mean the same to Go, which compares what it decoded them into, not
//! what was written (`apiequality.Semantic.DeepEqual`).
//!
//! A field that is not there is decoded like 0, `false`, `""`, an empty list or map, and a struct
//! of such fields; who writes a spec that it has read writes it in either way. A pointer is
//! another matter: where nothing is written it points nowhere, and to an empty thing otherwise.
//! Amounts and durations are equal if they are as much. A map has the keys that it has, whatever
//! they hold.
//!
//! What it refuses to know: which fields there are (schemas prune others), and which may change
//! (the parent). Of a field in no table here, a text is no pointer, and a number, a switch and an
//! object are each behind one.
//!
//! Source: the Go types of `specs/volcano.md`, section 1.2, and of `k8s.io/api/core/v1` 0.36.

use api::duration::Duration;
use api::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// An amount.
    Amount,
    /// Amounts by the names of resources.
    Amounts,
    /// A span of time.
    Duration,
    /// Texts, or lists of them, by names that anybody may choose.
    Map,
    /// Fields of a struct without a pointer to it.
    Struct,
    /// Anything else.
    Other,
}

/// Fields of which more is to be known than what stands in them. Where a name means different
/// things, the fields above it stand before it, here and below.
const SORTS: &[(&str, Sort)] = &[
    ("annotations", Sort::Map),
    ("divisor", Sort::Amount),
    ("flexVolume.options", Sort::Map),
    ("labels", Sort::Map),
    ("limits", Sort::Amounts),
    ("matchLabels", Sort::Map),
    ("metadata", Sort::Struct),
    ("nodeSelector", Sort::Map),
    ("overhead", Sort::Amounts),
    ("plugins", Sort::Map),
    ("podAffinityTerm", Sort::Struct),
    ("preference", Sort::Struct),
    ("requests", Sort::Amounts),
    ("resources", Sort::Struct),
    ("runningEstimate", Sort::Duration),
    ("sizeLimit", Sort::Amount),
    ("spec", Sort::Struct),
    ("template", Sort::Struct),
    ("timeout", Sort::Duration),
    ("userAnnotations", Sort::Map),
    ("volumeAttributes", Sort::Map),
];

/// Numbers, switches and amounts without a pointer: 0 and `false` say no more than nothing.
const PLAIN: &[&str] = &[
    "chapAuthDiscovery",
    "chapAuthSession",
    "containerPort",
    "divisor",
    "failureThreshold",
    "generation",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "lun",
    "maxRetry",
    "maxSkew",
    "minPartitions",
    "partition",
    "partitionSize",
    "periodSeconds",
    "port",
    "readOnly",
    "seconds",
    "sslEnabled",
    "stdin",
    "stdinOnce",
    "successThreshold",
    "timeoutSeconds",
    "totalPartitions",
    "tty",
    "weight",
];

/// Pointers that the other tables, or being a text, would hide: `storageClassName: ""` is another
/// wish than none.
const POINTERS: &[&str] = &[
    "apiGroup",
    "azureDisk.fsType",
    "azureDisk.kind",
    "azureDisk.readOnly",
    "cachingMode",
    "clusterTrustBundle.name",
    "clusterTrustBundle.signerName",
    "containers.restartPolicy",
    "csi.fsType",
    "csi.readOnly",
    "dataSourceRef.namespace",
    "dnsConfig.options.value",
    "ephemeralContainers.restartPolicy",
    "fc.lun",
    "fsGroupChangePolicy",
    "gmsaCredentialSpec",
    "gmsaCredentialSpecName",
    "hostPath.type",
    "hostnameOverride",
    "initContainers.restartPolicy",
    "initiatorName",
    "localhostProfile",
    "mountPropagation",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "podGroupName",
    "preemptionPolicy",
    "procMount",
    "recursiveReadOnly",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "runAsUserName",
    "runtimeClassName",
    "seLinuxChangePolicy",
    "service",
    "stopSignal",
    "storageClassName",
    "supplementalGroupsPolicy",
    "template.spec.resources",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Whether two specs of jobs mean the same.
pub(super) fn alike(one: &Value, other: &Value) -> bool {
    let place = Place {
        name: "spec",
        above: None,
    };
    place.alike(one, other)
}

/// A field, and the fields that it is in. Items of a list have its place.
#[derive(Clone, Copy)]
struct Place<'a> {
    name: &'a str,
    above: Option<&'a Place<'a>>,
}

impl<'a> Place<'a> {
    fn below(&'a self, name: &'a str) -> Place<'a> {
        Place {
            name,
            above: Some(self),
        }
    }

    fn alike(&self, one: &Value, other: &Value) -> bool {
        match (one, other) {
            (Value::Object(one), Value::Object(other)) => match self.sort() {
                Sort::Amounts => has_keys_of(one, other, is_as_much),
                Sort::Map => has_keys_of(one, other, |one, other| {
                    one == other || is_empty(one) && is_empty(other)
                }),
                _ => self.has_fields_of(one, other),
            },
            (Value::Array(one), Value::Array(other)) => {
                let mut pairs = one.iter().zip(other);
                one.len() == other.len() && pairs.all(|(one, other)| self.alike(one, other))
            }
            _ if one == other => true,
            _ => match self.sort() {
                _ if self.is_nothing(one) && self.is_nothing(other) => true,
                _ if one.is_null() || other.is_null() => false,
                Sort::Amount => is_as_much(one, other),
                Sort::Duration => is_as_long(one, other),
                _ => false,
            },
        }
    }

    fn has_fields_of(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let nothing = &Value::Null;
        let mut first = one.iter();
        let mut rest = other.iter().filter(|(name, _)| !one.contains_key(*name));
        first.all(|(name, value)| {
            let place = self.below(name);
            place.alike(value, other.get(name).unwrap_or(nothing))
        }) && rest.all(|(name, value)| self.below(name).is_nothing(value))
    }

    /// Whether this is decoded as if nothing were written here.
    fn is_nothing(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Bool(is_on) => !is_on && self.is_plain(),
            Value::Number(number) => number.as_f64() == Some(0.0) && self.is_plain(),
            Value::String(_) if self.sort() == Sort::Amount => {
                self.is_plain() && amount(value).is_some_and(|amount| amount.is_zero())
            }
            // The name of a port is a text where others are numbers.
            Value::String(text) => text.is_empty() && !self.is_pointer() && !self.is_plain(),
            Value::Object(fields) => match self.sort() {
                Sort::Amounts | Sort::Map => fields.is_empty(),
                Sort::Struct => {
                    let mut fields = fields.iter();
                    fields.all(|(name, value)| self.below(name).is_nothing(value))
                }
                _ => false,
            },
        }
    }

    fn sort(&self) -> Sort {
        let row = SORTS.iter().find(|(path, _)| self.ends_with(path));
        let sort = row.map_or(Sort::Other, |(_, sort)| *sort);
        match sort {
            Sort::Struct if self.is_pointer() => Sort::Other,
            sort => sort,
        }
    }

    fn is_plain(&self) -> bool {
        PLAIN.contains(&self.name) && !self.is_pointer()
    }

    fn is_pointer(&self) -> bool {
        POINTERS.iter().any(|path| self.ends_with(path))
    }

    /// Whether the names down to this one end so.
    fn ends_with(&self, path: &str) -> bool {
        let mut place = Some(self);
        path.rsplit('.').all(|name| {
            let is_here = place.is_some_and(|place| place.name == name);
            place = place.and_then(|place| place.above);
            is_here
        })
    }
}

fn has_keys_of(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    alike: fn(&Value, &Value) -> bool,
) -> bool {
    let mut rows = one.iter();
    one.len() == other.len()
        && rows.all(|(key, value)| other.get(key).is_some_and(|held| alike(value, held)))
}

/// What an item of a map is that was written without a value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn is_as_much(one: &Value, other: &Value) -> bool {
    match (amount(one), amount(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// What cannot be read is compared as it stands.
fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::Null => Some(Quantity::ZERO),
        value => Quantity::deserialize(value).ok(),
    }
}

fn is_as_long(one: &Value, other: &Value) -> bool {
    let [one, other] = [one, other].map(|value| Duration::deserialize(value).ok());
    one.is_some() && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_a_pointer_is_none_without_need() {
        assert!(SORTS.is_sorted_by_key(|row| row.0));
        assert!(PLAIN.is_sorted());
        assert!(POINTERS.is_sorted());
        for name in POINTERS {
            assert!(!PLAIN.contains(name), "{name} is both");
        }
    }
}
