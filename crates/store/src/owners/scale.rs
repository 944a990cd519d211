//! Ownership seen through `scale`: there one field stands for the object's replicas.

use super::Held;
use crate::fields::FieldSet;

/// The version of every Scale.
pub(crate) const SCALE_VERSION: &str = "autoscaling/v1";
const REPLICAS: &[&[&str]] = &[&["spec", "replicas"]];

/// Where each version of an object keeps its replicas.
pub(crate) trait Replicas {
    /// The path as a set of one; `None` where a version is unknown.
    fn path(&self, api_version: &str) -> Option<FieldSet<'_>>;
}

/// The owners of an object's replicas, as owners of its Scale.
pub(crate) fn to_scale(held: &[Held<'_>], replicas: &dyn Replicas) -> Vec<Held<'static>> {
    held.iter()
        .filter(|one| {
            replicas
                .path(&one.who.api_version)
                .is_some_and(|path| one.fields.meets(&path))
        })
        .map(|one| {
            let mut who = one.who.clone();
            who.api_version = SCALE_VERSION.to_owned();
            Held {
                who,
                seconds: one.seconds,
                fields: FieldSet::of_names(REPLICAS),
            }
        })
        .collect()
}

/// The owners of an object after a change of its Scale, whose owners are `scale`.
pub(crate) fn to_object(
    held: Vec<Held<'_>>,
    mut scale: Vec<Held<'_>>,
    api_version: &str,
    replicas: &dyn Replicas,
) -> Vec<Held<'static>> {
    let mut out: Vec<Held<'static>> = Vec::new();
    for one in held {
        let Some(path) = replicas.path(&one.who.api_version) else {
            continue;
        };
        let mut one = Held {
            fields: one.fields.into_owned(),
            ..one
        };
        if one.fields.meets(&path) {
            match scale
                .iter()
                .position(|other| other.who.is_same_owner(&one.who))
            {
                Some(at) => {
                    scale.remove(at);
                }
                None => one.fields = one.fields.difference(&path),
            }
        }
        if !one.fields.is_empty() {
            out.push(one);
        }
    }
    let Some(path) = replicas.path(api_version) else {
        return out;
    };
    for one in scale {
        if !one.fields.meets(&FieldSet::of_names(REPLICAS)) {
            continue;
        }
        let mut who = one.who;
        who.api_version = api_version.to_owned();
        // Upstream gives such an entry no time of its own.
        let seconds = None;
        out.push(Held {
            who,
            seconds,
            fields: path.clone().into_owned(),
        });
    }
    out
}
