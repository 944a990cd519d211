//! Why a node will not do, in kube-scheduler's and Volcano's words (`specs/volcano.md` 3.3 and A.6).

use model::CardLack;

use super::*;

/// A row for each refusal: what it looks like, one of them, and its text. The match that is made of the
/// rows has no wildcard, so that a refusal without a row does not compile.
macro_rules! rows {
    ($($form:pat => ($one:expr, $text:expr);)*) => {
        fn text_of(refusal: &Refusal) -> &'static str {
            match refusal {
                $($form => $text,)*
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
        (Refusal::Unschedulable, "node(s) were unschedulable");
    Refusal::ZoneClosed { .. } =>
        (Refusal::ZoneClosed { zone: "rz1".into() }, "revocable zone rz1 is not available now");
    Refusal::Revocable =>
        (Refusal::Revocable, "pod is not allowed to dispatch to revocable node");
    Refusal::Overused { .. } =>
        (Refusal::Overused { resource: "cpu".into() }, "the CPU load of the node exceeds the upper limit.");
    Refusal::NodeAffinity =>
        (Refusal::NodeAffinity, "node(s) didn't match Pod's node affinity/selector");
    Refusal::NodeGroup =>
        (Refusal::NodeGroup, "node(s) were in no group that the queue uses");
    Refusal::NodeGroupFull =>
        (Refusal::NodeGroupFull, "node(s) were in a group where the queue is at its limit");
    Refusal::NodeGroupLimitsUnreadable =>
        (Refusal::NodeGroupLimitsUnreadable, "node(s) were in groups whose limits for the queue are unreadable");
    Refusal::Ports =>
        (Refusal::Ports, "node(s) didn't have free ports for the requested pod ports");
    Refusal::Taint { .. } =>
        (Refusal::Taint { key: "k".into(), value: "v".into() }, "node(s) had untolerated taint {k: v}");
    Refusal::PodAffinity =>
        (Refusal::PodAffinity, "node(s) didn't match pod affinity rules");
    Refusal::PodAntiAffinity =>
        (Refusal::PodAntiAffinity, "node(s) didn't match pod anti-affinity rules");
    Refusal::ExistingAntiAffinity =>
        (Refusal::ExistingAntiAffinity, "node(s) didn't satisfy existing pods anti-affinity rules");
    Refusal::VolumeLimit =>
        (Refusal::VolumeLimit, "node(s) exceed max volume count");
    Refusal::VolumeTopology =>
        (Refusal::VolumeTopology, "node(s) had volume node affinity conflict");
    Refusal::VolumeZone =>
        (Refusal::VolumeZone, "node(s) had no available volume zone");
    Refusal::VolumeElsewhere =>
        (Refusal::VolumeElsewhere, "node(s) didn't find available persistent volumes to bind");
    Refusal::VolumeInUse =>
        (Refusal::VolumeInUse, "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode");
    Refusal::VolumeWaits =>
        (Refusal::VolumeWaits, "node(s) didn't find available persistent volumes to bind");
    Refusal::NoFreeVolume =>
        (Refusal::NoFreeVolume, "node(s) didn't find available persistent volumes to bind");
    Refusal::LittleStorage =>
        (Refusal::LittleStorage, "node(s) did not have enough free storage");
    Refusal::Devices { .. } =>
        (Refusal::Devices { why: DeviceLack::Taken }, "cannot allocate all claims");
    Refusal::Spread =>
        (Refusal::Spread, "node(s) didn't match pod topology spread constraints");
    Refusal::OutOfProportion { .. } =>
        (Refusal::OutOfProportion { resource: "nvidia.com/gpu".into() }, "proportional of resource nvidia.com/gpu check failed");
    Refusal::OfOthers =>
        (Refusal::OfOthers, "node(s) belong to other schedulers");
    Refusal::OutOfShard =>
        (Refusal::OutOfShard, "node isn't in scheduler node shard");
    Refusal::Cards { family: CardFamily::Shared, .. } =>
        (Refusal::Cards { family: CardFamily::Shared, why: CardLack::Taken }, "GpuShare no enough gpu");
    Refusal::Cards { family: CardFamily::Virtual, .. } =>
        (Refusal::Cards { family: CardFamily::Virtual, why: CardLack::Taken }, "hami-vgpuDeviceSharing error");
    Refusal::Cards { family: CardFamily::Npu, .. } =>
        (Refusal::Cards { family: CardFamily::Npu, why: CardLack::Taken }, "no ascend device available");
    Refusal::Cards { family: CardFamily::Chip, .. } =>
        (Refusal::Cards { family: CardFamily::Chip, why: CardLack::Unsettled }, "no ascend device available");
    Refusal::Extender { .. } =>
        (Refusal::Extender { verb: "predicate", why: "not today".into() }, "node(s) were refused by the extender: not today");
    Refusal::Unanswered =>
        (Refusal::Unanswered, "node(s) were not yet answered for by the extender");
    Refusal::Numa { why: NumaLack::Untold } =>
        (Refusal::Numa { why: NumaLack::Untold }, "numa info is empty");
    Refusal::Numa { why: NumaLack::Garbled } =>
        (Refusal::Numa { why: NumaLack::Garbled }, "no topo information");
    Refusal::Numa { why: NumaLack::Unpinned } =>
        (Refusal::Numa { why: NumaLack::Unpinned }, "cpu manager policy isn't static");
    Refusal::Numa { why: NumaLack::OtherPolicy { .. } } =>
        (Refusal::Numa { why: NumaLack::OtherPolicy { wanted: "restricted".into(), has: "best-effort".into() } }, "task topology policy[restricted] is different with node[best-effort]");
    Refusal::Numa { why: NumaLack::Unlaid } =>
        (Refusal::Numa { why: NumaLack::Unlaid }, "no topo information");
    Refusal::Numa { why: NumaLack::NoCpus } =>
        (Refusal::Numa { why: NumaLack::NoCpus }, "cpu allocatable map is empty");
    Refusal::Numa { why: NumaLack::Few { .. } } =>
        (Refusal::Numa { why: NumaLack::Few { container: "c".into() } }, "plugin numa-aware predicates failed for container c");
    Refusal::Numa { why: NumaLack::Taken { .. } } =>
        (Refusal::Numa { why: NumaLack::Taken { container: "c".into() } }, "plugin numa-aware predicates failed for container c");
    Refusal::TooManyPods =>
        (Refusal::TooManyPods, "node(s) pod number exceeded");
    Refusal::Insufficient { .. } =>
        (Refusal::Insufficient { resource: "cpu".into() }, "Insufficient cpu");
}

#[test]
fn every_refusal_of_a_node_has_upstreams_text() {
    for refusal in all() {
        let text = text_of(&refusal);
        assert_eq!(
            fit_error_of(vec![(refusal.clone(), 3)]),
            format!("0/3 nodes are unavailable: 3 {text}."),
            "{refusal:?}"
        );
    }
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
