//! Ownership of a new object: all that it sets is its author's.

use serde_json::Value;

use super::change::COMMON;
use super::{Change, Memo, Owner, Owners, Resets};
use crate::typed::{self, Hidden};

/// The fields of a new object, of which nobody else has said anything, as their author owns them,
/// where one walk can tell them. `unset` is an object of its kind of which nothing is set.
///
/// They are those that [`super::update`] finds, in a fraction of the time.
pub(crate) fn created(unset: &Value, object: &Value, change: &Change<'_>) -> Option<String> {
    let api_version = &change.who.api_version;
    let without = match change.versions.resets(api_version) {
        Resets::Nothing => &[][..],
        Resets::Without(paths) => paths,
        Resets::Only(_) => return None,
    };
    let hidden = Hidden {
        common: COMMON,
        without,
    };
    let spot = change.versions.spot(api_version)?;
    typed::written(unset, object, spot, &hidden)
}

impl Owners {
    /// The one owner of an object, with what [`created`] has told.
    pub(crate) fn of_author(
        who: super::Who,
        seconds: i64,
        fields: &str,
        memo: &mut Memo,
    ) -> Owners {
        if fields == "{}" {
            return Owners::default();
        }
        Owners(Box::new([Owner {
            who: memo.who(who),
            seconds: Some(seconds),
            fields: memo.text(fields),
        }]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::owners::{Operation, Untold, Versions, Who, update};
    use crate::schema::{Schema, Spot};
    use crate::wire::Wire;

    struct Pods<'s>(&'s Schema);

    impl Versions for Pods<'_> {
        fn spot(&self, _: &str) -> Option<Spot<'_>> {
            Some(self.0.spot())
        }

        fn convert(&self, object: &Value, _: &str) -> Result<Option<Value>, Untold> {
            Ok(Some(object.clone()))
        }

        fn resets(&self, _: &str) -> Resets {
            Resets::Without(&[&["status"]])
        }
    }

    fn rich_pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "b", "generateName": "", "creationTimestamp": null,
                "labels": {"x": "1", "y": "\"quoted\""}, "annotations": {}, "finalizers": ["f", "g"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main", "image": "i", "command": ["a", "a"], "args": [],
                        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"requests": {"cpu": "1"}, "limits": {}},
                    },
                    {"name": "side", "image": "", "resources": {}},
                ],
                "nodeSelector": {"a": "b"}, "securityContext": {}, "restartPolicy": "Never",
                "tolerations": [{"key": "k"}, {}], "volumes": [{"name": "v", "emptyDir": {}}],
                "affinity": {"nodeAffinity": {}}, "terminationGracePeriodSeconds": 0,
            },
            "status": {"phase": "Running", "conditions": [{"type": "T"}]},
        })
    }

    /// Takes away or empties what the draws say, part by part.
    fn thinned(value: Value, draws: &mut impl Iterator<Item = u8>) -> Option<Value> {
        match draws.next()? % 12 {
            0 => return None,
            1 => return Some(Value::Null),
            _ => {}
        }
        Some(match value {
            Value::Object(map) => map
                .into_iter()
                .filter_map(|(name, inner)| Some((name, thinned(inner, draws)?)))
                .collect(),
            Value::Array(list) => list
                .into_iter()
                .filter_map(|inner| thinned(inner, draws))
                .collect(),
            other => other,
        })
    }

    /// One walk over a new pod gives what comparing it with the unset one gives.
    #[test]
    fn a_new_pod_has_the_owner_that_an_update_of_nothing_gives() {
        let wire = Wire::load();
        let schema = wire.schema("", "v1", "Pod").expect("pods have a schema");
        let unset = schema.zero_object();
        let change = Change {
            who: Who {
                operation: Operation::Update,
                manager: "me".to_owned(),
                api_version: "v1".to_owned(),
                subresource: String::new(),
            },
            seconds: 7,
            versions: &Pods(schema),
        };
        proptest!(|(draws in prop::collection::vec(any::<u8>(), 160), is_whole in any::<bool>())| {
            let draws = draws.into_iter().map(|draw| if is_whole { 5 } else { draw });
            let mut draws = draws.chain(std::iter::repeat(7));
            let pod = thinned(rich_pod(), &mut draws).unwrap_or(Value::Null);
            let held = update(Vec::new(), &unset, &pod, &change).expect("one version");
            let told = created(&unset, &pod, &change);
            prop_assert!(told.is_some() || !is_whole, "one walk must do for a usual pod");
            if let Some(told) = told {
                let fields = held.into_iter().next().map(|held| held.fields);
                prop_assert_eq!(told, fields.unwrap_or_default().to_text());
            }
        });
    }
}
