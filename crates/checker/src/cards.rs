//! I2: a card has one holder who has it alone, or sharers within its memory, its cores and the number
//! of users that it bears; each of its slices has one holder, and so has each device that is claimed.
//! A plan gives no cpu, and no other unit on a NUMA node, that somebody has already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    CHIP, CardLoad, CardLoads, ChipLoad, ChipPart, Chips, Device, Dimension, Dvpp, Grant, Node,
    NodeId, PartLoad, Phase, Plan, Standing, Tables, Task, TaskId,
};

use crate::Violation;
use crate::rooms::with_their_gangs;

/// What is held of one card, added up from tasks.
#[derive(Default)]
struct Sum {
    users: i64,
    owners: i64,
    memory: i64,
    cores: i64,
    slices: BTreeMap<(Arc<str>, u32), u32>,
    /// Parts of a chip.
    chip: Vec<ChipPart>,
    /// Units with the number of their holders.
    units: BTreeMap<u32, u32>,
    /// Parts of a device, and how much they are of its capacity.
    parts: PartLoad,
    /// Whether some of it was given by a plan that is not yet carried out.
    is_ours: bool,
}

impl Sum {
    fn add(&mut self, task: &Task, grant: &Grant) {
        self.users += 1;
        self.owners += i64::from(grant.is_whole);
        self.memory += grant.memory;
        self.cores += grant.cores;
        if let Some(slice) = &grant.slice {
            let place = (slice.group.clone(), slice.place);
            *self.slices.entry(place).or_default() += 1;
        }
        self.chip.extend(grant.chip);
        for unit in grant.units.iter() {
            *self.units.entry(unit).or_default() += 1;
        }
        if let Some(portion) = &grant.portion {
            self.parts.take(portion);
        }
        self.is_ours |= task.phase == Phase::Binding;
    }

    fn is(&self, load: &CardLoad) -> bool {
        let slices = load.slices.iter();
        let slices: BTreeMap<_, _> = slices
            .map(|(slice, holders)| ((slice.group.clone(), slice.place), *holders))
            .collect();
        (self.users, self.owners, self.memory, self.cores)
            == (load.users, load.owners, load.memory, load.cores)
            && self.slices == slices
            && self.is_in_parts(&load.chip)
            && self.parts == load.parts
            && self.units.keys().copied().eq(load.units.held().iter())
            && self.units.values().map(|holders| holders - 1).sum::<u32>() == load.units.overlaps()
    }

    /// What is too much of it, in words.
    fn excess(&self, node: &Node, card: &str) -> Option<String> {
        if !self.units.is_empty() {
            // A node may give others than were chosen for somebody who is on the way there: that a plan
            // chooses no such is asked of each plan.
            return None;
        }
        if let Some(device) = device_of(node, card) {
            return self.excess_of_device(device);
        }
        let spec = node.spec.cards.list.iter().find(|spec| *spec.id == *card);
        let Some(spec) = spec else {
            return Some("is not there".to_owned());
        };
        let (users, memory, cores) = (self.users, self.memory, self.cores);
        if self.owners > 0 && users > 1 {
            return Some(format!("has {users} users, one of whom has it alone"));
        }
        if *spec.kind == *CHIP {
            return self.excess_of_chip(node.spec.cards.chips);
        }
        if users > spec.users_max && self.owners == 0 {
            return Some(format!("has {users} of {} users", spec.users_max));
        }
        if memory > spec.memory {
            return Some(format!("has {memory} of {} MiB held", spec.memory));
        }
        if cores > 100 {
            return Some(format!("has {cores} of 100 percent of its cores held"));
        }
        let twice = self.slices.iter().find(|(_, holders)| **holders > 1);
        if let Some(((group, place), holders)) = twice {
            return Some(format!("has {holders} holders of slice {group}-{place}"));
        }
        let mut groups: Vec<_> = self.slices.keys().map(|(group, _)| group).collect();
        groups.dedup();
        (groups.len() > 1).then(|| "is divided in two ways".to_owned())
    }
}

impl Sum {
    /// Whether a row counts the same parts of a chip.
    fn is_in_parts(&self, load: &ChipLoad) -> bool {
        let mut parts = ChipLoad::default();
        self.chip.iter().for_each(|part| parts.take(part));
        parts == *load
    }

    /// What is too much of a chip that nobody has alone, or is there beside who bears none, in words.
    fn excess_of_chip(&self, chips: Chips) -> Option<String> {
        let Chips::Of(size) = chips else {
            return Some("is given to nobody".to_owned());
        };
        let templates = || self.chip.iter().map(|part| part.template);
        let cores: i64 = templates().map(|it| it.size().cores).sum();
        let cpus: i64 = templates().map(|it| it.size().cpus).sum();
        if cores > size.cores {
            return Some(format!("has {cores} of {} cores held", size.cores));
        }
        if cpus > size.cpus {
            return Some(format!("has {cpus} of {} cpus held", size.cpus));
        }
        let of = |dvpp: Dvpp| templates().filter(|it| it.dvpp() == dvpp).count();
        let (all, some) = (of(Dvpp::Yes), of(Dvpp::Null));
        let is_shared = all > 1 || all > 0 && some > 0;
        is_shared.then(|| format!("has {all} parts with all media units beside {some} with some"))
    }

    /// What is too much of a device, in words. Who looks after it holds nothing of it.
    fn excess_of_device(&self, device: &Device) -> Option<String> {
        let (owners, parts) = (self.owners, self.parts.parts);
        if owners > 1 || owners > 0 && parts > 0 {
            return Some(format!("has {owners} holders beside {parts} of parts"));
        }
        let mut dimensions = device.dimensions.iter();
        let short = dimensions.find(|it| self.parts.of(&it.name) > it.whole)?;
        let held = self.parts.of(&short.name);
        Some(format!("has {}", too_much(short, held)))
    }
}

/// What the tasks hold, of the grants that are meant.
fn held(
    tables: &Tables,
    tasks: impl Iterator<Item = TaskId>,
    is_meant: fn(&Grant) -> bool,
) -> BTreeMap<Arc<str>, Sum> {
    let mut sums: BTreeMap<Arc<str>, Sum> = BTreeMap::new();
    for task in tasks.map(|task| tables.task(task)) {
        for grant in task.grants.iter().filter(|grant| is_meant(grant)) {
            let sum = sums.entry(grant.card.clone()).or_default();
            sum.add(task, grant);
        }
    }
    sums
}

/// The whole of it: what the rows say is what their tasks hold, and nothing that was given is too much.
pub(crate) fn nodes(tables: &Tables, found: &mut Vec<Violation>) {
    let mut by_node: BTreeMap<NodeId, Vec<TaskId>> = BTreeMap::new();
    for (id, task) in tables.tasks() {
        if task.grants.is_empty() {
            continue;
        }
        let on_node = matches!(
            task.phase,
            Phase::Binding | Phase::Bound | Phase::Running | Phase::Releasing
        );
        match task.node.filter(|_| on_node) {
            Some(node) => by_node.entry(node).or_default().push(id),
            None => found.push(Violation::of(
                "I2",
                format!("task {} holds cards and no node", task.key),
            )),
        }
    }
    for (id, node) in tables.all_nodes() {
        let tasks = by_node.get(&id).into_iter().flatten().copied();
        let sums = held(tables, tasks, |_| true);
        kept(&node.cards, &sums, &node.spec.name, found);
        // What others gave, or a card that shrank, is not ours to answer for.
        for (card, sum) in sums.iter().filter(|(_, sum)| sum.is_ours && node.known) {
            if let Some(excess) = sum.excess(node, card) {
                let what = format!("card {card} of {} {excess}", node.spec.name);
                found.push(Violation::of("I2", what));
            }
        }
    }
    let everyone = by_node.values().flatten().copied();
    let shared = held(tables, everyone, |grant| grant.is_shared);
    kept(tables.shared_loads(), &shared, "all nodes", found);
    for (device, sum) in shared.iter().filter(|(_, sum)| sum.is_ours) {
        let what = shared_excess(tables, device, sum.owners, &sum.parts);
        found.extend(what.map(|what| Violation::of("I2", what)));
    }
}

/// What the rows of `place` say is held of its cards is what tasks hold.
fn kept(rows: &CardLoads, sums: &BTreeMap<Arc<str>, Sum>, place: &str, found: &mut Vec<Violation>) {
    let cards: BTreeSet<&Arc<str>> = rows
        .iter()
        .map(|(card, _)| card)
        .chain(sums.keys())
        .collect();
    for card in cards {
        let (kept, real) = (rows.of(card), sums.get(card));
        let is_right = match (kept, real) {
            (Some(kept), Some(real)) => real.is(kept),
            _ => false,
        };
        if !is_right {
            let users = real.map_or(0, |sum| sum.users);
            let what = format!("card {card} of {place} has {users} users, its row says {kept:?}");
            found.push(Violation::of("I2", what));
        }
    }
}

/// What is too much of a device that several nodes reach, in words.
fn shared_excess(tables: &Tables, id: &str, owners: i64, parts: &PartLoad) -> Option<String> {
    let what = match (owners, parts.parts) {
        (2.., _) | (1, 1..) => Some(format!("{owners} holders beside {} of parts", parts.parts)),
        (_, 1..) => {
            let mut nodes = tables.nodes();
            let device = nodes.find_map(|(_, node)| device_of(node, id))?;
            let mut dimensions = device.dimensions.iter();
            let short = dimensions.find(|it| parts.of(&it.name) > it.whole);
            short.map(|it| too_much(it, parts.of(&it.name)))
        }
        _ => None,
    };
    what.map(|what| format!("device {id} of all nodes has {what}"))
}

fn device_of<'a>(node: &'a Node, id: &str) -> Option<&'a Device> {
    let mut devices = node.spec.devices.list.iter();
    devices.find(|device| *device.id == *id)
}

/// More than there is of a dimension, in words.
fn too_much(dimension: &Dimension, held: i64) -> String {
    let (whole, name) = (dimension.whole, &dimension.name);
    format!("{held} of {whole} {name} held in parts")
}

/// Of a plan: no bind takes too much of a card.
pub(crate) fn plan(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    let mut by_node: BTreeMap<NodeId, Vec<&model::Place>> = BTreeMap::new();
    for place in &plan.places {
        if !tables.task(place.task).grants.is_empty() {
            by_node.entry(place.node).or_default().push(place);
        }
    }
    for (id, places) in by_node {
        let Some(node) = tables.find_node(id).filter(|node| node.known) else {
            continue;
        };
        for (card, sum) in held(tables, node.tasks.iter().copied(), |_| true) {
            let takes = |place: &&model::Place| {
                let mut grants = tables.task(place.task).grants.iter();
                grants.any(|grant| grant.card == card)
            };
            let takers: Vec<&model::Place> = places.iter().copied().filter(|p| takes(p)).collect();
            if takers.is_empty() {
                continue;
            }
            let clash = || {
                takers
                    .iter()
                    .find_map(|place| clash(tables, node, place, &card))
            };
            let held = || held_already(node, &sum, &card);
            if let Some(excess) = sum.excess(node, &card).or_else(clash).or_else(held) {
                found.push(Violation {
                    invariant: "I2",
                    what: format!("card {card} of {} {excess}", node.spec.name),
                    writes: with_their_gangs(tables, plan, takers.into_iter()),
                });
            }
        }
    }
    shared(tables, plan, found);
}

/// Devices that several nodes reach, of which a plan gives one that somebody has.
fn shared(tables: &Tables, plan: &Plan, found: &mut Vec<Violation>) {
    for place in &plan.places {
        for grant in &tables.task(place.task).grants {
            let load = tables.shared_loads().of(&grant.card);
            let Some(load) = load.filter(|_| grant.is_shared) else {
                continue;
            };
            if let Some(what) = shared_excess(tables, &grant.card, load.owners, &load.parts) {
                found.push(Violation {
                    invariant: "I2",
                    what,
                    writes: with_their_gangs(tables, plan, [place].into_iter()),
                });
            }
        }
    }
}

/// What is wrong with a device that a plan gives, in words: a claim has it, or nobody can tell who has.
fn held_already(node: &Node, sum: &Sum, id: &str) -> Option<String> {
    let device = device_of(node, id)?;
    let has_part = sum.parts.parts > 0;
    let mut dimensions = device.dimensions.iter();
    let is_over = |it: &Dimension| sum.parts.of(&it.name).saturating_add(it.held) > it.whole;
    if let Some(short) = dimensions.find(|it| has_part && is_over(it)) {
        let held = sum.parts.of(&short.name).saturating_add(short.held);
        return Some(format!("has {}", too_much(short, held)));
    }
    let is_free = match device.standing {
        Standing::Free => true,
        Standing::Held => sum.owners == 0 && !has_part,
        Standing::Parted => sum.owners == 0,
    };
    (!is_free).then(|| format!("is {:?}", device.standing))
}

/// What a bind takes of a resource's units that is not there, or another task's, in words.
fn clash(tables: &Tables, node: &Node, place: &model::Place, resource: &str) -> Option<String> {
    let units_of = |task: TaskId| -> BTreeSet<u32> {
        let grants = tables.task(task).grants.iter();
        let grants = grants.filter(|grant| *grant.card == *resource);
        grants.flat_map(|grant| grant.units.iter()).collect()
    };
    let taken = units_of(place.task);
    if taken.is_empty() {
        return None;
    }
    let layout = node.spec.numa.iter();
    let resources = layout.flat_map(|layout| &layout.resources);
    let open = resources.filter(|it| *it.name == *resource);
    let open: BTreeSet<u32> = open.flat_map(|it| it.open.iter()).collect();
    if let Some(unit) = taken.difference(&open).next() {
        return Some(format!("has no unit {unit} to give"));
    }
    let others = node.tasks.iter().filter(|task| **task != place.task);
    let mut held = others.flat_map(|task| units_of(*task));
    let unit = held.find(|unit| taken.contains(unit))?;
    Some(format!("has two holders of unit {unit}"))
}

#[cfg(test)]
mod tests {
    use crate::planted::{cluster, said, task};
    use crate::{check, check_plan};
    use model::{
        CHIP, Card, Cards, ChipPart, ChipSize, Chips, Device, Devices, Dimension, Grant, NodeId,
        NodeSpec, NumaLayout, NumaResource, Phase, Slice, Standing, Tables, Taking, TaskId,
        TaskSpec, Template, Time, Trial, Units,
    };

    /// The cluster, where n1 has a card of 100 MiB for two users.
    fn with_card() -> Tables {
        let mut tables = cluster();
        let spec = tables.node(NodeId(0)).spec.clone();
        let card = Card {
            id: "card".into(),
            memory: 100,
            users_max: 2,
            is_healthy: true,
            ..Card::default()
        };
        tables.put_node(NodeSpec {
            cards: Cards {
                list: [card].into(),
                ..Cards::default()
            },
            ..spec
        });
        tables
    }

    fn grant(memory: i64, cores: i64) -> Grant {
        Grant {
            part: 0,
            card: "card".into(),
            slice: None,
            memory,
            cores,
            is_whole: cores == 100,
            ..Grant::default()
        }
    }

    fn slice(group: &str, place: u32) -> Grant {
        let slice = Some(Slice {
            group: group.into(),
            place,
        });
        Grant {
            slice,
            ..grant(10, 0)
        }
    }

    /// What is found when two tasks are given these.
    fn found(first: Grant, second: Grant) -> Vec<&'static str> {
        let mut tables = with_card();
        let mut trial = Trial::begin(&mut tables);
        trial.place_with(TaskId(0), NodeId(0), vec![first]);
        trial.place_with(TaskId(1), NodeId(0), vec![second]);
        let plan = trial.finish(Time::from_micros(0));
        let by_plan = said(&check_plan(&tables, &plan));
        assert_eq!(by_plan, said(&check(&tables)));
        by_plan
    }

    #[test]
    fn i2_a_card_that_is_held_twice_over_is_found() {
        assert_eq!(found(grant(50, 50), grant(50, 50)), [""; 0]);
        assert_eq!(found(grant(50, 50), grant(51, 50)), ["I2"], "memory");
        assert_eq!(found(grant(50, 50), grant(50, 51)), ["I2"], "cores");
        assert_eq!(found(grant(50, 0), grant(50, 100)), ["I2"], "alone");
        assert_eq!(found(slice("a", 0), slice("a", 1)), [""; 0]);
        assert_eq!(found(slice("a", 0), slice("a", 0)), ["I2"], "one slice");
        assert_eq!(found(slice("a", 0), slice("b", 1)), ["I2"], "two ways");
        let elsewhere = Grant {
            card: "other".into(),
            ..grant(1, 1)
        };
        assert_eq!(found(grant(1, 1), elsewhere), ["I2"], "no such card");
    }

    #[test]
    fn i2_a_chip_of_which_too_much_is_given_or_that_is_no_chip_is_found() {
        let found = |chips: Chips, first: Option<Template>, second: Option<Template>| {
            let mut tables = cluster();
            let spec = tables.node(NodeId(0)).spec.clone();
            let card = Card {
                id: "card".into(),
                kind: CHIP.into(),
                users_max: i64::MAX,
                is_healthy: true,
                ..Card::default()
            };
            tables.put_node(NodeSpec {
                cards: Cards {
                    list: [card].into(),
                    chips,
                    ..Cards::default()
                },
                ..spec
            });
            let mut trial = Trial::begin(&mut tables);
            for (task, template) in [(TaskId(0), first), (TaskId(1), second)] {
                let chip = template.map(|template| ChipPart {
                    template,
                    is_settled: false,
                    group: None,
                });
                let whole = Grant {
                    kind: CHIP.into(),
                    is_whole: chip.is_none(),
                    chip,
                    ..grant(0, 0)
                };
                trial.place_with(task, NodeId(0), vec![whole]);
            }
            let plan = trial.finish(Time::from_micros(0));
            let by_plan = said(&check_plan(&tables, &plan));
            assert_eq!(by_plan, said(&check(&tables)));
            by_plan
        };
        use Template::{Four, FourDvpp, FourLow, FourNoDvpp, One, Two};
        let eight = Chips::Of(ChipSize { cores: 8, cpus: 7 });
        let small = Chips::Of(ChipSize { cores: 4, cpus: 7 });
        assert_eq!(found(eight, Some(Four), Some(FourLow)), [""; 0]);
        assert_eq!(found(eight, Some(Four), Some(Four)), ["I2"], "cpus");
        assert_eq!(found(small, Some(Four), Some(One)), ["I2"], "cores");
        assert_eq!(found(eight, Some(FourDvpp), Some(FourNoDvpp)), [""; 0]);
        assert_eq!(found(eight, Some(FourDvpp), Some(Two)), ["I2"], "dvpp");
        assert_eq!(found(eight, None, Some(One)), ["I2"], "alone");
        assert_eq!(found(Chips::SetApart, Some(One), Some(One)), ["I2"]);
    }

    /// The cluster, where n1 has such a device.
    fn with_device(device: Device) -> Tables {
        let mut tables = cluster();
        let spec = tables.node(NodeId(0)).spec.clone();
        let device = Device {
            id: "card".into(),
            ..device
        };
        tables.put_node(NodeSpec {
            devices: Devices {
                list: [device].into(),
                ..Devices::default()
            },
            ..spec
        });
        tables
    }

    #[test]
    fn i2_a_device_that_a_claim_has_already_is_found_where_it_is_given_and_not_where_it_is_looked_after()
     {
        let found = |standing: Standing, grant: Grant| {
            let mut tables = with_device(Device {
                standing,
                ..Device::default()
            });
            let mut trial = Trial::begin(&mut tables);
            trial.place_with(TaskId(0), NodeId(0), vec![grant]);
            let plan = trial.finish(Time::from_micros(0));
            let mut found = said(&check_plan(&tables, &plan));
            // The gang has a task without a place, which is not asked here.
            found.retain(|invariant| *invariant != "I4");
            found
        };
        assert_eq!(found(Standing::Held, grant(0, 100)), ["I2"]);
        assert_eq!(found(Standing::Parted, grant(0, 100)), ["I2"]);
        assert_eq!(found(Standing::Free, grant(0, 100)), [""; 0]);
        assert_eq!(found(Standing::Held, grant(0, 0)), [""; 0]);
    }

    #[test]
    fn i2_a_device_of_several_nodes_that_is_given_on_two_is_found() {
        let shared = Grant {
            is_shared: true,
            ..grant(0, 100)
        };
        let found = |second: Grant| {
            let mut tables = with_device(Device::default());
            let first = tables.node(NodeId(0)).spec.clone();
            let other = tables.node(NodeId(1)).spec.clone();
            tables.put_node(NodeSpec {
                devices: first.devices,
                ..other
            });
            let mut trial = Trial::begin(&mut tables);
            trial.place_with(TaskId(0), NodeId(0), vec![shared.clone()]);
            trial.place_with(TaskId(1), NodeId(1), vec![second]);
            let plan = trial.finish(Time::from_micros(0));
            (said(&check_plan(&tables, &plan)), said(&check(&tables)))
        };
        assert_eq!(found(shared.clone()), (vec!["I2", "I2"], vec!["I2"]));
        // Who looks after it holds nothing of it, and what is one node's own is another device.
        let admin = Grant {
            is_whole: false,
            ..shared.clone()
        };
        assert_eq!(found(admin), (vec![], vec![]));
        assert_eq!(found(grant(0, 100)), (vec![], vec![]));
    }

    #[test]
    fn i2_a_device_of_two_claims_is_found_and_one_who_looks_after_it_is_not() {
        let found = |second: Grant| {
            let mut tables = with_device(Device::default());
            let mut trial = Trial::begin(&mut tables);
            trial.place_with(TaskId(0), NodeId(0), vec![grant(0, 100)]);
            trial.place_with(TaskId(1), NodeId(0), vec![second]);
            let plan = trial.finish(Time::from_micros(0));
            let by_plan = said(&check_plan(&tables, &plan));
            assert_eq!(by_plan, said(&check(&tables)));
            by_plan
        };
        assert_eq!(found(grant(0, 100)), ["I2"]);
        assert_eq!(found(grant(0, 0)), [""; 0]);
    }

    #[test]
    fn i2_parts_of_a_device_that_are_more_than_it_has_are_found() {
        let found = |standing: Standing, held: i64, grants: [Grant; 2]| {
            let dimension = Dimension {
                name: "m".into(),
                whole: 80,
                held,
                ..Dimension::default()
            };
            let mut tables = with_device(Device {
                standing,
                is_parted: true,
                dimensions: [dimension].into(),
                ..Device::default()
            });
            let [first, second] = grants;
            let mut trial = Trial::begin(&mut tables);
            trial.place_with(TaskId(0), NodeId(0), vec![first]);
            trial.place_with(TaskId(1), NodeId(0), vec![second]);
            let plan = trial.finish(Time::from_micros(0));
            (said(&check_plan(&tables, &plan)), said(&check(&tables)))
        };
        let part = |amount: i64, is_shared: bool| Grant {
            portion: Some(
                [Taking {
                    dimension: "m".into(),
                    amount,
                }]
                .into(),
            ),
            is_shared,
            ..grant(0, 0)
        };
        let own = |first, second| [part(first, false), part(second, false)];
        let both = || [part(40, true), part(41, true)];
        let (free, parted) = (Standing::Free, Standing::Parted);
        assert_eq!(found(free, 0, own(40, 40)), (vec![], vec![]));
        assert_eq!(found(free, 0, own(40, 41)), (vec!["I2"], vec!["I2"]));
        assert_eq!(found(parted, 1, own(40, 40)), (vec!["I2"], vec![]));
        assert_eq!(found(parted, 1, own(39, 40)), (vec![], vec![]));
        assert_eq!(found(Standing::Held, 0, own(1, 1)), (vec!["I2"], vec![]));
        let beside_owner = [grant(0, 100), part(1, false)];
        assert_eq!(found(free, 0, beside_owner), (vec!["I2"], vec!["I2"]));
        let (plan, tables) = found(free, 0, both());
        assert_eq!((plan.len(), tables.len()), (3, 2), "by its node and by all");
    }

    #[test]
    fn i2_a_cpu_that_is_given_twice_or_is_not_there_is_found() {
        let found = |first: &str, second: &str| {
            let mut tables = cluster();
            let spec = tables.node(NodeId(0)).spec.clone();
            let cpus = Units::of_list("0-3").expect("it is a list");
            let layout = NumaLayout {
                nodes: vec![0],
                resources: vec![NumaResource {
                    name: NumaLayout::CPU.into(),
                    by_node: vec![cpus.clone()],
                    open: cpus,
                }],
                ..NumaLayout::default()
            };
            tables.put_node(NodeSpec {
                numa: Some(layout.into()),
                ..spec
            });
            let grant = |list: &str| Grant {
                card: NumaLayout::CPU.into(),
                units: Units::of_list(list).expect("it is a list"),
                ..Grant::default()
            };
            let mut trial = Trial::begin(&mut tables);
            trial.place_with(TaskId(0), NodeId(0), vec![grant(first)]);
            trial.place_with(TaskId(1), NodeId(0), vec![grant(second)]);
            let plan = trial.finish(Time::from_micros(0));
            assert_eq!(check(&tables), [], "what nodes give is theirs to say");
            said(&check_plan(&tables, &plan))
        };
        assert_eq!(found("0-1", "2-3"), [""; 0]);
        assert_eq!(found("0-1", "1-2"), ["I2"], "twice");
        assert_eq!(found("0-1", "3-4"), ["I2"], "not there");
    }

    #[test]
    fn i2_a_third_user_of_a_card_for_two_is_found() {
        let mut tables = with_card();
        tables.put_task(TaskSpec {
            phase: Phase::Running,
            node: Some("n1".into()),
            grants: vec![grant(1, 1), grant(1, 1)],
            ..task("theirs", 0)
        });
        assert_eq!(check(&tables), [], "theirs alone is within bounds");
        let mut trial = Trial::begin(&mut tables);
        trial.place_with(TaskId(0), NodeId(0), vec![grant(1, 1)]);
        let plan = trial.finish(Time::from_micros(0));
        assert_eq!(said(&check_plan(&tables, &plan)), ["I2"]);
    }
}
