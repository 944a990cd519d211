//! Rows that look at the labels of namespaces: terms of pods that choose namespaces by labels, and claims with
//! admin access. Labels that change later change what was chosen, whichever of the two was heard of first.

use api::core::{Affinity, Namespace, Pod, PodAffinityTerm, TextMap};
use api::resource::{ADMIN_ACCESS, ResourceClaim};
use model::Tables;

use super::Rows;
use crate::held::{Change, Mirror};
use crate::index::{BY_LABELS, Index};

/// The terms of a pod that choose namespaces by labels; one that chooses all of them looks at none.
pub(crate) fn by_labels(pod: &Pod) -> impl Iterator<Item = &PodAffinityTerm> {
    let affinity = pod.spec.affinity.iter();
    affinity.flat_map(|it| terms(it)).filter(|term| {
        let selector = term.namespace_selector.as_ref();
        selector.is_some_and(|selector| !selector.is_empty())
    })
}

fn terms(affinity: &Affinity) -> impl Iterator<Item = &PodAffinityTerm> {
    let near = affinity.pod_affinity.iter();
    let near = near.flat_map(|it| {
        let wished = it.preferred.iter().map(|wish| &wish.pod_affinity_term);
        it.required.iter().chain(wished)
    });
    let apart = affinity.pod_anti_affinity.iter();
    let apart = apart.flat_map(|it| {
        let wished = it.preferred.iter().map(|wish| &wish.pod_affinity_term);
        it.required.iter().chain(wished)
    });
    near.chain(apart)
}

/// Whether claims of a namespace with these labels may have admin access.
pub(super) fn allows_admin(labels: &TextMap) -> bool {
    let label = labels.get(ADMIN_ACCESS);
    label.is_some_and(|value| &**value == "true")
}

impl Rows {
    /// A namespace has come, has other labels or has gone: what looks at them is read again where it says
    /// something else now.
    pub(super) fn feed_namespace(&mut self, mirror: &Mirror, change: &Change, tables: &mut Tables) {
        let sides = [change.before::<Namespace>(), change.after()];
        let [before, after] = sides.map(|side| side.map(|it| &it.metadata.labels));
        if before == after {
            return;
        }
        let differs = |holds: &dyn Fn(&TextMap) -> bool| {
            before.is_some_and(holds) != after.is_some_and(holds)
        };
        let chooses_anew = |pod: &Pod| {
            let mut selectors = by_labels(pod).filter_map(|term| term.namespace_selector.as_ref());
            selectors.any(|selector| differs(&|labels| selector.matches(labels)))
        };
        for pod in mirror.indexed::<Pod>(Index::PodNamespaces, "", BY_LABELS) {
            if !pod.is_finished() && chooses_anew(pod) {
                self.put_pod(mirror, pod, tables);
            }
        }
        if differs(&allows_admin) {
            let claims = mirror.list_in::<ResourceClaim>(&change.key.name);
            for claim in claims.filter(|claim| asks_for_admin(claim)) {
                self.renew_claim(mirror, claim, tables);
            }
        }
    }
}

fn asks_for_admin(claim: &ResourceClaim) -> bool {
    let requests = claim.spec.devices.requests.iter();
    let mut ways = requests.flat_map(|it| it.exactly.iter().chain(&it.first_available));
    ways.any(|way| way.admin_access == Some(true))
}
