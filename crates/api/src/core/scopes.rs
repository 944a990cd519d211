//! Which pods a quota is meant for.

use super::{Pod, ResourceQuota, ScopeRequirement};

impl ResourceQuota {
    /// Whether it is meant for some objects only.
    pub fn has_scopes(&self) -> bool {
        !self.spec.scopes.is_empty() || self.requirements().next().is_some()
    }

    /// Whether all its scopes match a pod.
    pub fn is_meant(&self, pod: &Pod) -> bool {
        let scopes = &self.spec.scopes;
        scopes.iter().all(|scope| is_in(scope, pod))
            && self.requirements().all(|it| matches(it, pod))
    }

    fn requirements(&self) -> impl Iterator<Item = &ScopeRequirement> {
        let selector = self.spec.scope_selector.iter();
        selector.flat_map(|it| &it.match_expressions)
    }
}

fn matches(requirement: &ScopeRequirement, pod: &Pod) -> bool {
    if &*requirement.scope_name != "PriorityClass" {
        return is_in(&requirement.scope_name, pod);
    }
    let class = &pod.spec.priority_class_name;
    let is_listed = requirement.values.contains(class);
    match &*requirement.operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "DoesNotExist" => class.is_empty(),
        _ => !class.is_empty(),
    }
}

fn is_in(scope: &str, pod: &Pod) -> bool {
    let has_end = pod.spec.active_deadline_seconds.is_some_and(|it| it >= 0);
    let is_modest = &*pod.status.qos_class == "BestEffort";
    match scope {
        "Terminating" => has_end,
        "NotTerminating" => !has_end,
        "BestEffort" => is_modest,
        "NotBestEffort" => !is_modest,
        "PriorityClass" => !pod.spec.priority_class_name.is_empty(),
        "CrossNamespacePodAffinity" => reaches_out(pod),
        _ => false,
    }
}

/// Whether a pod has a say about pods of other namespaces.
fn reaches_out(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.iter();
    let sides = affinity.flat_map(|it| it.pod_affinity.iter().chain(&it.pod_anti_affinity));
    sides.into_iter().any(|side| {
        let preferred = side.preferred.iter().map(|it| &it.pod_affinity_term);
        let mut terms = side.required.iter().chain(preferred);
        terms.any(|term| !term.namespaces.is_empty() || term.namespace_selector.is_some())
    })
}
