//! Where a pod wants to be.

use crate::selector::LabelSelector;

read_only! {
    /// A pod's wishes about nodes and about other pods.
    pub struct Affinity {
        /// About nodes.
        pub node_affinity: Option<NodeAffinity>,
        /// Near which pods.
        pub pod_affinity: Option<PodAffinity>,
        /// Away from which pods.
        pub pod_anti_affinity: Option<PodAffinity>,
    }

    /// Wishes about nodes.
    pub struct NodeAffinity {
        /// Must hold at binding. `None` asks nothing; an empty term list matches no node.
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        pub required: Option<NodeSelector>,
        /// Add weight.
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        pub preferred: Vec<PreferredNodeTerm>,
    }

    /// Alternatives: one matching term is enough.
    pub struct NodeSelector {
        /// The alternatives.
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }

    /// All requirements of a term must hold; a term without any matches nothing.
    pub struct NodeSelectorTerm {
        /// On labels.
        pub match_expressions: Vec<NodeRequirement>,
        /// On fields: only `metadata.name`.
        pub match_fields: Vec<NodeRequirement>,
    }

    /// One requirement on a node.
    pub struct NodeRequirement {
        /// Label or field.
        pub key: Box<str>,
        /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
        pub operator: Box<str>,
        /// What it is compared with.
        pub values: Vec<Box<str>>,
    }

    /// A weighted wish about nodes.
    pub struct PreferredNodeTerm {
        /// 1 to 100.
        pub weight: i32,
        /// The wish.
        pub preference: NodeSelectorTerm,
    }

    /// Wishes about other pods.
    pub struct PodAffinity {
        /// Must hold at binding.
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        pub required: Vec<PodAffinityTerm>,
        /// Add weight.
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        pub preferred: Vec<WeightedPodTerm>,
    }

    /// Which pods, within which part of the cluster.
    pub struct PodAffinityTerm {
        /// Which pods; `None` matches none, an empty one all.
        pub label_selector: Option<LabelSelector>,
        /// Which namespaces by label; `None` adds none, an empty one all.
        pub namespace_selector: Option<LabelSelector>,
        /// Which namespaces by name; empty with no selector means the pod's own.
        pub namespaces: Vec<Box<str>>,
        /// The node label whose equal values count as together.
        pub topology_key: Box<str>,
        /// Labels whose values are taken from the pod itself and must be equal.
        pub match_label_keys: Vec<Box<str>>,
        /// Labels whose values are taken from the pod itself and must differ.
        pub mismatch_label_keys: Vec<Box<str>>,
    }

    /// A weighted wish about other pods.
    pub struct WeightedPodTerm {
        /// 1 to 100.
        pub weight: i32,
        /// The wish.
        pub pod_affinity_term: PodAffinityTerm,
    }

    /// How evenly pods are to be spread.
    pub struct TopologySpreadConstraint {
        /// Greatest allowed difference.
        pub max_skew: i32,
        /// The node label that names the domains.
        pub topology_key: Box<str>,
        /// `DoNotSchedule` or `ScheduleAnyway`.
        pub when_unsatisfiable: Box<str>,
        /// Which pods are counted.
        pub label_selector: Option<LabelSelector>,
        /// At least so many domains.
        pub min_domains: Option<i32>,
        /// `Honor` (default) or `Ignore`.
        pub node_affinity_policy: Option<Box<str>>,
        /// `Honor` or `Ignore` (default).
        pub node_taints_policy: Option<Box<str>>,
        /// Labels whose values are taken from the pod itself.
        pub match_label_keys: Vec<Box<str>>,
    }

    /// Lets a pod onto nodes with a matching taint.
    pub struct Toleration {
        /// Empty with `Exists` matches every key.
        pub key: Box<str>,
        /// `Exists`, or `Equal` (also when empty).
        pub operator: Box<str>,
        /// Compared under `Equal`.
        pub value: Box<str>,
        /// Empty matches every effect.
        pub effect: Box<str>,
        /// How long a `NoExecute` taint is borne; `None` means for ever.
        pub toleration_seconds: Option<i64>,
    }

    /// Keeps pods off a node.
    pub struct Taint {
        /// Key.
        pub key: Box<str>,
        /// Value.
        pub value: Box<str>,
        /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
        pub effect: Box<str>,
        /// Since when.
        pub time_added: Option<crate::time::Time>,
    }
}

impl Toleration {
    /// Whether this toleration bears that taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if !self.effect.is_empty() && self.effect != taint.effect {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match &*self.operator {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            _ => false,
        }
    }
}

impl Taint {
    /// Whether it drives pods away that do not bear it.
    pub fn drives_away(&self) -> bool {
        &*self.effect == "NoExecute"
    }
}

impl super::Pod {
    /// When it must leave its node with these taints; `None` while it bears every one for ever. How long it bears
    /// one is counted from when it was added, of one that does not say so from `now`, and of a pod that came later
    /// from then.
    pub fn leaves_at(&self, taints: &[Taint], now: crate::time::Time) -> Option<crate::time::Time> {
        let mut first: Option<crate::time::Time> = None;
        for taint in taints.iter().filter(|taint| taint.drives_away()) {
            let tolerations = self.spec.tolerations.iter();
            let matching: Vec<_> = tolerations.filter(|it| it.tolerates(taint)).collect();
            if matching.is_empty() {
                return Some(now);
            }
            let since = taint.time_added.unwrap_or(now);
            let seconds = matching.iter().filter_map(|it| it.toleration_seconds).min();
            if let Some(seconds) = seconds {
                let wait = seconds.max(0).saturating_mul(1_000);
                let until = self.came_at().map_or(since, |came| came.max(since));
                let until = until.plus_ms(wait);
                first = Some(first.map_or(until, |known| known.min(until)));
            }
        }
        first
    }

    /// Since when it has its node, as far as that is known.
    fn came_at(&self) -> Option<crate::time::Time> {
        let bound = self.status.condition("PodScheduled");
        let bound = bound.filter(|it| &*it.status == "True");
        let bound = bound.and_then(|_| self.status.since("PodScheduled"));
        bound.max(self.metadata.creation_timestamp)
    }
}
