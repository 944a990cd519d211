//! Extender: somebody outside is asked over HTTP (`specs/volcano.md`, sections 3.7 and A.8).
//!
//! A rule here asks nobody. It looks up what was said; where nothing was, what it decides on waits, with
//! a reason, and what is to be asked goes with the cycle's plan. Whoever asks puts the answers into the
//! tables, where they count for a while.

mod asks;
mod setup;

use std::sync::Arc;

use model::{
    GangId, Giving, NodeId, Opinion, Phase, Query, QueueId, Reason, Refusal, Shape, TaskId, Time,
};

use crate::plugin::{Claimant, Plugin, Score, View, Vote};
use crate::rules::Config;

pub use setup::{Extender, Verb};

/// The row.
pub const PLUGIN: Plugin = Plugin {
    name: "extender",
    configure: Some(setup::configure),
    fits_row: Some(fits_row),
    enqueueable: Some(enqueueable),
    overused: Some(overused),
    job_ready: Some(job_ready),
    unready: Some(unready),
    consents: Some(consents),
    valued: Some(valued),
    score: Some(score),
    preemptable: Some(preemptable),
    reclaimable: Some(reclaimable),
    spares_preempted: Some(spares_preempted),
    spares_reclaimed: Some(spares_reclaimed),
    abstains: Some(abstains),
    preempts_like: Some(like_nobody),
    reclaims_like: Some(like_nobody),
    wakes_at: Some(wakes_at),
    asks: Some(asks::asks),
    ..Plugin::NONE
};

/// A hook stays where its verb is asked: elsewhere the plugin has no say.
fn fits_row(row: &mut Plugin, config: &Config) {
    let asks = |verb| config.extender.as_ref().is_some_and(|it| it.asks(verb));
    if !asks(Verb::JobEnqueueable) {
        row.enqueueable = None;
    }
    if !asks(Verb::QueueOverused) {
        row.overused = None;
    }
    if !asks(Verb::JobReady) {
        (row.job_ready, row.unready) = (None, None);
    }
    if !asks(Verb::Prioritize) {
        (row.score, row.valued) = (None, None);
    }
    if !asks(Verb::Predicate) {
        row.consents = None;
    }
    if !asks(Verb::Preemptable) {
        (row.preemptable, row.preempts_like) = (None, None);
        row.spares_preempted = None;
    }
    if !asks(Verb::Reclaimable) {
        (row.reclaimable, row.reclaims_like) = (None, None);
        row.spares_reclaimed = None;
    }
    if Verb::ALL
        .into_iter()
        .all(|it| Verb::TOLD.contains(&it) || !asks(it))
    {
        row.wakes_at = None;
    }
}

/// So long an answer counts, and one that did not come is not asked for again, in milliseconds.
pub const COUNTS_MS: i64 = 5_000;

/// Whom to ask, where this is asked.
fn asked_of(view: View<'_>, verb: Verb) -> Option<&Extender> {
    let extender = view.config.extender.as_ref()?;
    extender.asks(verb).then_some(extender)
}

/// The same about tasks of a shape.
fn asked_about<'a>(view: View<'a>, verb: Verb, shape: &Shape) -> Option<&'a Extender> {
    let extender = view.config.extender.as_ref()?;
    (extender.asks(verb) && extender.manages(view.tables, shape)).then_some(extender)
}

/// What an answer comes to.
enum Said<'a> {
    /// There is none yet.
    Nothing,
    /// It is one.
    That(&'a Opinion),
    /// There is none that counts, and that refuses.
    Failed(&'a Arc<str>),
}

/// What was said; where a failure is neutral, it is one that says neither.
fn said<'a>(view: View<'a>, extender: &Extender, query: &Query) -> Said<'a> {
    match view.tables.opinion(query) {
        None => Said::Nothing,
        Some(Opinion::Failed(_)) if extender.is_ignorable => Said::That(&Opinion::Neither),
        Some(Opinion::Failed(why)) => Said::Failed(why),
        Some(opinion) => Said::That(opinion),
    }
}

fn refuses(verb: Verb, why: &Arc<str>) -> Reason {
    Reason::ExtenderRefuses {
        verb: verb.name(),
        why: why.clone(),
    }
}

fn unanswered(verb: Verb) -> Reason {
    Reason::WaitsForAnswer { verb: verb.name() }
}

fn enters(view: View<'_>, gang: GangId) -> Query {
    Query::Enters(view.tables.gang(gang).spec.uid.clone())
}

fn enqueueable(view: View<'_>, gang: GangId) -> Vote {
    let verb = Verb::JobEnqueueable;
    let Some(extender) = asked_of(view, verb) else {
        return Vote::Abstain;
    };
    match said(view, extender, &enters(view, gang)) {
        Said::Nothing => Vote::Reject(unanswered(verb)),
        Said::Failed(why) | Said::That(Opinion::No(why)) => Vote::Reject(refuses(verb, why)),
        Said::That(Opinion::Yes) => Vote::Permit,
        Said::That(_) => Vote::Abstain,
    }
}

/// An answer speaks of what the queue used when it was asked: one that uses more may be overused by now,
/// and one that uses less may no longer be.
fn overused(view: View<'_>, queue: QueueId) -> Option<Reason> {
    let verb = Verb::QueueOverused;
    let extender = asked_of(view, verb)?;
    let row = view.tables.queue(queue);
    match said(view, extender, &Query::Overused(row.spec.name.clone())) {
        Said::Failed(why) => Some(refuses(verb, why)),
        Said::That(Opinion::Overused(true, then)) if then.fits(&row.used) => {
            let queue = row.spec.name.clone();
            Some(Reason::QueueOverused { queue })
        }
        Said::That(Opinion::Overused(false, then)) if row.used.fits(then) => None,
        Said::That(Opinion::Overused(..)) | Said::Nothing => Some(unanswered(verb)),
        Said::That(_) => None,
    }
}

fn job_ready(view: View<'_>, gang: GangId) -> bool {
    unready(view, gang).is_none()
}

/// Below its minimum a gang is not ready whatever anybody says, and one that has started is not stopped
/// by silence.
fn unready(view: View<'_>, gang: GangId) -> Option<Reason> {
    let verb = Verb::JobReady;
    let extender = asked_of(view, verb)?;
    let ready = view.tables.ready(gang);
    let row = view.tables.gang(gang);
    let has_started = row.allocated_count() + row.count(Phase::Succeeded)
        >= row.spec.min_member + row.count(Phase::Allocated);
    if ready < row.spec.min_member || has_started {
        return None;
    }
    match said(view, extender, &Query::Ready(row.spec.uid.clone(), ready)) {
        Said::Nothing => Some(unanswered(verb)),
        Said::Failed(why) | Said::That(Opinion::No(why)) => Some(refuses(verb, why)),
        Said::That(_) => None,
    }
}

fn fits(view: View<'_>, shape: &Shape, node: NodeId) -> Query {
    Query::Fits(shape.serial, view.tables.node(node).spec.name.clone())
}

fn consents(view: View<'_>, shape: &Shape, node: NodeId) -> Option<Refusal> {
    denies(view, Verb::Predicate, shape, &fits(view, shape, node))
}

/// How much a node is worth is said of all at once.
fn valued(view: View<'_>, shape: &Shape, _: NodeId) -> Option<Refusal> {
    denies(view, Verb::Prioritize, shape, &Query::Points(shape.serial))
}

/// Why an answer about nodes, or that there is none, keeps tasks of the shape away.
fn denies(view: View<'_>, verb: Verb, shape: &Shape, query: &Query) -> Option<Refusal> {
    let extender = asked_about(view, verb, shape)?;
    match said(view, extender, query) {
        Said::Nothing => Some(Refusal::Unanswered),
        Said::Failed(why) | Said::That(Opinion::No(why)) => Some(Refusal::Extender {
            verb: verb.name(),
            why: why.clone(),
        }),
        Said::That(_) => None,
    }
}

/// What was said of the node; nothing where nothing was.
fn score(view: View<'_>, shape: &Shape, node: NodeId) -> Score {
    if asked_about(view, Verb::Prioritize, shape).is_none() {
        return 0;
    }
    match view.tables.opinion(&Query::Points(shape.serial)) {
        Some(Opinion::Points(points)) => {
            let name = &view.tables.node(node).spec.name;
            points.get(name).copied().unwrap_or(0)
        }
        _ => 0,
    }
}

fn preemptable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    give(view, claimant, Giving::WithinQueue, tasks, allowed);
}

fn reclaimable(view: View<'_>, claimant: Claimant, tasks: &[TaskId], allowed: &mut [bool]) {
    give(view, claimant, Giving::AcrossQueues, tasks, allowed);
}

/// By which verb victims are asked about.
fn verb_of(giving: Giving) -> Verb {
    match giving {
        Giving::WithinQueue => Verb::Preemptable,
        Giving::AcrossQueues => Verb::Reclaimable,
    }
}

/// What was said of those who may make room; nothing where nobody is asked.
fn said_of_victims(view: View<'_>, claimant: Claimant, giving: Giving) -> Option<Said<'_>> {
    let shape = view.tables.shape_of(claimant.task);
    let extender = asked_about(view, verb_of(giving), shape)?;
    let gang = view.tables.gang(claimant.gang).spec.uid.clone();
    Some(said(view, extender, &Query::Gives(gang, giving)))
}

/// Who is not asked, or says neither, gives nobody away and keeps nobody.
fn abstains(view: View<'_>, claimant: Claimant, giving: Giving) -> bool {
    let said = said_of_victims(view, claimant, giving);
    matches!(said, None | Some(Said::That(Opinion::Neither)))
}

/// Only those go of whom it was said.
fn give(
    view: View<'_>,
    claimant: Claimant,
    giving: Giving,
    tasks: &[TaskId],
    allowed: &mut [bool],
) {
    match said_of_victims(view, claimant, giving) {
        None | Some(Said::That(Opinion::Neither)) => {}
        Some(Said::That(Opinion::Victims(victims))) => {
            for (task, allowed) in tasks.iter().zip(allowed) {
                *allowed &= victims.contains(&view.tables.task(*task).uid.text());
            }
        }
        Some(_) => allowed.fill(false),
    }
}

/// While there is no answer, or a failed one, nobody goes: no later tier is asked instead.
fn spare(view: View<'_>, claimant: Claimant, giving: Giving, allowed: &mut [bool]) {
    if let Some(Said::Nothing | Said::Failed(_)) = said_of_victims(view, claimant, giving) {
        allowed.fill(false);
    }
}

fn spares_preempted(view: View<'_>, claimant: Claimant, _: &[TaskId], allowed: &mut [bool]) {
    spare(view, claimant, Giving::WithinQueue, allowed);
}

fn spares_reclaimed(view: View<'_>, claimant: Claimant, _: &[TaskId], allowed: &mut [bool]) {
    spare(view, claimant, Giving::AcrossQueues, allowed);
}

/// Somebody outside may tell any gang from any other.
fn like_nobody(_: View<'_>, gang: GangId) -> u64 {
    u64::from(gang.0)
}

/// A gang that waits is looked at again once what was said about it counts no more.
fn wakes_at(view: View<'_>, gang: GangId) -> Option<Time> {
    view.config.extender.as_ref()?;
    let row = view.tables.gang(gang);
    let waits = row.phase() == model::GangPhase::Pending || row.census.waiting() > 0;
    waits.then(|| {
        let end = view.tables.opinions_end(gang, view.state.now);
        end.unwrap_or(view.state.now.plus_millis(COUNTS_MS))
    })
}
