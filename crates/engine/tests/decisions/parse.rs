//! The words of the fixture language.
//!
//! One command a line; `#` starts a comment. Amounts are written as in Kubernetes.
//! ```text
//! node n1 n2 cpu=2 mem=4Gi pods=110 label=zone:a taint=k:v:NoSchedule limit=csi:1 cordoned
//! node n1 foreign | others n7 n8 label=zone:b | shard s missing      nodes of other schedulers, in part or whole
//! actions enqueue allocate preempt | tiers priority gang / drf proportion | off gang enablePreemptable
//! on drf enableHierarchy | queue q way=sci:50/dev:2       where it is in the tree of shares
//! node n1 group=g1 | queue q groups=g1 likes=g2,g3 never=g4 avoids=g5 at-most=g1:cpu:4
//! queue q weight=2 cap=cpu:4 guarantee=cpu:1 deserved=cpu:2 parent=root priority=3 state=Closed keeps
//! class high 1000
//! gang a/t queue=q min=3 class=high minres=none role-min=worker:2 : 1 x role=master cpu=1 + 2 x role=worker cpu=1
//! gang a/n native within=zone own-priority=7 : …   one of Kubernetes' own, in one domain of a label
//! gang a/n goes-whole : …              its tasks are evicted all at once or not at all
//! gang a/t together=ps,worker;chief apart=ps in-order=ps,worker : …   which roles are to be on one node
//! tasks ask with select=zone:a require=zone:In:a,b;disk:Exists prefer=disk:ssd~weight:50 tolerate=k:v:NoSchedule
//!   port=80/UDP@10.0.0.1 near=app:web~key:zone~ns:b apart=… like=app:web~weight:-50
//!   spread=app:web~key:host~skew:2~domains:3~soft~all-selected~borne example.com/chip=2
//! gang a/p agent : 1 x cpu=1         a pod that is in no group and no queue
//! bound n1 a/x cpu=1                   a pod that is not ours
//! cycle | cycle once | cycle first | wait 1s | run KEY | end KEY | fail KEY | release KEY | delete KEY | gate-off KEY
//! gang a/z jdb=min/2 (or max/50%) preemptable (or preemptable=no) : 2 x revocable cpu=1      it bears nodes that are lent at times
//! gang a/t : 1 x priority=5 pod-priority=9 critical       an annotation says 5; its class is one of the cluster's own
//! measured n1 n2 cpu=85 mem=20         what was measured of nodes now, in per cent
//! answer TOPIC: OPINION; …             to what was asked: yes, no WHY, neither, failed WHY, n1=5 n2=0.5,
//!                                      victims POD POD, overused, free
//! local 0:3600 100:7200                local clocks: from that second on so many seconds east
//! pods a/t : 2 x cpu=1                 more pods for a gang
//! deviceshare VGPUEnable SchedulePolicy=binpack ScheduleWeight=1 GPUExclusiveRules=[k:v]
//! node n1 vgpu=2:16000:10 model=A100 sick=1 mig garbled | node n1 gpushare=2:8000    cards: count:MiB:users
//! gang a/t : 1 x vgpu=1:4000:30 vgpu=2:50% use=A100 nouse=T4 use-id=n1-0 card-mode=mig cards-apart | gpumem=4000 | gpunum=2
//! node n1 npu=Ascend310P:2:21527:7 npu-mode=hami-core      NPUs: kind:count:MiB:users, and how they are divided
//! gang a/t : 1 x npu=Ascend310P:1:6144:vir02 | npu-soft=Ascend310P:1:5000:30 | npu-soft=Ascend310P:2:21527:0:whole | npu-mode=enpu
//! bound n1 a/x holds=n1-0:4000:30
//! node n1 chips=2:8 | gang a/t : 1 x cores=4 level=high dvpp=yes | bound n1 a/x holds=Ascend310P-0~vir01~2 | settle KEY 2
//! node n1 device=g0:1,?2:board/a:sick device=g1 devices-partial      passing selector 1, not judging 2; attribute; or held, shared, parts
//! node n1 device=g0:1::parts::m/80-20/10/4..40+4    its capacity: of 80, 20 are held; 10 unasked; in such amounts
//! node n1 counter=slots/7 device=g0::::slots/4      what the device takes of a counter
//! gang a/t : 1 x claim=2:1|1;all~board~!half claim=admin1 claim=brave1     requests, ways, what they share, in what they differ
//! node n1 backs=example.com/chip:2 device=g0:1 device=g1:1     a resource that it has by its devices alone
//! gang a/t : 1 x example.com/chip=1 serves=example.com/chip:1:1      what serves it there passes selector 1
//! gang a/t : 1 x claim=1:1:m/8       so much of the capacity of a device that passes selector 1
//! gang a/t : 1 x strategy=most strategy=least/cpu:2,mem:1     its own, with weights of its own
//! gang a/t : 1 x counts=gpu:2,memory.gpu:8 counts=c1/gpu:1     what a claim counts for in the queue; a shared one has a name
//! gang a/t : 1 x devices=gpu devices-on=zone:z                       a claim that does not exist; one that has devices there
//! gang a/t : 1 x makes=csi:2 shares=data shares=csi:data     claims that wait for their first consumer: its own, or of several
//! node n1 image=app:500Mi | gang a/t : 1 x image=app image=side      images of a node, and of a task's containers
//! numa-aware | node n1 numa=2x4 smt one-socket gpus=0,1 policy=restricted unpinned open=0-3 reserved=1 numa-garbled
//! gang a/t : 1 x pin=2:1 pin=4 policy=restricted      containers with cpus (and GPUs) of their own
//! bound n1 a/x has=cpu:0-3 | told a/x cpu:4-7        what a node tells that a pod has of its cpus
//! untold KEY                           since when it has its node is not told
//! anew KEY                             another pod under that name, whose deletion nobody saw
//! argument binpack binpack.cpu=3       a wrong one is told, and what counts instead
//! gang a/t : 1 x cpu=1 up-to=cpu:3,mem:1Gi      its limits, for whoever looks at them
//! gang a/t : 1 x stands-in=cpu:300m,mem:600Mi      what counts for containers that request none
//! alter a/t min=1 class=low preemptable ours status-gone   somebody edits a gang; without its status, too
//! nominate a/t-0                       its status names the node that it is promised
//! conditions a/t                      what each of its tasks was told
//! refuse a/t-0 (its next bind) | drop node n1 | drop gang a/t | explain a/t | show queue q
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    Amount, Branch, Budget, CardAsk, ClaimLack, Closeness, Disruption, Fill, Gate, Grant,
    GroupLimits, Highest, HostPort, Inclusion, Key, Kind, Labels, Limits, LocalTime, NodeTerm,
    NumaAsk, Operator, PodTerm, Portion, Preferred, QueueSpec, Quota, Requirement, ShapeSpec,
    Spread, Strategy, SubGroups, Tables, Taint, TaintEffect, TaskTopology, Time, Toleration,
    TolerationEffect, Unmade, UnmetClaim, Vector, VolumeLack, VolumeNeed,
};
use placement::{Argument, Decimal};

use crate::{cards as of_cards, devices, numa, volumes};

/// `key=value` words of a line, in order; a word without `=` has an empty value.
pub fn words(text: &str) -> Vec<(&str, &str)> {
    text.split_whitespace()
        .map(|word| word.split_once('=').unwrap_or((word, "")))
        .collect()
}

pub fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').expect("namespace/name");
    Key::new(namespace, name)
}

/// `budget a/b label=x:y allowed=1`
pub fn budget(text: &str) -> Budget {
    let mut budget = Budget::default();
    for (word, value) in words(text) {
        match word {
            "label" => {
                let (key, value) = value.split_once(':').expect("key:value");
                budget.selector = Some(vec![Requirement::equals(key, value)]);
            }
            "allowed" => budget.allowed = value.parse().expect("a number"),
            name => budget.key = key(name),
        }
    }
    budget
}

/// `quota a/q hard=cpu:2,pods:3 used=cpu:1`
pub fn quota(tables: &mut Tables, text: &str) -> Quota {
    let mut quota = Quota::default();
    for (word, value) in words(text) {
        match word {
            "hard" => {
                quota.written = written(tables, value);
                quota.hard = least(&quota.written);
            }
            "used" => quota.used = Vector::of(amounts(tables, value)),
            name => quota.key = key(name),
        }
    }
    quota
}

/// `requests.cpu:3,cpu:4`: what is requested has two names.
fn written(tables: &mut Tables, text: &str) -> Vec<Amount> {
    let parts = text.split(',').map(|part| {
        let (name, value) = part.split_once(':').expect("resource:amount");
        let bare = name.strip_prefix("requests.").unwrap_or(name);
        let kind = kind(tables, bare);
        let prefix = &name[..name.len() - bare.len()];
        Amount {
            kind,
            name: format!("{prefix}{}", tables.kinds().name(kind)).into(),
            value: amount(kind, value),
        }
    });
    parts.collect()
}

/// Of what has two names the lower amount counts.
pub fn least(written: &[Amount]) -> Limits {
    let mut limits = Limits::default();
    for it in written {
        let before = limits.get(it.kind).unwrap_or(i64::MAX);
        limits.set(it.kind, it.value.min(before));
    }
    limits
}

pub fn amount(kind: Kind, text: &str) -> i64 {
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let number: i64 = number
        .parse()
        .unwrap_or_else(|_| panic!("no amount: {text}"));
    let scale = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "m" => return number,
        other => panic!("no unit: {other}"),
    };
    if kind == Kind::MEMORY || kind == Kind::PODS {
        number * scale
    } else {
        number * 1_000
    }
}

/// `app:500Mi`, on a node.
pub fn image(text: &str) -> (Arc<str>, i64) {
    let (name, size) = text.rsplit_once(':').expect("name:size");
    (name.into(), amount(Kind::MEMORY, size))
}

pub fn kind(tables: &mut Tables, word: &str) -> Kind {
    match word {
        "cpu" => Kind::CPU,
        "mem" => Kind::MEMORY,
        "pods" => Kind::PODS,
        "gpu" => tables.kind("nvidia.com/gpu"),
        name if name.contains('/') || name.starts_with("limits.") => tables.kind(name),
        other => panic!("no resource: {other}"),
    }
}

/// `cpu:4,mem:1Gi`
pub fn amounts(tables: &mut Tables, text: &str) -> Vec<(Kind, i64)> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once(':').expect("resource:amount");
            let kind = kind(tables, name);
            (kind, amount(kind, value))
        })
        .collect()
}

/// `3`, `0.5`, `true`, `[a,b]`, `{a:1;b:2}`; anything else is a text.
pub fn argument(text: &str) -> Argument {
    if let Ok(number) = text.parse() {
        return Argument::Whole(number);
    }
    if let Ok(flag) = text.parse() {
        return Argument::Flag(flag);
    }
    if let Some(list) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return Argument::List(list.split(',').map(argument).collect());
    }
    if let Some(map) = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        let pairs = map.split(';').map(|pair| {
            let (key, value) = pair.split_once(':').expect("key:value");
            (key.to_owned(), argument(value))
        });
        return Argument::Map(pairs.collect());
    }
    let decimal = text.parse().ok().and_then(Decimal::new);
    decimal.map_or_else(|| Argument::Text(text.to_owned()), Argument::Decimal)
}

pub fn limits(tables: &mut Tables, text: &str) -> Limits {
    Limits::of(amounts(tables, text))
}

/// `way=sci:50/dev:2`: the branches above a queue in the tree of shares, with their weights.
pub fn branches(value: &str) -> Vec<Branch> {
    let steps = value.split('/').map(|step| {
        let (name, weight) = step.split_once(':').unwrap_or((step, "1"));
        Branch {
            name: name.into(),
            weight: weight.parse::<i64>().expect("a weight") * 1000,
        }
    });
    steps.collect()
}

/// `groups=g1,g2` (required) `likes=g3` (preferred) `never=g4` `avoids=g5` `at-most=g1:cpu:4` (a limit in
/// a group) `at-most=nonsense`
pub fn node_groups(tables: &mut Tables, queue: &mut QueueSpec, word: &str, value: &str) {
    let names = || value.split(',').map(Arc::from);
    match (word, value.split_once(':')) {
        ("groups", _) => queue.groups.required.extend(names()),
        ("likes", _) => queue.groups.preferred.extend(names()),
        ("never", _) => queue.groups.forbidden.extend(names()),
        ("avoids", _) => queue.groups.avoided.extend(names()),
        (_, None) => queue.group_limits = GroupLimits::Unreadable,
        (_, Some((group, amounts))) => {
            let limits = limits(tables, amounts);
            let GroupLimits::Known(rows) = &mut queue.group_limits else {
                panic!("the limits were called nonsense");
            };
            rows.insert(group.into(), limits);
        }
    }
}

/// `together=ps,worker;chief`, `apart=ps`, `in-order=ps,worker`
pub fn task_topology(topology: &mut TaskTopology, word: &str, value: &str) {
    let names = |list: &str| list.split(',').map(Arc::from).collect();
    match word {
        "together" => topology.together = value.split(';').map(names).collect(),
        "apart" => topology.apart = value.split(';').map(names).collect(),
        _ => topology.order = names(value),
    }
}

/// What a claim counts for, with its name if it is shared.
pub type Counts = (Option<String>, Vec<(Kind, i64, bool)>);

/// What a task line asks for.
#[derive(Clone, Default)]
pub struct TaskWords {
    pub count: u32,
    pub role: String,
    pub shape: ShapeSpec,
    pub claims: Vec<Arc<str>>,
    /// Claims that one pod may use at a time.
    pub sole: Vec<Arc<str>>,
    pub labels: BTreeMap<String, String>,
    pub gated: bool,
    pub gate: Gate,
    /// The node that its status names.
    pub nominated: Option<Arc<str>>,
    /// It may not be evicted.
    pub stays: bool,
    /// It belongs to its node.
    pub of_node: bool,
    /// Nobody is evicted for it.
    pub humble: bool,
    /// How long it is left alone.
    pub cooldown_ms: i64,
    pub priority: i32,
    /// Its pod's, where that is another one.
    pub pod_priority: Option<i32>,
    /// Its class is one of the cluster's own.
    pub critical: bool,
    /// What it holds of its node's cards.
    pub holds: Vec<Grant>,
    /// What its claims count for: a shared one by its name.
    pub charges: Vec<Counts>,
}

pub fn tasks(tables: &mut Tables, text: &str) -> Vec<TaskWords> {
    text.split('+')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(|t| task(tables, t))
        .collect()
}

pub fn task(tables: &mut Tables, text: &str) -> TaskWords {
    let (count, rest) = match text.split_once(" x") {
        Some((count, rest)) => (count.trim().parse().expect("a number of tasks"), rest),
        None => (1, text),
    };
    let mut task = TaskWords {
        count,
        priority: 1,
        ..TaskWords::default()
    };
    let mut requests = Vector::ZERO;
    let mut up_to = Vec::new();
    let mut cards = CardAsk::default();
    let mut ask = NumaAsk::default();
    for (word, value) in words(rest) {
        let pair = || value.split_once(':').unwrap_or((value, ""));
        match word {
            _ if word == "cpu" || word == "mem" || word == "gpu" || word.contains('/') => {
                let kind = kind(tables, word);
                requests.set(kind, amount(kind, value));
            }
            "serves" => {
                let kind = kind(tables, pair().0);
                let ask = task.shape.devices.get_or_insert_default();
                Arc::make_mut(ask)
                    .claims
                    .push(devices::serving(kind, pair().1));
            }
            "role" => task.role = value.to_owned(),
            "label" => {
                task.labels.insert(pair().0.to_owned(), pair().1.to_owned());
            }
            "shares" => shares(&mut task, value),
            "alone" => {
                task.sole.push(value.into());
                task.shape.volumes.push(VolumeNeed::Alone);
            }
            "image" => {
                task.shape.images.push(value.into());
                task.shape.images.sort_unstable();
            }
            "up-to" => up_to = amounts(tables, value),
            "stands-in" => {
                let amounts = Vector::of(amounts(tables, value));
                let of = [Kind::CPU, Kind::MEMORY].map(|kind| amounts.get(kind));
                task.shape.stand_ins = Some(of);
            }
            "strategy" => task.shape.strategy = Some(strategy(tables, value)),
            "gated" => task.gated = true,
            "queue-gated" => (task.gated, task.gate) = (true, Gate::Closed),
            "nominated" => task.nominated = Some(value.into()),
            "revocable" => task.shape.revocable = true,
            "stays" => task.stays = true,
            "of-node" => task.of_node = true,
            "humble" => task.humble = true,
            "cooldown" => {
                let seconds: i64 = value.trim_end_matches('s').parse().expect("seconds");
                task.cooldown_ms = seconds * 1_000;
            }
            "critical" => task.critical = true,
            "pod-priority" => task.pod_priority = value.parse().ok(),
            "priority" => task.priority = value.parse().expect("a priority"),
            "counts" => task.charges.push(charge(tables, value)),
            "holds" => task.holds.push(of_cards::grant(value)),
            "has" => task.holds.push(numa::grant(value)),
            _ if numa::wants(&mut ask, word, value) => {}
            _ if of_cards::wants(&mut cards, word, value) => {}
            "claim" => devices::wants((&mut task.shape, &mut task.claims), value),
            _ if volumes::wants((&mut task.shape.volumes, &mut task.claims), word, value) => {}
            _ => constraint(&mut task.shape, word, value),
        }
    }
    for (kind, limit) in &up_to {
        let name = format!("limits.{}", tables.kinds().name(*kind));
        let named = tables.kind(&name);
        task.shape.limits.set(named, *limit);
    }
    for (kind, limit) in up_to {
        let burst = &mut task.shape.burst[usize::from(kind == Kind::MEMORY)];
        *burst = (limit - requests.get(kind)).max(0);
    }
    task.shape.requests = requests;
    task.shape.numa = (ask != NumaAsk::default()).then(|| Arc::new(ask));
    task.shape.cards = (!cards.is_nothing()).then(|| Arc::new(cards));
    task
}

/// `data` is a claim that waits for its first consumer; of `csi:data` the driver `csi` makes the volume.
fn shares(task: &mut TaskWords, value: &str) {
    let (driver, claim) = value.split_once(':').unwrap_or(("", value));
    let attach = (driver.into(), claim.into());
    task.claims.push(claim.into());
    task.shape.volumes.push(VolumeNeed::FirstConsumer {
        topology: None,
        unmade: (!driver.is_empty()).then_some(Unmade::Shared(attach)),
        ask: None,
    });
}

/// `most`, `least/cpu:2,mem:1`, `most/` where its weights could not be read
fn strategy(tables: &mut Tables, text: &str) -> Arc<Strategy> {
    let (word, weights) = match text.split_once('/') {
        Some((word, weights)) => (word, Some(weights)),
        None => (text, None),
    };
    let weights = weights.map(|text| {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let parts = parts.map(|part| part.split_once(':').expect("kind:weight"));
        let rows = parts.map(|(name, weight)| (kind(tables, name), weight.parse()));
        rows.map(|(kind, weight)| (kind, weight.expect("a weight")))
            .collect()
    });
    let fill = match word {
        "least" => Fill::Least,
        "most" => Fill::Most,
        other => panic!("no strategy: {other}"),
    };
    Arc::new(Strategy { fill, weights })
}

/// `gpu:2`, `memory.gpu:8,gpu:1`, `c1/gpu:2`: classes of devices and dimensions of their capacity;
/// `cards/vgpu-memory:8000,vgpu-cores:30`: of its virtual GPUs. `~memory.gpu:8` comes unasked.
fn charge(tables: &mut Tables, text: &str) -> Counts {
    let (name, text) = match text.split_once('/') {
        Some((name, text)) => (Some(name.to_owned()), text),
        None => (None, text),
    };
    let is_of_cards = name.as_deref() == Some(of_cards::CARDS);
    let amounts = text.split(',').map(|part| {
        let (class, count) = part.split_once(':').expect("class:count");
        let (class, is_unasked) = match class.strip_prefix('~') {
            Some(class) => (class, true),
            None => (class, false),
        };
        let name = match class.split_once('.') {
            _ if is_of_cards => format!("volcano.sh/{class}"),
            Some((dimension, class)) => format!("{dimension}.deviceclass/{class}"),
            None => format!("deviceclass/{class}"),
        };
        let kind = tables.kind(&name);
        (kind, amount(kind, count), is_unasked)
    });
    (name, amounts.collect())
}

/// `zone:a`, `zone:In:a,b`, `zone:NotIn:a,b`, `zone:Exists`, `zone:DoesNotExist`, `rank:Gt:3`, `rank:Lt:3`
fn requirement(text: &str) -> Requirement {
    let (key, rest) = text.split_once(':').unwrap_or((text, ""));
    let (word, values) = rest.split_once(':').unwrap_or((rest, ""));
    let operator = match word {
        "DoesNotExist" => Operator::DoesNotExist,
        "Exists" => Operator::Exists,
        "Gt" => Operator::Gt,
        "In" => Operator::In,
        "Lt" => Operator::Lt,
        "NotIn" => Operator::NotIn,
        value => return Requirement::equals(key, value),
    };
    let values = values.split(',').filter(|value| !value.is_empty());
    Requirement {
        key: key.into(),
        operator,
        values: values.collect(),
    }
}

/// What follows a wish, each after a `~`: `app:web~key:zone~weight:50~soft`.
struct Details<'a> {
    main: &'a str,
    all: BTreeMap<&'a str, &'a str>,
}

impl<'a> Details<'a> {
    fn of(text: &'a str) -> Details<'a> {
        let mut parts = text.split('~');
        let main = parts.next().unwrap_or("");
        let all = parts.map(|part| part.split_once(':').unwrap_or((part, "")));
        let all = all.collect();
        Details { main, all }
    }

    fn number(&self, name: &str, default: i32) -> i32 {
        let text = self.all.get(name);
        text.map_or(default, |text| text.parse().expect("a number"))
    }

    fn key(&self, default: &'static str) -> Arc<str> {
        self.all.get("key").copied().unwrap_or(default).into()
    }

    /// `app:web~key:zone~ns:a,b`: without `ns` pods of every namespace count.
    fn pods(&self) -> PodTerm {
        let listed = |text: &&str| text.split(',').map(Arc::from).collect();
        PodTerm {
            topology_key: self.key("host"),
            selector: vec![requirement(self.main)],
            namespaces: self.all.get("ns").map(listed),
        }
    }
}

/// `80`, `80/UDP`, `80@10.0.0.1`, `80/UDP@10.0.0.1`
fn port(text: &str) -> HostPort {
    let (rest, address) = text.split_once('@').unwrap_or((text, ""));
    let (number, protocol) = rest.split_once('/').unwrap_or((rest, "TCP"));
    HostPort {
        protocol: protocol.into(),
        address: address.into(),
        port: number.parse().expect("a port"),
    }
}

/// `*`, `key`, `key:value`, `key:value:NoSchedule`; an empty value covers every value.
fn toleration(text: &str) -> Toleration {
    let parts: Vec<&str> = text.split(':').collect();
    let value = parts.get(1).filter(|value| !value.is_empty());
    Toleration {
        key: (text != "*").then(|| parts[0].into()),
        value: value.map(|value| (*value).into()),
        effect: match parts.get(2) {
            Some(word) => TolerationEffect::Only(effect(word)),
            None => TolerationEffect::Any,
        },
    }
}

fn constraint(shape: &mut ShapeSpec, word: &str, value: &str) {
    let (left, right) = value.split_once(':').unwrap_or((value, ""));
    let details = Details::of(value);
    match word {
        "select" => shape.node_selector.push(Requirement::equals(left, right)),
        "on" => {
            let names = vec![Requirement::equals("metadata.name", value)];
            shape.node_affinity.get_or_insert_default().push(NodeTerm {
                labels: Vec::new(),
                names,
            });
        }
        // Requirements of one term are joined by `;`, terms are words of their own.
        "require" => shape.node_affinity.get_or_insert_default().push(NodeTerm {
            labels: value.split(';').map(requirement).collect(),
            names: Vec::new(),
        }),
        "require-nothing" => shape
            .node_affinity
            .get_or_insert_default()
            .push(NodeTerm::default()),
        "prefer" => shape.preferred_nodes.push(Preferred {
            weight: details.number("weight", 100),
            term: NodeTerm {
                labels: vec![requirement(details.main)],
                names: Vec::new(),
            },
        }),
        "tolerate" => shape.tolerations.push(toleration(value)),
        "port" => shape.ports.push(port(value)),
        "near" => shape.pod_affinity.push(details.pods()),
        "apart" => shape.pod_anti_affinity.push(details.pods()),
        "like" => shape.preferred_pods.push(Preferred {
            weight: details.number("weight", 100),
            term: details.pods(),
        }),
        "spread" => shape.spread.push(Spread {
            topology_key: details.key("zone"),
            max_skew: details.number("skew", 1),
            min_domains: details.number("domains", 1).unsigned_abs(),
            required: !details.all.contains_key("soft"),
            selector: vec![requirement(details.main)],
            namespace: "a".into(),
            affinity: match details.all.contains_key("all-selected") {
                true => Inclusion::Ignore,
                false => Inclusion::Honor,
            },
            taints: match details.all.contains_key("borne") {
                true => Inclusion::Honor,
                false => Inclusion::Ignore,
            },
        }),
        "claim-missing" => shape.volumes.push(VolumeNeed::Waits {
            claim: value.into(),
            why: VolumeLack::Missing,
        }),
        "claim-unbound" => shape.volumes.push(VolumeNeed::Waits {
            claim: value.into(),
            why: VolumeLack::Unbound,
        }),
        "claim-leaving" => shape.volumes.push(VolumeNeed::Waits {
            claim: value.into(),
            why: VolumeLack::Leaving,
        }),
        "claim-of-another" => shape.volumes.push(VolumeNeed::Waits {
            claim: value.into(),
            why: VolumeLack::Foreign,
        }),
        "devices" => shape.device_claims.push(UnmetClaim {
            name: value.into(),
            why: ClaimLack::Missing,
        }),
        "devices-on" => shape.device_nodes.push(vec![NodeTerm {
            labels: vec![Requirement::equals(left, right)],
            names: Vec::new(),
        }]),
        "volume" => shape.volumes.push(VolumeNeed::Bound {
            affinity: None,
            zones: Vec::new(),
            attach: Some((Arc::from(left), Arc::from(right))),
        }),
        "makes" => shape.volumes.push(VolumeNeed::FirstConsumer {
            topology: None,
            unmade: Some(Unmade::Own(left.into(), right.parse().expect("slots"))),
            ask: None,
        }),
        "volume-on" => shape.volumes.push(VolumeNeed::Bound {
            affinity: Some(vec![NodeTerm {
                labels: vec![Requirement::equals(left, right)],
                names: Vec::new(),
            }]),
            zones: Vec::new(),
            attach: None,
        }),
        "volume-zone" => shape.volumes.push(volumes::within(left, right)),
        other => panic!("no such word for a task: {other}"),
    }
}

/// `min/2`, `max/50%`
pub fn disruption(text: &str) -> Disruption {
    let (word, number) = text.split_once('/').expect("min or max / number");
    let portion = match number.strip_suffix('%') {
        Some(percent) => Portion::Percent(percent.parse().expect("a percentage")),
        None => Portion::Count(number.parse().expect("a number")),
    };
    match word {
        "min" => Disruption::MinAvailable(portion),
        "max" => Disruption::MaxUnavailable(portion),
        other => panic!("no bound: {other}"),
    }
}

/// `0:3600 100:7200`
pub fn local_time(text: &str) -> LocalTime {
    let changes = words(text).into_iter().map(|(change, _)| {
        let (from, east) = change.split_once(':').expect("from:seconds");
        let from: i64 = from.parse().expect("seconds");
        let from = Time::from_micros(from * 1_000_000);
        (from, east.parse().expect("seconds east"))
    });
    LocalTime::of(changes.collect())
}

/// `2`, `rack` or `any`
pub fn closeness(text: &str) -> Closeness {
    let highest = match (text, text.parse()) {
        ("any", _) => Highest::Any,
        (_, Ok(tier)) => Highest::Tier(tier),
        (name, Err(_)) => Highest::Named(name.into()),
    };
    Closeness::HyperNode(highest)
}

/// `name/size/min/key/tier`, of which the last may be missing
pub fn sub_groups(text: &str) -> SubGroups {
    let parts: Vec<&str> = text.split('/').collect();
    SubGroups {
        name: parts[0].into(),
        size: parts[1].parse().expect("a size"),
        min: parts[2].parse().expect("a minimum"),
        keys: vec![parts[3].into()],
        closeness: parts.get(4).map(|tier| closeness(tier)),
        selector: Vec::new(),
    }
}

pub fn taint(text: &str) -> Taint {
    let parts: Vec<&str> = text.split(':').collect();
    Taint {
        key: parts[0].into(),
        value: parts[1].into(),
        effect: effect(parts[2]),
    }
}

fn effect(word: &str) -> TaintEffect {
    match word {
        "NoSchedule" => TaintEffect::NoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        other => panic!("no effect: {other}"),
    }
}

pub fn labels(pairs: &BTreeMap<String, String>) -> Labels {
    Labels::of(
        pairs
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
    )
}
