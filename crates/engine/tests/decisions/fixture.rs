//! A cluster in a test: it makes pods when a gang is let in, and carries plans out at once.

mod outside;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use engine::{Engine, Settings};
use model::{
    Closeness, GangPhase, GangSpec, Gate, Key, NodeSpec, Ownership, Phase, Plan, Query, Sake,
    Shard, Shown, Tables, TaskSpec, Time, Vector, Verdict,
};
use placement::{Argument, PluginSettings};

use crate::parse::{self, TaskWords, key};
use crate::{cards, chips, numa, volumes};

/// One row to feed to tables.
pub type Feed = Box<dyn Fn(&mut Tables)>;

/// The cluster, the engine and what was said so far.
pub struct World {
    pub tables: Tables,
    pub engine: Engine,
    pub now: Time,
    pub said: String,
    /// Whether an engine that has everything to look up must decide the same.
    pub is_doubted: bool,
    settings: Settings,
    gangs: BTreeMap<Key, GangSpec>,
    wanted: BTreeMap<Key, Vec<TaskWords>>,
    pods: BTreeMap<Key, TaskSpec>,
    nodes: BTreeMap<String, NodeSpec>,
    /// Which of them are other schedulers'.
    left: BTreeSet<String>,
    uids: u32,
    refused: BTreeSet<String>,
    /// What was asked of somebody outside, by what it is about.
    asked: BTreeMap<String, Query>,
}

/// How far `cycle` goes.
#[derive(PartialEq, Eq)]
enum Until {
    /// One decision, not carried out.
    Decided,
    /// One decision, carried out.
    CarriedOut,
    /// Until nothing more is decided.
    Quiet,
}

impl World {
    pub fn new() -> World {
        let mut world = World {
            tables: Tables::new(),
            engine: Engine::with_defaults(),
            now: Time::from_micros(0),
            said: String::new(),
            is_doubted: false,
            settings: Settings::default(),
            gangs: BTreeMap::new(),
            wanted: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            left: BTreeSet::new(),
            uids: 0,
            refused: BTreeSet::new(),
            asked: BTreeMap::new(),
        };
        world.perform("queue default");
        world
    }

    /// Runs a script and returns what was said.
    pub fn tell(script: &str) -> String {
        World::new().hear(script)
    }

    /// The same, from here on.
    pub fn hear(mut self, script: &str) -> String {
        for line in script.lines() {
            self.perform(line);
        }
        self.said
    }

    pub fn perform(&mut self, line: &str) {
        let line = line.split('#').next().unwrap_or("").trim();
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "" => {}
            "binpack" => self.binpack(),
            "deviceshare" => {
                let tiers = &mut self.settings.placement.tiers;
                tiers.last_mut().expect("a tier").push(cards::plugin(rest));
                self.configure();
            }
            "numa-aware" => {
                let tiers = &mut self.settings.placement.tiers;
                let plugin = PluginSettings::named("numa-aware");
                tiers.last_mut().expect("a tier").push(plugin);
                self.configure();
            }
            "told" => {
                let (key, units) = rest.split_once(' ').expect("pod resource:units");
                self.edit(key, |pod| pod.grants = vec![numa::grant(units)]);
            }
            "settle" => {
                let (key, group) = rest.split_once(' ').unwrap_or((rest, ""));
                self.edit(key, |pod| {
                    chips::settle(&mut pod.grants, group.parse().ok())
                });
            }
            "actions" => {
                let names = rest.split_whitespace().map(str::to_owned);
                self.settings.placement.actions = names.collect();
                self.configure();
            }
            "tiers" => {
                let tier =
                    |text: &str| text.split_whitespace().map(PluginSettings::named).collect();
                self.settings.placement.tiers = rest.split('/').map(tier).collect();
                self.configure();
            }
            "off" => self.switch(rest, false),
            "on" => self.switch(rest, true),
            "as-upstream" => {
                let difference = placement::Difference::of_key(rest).expect("a difference");
                self.settings.placement.as_upstream.insert(difference);
                self.configure();
            }
            "argument" => self.argument(rest),
            "configuration" => self.action_argument(rest),
            "local" => {
                self.settings.local = parse::local_time(rest);
                self.configure();
            }
            "answer" => self.answer(rest),
            "measured" => self.measured(rest),
            "node" => self.node(rest),
            "volume" => self.tables.put_volume(volumes::volume(rest)),
            "volume-gone" => self.tables.remove_volume(rest),
            "storage" => self.tables.put_storage(volumes::storage(rest)),
            "storage-gone" => self.tables.remove_storage(rest),
            "hypernode" => self.hyper_node(rest),
            "hypernode-gone" => self.tables.remove_hyper_node(rest),
            "others" => self.leave(rest),
            "shard" => self.tables.set_shard(Shard {
                name: rest.split(' ').next().unwrap_or_default().into(),
                exists: !rest.ends_with(" missing"),
                ..Shard::default()
            }),
            "queue" => self.queue(rest),
            "class" => self.class(rest),
            "budget" => self.tables.put_budget(parse::budget(rest)),
            "quota" => {
                let quota = parse::quota(&mut self.tables, rest);
                self.tables.put_quota(quota);
            }
            "gang" => self.gang(rest),
            "alter" => self.alter(rest),
            "nominate" => self.nominate(&key(rest)),
            "pods" => {
                let (gang, text) = rest.split_once(':').expect("gang : tasks");
                let words = parse::tasks(&mut self.tables, text);
                self.make(&key(gang.trim()), &words);
            }
            "bound" => self.foreign(rest),
            "cycle" => self.cycle(match rest {
                "once" => Until::Decided,
                "first" => Until::CarriedOut,
                _ => Until::Quiet,
            }),
            "wait" => {
                let seconds: i64 = rest.trim_end_matches('s').parse().expect("seconds");
                self.now = self.now.plus_millis(seconds * 1_000);
            }
            "run" => self.change(rest, Phase::Running),
            "end" => self.change(rest, Phase::Succeeded),
            "fail" => self.change(rest, Phase::Failed),
            "release" => self.change(rest, Phase::Releasing),
            "gate-off" => self.edit(rest, |pod| pod.gated = false),
            "untold" => self.edit(rest, |pod| pod.scheduled = None),
            "anew" => self.edit(rest, |pod| pod.uid = format!("{}-anew", pod.uid).into()),
            "delete" => self.delete(rest),
            "drop" => self.drop(rest),
            "restart" => self.restart(),
            "busy" | "calm" => self.engine.rest(command == "busy"),
            "refuse" => {
                self.refused.insert(rest.to_owned());
            }
            "explain" => {
                let id = self.tables.gang_keyed(&key(rest)).expect("a gang");
                let found = engine::explain(&self.engine, &mut self.tables, id, self.now);
                let reason = found.reason.map_or("nothing".to_owned(), |r| r.sentence());
                let _ = writeln!(
                    self.said,
                    "{rest}  explained: {reason}; {} places",
                    found.places.len()
                );
                for (why, note) in &found.notes {
                    let _ = writeln!(self.said, "  {}: {note:?}", why.words());
                }
                self.explained(&found.holders, &found.fixes);
            }
            "conditions" => self.conditions(&key(rest)),
            "show" => {
                let id = self
                    .tables
                    .queue_named(rest.trim_start_matches("queue "))
                    .expect("a queue");
                let mut used = self.tables.queue(id).used.clone();
                used.add(self.tables.classes_taken(id).unwrap_or(&Vector::ZERO));
                let used: Vec<String> = used
                    .entries()
                    .map(|(kind, value)| self.tables.kinds().amount(kind, value).to_string())
                    .collect();
                let _ = writeln!(self.said, "{rest}  uses {}", used.join(", "));
            }
            other => panic!("no such command: {other}"),
        }
    }

    fn binpack(&mut self) {
        self.settings.placement.tiers[1].push(PluginSettings::named("binpack"));
        let mut weights = PluginSettings::named("nodeorder");
        for key in ["leastrequested.weight", "balancedresource.weight"] {
            let none = Argument::Whole(0);
            weights.arguments.0.insert(key.to_owned(), none);
        }
        self.settings.placement.tiers[1].retain(|plugin| plugin.name != "nodeorder");
        self.settings.placement.tiers[1].push(weights);
        self.configure();
    }

    fn configure(&mut self) {
        let problems = match Engine::new(self.settings.clone()) {
            Ok((engine, problems)) => {
                self.engine = engine;
                problems
            }
            Err(problem) => vec![problem],
        };
        for problem in problems {
            let line = format!("problem  {problem}\n");
            // Each line of a script configures anew.
            if !self.said.contains(&line) {
                self.said.push_str(&line);
            }
        }
    }

    fn switch(&mut self, text: &str, is_on: bool) {
        let (plugin, key) = text.split_once(' ').expect("plugin switch");
        let switch = placement::Switch::of_key(key).expect("a switch");
        let plugins = self.settings.placement.tiers.iter_mut().flatten();
        for row in plugins.filter(|row| row.name == plugin) {
            row.switch(switch, is_on);
        }
        self.configure();
    }

    /// `configuration gangpreempt maxDomains=1`
    fn action_argument(&mut self, text: &str) {
        let (action, pair) = text.split_once(' ').expect("action key=value");
        let (key, value) = pair.split_once('=').expect("key=value");
        let value = match (value.parse(), value.parse()) {
            (Ok(number), _) => Argument::Whole(number),
            (_, Ok(flag)) => Argument::Flag(flag),
            _ => Argument::Text(value.to_owned()),
        };
        let rows = &mut self.settings.placement.action_arguments;
        let arguments = rows.entry(action.to_owned()).or_default();
        arguments.0.insert(key.to_owned(), value);
        self.configure();
    }

    /// `argument capacity ancestorReclaimLevel=1`, `argument PLUGIN a>b>c=x` for maps in maps,
    /// `argument PLUGIN a[]>b=x` for a map that is the only one of a list
    fn argument(&mut self, text: &str) {
        let (plugin, pair) = text.split_once(' ').expect("plugin key=value");
        let (key, value) = pair.split_once('=').expect("key=value");
        let value = parse::argument(value);
        let plugins = self.settings.placement.tiers.iter_mut().flatten();
        for row in plugins.filter(|row| row.name == plugin) {
            let mut at = &mut row.arguments.0;
            let mut path: Vec<&str> = key.split('>').collect();
            let last = path.pop().expect("a key");
            for step in path {
                let name = step.trim_end_matches("[]");
                let empty = || Argument::Map(BTreeMap::new());
                let below = at.entry(name.to_owned());
                let below = below.or_insert_with(|| match name == step {
                    true => empty(),
                    false => Argument::List(vec![empty()]),
                });
                at = match below {
                    Argument::Map(map) => map,
                    Argument::List(list) => match list.first_mut() {
                        Some(Argument::Map(map)) => map,
                        _ => panic!("{step} is no list of maps"),
                    },
                    _ => panic!("{step} is no map"),
                };
            }
            at.insert(last.to_owned(), value.clone());
        }
        self.configure();
    }

    /// Who holds what is waited for, and what would help.
    fn explained(&mut self, holders: &[engine::Holder], fixes: &[engine::Fix]) {
        for holder in holders {
            let on = holder.node.iter().map(|node| format!(" on {node}"));
            let on: String = on.collect();
            let (who, tasks, holds) = (&holder.who, holder.tasks, &holder.holds);
            let _ = writeln!(self.said, "  {who} holds {holds}{on}, tasks: {tasks}");
        }
        for fix in fixes {
            let enters = if fix.only_enters { ", to enter" } else { "" };
            let _ = writeln!(self.said, "  {:?} helps{enters}", fix.remedy);
        }
    }

    fn gang(&mut self, text: &str) {
        let (head, tasks) = text.split_once(':').unwrap_or((text, ""));
        let (head, tasks) = if head.contains("role-min") {
            // `role-min=worker:2` holds a colon of its own; the tasks follow the last " : ".
            text.split_once(" : ").expect("gang … : tasks")
        } else {
            (head, tasks)
        };
        let words = parse::tasks(&mut self.tables, tasks);
        let count: u32 = words.iter().map(|task| task.count).sum();
        self.uids += 1;
        let mut gang = GangSpec {
            uid: format!("{:06}", self.uids).into(),
            queue: "default".into(),
            min_member: count,
            created: Time::from_micros(self.now.micros + i64::from(self.uids)),
            ..GangSpec::default()
        };
        let mut stated = true;
        for (word, value) in parse::words(head) {
            match word {
                "queue" => gang.queue = value.into(),
                "min" => gang.min_member = value.parse().expect("a minimum"),
                "class" => gang.priority_class = Some(value.into()),
                "minres" => stated = false,
                "jdb" => gang.disruption = Some(parse::disruption(value)),
                "preemptable" => gang.preemptable = Some(value != "no"),
                "goes-whole" => gang.goes_whole = true,
                "patience" => {
                    let seconds: i64 = value.trim_end_matches('s').parse().expect("seconds");
                    gang.waits_at_most_ms = Some(seconds * 1_000);
                }
                "together" | "apart" | "in-order" => {
                    let topology = gang.task_topology.get_or_insert_default();
                    parse::task_topology(Arc::make_mut(topology), word, value);
                }
                "within" => gang.closeness = Some(Closeness::Label(value.into())),
                "native" => {
                    gang.native = true;
                    gang.status.phase = GangPhase::Inqueue;
                }
                "lone" => {
                    gang.lone = true;
                    gang.status.phase = GangPhase::Inqueue;
                }
                "agent" => {
                    gang.lone = true;
                    gang.queue = "".into();
                    gang.status.phase = GangPhase::Inqueue;
                }
                "others" => gang.ownership = Ownership::Others,
                "shared" => gang.ownership = Ownership::Shared,
                "unclaimed" => gang.ownership = Ownership::Unclaimed,
                "own-priority" => gang.priority = Some(value.parse().expect("a priority")),
                "tier" => gang.closeness = Some(parse::closeness(value)),
                "groups" => gang.sub_groups.push(parse::sub_groups(value)),
                "failed" => gang.fails_for_good = value == "kept",
                "role-min" => {
                    let (role, min) = value.split_once(':').expect("role:minimum");
                    gang.min_task_member
                        .insert(role.into(), min.parse().expect("a minimum"));
                }
                name => gang.key = key(name),
            }
        }
        if stated {
            let all = words
                .iter()
                .flat_map(|task| std::iter::repeat_n(task, task.count as usize));
            let mut least = Vector::ZERO;
            for task in all.take(gang.min_member as usize) {
                least.add(&task.shape.requests);
                gang.min_limits.add(&task.shape.limits);
            }
            gang.min_resources = Some(least);
        }
        self.gangs.insert(gang.key.clone(), gang.clone());
        let key = gang.key.clone();
        self.tables.put_gang(gang);
        // Pods of a native group, and those without any, are made by others whenever they like.
        match self.gangs[&key].native || self.gangs[&key].lone {
            true => self.make(&key, &words),
            false => drop(self.wanted.insert(key, words)),
        }
    }

    fn make(&mut self, gang: &Key, words: &[TaskWords]) {
        for task in words {
            for _ in 0..task.count {
                self.uids += 1;
                let stem = if task.role.is_empty() {
                    gang.name.to_string()
                } else {
                    format!("{}-{}", gang.name, task.role)
                };
                let index = (0..)
                    .find(|i| {
                        !self
                            .pods
                            .contains_key(&Key::new(gang.namespace.clone(), format!("{stem}-{i}")))
                    })
                    .expect("some index is free");
                let name = format!("{stem}-{index}");
                let charges = task
                    .charges
                    .iter()
                    .map(|counts| cards::charge(counts, gang, &name));
                let spec = TaskSpec {
                    charges: charges.collect(),
                    key: Key::new(gang.namespace.clone(), name.as_str()),
                    uid: format!("{:06}", self.uids).into(),
                    gang: Some(gang.clone()),
                    role: task.role.as_str().into(),
                    index,
                    shape: task.shape.clone(),
                    claims: task.claims.clone(),
                    sole: task.sole.clone(),
                    labels: parse::labels(&task.labels),
                    priority: task.priority,
                    pod_priority: task.pod_priority,
                    critical: task.critical,
                    gated: task.gated,
                    gate: task.gate,
                    nominated: task.nominated.clone(),
                    preemptable: !task.stays,
                    preempts: !task.humble,
                    cooldown_ms: task.cooldown_ms,
                    created: self.now,
                    ..TaskSpec::default()
                };
                self.put(spec);
            }
        }
    }

    fn put(&mut self, pod: TaskSpec) {
        self.pods.insert(pod.key.clone(), pod.clone());
        self.tables.put_task(pod);
    }

    fn foreign(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let (node, name) = (words.next().expect("a node"), words.next().expect("a pod"));
        let task = parse::task(&mut self.tables, words.next().unwrap_or(""));
        self.uids += 1;
        self.put(TaskSpec {
            key: key(name),
            uid: format!("{:06}", self.uids).into(),
            shape: task.shape,
            claims: task.claims,
            sole: task.sole,
            labels: parse::labels(&task.labels),
            phase: Phase::Running,
            node: Some(node.into()),
            grants: task.holds,
            preemptable: false,
            of_node: task.of_node,
            created: self.now,
            started: Some(self.now),
            ..TaskSpec::default()
        });
    }

    /// Pods whose key begins with the text come into a phase. One that leaves Pending was started.
    fn change(&mut self, prefix: &str, phase: Phase) {
        let now = self.now;
        self.edit(prefix, |pod| {
            // Who is over stays so, whatever a random story says, and who is leaving does not come back.
            let comes_back = phase == Phase::Running && pod.phase == Phase::Releasing;
            if matches!(pod.phase, Phase::Succeeded | Phase::Failed) || comes_back {
                return;
            }
            pod.phase = phase;
            pod.started = pod.started.or(Some(now));
        });
    }

    fn edit(&mut self, prefix: &str, change: impl Fn(&mut TaskSpec)) {
        let keys: Vec<Key> = self
            .pods
            .keys()
            .filter(|k| k.to_string().starts_with(prefix))
            .cloned()
            .collect();
        assert!(!keys.is_empty(), "no pod begins with {prefix}");
        for key in keys {
            let mut pod = self.pods[&key].clone();
            change(&mut pod);
            self.put(pod);
        }
    }

    fn delete(&mut self, prefix: &str) {
        let keys: Vec<Key> = self
            .pods
            .keys()
            .filter(|k| k.to_string().starts_with(prefix))
            .cloned()
            .collect();
        for key in keys {
            self.pods.remove(&key);
            self.tables.remove_task(&key);
        }
    }

    fn drop(&mut self, text: &str) {
        let (what, name) = text.split_once(' ').expect("drop what name");
        match what {
            "node" => self.tables.remove_node(name),
            "queue" => self.tables.remove_queue(name),
            "gang" => {
                self.gangs.remove(&key(name));
                self.tables.remove_gang(&key(name));
            }
            other => panic!("cannot drop {other}"),
        }
    }

    /// Cycles until nothing more is decided, or once.
    fn cycle(&mut self, until: Until) {
        let before = self.said.len();
        for round in 0.. {
            assert!(
                round < 100,
                "the engine does not come to rest (I20)\n{}",
                self.said
            );
            let plan = self.decide();
            if until == Until::Decided || plan.is_empty() {
                break;
            }
            self.carry_out(&plan);
            if until == Until::CarriedOut {
                break;
            }
        }
        if self.said.len() == before {
            self.said.push_str("nothing\n");
        }
    }

    /// One cycle, with its plan written down and checked.
    pub fn decide(&mut self) -> Plan {
        let (engine, tables) = (&self.engine, &self.tables);
        let other = (self.is_doubted).then(|| (engine.with_nothing_looked_up(), tables.clone()));
        let plan = self.engine.cycle(&mut self.tables, self.now);
        if let Some((mut engine, mut tables)) = other {
            let found = engine.cycle(&mut tables, self.now);
            assert_eq!(plan, found, "(I19)\n{}", self.said);
        }
        let mut wrong = checker::check(&self.tables);
        let waived = checker::Waived {
            ceilings: !self.engine.keeps_ceilings(),
            ceilings_above: !self.engine.keeps_ceilings_above(),
            hyper_nodes: !self.engine.keeps_hyper_nodes(),
            parts: !self.engine.keeps_parts(),
            budgets: !self.engine.keeps_budgets(),
        };
        wrong.extend(checker::check_plan_by(waived, &self.tables, &plan));
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", self.said);
        self.write_down(&plan);
        plan
    }

    fn write_down(&mut self, plan: &Plan) {
        self.hear_asks(plan);
        for place in &plan.places {
            let (task, node) = (self.tables.task(place.task), self.tables.node(place.node));
            let cards = cards::granted(&task.grants);
            let cards = if cards.is_empty() {
                cards
            } else {
                format!("  {cards}")
            };
            let taken = volumes::taken(task.volumes.as_deref());
            let name = &node.spec.name;
            let _ = writeln!(self.said, "{} -> {name}{cards}{taken}", task.key);
        }
        for eviction in &plan.evictions {
            let task = self.tables.task(eviction.task);
            let sake = match &eviction.sake {
                Sake::Gang(gang) => format!(" for {}", self.tables.gang(*gang).spec.key),
                Sake::Leaving(reason) => format!(", {}: {}", reason.code(), reason.sentence()),
            };
            let (key, cause) = (&task.key, eviction.cause);
            let _ = writeln!(self.said, "{key} is evicted{sake} ({cause})");
        }
        for opening in &plan.openings {
            let key = &self.tables.task(opening.task).key;
            let _ = writeln!(self.said, "{key} is let through its gate");
        }
        for nomination in &plan.nominations {
            let task = self.tables.task(nomination.task);
            let node = nomination
                .node
                .map_or("nothing", |node| &self.tables.node(node).spec.name);
            let _ = writeln!(self.said, "{} is promised {node}", task.key);
        }
        for wait in &plan.waits {
            let task = self.tables.task(wait.task);
            let gang = self
                .tables
                .gang(task.gang.expect("only tasks of gangs wait"));
            // What the whole gang waits for is written down once, below.
            if !matches!(gang.said, Verdict::Waits(_)) {
                let (code, sentence) = (wait.reason.code(), wait.reason.sentence());
                let _ = writeln!(self.said, "{}  waits  {code}: {sentence}", task.key);
            }
        }
        for remark in &plan.remarks {
            let (key, why) = (&self.tables.gang(remark.gang).spec.key, &remark.reason);
            let _ = writeln!(self.said, "{key}  {}: {}", why.code(), why.sentence());
        }
        for row in &plan.statuses {
            let gang = self.tables.gang(row.gang);
            let phase = row.status.phase.word();
            let why = match &row.status.verdict {
                Verdict::Waits(reason) => {
                    format!("  waits  {}: {}", reason.code(), reason.sentence())
                }
                Verdict::Scheduled | Verdict::Undecided => String::new(),
            };
            let _ = writeln!(self.said, "{}  {phase}{why}", gang.spec.key);
        }
    }

    /// What the API would show once all of the plan was written.
    pub fn carry_out(&mut self, plan: &Plan) {
        for place in &plan.places {
            let key = self.tables.task(place.task).key.clone();
            if self.refused.remove(&key.to_string()) {
                self.tables.refuse(place.write);
                continue;
            }
            let mut pod = self.pods[&key].clone();
            pod.node = Some(self.tables.node(place.node).spec.name.clone());
            pod.scheduled = Some(self.now);
            pod.grants = self.tables.task(place.task).grants.clone();
            volumes::bind(&mut self.tables, &mut pod);
            self.put(pod);
            self.tables.confirm(place.write);
        }
        for eviction in &plan.evictions {
            let key = self.tables.task(eviction.task).key.clone();
            if self.refused.remove(&key.to_string()) {
                self.tables.refuse(eviction.write);
                continue;
            }
            let mut pod = self.pods[&key].clone();
            pod.phase = Phase::Releasing;
            self.put(pod);
            self.tables.confirm(eviction.write);
        }
        for opening in &plan.openings {
            let key = self.tables.task(opening.task).key.clone();
            if self.refused.remove(&key.to_string()) {
                self.tables.refuse(opening.write);
                continue;
            }
            let mut pod = self.pods[&key].clone();
            (pod.gated, pod.gate) = (false, Gate::Opened);
            self.put(pod);
            self.tables.confirm(opening.write);
        }
        for row in &plan.statuses {
            let key = self.tables.gang(row.gang).spec.key.clone();
            let gang = self.gangs.get_mut(&key).expect("a gang of this world");
            let entered =
                row.status.phase == GangPhase::Inqueue && gang.status.phase == GangPhase::Pending;
            gang.status = model::GangStatus {
                verdict: Verdict::Undecided,
                ..row.status.clone()
            };
            if row.status.verdict != Verdict::Undecided {
                gang.shows = gang.shows.map(|_| Shown {
                    waits: matches!(row.status.verdict, Verdict::Waits(_)),
                    scheduled: row.status.verdict == Verdict::Scheduled,
                });
            }
            let gang = gang.clone();
            self.tables.put_gang(gang);
            self.tables.confirm(row.write);
            if let Some(words) = self.wanted.get(&key).filter(|_| entered).cloned() {
                self.wanted.remove(&key);
                self.make(&key, &words);
            }
        }
        for row in &plan.queues {
            self.tables.confirm(row.write);
        }
    }

    /// Whether some pod of that key prefix holds a node.
    pub fn has_pod_on_a_node(&self, prefix: &str) -> bool {
        self.pods
            .values()
            .any(|pod| pod.key.to_string().starts_with(prefix) && pod.node.is_some())
    }

    /// Everything that the API holds, each as one row to feed: pods say which node they were promised.
    pub fn rows(&self) -> Vec<Feed> {
        let mut rows = volumes::rows(&self.tables);
        for pod in self.pods.values() {
            let mut pod = pod.clone();
            pod.nominated = self.promised(&pod.key).or(pod.nominated);
            rows.push(Box::new(move |tables| {
                tables.put_task(pod.clone());
            }));
        }
        for node in self.nodes.values() {
            let node = node.clone();
            let is_left = self.left.contains(&*node.name);
            rows.push(Box::new(move |tables| match is_left {
                true => tables.leave_node(&node.name, node.labels.clone()),
                false => drop(tables.put_node(node.clone())),
            }));
        }
        for gang in self.gangs.values() {
            let gang = gang.clone();
            rows.push(Box::new(move |tables| {
                tables.put_gang(gang.clone());
            }));
        }
        for (_, queue) in self.tables.queues().filter(|(_, queue)| queue.known) {
            let queue = queue.spec.clone();
            rows.push(Box::new(move |tables| {
                tables.put_queue(queue.clone());
            }));
        }
        rows
    }
}
