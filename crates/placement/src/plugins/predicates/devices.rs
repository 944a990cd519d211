//! Which devices of a node a task's claims get.
//!
//! A search with a bound: claims, requests and ways in their order, devices in the node's. The first
//! whole answer counts, so the same tables give the same devices.

pub(crate) mod promises;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    Agreement, CLAIM_DEVICES_MAX, CardLoad, CardLoads, Device, DeviceAsk, DeviceClaim, DeviceLack,
    DeviceRequest, Devices, Draw, Grant, Key, NodeId, PartLoad, Purpose, Standing, Taking, Wanted,
    Way, takings,
};

use crate::plugin::{Room, View};
use promises::Loads;

/// So many devices are looked at for one task and node before the search is given up: thousands of
/// equal devices under a constraint that none of them meets would take for ever.
const STEPS_MAX: u32 = 5_000;

/// What is held of devices.
#[derive(Clone, Copy)]
pub(super) enum Holdings<'a> {
    /// As if nobody held any.
    None,
    /// What tasks of the node hold, and tasks of all nodes of those that several reach.
    Of(&'a CardLoads, &'a CardLoads),
}

impl Holdings<'_> {
    /// What tasks hold of a device.
    fn load(&self, id: &str, is_shared: bool) -> Option<&CardLoad> {
        match self {
            Holdings::None => None,
            Holdings::Of(_, shared) if is_shared => shared.of(id),
            Holdings::Of(own, _) => own.of(id),
        }
    }

    /// Whether the device is out of reach for others: somebody has it, and not only parts of it.
    fn hold(self, device: &Device) -> bool {
        if !device.is_parted {
            return self.have(&device.id, device.standing, device.is_shared);
        }
        let load = self.load(&device.id, device.is_shared);
        let is_told = matches!(self, Holdings::Of(..));
        is_told && device.standing == Standing::Held || load.is_some_and(|load| load.owners > 0)
    }

    /// Whether somebody has the device, or a part of it: it takes what it is made of then.
    fn have(self, id: &str, standing: Standing, is_shared: bool) -> bool {
        let is_told = matches!(self, Holdings::Of(..));
        let load = self.load(id, is_shared);
        is_told && standing != Standing::Free || load.is_some_and(CardLoad::is_had)
    }

    /// What is held of the device in parts.
    fn parts(self, device: &Device) -> PartLoad {
        let load = self.load(&device.id, device.is_shared);
        let mut parts = load.map(|load| load.parts.clone()).unwrap_or_default();
        if matches!(self, Holdings::Of(..)) {
            let by_claims = device.dimensions.iter().map(|dimension| Taking {
                dimension: dimension.name.clone(),
                amount: dimension.held,
            });
            parts.take(&by_claims.collect::<Vec<_>>());
        }
        parts
    }

    /// What is left of what the devices draw on.
    fn left_of(self, devices: &Devices) -> BTreeMap<&str, i64> {
        let left = devices.counters.iter().map(|(name, counter)| {
            let left = counter.left(|it| self.have(&it.device, it.standing, it.is_shared));
            (&**name, left)
        });
        left.collect()
    }
}

/// What the task, or any that asks so, gets on the node now; later, once the tasks on their way out are
/// gone and the promised ones have taken theirs. What is promised to others stays theirs. A claim that
/// another task has got its devices already gets no others: the node has to reach those.
pub(super) fn choose(
    view: View<'_>,
    ask: &DeviceAsk,
    node: NodeId,
    room: Room,
) -> Result<Vec<Grant>, DeviceLack> {
    let row = view.tables.node(node);
    let devices = &row.spec.devices;
    let mut served = served(view, ask, devices)?;
    let kept;
    let shared = match view.tables.promised_shared().next() {
        None => view.tables.shared_loads(),
        Some(_) => {
            kept = promises::elsewhere(view, node, ask);
            &*kept
        }
    };
    let is_promised = promises::promised(view, node).next().is_some();
    if room == Room::Now {
        let grants = rest(devices, Holdings::Of(&row.cards, shared), ask, &served)?;
        if is_promised {
            let mut later = Loads::later(view, node, shared);
            grants.iter().for_each(|grant| later.take(grant));
            let ours = ask.shared().map(|(_, claim)| claim).collect();
            later.keep(view, node, ours)?;
        }
        return Ok(grants);
    }
    let mut later = Loads::later(view, node, shared);
    let promised = later.keep(view, node, BTreeSet::new())?;
    served.extend(places_of(ask, &promised));
    rest(devices, later.held(), ask, &served)
}

/// The claims, by their places, that other tasks have got their devices, if the node reaches all of these.
fn served(view: View<'_>, ask: &DeviceAsk, devices: &Devices) -> Result<BTreeSet<u8>, DeviceLack> {
    let mut served = BTreeSet::new();
    for (at, claim) in ask.shared() {
        let Some(mut has) = view.tables.devices_for(claim) else {
            continue;
        };
        let is_here = |grant: &Grant| devices.list.iter().any(|it| it.id == grant.card);
        if !has.all(is_here) {
            return Err(DeviceLack::Elsewhere);
        }
        served.insert(at);
    }
    Ok(served)
}

/// The places of these claims among those that are asked for.
fn places_of(ask: &DeviceAsk, claims: &BTreeSet<&Key>) -> BTreeSet<u8> {
    let ours = ask.shared().filter(|(_, claim)| claims.contains(claim));
    ours.map(|(at, _)| at).collect()
}

/// Devices for every claim, of those that nobody holds.
pub(super) fn allocate(
    devices: &Devices,
    held: Holdings<'_>,
    ask: &DeviceAsk,
) -> Result<Vec<Grant>, DeviceLack> {
    rest(devices, held, ask, &BTreeSet::new())
}

/// The same for all claims but those at these places.
fn rest(
    devices: &Devices,
    held: Holdings<'_>,
    ask: &DeviceAsk,
    served: &BTreeSet<u8>,
) -> Result<Vec<Grant>, DeviceLack> {
    let mut search = Search {
        devices,
        held,
        ask,
        served,
        left: held.left_of(devices),
        chosen: Vec::new(),
        steps: 0,
        fault: None,
    };
    let is_found = search.claims(0);
    match search.fault {
        Some(why) => Err(DeviceLack::Unjudged { why }),
        None if is_found => Ok(search.grants()),
        None if search.steps >= STEPS_MAX => Err(DeviceLack::Unsolved),
        None if devices.is_partial => Err(DeviceLack::Partial),
        None => Err(DeviceLack::Taken),
    }
}

/// One device for one purpose.
#[derive(Clone, Copy)]
struct Choice {
    purpose: Purpose,
    device: usize,
    is_admin: bool,
}

struct Search<'a> {
    devices: &'a Devices,
    held: Holdings<'a>,
    ask: &'a DeviceAsk,
    /// Claims, by their places, that get nothing.
    served: &'a BTreeSet<u8>,
    /// What others leave of what the devices draw on.
    left: BTreeMap<&'a str, i64>,
    chosen: Vec<Choice>,
    steps: u32,
    /// A selector that does not say whether it takes a device: the search ends there, as upstream's.
    fault: Option<Arc<str>>,
}

/// Where the search stands: a way of a request of a claim.
#[derive(Clone, Copy)]
struct At<'a> {
    claim: &'a DeviceClaim,
    request: &'a DeviceRequest,
    way: &'a Way,
    purpose: Purpose,
}

impl<'a> Search<'a> {
    /// Serves the claims from this one on.
    fn claims(&mut self, claim: u8) -> bool {
        match self.ask.claims.get(usize::from(claim)) {
            Some(_) if self.served.contains(&claim) => claim < u8::MAX && self.claims(claim + 1),
            Some(_) => self.requests(claim, 0),
            None => true,
        }
    }

    /// Serves the requests of a claim from this one on, and the claims after it.
    fn requests(&mut self, at: u8, request: u8) -> bool {
        let ask = self.ask;
        let claim = &ask.claims[usize::from(at)];
        let Some(row) = claim.requests.get(usize::from(request)) else {
            return at < u8::MAX && self.claims(at + 1);
        };
        if !self.devices.serve(row) {
            return request < u8::MAX && self.requests(at, request + 1);
        }
        (0_u8..).zip(&row.ways).any(|(index, way)| {
            let at = At {
                claim,
                request: row,
                way,
                purpose: Purpose {
                    claim: at,
                    request,
                    way: index,
                },
            };
            match way.wanted {
                Wanted::Count(count) => self.some(at, count, 0),
                Wanted::All => self.all(at),
            }
        })
    }

    fn after(&mut self, at: At<'a>) -> bool {
        at.purpose.request < u8::MAX && self.requests(at.purpose.claim, at.purpose.request + 1)
    }

    /// So many more devices, none before the last one in the list: of one request they are alike. Of one
    /// that is given in parts it may be several.
    fn some(&mut self, at: At<'a>, count: u32, from: usize) -> bool {
        if count == 0 {
            return self.after(at);
        }
        for index in from..self.devices.list.len() {
            if self.is_over() {
                return false;
            }
            self.steps += 1;
            if !self.selects(at, index) || !self.may_take(at, index) {
                continue;
            }
            self.take(at, index);
            let next = index + usize::from(!self.devices.list[index].is_parted);
            if self.some(at, count - 1, next) {
                return true;
            }
            self.chosen.pop();
        }
        false
    }

    /// Every device that is of the kind: none may be out of reach.
    fn all(&mut self, at: At<'a>) -> bool {
        let mark = self.chosen.len();
        let is_whole = !self.devices.is_partial;
        let takes_all = (0..self.devices.list.len()).all(|index| {
            if !self.selects(at, index) {
                return self.fault.is_none();
            }
            self.steps += 1;
            let may = !self.is_over() && self.may_take(at, index);
            if may {
                self.take(at, index);
            }
            may
        });
        let any = self.chosen.len() > mark;
        if is_whole && takes_all && any && self.after(at) {
            return true;
        }
        self.chosen.truncate(mark);
        false
    }

    fn take(&mut self, at: At<'a>, device: usize) {
        self.chosen.push(Choice {
            purpose: at.purpose,
            device,
            is_admin: at.way.is_admin,
        });
    }

    fn is_over(&self) -> bool {
        self.steps >= STEPS_MAX || self.fault.is_some()
    }

    /// Whether the device is of the kind that is asked for.
    fn selects(&mut self, at: At<'a>, index: usize) -> bool {
        let device = &self.devices.list[index];
        for selector in &at.way.selectors {
            if device.unjudged.contains(*selector) {
                let why = self.devices.faults.get(selector).cloned();
                self.fault = Some(why.unwrap_or_else(|| "a selector".into()));
            }
            if !device.passes.contains(*selector) {
                return false;
            }
        }
        true
    }

    fn may_take(&self, at: At<'a>, index: usize) -> bool {
        let device = &self.devices.list[index];
        is_borne(device, at.way)
            && self.is_left(at, index)
            && self.of_claim(at).count() < CLAIM_DEVICES_MAX
            && self.agrees(at, device)
            && self.has_capacity(at, index)
            && (at.way.is_admin || self.has_enough(index))
    }

    /// Whether it has what is wanted of its capacity, and where it is given in parts as much is left.
    fn has_capacity(&self, at: At<'a>, index: usize) -> bool {
        let device = &self.devices.list[index];
        if at.way.amounts.is_empty() && !device.is_parted {
            return true;
        }
        let Some(wanted) = takings(&device.dimensions, &at.way.amounts) else {
            return false;
        };
        if at.way.is_admin || !device.is_parted {
            return true;
        }
        let mut parts = self.held.parts(device);
        for portion in self.takers(index).filter_map(|choice| self.portion(choice)) {
            parts.take(&portion);
        }
        parts.leaves(&device.dimensions, &wanted)
    }

    /// Choices by which the task gets the device, or parts of it.
    fn takers(&self, index: usize) -> impl Iterator<Item = &Choice> {
        let all = self.chosen.iter();
        all.filter(move |choice| choice.device == index && !choice.is_admin)
    }

    /// What a choice takes of its device's capacity, if it is a part of it.
    fn portion(&self, choice: &Choice) -> Option<Vec<Taking>> {
        let device = &self.devices.list[choice.device];
        let claim = &self.ask.claims[usize::from(choice.purpose.claim)];
        let request = &claim.requests[usize::from(choice.purpose.request)];
        let way = &request.ways[usize::from(choice.purpose.way)];
        let is_part = device.is_parted && !choice.is_admin;
        is_part.then(|| takings(&device.dimensions, &way.amounts).unwrap_or_default())
    }

    /// Whether others, and those that were chosen, leave enough of what it draws on. Parts of one device
    /// draw once.
    fn has_enough(&self, index: usize) -> bool {
        let device = &self.devices.list[index];
        if device.draws.is_empty() || self.draws_already(index) {
            return true;
        }
        let ours: BTreeSet<usize> = self.chosen.iter().map(|choice| choice.device).collect();
        let ours = ours.into_iter().filter(|other| {
            let device = &self.devices.list[*other];
            let is_new = !self
                .held
                .have(&device.id, device.standing, device.is_shared);
            is_new && self.takers(*other).next().is_some()
        });
        let ours: Vec<&Draw> = ours
            .flat_map(|other| &*self.devices.list[other].draws)
            .collect();
        device.draws.iter().all(|draw| {
            let ours = ours.iter().filter(|other| other.counter == draw.counter);
            let taken = ours.fold(draw.amount, |sum, other| sum.saturating_add(other.amount));
            let left = self.left.get(&*draw.counter);
            left.is_some_and(|left| taken <= *left)
        })
    }

    /// Whether what a device draws is counted already, for parts of it that others or the task itself have.
    fn draws_already(&self, index: usize) -> bool {
        let device = &self.devices.list[index];
        device.is_parted
            && (self.takers(index).next().is_some()
                || self
                    .held
                    .have(&device.id, device.standing, device.is_shared))
    }

    fn of_claim(&self, at: At<'a>) -> impl Iterator<Item = &Choice> {
        let claim = at.purpose.claim;
        let all = self.chosen.iter();
        all.filter(move |choice| choice.purpose.claim == claim)
    }

    /// Whether nobody holds it, nor another claim of the task. Who looks after devices needs only to
    /// see each once.
    fn is_left(&self, at: At<'a>, index: usize) -> bool {
        let device = &self.devices.list[index];
        let is_part = |is_admin: bool| device.is_parted && !is_admin;
        let is_once = |other: &Choice| !(is_part(at.way.is_admin) && is_part(other.is_admin));
        let mut ours = self.of_claim(at);
        if ours.any(|choice| choice.device == index && is_once(choice)) {
            return false;
        }
        let is_free = || !self.held.hold(device);
        let is_ours = || !device.is_parted && self.takers(index).next().is_some();
        at.way.is_admin || is_free() && !is_ours()
    }

    /// Whether it has what the claim's devices must have in common, and differs from them where it must.
    fn agrees(&self, at: At<'a>, device: &Device) -> bool {
        at.claim.rules.iter().all(|rule| {
            if !rule.binds(at.request, at.way) {
                return true;
            }
            let Some(value) = device.attributes.get(&rule.attribute) else {
                return false;
            };
            let bound = self.of_claim(at).filter(|choice| {
                let request = &at.claim.requests[usize::from(choice.purpose.request)];
                rule.binds(request, &request.ways[usize::from(choice.purpose.way)])
            });
            let values = bound.map(|choice| &self.devices.list[choice.device].attributes);
            let mut values = values.map(|attributes| attributes.get(&rule.attribute));
            match rule.values {
                Agreement::Same => values.next().is_none_or(|other| other == Some(value)),
                Agreement::Distinct => values.all(|other| other != Some(value)),
            }
        })
    }

    fn grants(&self) -> Vec<Grant> {
        let grant = |choice: &Choice| Grant {
            part: choice.purpose.part(),
            card: Arc::clone(&self.devices.list[choice.device].id),
            is_whole: !choice.is_admin && !self.devices.list[choice.device].is_parted,
            portion: self.portion(choice).map(Arc::from),
            is_shared: self.devices.list[choice.device].is_shared,
            is_claimed: true,
            ..Grant::default()
        };
        self.chosen.iter().map(grant).collect()
    }
}

fn is_borne(device: &Device, way: &Way) -> bool {
    let mut taints = device.taints.iter();
    taints.all(|taint| way.tolerations.iter().any(|it| it.covers(taint)))
}

#[cfg(test)]
mod tests;
