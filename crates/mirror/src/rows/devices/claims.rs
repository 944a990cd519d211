//! Claims of a pod → what its task wants of devices, and what it holds of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::core::{Namespace, Pod, PodResourceClaim};
use api::native::PodGroup;
use api::quantity::Quantity;
use api::resource::{
    AllocatedDevice, Consumer, DeviceClass, DeviceConstraint, DeviceSelector, ExactRequest,
    POD_CLAIM_NAME, ResourceClaim,
};
use model::{
    Agreement, AttributeRule, CLAIM_DEVICES_MAX, CLAIM_USERS_MAX, ClaimLack, DeviceAsk,
    DeviceClaim, DeviceRequest, Grant, Key, Kind, NodeTerm, Purpose, SelectorId, Taking,
    UnmetClaim, Wanted, Way,
};

use super::extended::{EXTENDED, Request, class_of, extended_claim, requests};
use super::{Judge, holder, pools};
use crate::held::Mirror;
use crate::index::Index;
use crate::rows::{constraints, namespaces};

/// The name of the claim that a pod means: the one that it names, or the one that was made for it or its
/// group. `None` while there is none, and where none is needed.
///
/// One that was made for a group counts once the pod was told of it: by that, pods that share a claim
/// find each other.
pub fn claim_name(mirror: &Mirror, pod: &Pod, claim: &PodResourceClaim) -> Option<Box<str>> {
    if let Some(name) = &claim.resource_claim_name {
        return Some(name.clone());
    }
    let mut told = pod.status.resource_claim_statuses.iter();
    match told.find(|told| told.name == claim.name) {
        Some(told) => told.resource_claim_name.clone(),
        None => own_claim(mirror, (&pod.metadata.uid, POD_CLAIM_NAME), &claim.name)
            .map(|claim| (&claim.metadata.name).into()),
    }
}

/// The claim that was made for what a pod or group calls so, whether it was told or not: by its uid and
/// the annotation that says what it calls the claim.
pub fn own_claim<'a>(
    mirror: &'a Mirror,
    (uid, mark): (&str, &str),
    name: &str,
) -> Option<&'a Arc<ResourceClaim>> {
    let mut owned = mirror.owned_by::<ResourceClaim>(uid);
    owned.find(|claim| {
        let meaning = claim.metadata.annotations.get(mark);
        claim.is_made_for(uid) && meaning.is_some_and(|it| **it == *name)
    })
}

/// The group of Kubernetes' own whose claim this one of a pod's is, if any: the pod shares it with the
/// others of the group (KEP-5729).
pub fn sharing_group<'a>(
    mirror: &'a Mirror,
    pod: &Pod,
    claim: &PodResourceClaim,
) -> Option<&'a Arc<PodGroup>> {
    let group = mirror.get::<PodGroup>(&pod.metadata.namespace, pod.native_group()?)?;
    group.shares(claim).then_some(group)
}

/// For whom a claim of a pod is kept: its group, where that shares the claim, else the pod.
pub fn claim_user(mirror: &Mirror, pod: &Pod, claim: &PodResourceClaim) -> Consumer {
    match sharing_group(mirror, pod, claim) {
        Some(group) => Consumer::group(&group.metadata),
        None => Consumer::pod(&pod.metadata),
    }
}

/// The device that cannot be made ready for an allocated claim, and the condition that says so
/// (`bindingFailureConditions`).
pub(crate) fn failure(claim: &ResourceClaim) -> Option<String> {
    claim.allocated().iter().find_map(|device| {
        let mut failures = device.binding_failure_conditions.iter();
        let failure = failures.find(|condition| claim.is_true_of(device, condition))?;
        Some(format!("{} ({failure})", device.id()))
    })
}

/// Whether the pod needs no claim of that name: its status says so.
fn needs_none(pod: &Pod, name: &str) -> bool {
    let mut told = pod.status.resource_claim_statuses.iter();
    told.any(|told| &*told.name == name && told.resource_claim_name.is_none())
}

/// What a pod without a node wants of devices.
#[derive(Debug, Default)]
pub(in crate::rows) struct Wants {
    /// Claims that are to be allocated with its place.
    pub(in crate::rows) ask: Option<Arc<DeviceAsk>>,
    /// Where the devices are of those that have some.
    pub(in crate::rows) nodes: Vec<Vec<NodeTerm>>,
    /// Claims that keep it from every node.
    pub(in crate::rows) unmet: Vec<UnmetClaim>,
    /// Claims without devices for which others wait, too.
    pub(in crate::rows) tied: Vec<Arc<str>>,
}

impl Wants {
    /// What the claims of a pod come to.
    pub(in crate::rows) fn of(mirror: &Mirror, judge: &mut Judge, pod: &Pod) -> Wants {
        judge.begin();
        let mut wants = Wants::default();
        let mut ask = DeviceAsk::default();
        for claim in &pod.spec.resource_claims {
            if needs_none(pod, &claim.name) {
                continue;
            }
            match wants.claim(mirror, judge, pod, claim) {
                Ok(Some(wanted)) => ask.claims.push(wanted),
                Ok(None) => {}
                Err(why) => {
                    // One that is made for the pod may have no name yet.
                    let name = claim.resource_claim_name.as_ref().unwrap_or(&claim.name);
                    let name = (&**name).into();
                    wants.unmet.push(UnmetClaim { name, why });
                }
            }
        }
        wants.ask = Some(Arc::new(ask)).filter(|ask| !ask.claims.is_empty());
        wants.ask.iter().for_each(|ask| judge.keep(ask));
        wants
    }

    /// What the resources of a pod come to that classes of devices serve: one more claim.
    pub(in crate::rows) fn add_resources(
        &mut self,
        mirror: &Mirror,
        judge: &mut Judge,
        pod: &Pod,
        resources: &BTreeMap<&str, Kind>,
    ) {
        let claim = extended_claim(mirror, pod);
        let unmet = claim.and_then(|claim| match claim.metadata.deletion_timestamp {
            Some(_) => Some((claim, ClaimLack::Leaving)),
            None => failure(claim).map(|why| (claim, ClaimLack::Failed { why: why.into() })),
        });
        if let Some((claim, why)) = unmet {
            let name = claim.metadata.name.text();
            self.unmet.push(UnmetClaim { name, why });
            return;
        }
        if let Some(allocation) = claim.and_then(|claim| claim.status.allocation.as_ref()) {
            let terms = allocation.node_selector.as_ref();
            self.nodes.extend(terms.map(constraints::node_terms));
            return;
        }
        judge.begin();
        let mut request = |wanted: &Request| DeviceRequest {
            name: wanted.name.as_str().into(),
            ways: served_by(mirror, judge, wanted).into_iter().collect(),
            resource: resources.get(&*wanted.resource).copied(),
        };
        let wanted = requests(pod, resources.keys().copied());
        let requests = wanted.requests.iter().map(&mut request).collect();
        let claim = DeviceClaim {
            name: EXTENDED.into(),
            requests,
            rules: Vec::new(),
            shared: None,
        };
        let mut ask = self.ask.as_deref().cloned().unwrap_or_default();
        ask.claims.push(claim);
        let ask = Arc::new(ask);
        judge.keep(&ask);
        self.ask = Some(ask);
    }

    fn claim(
        &mut self,
        mirror: &Mirror,
        judge: &mut Judge,
        pod: &Pod,
        named: &PodResourceClaim,
    ) -> Result<Option<DeviceClaim>, ClaimLack> {
        let namespace = &pod.metadata.namespace;
        let name = claim_name(mirror, pod, named);
        let claim = name.and_then(|name| mirror.get::<ResourceClaim>(namespace, &name));
        let claim = claim.ok_or(ClaimLack::Missing)?;
        let is_made = named.resource_claim_name.is_none();
        let user = claim_user(mirror, pod, named);
        if is_made && !claim.is_made_for(&user.uid) {
            return Err(ClaimLack::Foreign);
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(ClaimLack::Leaving);
        }
        if let Some(why) = failure(claim) {
            return Err(ClaimLack::Failed { why: why.into() });
        }
        if let Some(allocation) = &claim.status.allocation {
            let is_full = claim.status.reserved_for.len() >= CLAIM_USERS_MAX;
            if is_full && !claim.is_reserved_for(&user.uid) {
                return Err(ClaimLack::Full);
            }
            let terms = allocation.node_selector.as_ref();
            self.nodes.extend(terms.map(constraints::node_terms));
            return Ok(None);
        }
        let mut wanted = wanted(mirror, judge, &named.name, claim)?;
        if is_waited_for_by_others(mirror, pod, claim) {
            let key = shared_claim(claim);
            self.tied.push(key.name.clone());
            wanted.shared = Some(key);
        }
        Ok(Some(wanted))
    }
}

/// The name of a claim that several pods wait for among all that tie tasks to one another.
pub(crate) fn shared_claim(claim: &ResourceClaim) -> Key {
    let meta = &claim.metadata;
    Key::new(
        &*meta.namespace,
        format!("resourceclaim/{}", meta.name).as_str(),
    )
}

/// Whether other pods wait for a claim that has no devices yet, whosever they are: which of them gets it its
/// devices is decided with their places.
fn is_waited_for_by_others(mirror: &Mirror, pod: &Pod, claim: &ResourceClaim) -> bool {
    let meta = &claim.metadata;
    let mut users = mirror.indexed::<Pod>(Index::PodDeviceClaim, &meta.namespace, &meta.name);
    users.any(|other| {
        other.metadata.uid != pod.metadata.uid
            && other.spec.node_name.is_empty()
            && other.spec.scheduling_gates.is_empty()
            && !other.is_finished()
            && !other.is_terminating()
    })
}

/// How a request for a resource is served; there is no way where its class cannot be asked about, or so
/// many devices are given to nobody.
fn served_by(mirror: &Mirror, judge: &mut Judge, wanted: &Request) -> Option<Way> {
    let class = class_of(mirror, &wanted.resource)?;
    let texts = expressions(mirror, Some(&class.metadata.name), &[]);
    let question = texts.and_then(|texts| judge.number(texts)).ok()?;
    let count = u32::try_from(wanted.count).ok()?;
    (count as usize <= CLAIM_DEVICES_MAX).then(|| Way {
        name: Arc::default(),
        selectors: vec![question],
        wanted: Wanted::Count(count),
        is_admin: false,
        tolerations: Vec::new(),
        amounts: Vec::new(),
    })
}

/// A claim's requests, with what their classes add.
fn wanted(
    mirror: &Mirror,
    judge: &mut Judge,
    name: &str,
    claim: &ResourceClaim,
) -> Result<DeviceClaim, ClaimLack> {
    let devices = &claim.spec.devices;
    let namespace = &claim.metadata.namespace;
    let mut requests = Vec::new();
    for request in &devices.requests {
        let ways = request.exactly.iter().chain(&request.first_available);
        let ways = ways.map(|way| self::way(mirror, judge, namespace, way));
        requests.push(DeviceRequest {
            name: (&*request.name).into(),
            ways: ways.collect::<Result<_, _>>()?,
            resource: None,
        });
    }
    let rules = devices.constraints.iter().map(rule);
    Ok(DeviceClaim {
        name: name.into(),
        shared: None,
        requests,
        rules: rules.collect::<Result<_, _>>()?,
    })
}

fn rule(constraint: &DeviceConstraint) -> Result<AttributeRule, ClaimLack> {
    let (attribute, values) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
        (Some(attribute), None) => (attribute, Agreement::Same),
        (None, Some(attribute)) => (attribute, Agreement::Distinct),
        _ => return Err(unknown("a constraint of another kind")),
    };
    let requests = constraint.requests.iter();
    Ok(AttributeRule {
        attribute: (&**attribute).into(),
        values,
        requests: requests.map(|it| (&**it).into()).collect(),
    })
}

fn way(
    mirror: &Mirror,
    judge: &mut Judge,
    namespace: &str,
    way: &ExactRequest,
) -> Result<Way, ClaimLack> {
    let is_admin = way.admin_access == Some(true);
    if is_admin && !allows_admin(mirror, namespace) {
        return Err(unknown(
            "admin access, for which its namespace has no label",
        ));
    }
    Ok(Way {
        name: (&*way.name).into(),
        selectors: vec![question(mirror, judge, way)?],
        wanted: count(way)?,
        is_admin,
        tolerations: way
            .tolerations
            .iter()
            .filter_map(constraints::toleration)
            .collect(),
        amounts: amounts(way)?,
    })
}

fn amounts(way: &ExactRequest) -> Result<Vec<Taking>, ClaimLack> {
    let taking = |(name, amount): (Box<str>, Option<Quantity>)| {
        let amount = amount.ok_or_else(|| unknown(&format!("{name} by no amount")))?;
        Ok(Taking {
            dimension: (&*name).into(),
            amount: amount.milli_value().max(0),
        })
    };
    way.amounts().into_iter().map(taking).collect()
}

/// The expressions of the class, then those of the request.
fn question(
    mirror: &Mirror,
    judge: &mut Judge,
    way: &ExactRequest,
) -> Result<SelectorId, ClaimLack> {
    let texts = expressions(mirror, Some(&way.device_class_name), &way.selectors)?;
    judge.number(texts)
}

/// The expressions of a class, if one is named, then others.
pub(super) fn expressions(
    mirror: &Mirror,
    class: Option<&str>,
    selectors: &[DeviceSelector],
) -> Result<Vec<Arc<str>>, ClaimLack> {
    let of_class = match class {
        Some(name) => match mirror.get::<DeviceClass>("", name) {
            Some(class) => &class.spec.selectors[..],
            None => return Err(ClaimLack::NoClass { class: name.into() }),
        },
        None => &[],
    };
    let text = |selector: &DeviceSelector| {
        let expression = selector.cel.as_ref().map(|cel| Arc::from(&*cel.expression));
        expression.ok_or_else(|| unknown("a selector of another kind"))
    };
    of_class.iter().chain(selectors).map(text).collect()
}

fn count(way: &ExactRequest) -> Result<Wanted, ClaimLack> {
    match &*way.allocation_mode {
        "All" => Ok(Wanted::All),
        "" | "ExactCount" => match u32::try_from(way.count.max(1)) {
            Ok(count) if count as usize <= CLAIM_DEVICES_MAX => Ok(Wanted::Count(count)),
            _ => Err(unknown(&format!("more than {CLAIM_DEVICES_MAX} devices"))),
        },
        _ => Err(unknown("another number of devices than all or so many")),
    }
}

/// Upstream refuses such claims when they are written, in namespaces without the label.
fn allows_admin(mirror: &Mirror, namespace: &str) -> bool {
    let namespace = mirror.get::<Namespace>("", namespace);
    namespace.is_some_and(|it| namespaces::allows_admin(&it.metadata.labels))
}

fn unknown(what: &str) -> ClaimLack {
    ClaimLack::Unknown { what: what.into() }
}

/// What a pod on a node holds of devices by itself.
pub(in crate::rows) fn grants(mirror: &Mirror, pod: &Pod) -> Vec<Grant> {
    let mut grants = Vec::new();
    let named = pod.spec.resource_claims.iter().map(|named| {
        let name = claim_name(mirror, pod, named)?;
        mirror.get::<ResourceClaim>(&pod.metadata.namespace, &name)
    });
    let claims = named.chain([extended_claim(mirror, pod)]);
    for (at, claim) in (0_u8..).zip(claims) {
        let Some(claim) = claim else { continue };
        let is_ours = |holder: &Arc<Pod>| holder.metadata.uid == pod.metadata.uid;
        if !holder(mirror, claim).is_some_and(is_ours) {
            continue;
        }
        let purpose = Purpose {
            claim: at,
            request: 0,
            way: 0,
        };
        grants.extend(
            claim
                .allocated()
                .iter()
                .filter(|it| !it.is_admin())
                .map(|device| Grant {
                    part: purpose.part(),
                    card: device.id().into(),
                    is_whole: device.share_id.is_none(),
                    portion: device.share_id.as_ref().map(|_| portion(device)),
                    is_shared: pools::find(mirror, device)
                        .is_some_and(|(slice, device)| pools::is_shared(slice, device)),
                    is_claimed: true,
                    ..Grant::default()
                }),
        );
    }
    grants
}

/// The part of a device that a claim has.
fn portion(device: &AllocatedDevice) -> Arc<[Taking]> {
    let consumed = device.consumed_capacity.iter();
    let taking = consumed.map(|(name, amount)| Taking {
        dimension: (&**name).into(),
        amount: amount.milli_value().max(0),
    });
    taking.collect()
}
