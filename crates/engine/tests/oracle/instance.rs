//! Little clusters and what happens to them, as plain numbers: the oracle reads nothing else.

use std::fmt;

use crate::dice::Dice;

/// Cpu (thousandths), memory (Mi), gpu (pieces).
pub type Amounts = [i64; 3];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub room: Amounts,
    pub pods: i64,
    pub zone: Option<char>,
    pub tainted: bool,
    pub cordoned: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    pub weight: i64,
    pub priority: i32,
    pub cap_cpu: Option<i64>,
    pub guarantee_cpu: i64,
    pub is_closed: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    pub wants: Amounts,
    pub zone: Option<char>,
    pub tolerates: bool,
    pub port: bool,
    /// Not beside another task of its gang.
    pub apart: bool,
    /// A claim that waits for its first consumer.
    pub claim: Option<char>,
    pub gated: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gang {
    pub queue: usize,
    pub min: u32,
    pub high: bool,
    /// Whether it says what it needs together.
    pub states_minimum: bool,
    pub tasks: Vec<(u32, Ask)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Node(usize, Node),
    Queue(usize, Queue),
    Gang(usize, Gang),
    /// All of a gang ends and is gone.
    End(usize),
    /// All pods of a gang that have a node run.
    Run(usize),
    /// The next bind of a gang is refused.
    Refuse(usize),
    /// A pod of somebody else holds cpu on a node.
    Foreign(usize, i64),
    /// The gates of a gang open.
    Open(usize),
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn amount(&mut self, sides: u64) -> i64 {
        i64::try_from(self.roll(sides)).expect("small")
    }

    fn index(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).expect("small")
    }
}

const NODES_MAX: usize = 6;
const GANGS_MAX: usize = 8;

/// What happens under a seed. Each seed knows a part of the features only.
pub fn events(seed: u64) -> Vec<Event> {
    let mut dice = Dice::new(seed);
    let features = dice.roll(256);
    let has = |bit: u64| features & (1 << bit) != 0;
    let nodes = 1 + dice.index(NODES_MAX);
    let queues = 1 + dice.index(if has(0) { 3 } else { 1 });
    let mut all = Vec::new();
    for at in 0..queues {
        all.push(Event::Queue(at, queue(&mut dice, has(1))));
    }
    for at in 0..nodes {
        all.push(Event::Node(at, node(&mut dice, has(2))));
    }
    let mut alive: Vec<usize> = Vec::new();
    let mut next = 0;
    for _ in 0..6 + dice.roll(14) {
        let some = |dice: &mut Dice| alive.get(dice.index(alive.len().max(1))).copied();
        match dice.roll(12) {
            0..=4 if alive.len() < GANGS_MAX => {
                let wish = [has(3), has(4), has(5), has(6)];
                all.push(Event::Gang(next, gang(&mut dice, queues, wish)));
                alive.push(next);
                next += 1;
            }
            5 | 6 => all.extend(some(&mut dice).map(Event::Run)),
            7 | 8 => {
                if let Some(gang) = some(&mut dice) {
                    all.push(Event::End(gang));
                    alive.retain(|other| *other != gang);
                }
            }
            9 => all.extend(some(&mut dice).map(if has(7) { Event::Refuse } else { Event::Open })),
            10 => {
                let at = dice.index(nodes);
                all.push(match dice.one_in(2) {
                    true => Event::Node(at, node(&mut dice, has(2))),
                    false => Event::Foreign(at, 500 + dice.amount(2) * 500),
                });
            }
            11 => {
                let at = dice.index(queues);
                all.push(Event::Queue(at, queue(&mut dice, has(1))));
            }
            _ => {}
        }
    }
    all
}

fn node(dice: &mut Dice, odd: bool) -> Node {
    Node {
        room: [
            1_000 + dice.amount(8) * 1_000,
            2_048 + dice.amount(3) * 2_048,
            dice.amount(3),
        ],
        pods: if odd && dice.one_in(3) { 2 } else { 110 },
        zone: odd.then(|| if dice.one_in(2) { 'a' } else { 'b' }),
        tainted: odd && dice.one_in(4),
        cordoned: odd && dice.one_in(6),
    }
}

fn queue(dice: &mut Dice, odd: bool) -> Queue {
    Queue {
        weight: 1 + dice.amount(3),
        priority: if odd && dice.one_in(3) { 5 } else { 0 },
        cap_cpu: (odd && dice.one_in(3)).then(|| 2_000 + dice.amount(6) * 1_000),
        guarantee_cpu: if odd && dice.one_in(4) { 1_000 } else { 0 },
        is_closed: odd && dice.one_in(8),
    }
}

fn gang(dice: &mut Dice, queues: usize, [mixed, rules, claims, gates]: [bool; 4]) -> Gang {
    let ask = |dice: &mut Dice| Ask {
        wants: [
            500 + dice.amount(6) * 500,
            256 << dice.roll(3),
            i64::from(dice.one_in(5)),
        ],
        zone: (rules && dice.one_in(4)).then_some('a'),
        tolerates: rules && dice.one_in(3),
        port: rules && dice.one_in(6),
        apart: rules && dice.one_in(6),
        claim: (claims && dice.one_in(3)).then(|| if dice.one_in(2) { 's' } else { 't' }),
        gated: gates && dice.one_in(5),
    };
    let first = (1 + u32::try_from(dice.roll(4)).expect("small"), ask(dice));
    let mut tasks = vec![first];
    if mixed && dice.one_in(2) {
        let second = (1 + u32::try_from(dice.roll(2)).expect("small"), ask(dice));
        if second.1 != tasks[0].1 {
            tasks.push(second);
        }
    }
    let count: u32 = tasks.iter().map(|(count, _)| *count).sum();
    Gang {
        queue: dice.index(queues),
        min: 1 + u32::try_from(dice.roll(u64::from(count))).expect("small"),
        high: dice.one_in(4),
        states_minimum: !dice.one_in(3),
        tasks,
    }
}

/// Events from text, `;` between them: only what the tests of the oracle itself need.
pub fn parse(text: &str) -> Vec<Event> {
    text.split(';').map(|line| one(line.trim())).collect()
}

fn one(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |key: &str| {
        let found = words.iter().find_map(|word| word.strip_prefix(key));
        found.map_or(0, |text| text.parse::<i64>().expect("a number"))
    };
    let at = words[1].parse().expect("a number");
    let index = |key: &str| usize::try_from(number(key)).expect("an index");
    match words[0] {
        "node" => {
            let room = [number("cpu=") * 1_000, 8_192, 0];
            Event::Node(
                at,
                Node {
                    room,
                    pods: 110,
                    ..Node::default()
                },
            )
        }
        "queue" => Event::Queue(
            at,
            Queue {
                weight: number("weight="),
                ..Queue::default()
            },
        ),
        "gang" => {
            let count = words.iter().position(|word| *word == "x").expect("a count");
            let wants = [number("cpu=") * 1_000, 256, 0];
            Event::Gang(
                at,
                Gang {
                    queue: index("queue="),
                    min: u32::try_from(number("min=")).expect("a minimum"),
                    high: words.contains(&"high"),
                    states_minimum: false,
                    tasks: vec![(
                        words[count - 1].parse().expect("a count"),
                        Ask {
                            wants,
                            ..Ask::default()
                        },
                    )],
                },
            )
        }
        other => panic!("no such event: {other}"),
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is: bool, word: &str| {
            if is {
                format!(" {word}")
            } else {
                String::new()
            }
        };
        match self {
            Event::Node(at, node) => {
                let [cpu, memory, gpu] = node.room;
                write!(
                    f,
                    "node {at} cpu={cpu}m mem={memory}Mi gpu={gpu} pods={}",
                    node.pods
                )?;
                let zone = node
                    .zone
                    .map_or(String::new(), |zone| format!(" zone={zone}"));
                write!(
                    f,
                    "{zone}{}{}",
                    word(node.tainted, "tainted"),
                    word(node.cordoned, "cordoned")
                )
            }
            Event::Queue(at, queue) => {
                write!(
                    f,
                    "queue {at} weight={} priority={}",
                    queue.weight, queue.priority
                )?;
                let cap = queue
                    .cap_cpu
                    .map_or(String::new(), |cap| format!(" cap={cap}m"));
                let kept = queue.guarantee_cpu;
                write!(
                    f,
                    "{cap} guarantee={kept}m{}",
                    word(queue.is_closed, "closed")
                )
            }
            Event::Gang(at, gang) => {
                write!(f, "gang {at} queue={} min={}", gang.queue, gang.min)?;
                write!(
                    f,
                    "{}{}",
                    word(gang.high, "high"),
                    word(!gang.states_minimum, "minres=none")
                )?;
                for (count, ask) in &gang.tasks {
                    let [cpu, memory, gpu] = ask.wants;
                    write!(f, " : {count} x cpu={cpu}m mem={memory}Mi gpu={gpu}")?;
                    let zone = ask
                        .zone
                        .map_or(String::new(), |zone| format!(" zone={zone}"));
                    let claim = ask
                        .claim
                        .map_or(String::new(), |claim| format!(" shares={claim}"));
                    write!(f, "{zone}{claim}{}", word(ask.tolerates, "tolerates"))?;
                    write!(
                        f,
                        "{}{}{}",
                        word(ask.port, "port"),
                        word(ask.apart, "apart"),
                        word(ask.gated, "gated")
                    )?;
                }
                Ok(())
            }
            Event::End(at) => write!(f, "end gang {at}"),
            Event::Run(at) => write!(f, "run gang {at}"),
            Event::Refuse(at) => write!(f, "refuse the next bind of gang {at}"),
            Event::Foreign(at, cpu) => write!(f, "a foreign pod of {cpu}m on node {at}"),
            Event::Open(at) => write!(f, "open the gates of gang {at}"),
        }
    }
}
