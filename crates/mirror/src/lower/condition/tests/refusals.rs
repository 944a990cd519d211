//! Why a node will not do, in kube-scheduler's and Volcano's words (`specs/volcano.md` 3.3 and A.6).

use model::{CardLack, GroupLack};

use super::*;

/// Where a row's text is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// To the letter as a plugin of kube-scheduler's has it (Kubernetes 1.36).
    Kube(&'static str),
    /// To the letter as Volcano has it (after 1.15): the plugin, or where else.
    Volcano(&'static str),
    /// Ours, and why.
    Ours(&'static str),
}

use Source::{Kube, Ours, Volcano};

/// A row for each refusal: what it looks like, one of them, its text, and where that is from. The match that
/// is made of the rows has no wildcard, so that a refusal without a row does not compile.
macro_rules! rows {
    ($($form:pat => ($one:expr, $text:expr, $from:expr);)*) => {
        fn row_of(refusal: &Refusal) -> (&'static str, Source) {
            match refusal {
                $($form => ($text, $from),)*
            }
        }

        fn all() -> Vec<Refusal> {
            let mut all = Vec::new();
            $(
                let one = $one;
                assert!(matches!(one, $form), "{one:?} stands in another's row");
                all.push(one);
            )*
            all
        }
    };
}

#[rustfmt::skip]
rows! {
    Refusal::Unschedulable =>
        (Refusal::Unschedulable, "node(s) were unschedulable", Kube("NodeUnschedulable"));
    Refusal::ZoneClosed { window: Some(_), .. } =>
        (Refusal::ZoneClosed { zone: "rz1".into(), window: Some("10:00-21:00".into()) }, "current time beyond revocable zone rz1:10:00-21:00", Volcano("tdm"));
    Refusal::ZoneClosed { window: None, .. } =>
        (Refusal::ZoneClosed { zone: "rz1".into(), window: None }, "revocable zone rz1 not support", Volcano("tdm"));
    Refusal::Revocable =>
        (Refusal::Revocable, "not allow to dispatch to revocable node", Volcano("tdm"));
    Refusal::Overused { .. } =>
        (Refusal::Overused { resource: "cpu".into() }, "the CPU load of the node exceeds the upper limit.", Volcano("usage"));
    Refusal::NodeAffinity =>
        (Refusal::NodeAffinity, "node(s) didn't match Pod's node affinity/selector", Kube("NodeAffinity"));
    Refusal::NodeGroup { why: GroupLack::Bare } =>
        (Refusal::NodeGroup { why: GroupLack::Bare }, "node group label not found", Volcano("nodegroup"));
    Refusal::NodeGroup { why: GroupLack::Unnamed } =>
        (Refusal::NodeGroup { why: GroupLack::Unnamed }, "node group affinity not specified", Volcano("nodegroup"));
    Refusal::NodeGroup { why: GroupLack::Unwanted } =>
        (Refusal::NodeGroup { why: GroupLack::Unwanted }, "node does not satisfy the node group affinity", Volcano("nodegroup"));
    Refusal::NodeGroupFull =>
        (Refusal::NodeGroupFull, "node(s) were in a group where the queue is at its limit", Ours("upstream's constant for it is not known to us"));
    Refusal::NodeGroupLimitsUnreadable =>
        (Refusal::NodeGroupLimitsUnreadable, "node(s) were in groups whose limits for the queue are unreadable", Ours("upstream's constant for it is not known to us"));
    Refusal::Ports =>
        (Refusal::Ports, "node(s) didn't have free ports for the requested pod ports", Kube("NodePorts"));
    Refusal::Taint { .. } =>
        (Refusal::Taint { key: "k".into(), value: "v".into() }, "node(s) had untolerated taint(s)", Kube("TaintToleration"));
    Refusal::PodAffinity =>
        (Refusal::PodAffinity, "node(s) didn't match pod affinity rules", Kube("InterPodAffinity"));
    Refusal::PodAntiAffinity =>
        (Refusal::PodAntiAffinity, "node(s) didn't match pod anti-affinity rules", Kube("InterPodAffinity"));
    Refusal::ExistingAntiAffinity =>
        (Refusal::ExistingAntiAffinity, "node(s) didn't satisfy existing pods anti-affinity rules", Kube("InterPodAffinity"));
    Refusal::VolumeLimit =>
        (Refusal::VolumeLimit, "node(s) exceed max volume count", Kube("NodeVolumeLimits"));
    Refusal::VolumeTopology =>
        (Refusal::VolumeTopology, "node(s) had volume node affinity conflict", Kube("VolumeBinding"));
    Refusal::VolumeZone =>
        (Refusal::VolumeZone, "node(s) had no available volume zone", Kube("VolumeZone"));
    Refusal::VolumeElsewhere =>
        (Refusal::VolumeElsewhere, "node(s) didn't find available persistent volumes to bind", Kube("VolumeBinding"));
    Refusal::VolumeInUse =>
        (Refusal::VolumeInUse, "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode", Kube("VolumeRestrictions"));
    Refusal::VolumeWaits =>
        (Refusal::VolumeWaits, "node(s) didn't find available persistent volumes to bind", Kube("VolumeBinding"));
    Refusal::NoFreeVolume =>
        (Refusal::NoFreeVolume, "node(s) didn't find available persistent volumes to bind", Kube("VolumeBinding"));
    Refusal::LittleStorage =>
        (Refusal::LittleStorage, "node(s) did not have enough free storage", Kube("VolumeBinding"));
    Refusal::Devices { why: DeviceLack::Elsewhere } =>
        (Refusal::Devices { why: DeviceLack::Elsewhere }, "resourceclaim not available on the node", Kube("DynamicResources"));
    Refusal::Devices { .. } =>
        (Refusal::Devices { why: DeviceLack::Taken }, "cannot allocate all claims", Kube("DynamicResources"));
    Refusal::Spread =>
        (Refusal::Spread, "node(s) didn't match pod topology spread constraints", Kube("PodTopologySpread"));
    Refusal::SpreadLabel =>
        (Refusal::SpreadLabel, "node(s) didn't match pod topology spread constraints (missing required label)", Kube("PodTopologySpread"));
    Refusal::OutOfProportion { .. } =>
        (Refusal::OutOfProportion { resource: "nvidia.com/gpu".into() }, "proportional of resource nvidia.com/gpu check failed", Volcano("predicates"));
    Refusal::OfOthers =>
        (Refusal::OfOthers, "node(s) belong to other schedulers", Ours("upstream does not look at such nodes, and does not count them"));
    Refusal::OutOfShard =>
        (Refusal::OutOfShard, "node isn't in scheduler node shard", Volcano("the actions"));
    Refusal::Cards { family: CardFamily::Shared, .. } =>
        (Refusal::Cards { family: CardFamily::Shared, why: CardLack::Taken }, "GpuShare no enough gpu", Ours("upstream's goes on with memory or number, and with the node: one text is of many nodes here"));
    Refusal::Cards { family: CardFamily::Virtual, .. } =>
        (Refusal::Cards { family: CardFamily::Virtual, why: CardLack::Taken }, "hami-vgpuDeviceSharing error", Volcano("deviceshare"));
    Refusal::Cards { family: CardFamily::Npu, .. } =>
        (Refusal::Cards { family: CardFamily::Npu, why: CardLack::Taken }, "no ascend device available", Volcano("deviceshare"));
    Refusal::Cards { family: CardFamily::Chip, why: CardLack::Few | CardLack::SetApart | CardLack::Taken } =>
        (Refusal::Cards { family: CardFamily::Chip, why: CardLack::Taken }, "preCheckNodePredicate failure", Volcano("deviceshare"));
    Refusal::Cards { family: CardFamily::Chip, .. } =>
        (Refusal::Cards { family: CardFamily::Chip, why: CardLack::Unsettled }, "node(s) whose device plugin has yet to make parts of another size (AscendReal)", Ours("upstream has an empty text"));
    Refusal::Extender { .. } =>
        (Refusal::Extender { verb: "predicate", why: "not today".into() }, "not today", Volcano("extender"));
    Refusal::Unanswered =>
        (Refusal::Unanswered, "node(s) were not yet answered for by the extender", Ours("upstream waits for the answer"));
    Refusal::Numa { why: NumaLack::Untold } =>
        (Refusal::Numa { why: NumaLack::Untold }, "numa info is empty", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::Garbled } =>
        (Refusal::Numa { why: NumaLack::Garbled }, "no topo information", Ours("upstream has none of what cannot be read, and says so in these words"));
    Refusal::Numa { why: NumaLack::Unpinned } =>
        (Refusal::Numa { why: NumaLack::Unpinned }, "cpu manager policy isn't static", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::OtherPolicy { .. } } =>
        (Refusal::Numa { why: NumaLack::OtherPolicy { wanted: "restricted".into(), has: "best-effort".into() } }, "task topology policy[restricted] is different with node[best-effort]", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::Unlaid } =>
        (Refusal::Numa { why: NumaLack::Unlaid }, "no topo information", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::NoCpus } =>
        (Refusal::Numa { why: NumaLack::NoCpus }, "cpu allocatable map is empty", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::Few { .. } } =>
        (Refusal::Numa { why: NumaLack::Few { container: "c".into() } }, "container c cannot be assigned by numa", Volcano("numa-aware"));
    Refusal::Numa { why: NumaLack::Taken { .. } } =>
        (Refusal::Numa { why: NumaLack::Taken { container: "c".into() } }, "container c cannot be assigned by numa", Volcano("numa-aware"));
    Refusal::TooManyPods =>
        (Refusal::TooManyPods, "node(s) pod number exceeded", Volcano("predicates"));
    Refusal::Insufficient { .. } =>
        (Refusal::Insufficient { resource: "cpu".into() }, "Insufficient cpu", Kube("NodeResourcesFit"));
}

#[test]
fn every_refusal_of_a_node_has_upstreams_text_or_says_why_not() {
    for refusal in all() {
        let (text, source) = row_of(&refusal);
        assert_eq!(
            fit_error_of(vec![(refusal.clone(), 3)]),
            format!("0/3 nodes are unavailable: 3 {text}."),
            "{refusal:?}"
        );
        let (Kube(word) | Volcano(word) | Ours(word)) = source;
        assert!(!word.is_empty(), "{refusal:?}");
    }
}

#[test]
fn nodes_that_are_refused_in_one_text_are_counted_together() {
    let taint = |key: &str| Refusal::Taint {
        key: key.into(),
        value: "secret".into(),
    };
    let refusals = vec![
        (Refusal::Unschedulable, 2),
        (taint("team-a"), 1),
        (taint("team-b"), 1),
        (Refusal::VolumeWaits, 1),
        (taint("team-c"), 1),
        (Refusal::NoFreeVolume, 1),
    ];
    assert_eq!(
        fit_error_of(refusals.clone()),
        "0/3 nodes are unavailable: 2 node(s) didn't find available persistent volumes to bind, \
         2 node(s) were unschedulable, 3 node(s) had untolerated taint(s)."
    );
    let plain = no_fit(Missing::Rules, refusals).sentence();
    assert_eq!(
        plain,
        "4 of 5 tasks fit: worker-3 is refused by 3 nodes: 3 tainted, 2 unschedulable, \
         1 waiting for its claim, 1 without a free volume for its claim"
    );
}

#[test]
fn only_the_cpu_is_written_in_capitals() {
    let refusal = Refusal::Overused {
        resource: "memory".into(),
    };
    let text = "3 the memory load of the node exceeds the upper limit.";
    assert!(fit_error_of(vec![(refusal, 3)]).contains(text));
}

#[test]
fn a_gang_that_must_be_close_is_told_in_which_hyper_node_it_was_looked_at() {
    let within = |within: Option<Within>| {
        let Reason::NoFit(mut no_fit) = no_fit(Missing::Rules, vec![(Refusal::Spread, 3)]) else {
            unreachable!("just made");
        };
        no_fit.within = within;
        said(&Reason::NoFit(no_fit)).1
    };
    let told = "0/3 nodes are unavailable: 3 node(s) didn't match pod topology spread constraints.";
    for (place, words) in [
        (None, ""),
        (
            Some(Within::HyperNode("rack-1".into())),
            "In hyperNode rack-1: ",
        ),
    ] {
        let text = format!("Origin reason is training-worker-3: {words}{told}");
        assert!(within(place).contains(&text), "{text}");
    }
}
