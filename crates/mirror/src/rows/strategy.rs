//! What pods say of which node is the better one for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::meta::ObjectMeta;
use api::volcano::{RESOURCE_STRATEGY, RESOURCE_STRATEGY_WEIGHT};
use model::{Fill, Kind, Strategy, Tables, Vector};

/// More than that no resource counts.
const WEIGHT_MAX: i64 = 1_000_000;

/// What the pod says; nothing where its strategy is none that is known. Only weights of what it requests
/// are kept, so that pods that differ in others are of one shape. Weights that are no map of whole numbers
/// leave no resource that counts, as upstream's.
pub(super) fn strategy(
    pod: &ObjectMeta,
    requests: &Vector,
    tables: &Tables,
) -> Option<Arc<Strategy>> {
    let fill = match &**pod.annotations.get(RESOURCE_STRATEGY)? {
        "LeastAllocated" => Fill::Least,
        "MostAllocated" => Fill::Most,
        _ => return None,
    };
    let weights = pod.annotations.get(RESOURCE_STRATEGY_WEIGHT);
    let weights = weights.map(|text| {
        let weights = serde_json::from_str::<BTreeMap<Box<str>, i64>>(text).unwrap_or_default();
        let of = |kind: Kind| weights.get(&**tables.kinds().name(kind));
        let wanted = requests.entries().filter(|(_, wanted)| *wanted > 0);
        let rows = wanted.filter_map(|(kind, _)| Some((kind, (*of(kind)?).min(WEIGHT_MAX))));
        rows.filter(|(_, weight)| *weight > 0).collect()
    });
    Some(Arc::new(Strategy { fill, weights }))
}
