//! Binds that wait for their pods' volumes and devices, gang by gang: all of a gang's pods are bound once every
//! claim is, or none.

use std::collections::{BTreeMap, BTreeSet};

use api::core::{PersistentVolume, Pod};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use api::time::Time;
use mirror::{Bind, Change, Claims, Index, Mirror, claim_name, claims_of, device_claims_of};
use model::{GangId, Tables, WriteId};

use super::{Cycles, Told};
use crate::backoff::Backoff;
use crate::work::Ended;
use crate::writes::{Lane, Origin, Writes};

/// Names binds that wait together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HoldId(u64);

/// Binds of one gang.
#[derive(Debug)]
struct Hold {
    binds: Vec<Bind>,
    /// Claims that are being told their node, and volumes that are being told their claim.
    telling: BTreeSet<ObjectKey>,
    /// Claims that any of the pods mounts.
    claims: BTreeSet<ObjectKey>,
    until: Time,
    failures: u32,
    timer: Time,
}

/// What a look at a hold found.
#[derive(Debug)]
pub(super) enum Look {
    /// Everything is bound: these go out now.
    Ready(Vec<Bind>),
    /// It cannot become ready; why, of each.
    Hopeless(Vec<(Bind, String)>),
    /// These claims are to be told their node; possibly none.
    Waits(Vec<Intent>),
}

/// Whether binds wait until claims of devices have some and are kept for their pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Devices {
    #[default]
    Awaited,
    /// They are nobody's business here.
    Ignored,
}

#[derive(Debug, Default)]
pub(super) struct Holds {
    devices: Devices,
    holds: BTreeMap<HoldId, Hold>,
    by_claim: BTreeMap<ObjectKey, BTreeSet<HoldId>>,
    timers: BTreeSet<(Time, HoldId)>,
    last: u64,
    /// Set when a place was taken back with which other pods' claims may have been to get their devices.
    is_doubted: bool,
}

impl Holds {
    /// None yet.
    pub(super) fn new(devices: Devices) -> Holds {
        Holds {
            devices,
            ..Holds::default()
        }
    }

    /// Holds binds back, until then at the latest.
    pub(super) fn add(&mut self, binds: Vec<Bind>, mirror: &Mirror, until: Time) -> HoldId {
        self.last += 1;
        let id = HoldId(self.last);
        let claims: BTreeSet<ObjectKey> = binds
            .iter()
            .flat_map(|bind| claim_keys(mirror, bind))
            .collect();
        for claim in &claims {
            self.by_claim.entry(claim.clone()).or_default().insert(id);
        }
        self.holds.insert(
            id,
            Hold {
                binds,
                telling: BTreeSet::new(),
                claims,
                until,
                failures: 0,
                timer: until,
            },
        );
        self.timers.insert((until, id));
        id
    }

    /// Looks whether the volumes are ready.
    ///
    /// Claims that a pod mounts together are told one after the other, in the order of their names,
    /// each once the one before was seen to be told: two plans that were made at the same time, or
    /// one that was given up in the middle, would else promise them to different nodes, and no node
    /// could ever have the pod. `None` where there is no such hold any more.
    pub(super) fn look(
        &mut self,
        id: HoldId,
        (mirror, tables): (&Mirror, &Tables),
        now: Time,
    ) -> Option<Look> {
        let devices = self.devices;
        let hold = self.holds.get_mut(&id)?;
        let mut tell: Vec<Intent> = Vec::new();
        let mut spoken_for: BTreeSet<ObjectKey> = hold.telling.clone();
        let mut is_ready = true;
        let is_late = now >= hold.until;
        let mut blamed: BTreeMap<WriteId, String> = BTreeMap::new();
        for bind in &hold.binds {
            let Some((stand, doing)) = claims(devices, (mirror, tables), bind, now) else {
                continue;
            };
            match stand {
                Claims::Ready => {}
                Claims::Wait(what) => {
                    is_ready = false;
                    if is_late {
                        blamed.insert(bind.write, format!("{doing}: {what} in time"));
                    }
                }
                Claims::Tell(intents) => {
                    is_ready = false;
                    if is_late {
                        blamed.insert(bind.write, format!("{doing}: {}", untold(&intents)));
                    }
                    // A volume that is told its claim speaks for the claim.
                    let mut mounted = claim_keys(mirror, bind);
                    mounted.extend(intents.iter().map(|intent| intent.target.clone()));
                    if mounted.iter().all(|claim| !spoken_for.contains(claim)) {
                        spoken_for.extend(mounted);
                        tell.extend(intents.into_iter().min_by(|a, b| a.target.cmp(&b.target)));
                    }
                }
                Claims::Conflict(why) => {
                    blamed.insert(bind.write, format!("{doing}: {why}"));
                }
            }
        }
        if !blamed.is_empty() {
            return Some(Look::Hopeless(reasoned(self.take(id)?.binds, blamed)));
        }
        if is_ready {
            return Some(Look::Ready(self.take(id)?.binds));
        }
        let targets = tell.iter().map(|intent| intent.target.clone());
        hold.telling.extend(targets);
        let until = hold.until;
        self.set_timer(id, until);
        Some(Look::Waits(tell))
    }

    /// A claim was told its node, or could not be: then it is told again after a back-off.
    pub(super) fn told(&mut self, id: HoldId, claim: &ObjectKey, ended: Ended, now: Time) {
        let Some(hold) = self.holds.get_mut(&id) else {
            return;
        };
        hold.telling.remove(claim);
        if ended != Ended::Done {
            hold.failures = hold.failures.saturating_add(1);
            let at = now.plus_ms(Backoff::KEY.delay_ms(hold.failures));
            self.set_timer(id, at);
        }
    }

    /// Holds that wait for a claim that has changed, or for one whose volume has.
    pub(super) fn of_change(&self, mirror: &Mirror, change: &Change) -> Vec<HoldId> {
        if self.holds.is_empty() {
            return Vec::new();
        }
        let mut holds: BTreeSet<HoldId> = BTreeSet::new();
        let mut heed = |claim: &ObjectKey| {
            holds.extend(self.by_claim.get(claim).into_iter().flatten());
        };
        match change.kind() {
            Kind::PersistentVolumeClaim | Kind::ResourceClaim => heed(&change.key),
            // Who was to get others their devices may have gone.
            Kind::Pod if change.after.is_none() => {
                let pod = change.before::<Pod>();
                for claim in pod.iter().flat_map(|pod| device_claim_keys(mirror, pod)) {
                    heed(&claim);
                }
            }
            Kind::PersistentVolume => {
                let named = mirror.keys(Index::ClaimVolume, "", &change.key.name);
                named.for_each(|claim| heed(&claim));
                let sides = [change.before::<PersistentVolume>(), change.after()];
                let kept = sides.into_iter().flatten();
                for claim in kept.filter_map(|volume| volume.spec.claim_ref.as_ref()) {
                    let kind = Kind::PersistentVolumeClaim;
                    heed(&ObjectKey::new(kind, &claim.namespace, &claim.name));
                }
            }
            _ => {}
        }
        holds.into_iter().collect()
    }

    /// A place was taken back.
    pub(super) fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// Holds of pods whose claims get their devices with others, if it is in doubt whether they do.
    pub(super) fn doubted(&mut self) -> Vec<HoldId> {
        if !std::mem::take(&mut self.is_doubted) {
            return Vec::new();
        }
        let joins = |hold: &Hold| hold.binds.iter().any(|bind| !bind.joins.is_empty());
        let doubted = self.holds.iter().filter(|(_, hold)| joins(hold));
        doubted.map(|(id, _)| *id).collect()
    }

    /// What the first bind of this gang waits for, if they are held back.
    pub(super) fn awaited(
        &self,
        gang: GangId,
        world: (&Mirror, &Tables),
        now: Time,
    ) -> Option<String> {
        let binds = self.holds.values().flat_map(|hold| &hold.binds);
        let mut binds = binds.filter(|bind| bind.gang == Some(gang));
        binds.find_map(|bind| {
            let (stand, doing) = claims(self.devices, world, bind, now)?;
            let what = match stand {
                Claims::Ready => return None,
                Claims::Wait(what) | Claims::Conflict(what) => what,
                Claims::Tell(_) => "its claims are told the node".to_owned(),
            };
            let (pod, node) = (&bind.pod.name, &bind.node);
            Some(format!("{pod} has a place on {node}, {doing}: {what}"))
        })
    }

    /// The next hold whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<HoldId> {
        let (at, id) = *self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.pop_first();
        Some(id)
    }

    /// Those that wait are due now, and are given up then at the latest.
    pub(super) fn hurry(&mut self, now: Time, until: Time) {
        self.timers.clear();
        for (id, hold) in &mut self.holds {
            hold.until = until.min(hold.until);
            hold.timer = now.min(hold.timer);
            self.timers.insert((hold.timer, *id));
        }
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    fn take(&mut self, id: HoldId) -> Option<Hold> {
        let hold = self.holds.remove(&id)?;
        self.timers.remove(&(hold.timer, id));
        for claim in &hold.claims {
            if let Some(holds) = self.by_claim.get_mut(claim) {
                holds.remove(&id);
                if holds.is_empty() {
                    self.by_claim.remove(claim);
                }
            }
        }
        Some(hold)
    }

    fn set_timer(&mut self, id: HoldId, at: Time) {
        if let Some(hold) = self.holds.get_mut(&id) {
            self.timers.remove(&(hold.timer, id));
            hold.timer = at.min(hold.until);
            self.timers.insert((hold.timer, id));
        }
    }
}

impl Cycles {
    /// A claim was told its node, or could not be.
    pub(crate) fn told(&mut self, told: &Told, mirror: &Mirror, writes: &mut Writes, now: Time) {
        self.holds.told(told.hold, &told.claim, told.ended, now);
        if told.ended == Ended::Done {
            self.try_hold(told.hold, mirror, writes, now);
        }
    }

    /// Hands out the binds of gangs whose volumes are ready, and holds back whole gangs otherwise.
    pub(super) fn bind_or_hold(
        &mut self,
        binds: Vec<Bind>,
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        let devices = self.holds.devices;
        let waiting: BTreeSet<GangId> = binds
            .iter()
            .filter(|bind| !is_ready(devices, (mirror, &self.tables), bind, now))
            .filter_map(|bind| bind.gang)
            .collect();
        let mut held: BTreeMap<GangId, Vec<Bind>> = BTreeMap::new();
        for bind in binds {
            match bind.gang {
                Some(gang) if waiting.contains(&gang) => held.entry(gang).or_default().push(bind),
                _ => self.send(bind, mirror, writes, now),
            }
        }
        let until = now.plus_ms(self.limits.volumes_wait_max_ms);
        for binds in held.into_values() {
            let id = self.holds.add(binds, mirror, until);
            self.try_hold(id, mirror, writes, now);
        }
    }

    /// What claims got for places that their pods do not get is free again.
    fn give_back(&self, binds: &[Bind], mirror: &Mirror, writes: &mut Writes, now: Time) {
        if self.holds.devices == Devices::Ignored {
            return;
        }
        let pods = binds.iter().filter_map(|bind| {
            let pod = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name)?;
            (pod.metadata.uid == bind.uid).then_some(pod)
        });
        let intents = pods.flat_map(|pod| mirror::claims_given_back(mirror, &self.tables, pod));
        // A claim that pods share is given back once.
        let by_claim: BTreeMap<ObjectKey, Intent> = intents
            .map(|intent| (intent.target.clone(), intent))
            .collect();
        for intent in by_claim.into_values() {
            writes.note(intent, now);
        }
    }

    /// Looks again at those that may wait for what nobody brings any more.
    pub(super) fn try_doubted(&mut self, mirror: &Mirror, writes: &mut Writes, now: Time) {
        for hold in self.holds.doubted() {
            self.try_hold(hold, mirror, writes, now);
        }
    }

    pub(super) fn try_hold(&mut self, id: HoldId, mirror: &Mirror, writes: &mut Writes, now: Time) {
        match self.holds.look(id, (mirror, &self.tables), now) {
            None => {}
            Some(Look::Ready(binds)) => {
                for bind in binds {
                    self.send(bind, mirror, writes, now);
                }
            }
            Some(Look::Waits(tell)) => {
                for intent in tell {
                    writes.submit(intent, Origin::Hold(id), Lane::Write);
                }
            }
            Some(Look::Hopeless(refused)) => {
                for (bind, why) in &refused {
                    self.notices.push(format!(
                        "cannot bind Pod {}/{} to {}: {why}",
                        bind.pod.namespace, bind.pod.name, bind.node
                    ));
                    self.counts.places_refused += 1;
                }
                self.tell_refused(&refused, mirror, writes, now);
                let binds: Vec<Bind> = refused.into_iter().map(|(bind, _)| bind).collect();
                for bind in &binds {
                    self.take_back(bind.write);
                }
                self.give_back(&binds, mirror, writes, now);
            }
        }
    }
}

/// Why binds that are given up together are: for what is wrong with their own claims, those first, or with
/// those of another pod of the gang.
fn reasoned(binds: Vec<Bind>, mut blamed: BTreeMap<WriteId, String>) -> Vec<(Bind, String)> {
    let is_to_blame = |bind: &Bind| blamed.contains_key(&bind.write);
    let (to_blame, others): (Vec<Bind>, Vec<Bind>) = binds.into_iter().partition(is_to_blame);
    let mut reasoned: Vec<(Bind, String)> = (to_blame.into_iter())
        .filter_map(|bind| blamed.remove(&bind.write).map(|why| (bind, why)))
        .collect();
    let of_others = reasoned.first().map_or_else(String::new, |(bind, why)| {
        format!("{} of its gang cannot be bound: {why}", bind.pod.name)
    });
    reasoned.extend(others.into_iter().map(|bind| (bind, of_others.clone())));
    reasoned
}

/// What is said of claims and volumes that could not be told.
fn untold(intents: &[Intent]) -> String {
    let first = intents.first().map(|intent| &intent.target);
    let name = first.map_or("", |target| &target.name);
    let kind = first.map_or("claim", |target| target.kind.row().name);
    format!("{kind} {name} could not be told the node in time")
}

/// Whether a bind may go out at once.
fn is_ready(devices: Devices, world: (&Mirror, &Tables), bind: &Bind, now: Time) -> bool {
    let stand = claims(devices, world, bind, now);
    matches!(stand, Some((Claims::Ready, _)) | None)
}

/// How the claims of the pod stand, and what is being done about those that are told of, in kube-scheduler's
/// words; `None` where the pod has gone and its bind is moot.
fn claims(
    devices: Devices,
    (mirror, tables): (&Mirror, &Tables),
    bind: &Bind,
    now: Time,
) -> Option<(Claims, &'static str)> {
    let pod = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name)?;
    if pod.metadata.uid != bind.uid {
        return None;
    }
    // Devices first: who cannot have them should not move a volume to the node.
    let stand = match devices {
        Devices::Awaited => device_claims_of(mirror, tables, pod, bind, now),
        Devices::Ignored => Claims::Ready,
    };
    Some(match stand {
        Claims::Ready => {
            let stand = claims_of(mirror, pod, &bind.node, &bind.volumes);
            (stand, "binding volumes")
        }
        others => (others, "binding devices"),
    })
}

fn claim_keys(mirror: &Mirror, bind: &Bind) -> Vec<ObjectKey> {
    let Some(pod) = mirror.get::<Pod>(&bind.pod.namespace, &bind.pod.name) else {
        return Vec::new();
    };
    let namespace = &pod.metadata.namespace;
    let volumes = api::core::claims_named(&pod.metadata.name, &pod.spec.volumes);
    let volumes =
        volumes.map(|claim| ObjectKey::new(Kind::PersistentVolumeClaim, namespace, &claim));
    let devices = device_claim_keys(mirror, pod);
    let extended = mirror::extended_claim_key(mirror, pod);
    volumes.chain(devices).chain(extended).collect()
}

fn device_claim_keys(mirror: &Mirror, pod: &Pod) -> impl Iterator<Item = ObjectKey> {
    let claims = pod.spec.resource_claims.iter();
    let names = claims.filter_map(|claim| claim_name(mirror, pod, claim));
    names.map(|claim| ObjectKey::new(Kind::ResourceClaim, &pod.metadata.namespace, &claim))
}
