//! Laws of claims that one pod may use at a time, tried on seeded random clusters that have room for all. The
//! fixture asks the checker after every cycle (I25). A failure prints its seed.

use model::{Phase, TaskId};

use crate::dice::Dice;
use crate::fixture::World;
use crate::laws;

fn script(seed: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut pick = |words: &[&str]| words[dice.roll(words.len() as u64) as usize].to_owned();
    let mut lines = vec!["class high 1000".to_owned(), "class low 10".to_owned()];
    let evicting = pick(&["preempt", "preempt", "gangpreempt", "reclaim"]);
    lines.push(format!("actions enqueue allocate backfill {evicting}"));
    lines.push("off gang enablePreemptable".to_owned());
    lines.push("off drf enablePreemptable".to_owned());
    lines.push("queue gold weight=2".to_owned());
    for node in 0..3 {
        lines.push(format!("node n{node} cpu=100"));
    }
    for at in 0..16 {
        let mut claims = || pick(&["alone=c0", "alone=c1", "alone=c2", "alone=c0 alone=c3", ""]);
        let (first, second) = (claims(), claims());
        let class = pick(&["", "class=low", "class=high"]);
        let (min, stays) = (pick(&["1", "2"]), pick(&["", "", "", "stays"]));
        let queue = pick(&["default", "default", "default", "gold"]);
        let more = pick(&["", "", "+"]);
        let more = match &*more {
            "" => String::new(),
            _ => format!("+ 1 x cpu=1 {second}"),
        };
        let min = if more.is_empty() { "1" } else { &*min };
        let other = pick(&["0", "1", "2", "3", "4", "5", "6", "7"]);
        lines.push(match &*pick(&["gang", "gang", "gang", "run", "end", "delete", "release"]) {
            "gang" => format!(
                "gang a/g{at} queue={queue} min={min} minres=none {class} : 1 x cpu=1 {first} {stays} {more}"
            ),
            "delete" => format!("delete a/g{other}-0"),
            verb => format!("{verb} a/g{other}-"),
        });
        lines.push(pick(&["cycle", "cycle", "cycle once", "wait 1s"]));
    }
    lines.push("cycle".to_owned());
    lines
}

/// Who else uses a claim of the task and does not leave.
fn rivals(world: &World, id: TaskId) -> Vec<TaskId> {
    let tables = &world.tables;
    let task = tables.task(id);
    let others = tables.tasks().filter(|(other, row)| {
        let is_over = matches!(
            row.phase,
            Phase::Succeeded | Phase::Failed | Phase::Releasing
        );
        let shares = row.sole.iter().any(|claim| task.sole.contains(claim));
        *other != id && shares && row.node.is_some() && !is_over
    });
    others.map(|(other, _)| other).collect()
}

/// Whether the task could go for one of the other's gang by its priority.
fn could_go(world: &World, id: TaskId, claimant: TaskId) -> bool {
    let tables = &world.tables;
    let (task, claimant) = (tables.task(id), tables.task(claimant));
    let (Some(gang), Some(other)) = (task.gang, claimant.gang) else {
        return false;
    };
    let (gang, other) = (tables.gang(gang), tables.gang(other));
    gang.queue == other.queue
        && gang.priority < other.priority
        && task.preemptable
        && matches!(task.phase, Phase::Bound | Phase::Running)
}

#[test]
fn each_claim_is_used_by_one_and_nobody_waits_for_a_lesser() {
    let (mut used, mut waited, mut evicted) = (0, 0, 0);
    for seed in 0..400 {
        eprintln!("seed {seed}");
        let script = script(seed);
        let preempts = script.iter().any(|line| line.ends_with("backfill preempt"));
        let world = laws::played(script);
        evicted += world.said.matches("is evicted").count();
        for (id, task) in world
            .tables
            .tasks()
            .filter(|(_, task)| !task.sole.is_empty())
        {
            let rivals = rivals(&world, id);
            if matches!(task.phase, Phase::Bound | Phase::Running) {
                assert!(rivals.is_empty(), "{} is not alone", task.key);
                used += 1;
            }
            let gang = task.gang.map(|gang| world.tables.gang(gang));
            let alone = gang.is_some_and(|it| it.tasks.len() == 1 && it.spec.min_member == 1);
            if task.phase == Phase::Pending && alone && preempts {
                let stays = rivals.iter().any(|rival| !could_go(&world, *rival, id));
                assert!(stays, "{} waits for lesser ones", task.key);
                waited += 1;
            }
        }
    }
    let all = (used, waited, evicted);
    assert!(used > 300 && waited > 100 && evicted > 50, "{all:?}");
}
