//! What controllers came to: how often jobs and flows have ended and jobs were blocked, by what is seen of
//! their status, how long pods took to be made, and whether they came after their Service.

use std::collections::BTreeMap;

use api::core::{Pod, Service};
use api::intent::ObjectKey;
use api::kind::Kind;
use api::meta::OwnerReference;
use api::time::Time;
use api::volcano::{FlowPhase, Job, JobFlow, JobPhase, SERVICE_KNOWN};
use controllers::blocked_reasons;
use mirror::{Change, Mirror};

use crate::census::JobEnds;
use crate::chronicle::between;
use crate::recent::Recent;
use crate::timings::{Timed, Timings};

/// Jobs whose ends are counted: each is a row of text at `/metrics` for as long as it is there.
const JOBS_MAX: usize = 1_000;
/// Namespaces of which the ends of flows are counted.
const NAMESPACES_MAX: usize = 1_000;

/// Jobs of which is remembered when their Service came and went.
const SERVICES_MAX: usize = 10_000;

/// Whether a pod came after its job's Service, as it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// It did, or the Service was seen to go after the pod was made.
    After,
    /// It did not.
    First,
}

/// When a job's Service came and went, in revisions, which tell apart what one second holds; zero where
/// that was not seen.
#[derive(Clone, Copy, Debug, Default)]
struct Stay {
    /// Of the Service that is there, when it appeared.
    came: u64,
    /// What was seen when the last one had gone.
    gone: u64,
}

/// The tallies.
#[derive(Clone, Debug)]
pub(crate) struct Tallies {
    timings: Timings,
    jobs: Recent<ObjectKey, JobEnds>,
    flows: Recent<Box<str>, (u64, u64)>,
    /// How often jobs came to be blocked, by reason.
    blocked: BTreeMap<&'static str, u64>,
    /// By the job's uid.
    services: Recent<Box<str>, Stay>,
}

impl Default for Tallies {
    fn default() -> Tallies {
        Tallies {
            timings: Timings::default(),
            jobs: Recent::new(JOBS_MAX),
            flows: Recent::new(NAMESPACES_MAX),
            blocked: BTreeMap::new(),
            services: Recent::new(SERVICES_MAX),
        }
    }
}

impl Tallies {
    /// A pod of a job that was made then is made.
    pub(crate) fn pod_made(&mut self, job_created: Time, now: Time) {
        let took = between(job_created, now);
        self.timings.observe(Timed::PodMade, "", took);
    }

    /// A pod of a job was made: whether it came after the job's Service, and by how much; `None` where
    /// the job has none.
    pub(crate) fn pod_after(
        &mut self,
        mirror: &Mirror,
        job: &Job,
        pod: &ObjectKey,
        now: Time,
    ) -> Option<Came> {
        if !job.spec.has_plugin("svc") {
            return None;
        }
        let service = service_of(mirror, job);
        let born = service.and_then(|it| it.metadata.creation_timestamp);
        if let Some(born) = born {
            self.timings
                .observe(Timed::ServiceToPod, "", between(born, now));
        }
        let pod = mirror.get::<Pod>(&pod.namespace, &pod.name);
        let made = pod.and_then(|pod| pod.metadata.creation_timestamp);
        let revision = pod.map_or(0, |pod| pod.metadata.revision());
        let stay = self.services.get(&job.metadata.uid);
        let stay = stay.copied().unwrap_or_default();
        // Older than the deletion, as is taken for granted of a pod that has gone, too.
        let is_exempt = revision < stay.gone;
        let is_first = match (service, stay.came, revision) {
            (None, ..) => true,
            (_, 1.., 1..) => stay.came > revision,
            _ => born.is_none_or(|born| born > made.unwrap_or(now)),
        };
        match is_first && !is_exempt {
            true => Some(Came::First),
            false => Some(Came::After),
        }
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    /// An object has changed. What was found in its last phase is no end that was seen.
    pub(crate) fn changed(&mut self, change: &Change, mirror: &Mirror, now: Time) {
        if let (Some(before), Some(after)) = (change.before::<Job>(), change.after::<Job>()) {
            let phase = after.status.state.phase;
            if change.is_recreation() {
                self.jobs.remove(&change.key);
            } else if before.status.state.phase != phase {
                self.job_turned(&change.key, after, phase);
            }
            self.job_blocked(before, after);
            self.service_known(mirror, (before, after), now);
        } else if change.before::<Job>().is_some() {
            self.jobs.remove(&change.key);
        }
        if change.kind() == Kind::Service {
            self.service_turned(change, mirror);
        }
        if let (Some(before), Some(after)) = (change.before::<JobFlow>(), change.after::<JobFlow>())
            && before.status.state.phase != after.status.state.phase
            && !change.is_recreation()
        {
            let namespace = || change.key.namespace.clone();
            match after.status.state.phase {
                FlowPhase::Succeed => self.flows.touch(&namespace()).0 += 1,
                FlowPhase::Failed => self.flows.touch(&namespace()).1 += 1,
                _ => {}
            }
        }
    }

    /// A job that has come to be blocked, or for another reason than before.
    fn job_blocked(&mut self, before: &Job, after: &Job) {
        let (before, after) = (&before.status.state.reason, &after.status.state.reason);
        if before == after {
            return;
        }
        if let Some(reason) = blocked_reasons().find(|it| **it == **after) {
            *self.blocked.entry(reason).or_default() += 1;
        }
    }

    /// A job's Service that has come or gone, or was made anew.
    fn service_turned(&mut self, change: &Change, mirror: &Mirror) {
        let [before, after] = [change.before::<Service>(), change.after::<Service>()];
        if before.is_some() && after.is_some() && !change.is_recreation() {
            return;
        }
        if let Some(job) = before.and_then(|it| job_of(it)) {
            self.services.touch(&job.uid).gone = mirror.seen(Kind::Service);
        }
        if let Some((service, job)) = after.and_then(|it| Some((it, job_of(it)?))) {
            self.services.touch(&job.uid).came = service.metadata.revision();
        }
    }

    /// A job whose Service DNS is found to know.
    fn service_known(&mut self, mirror: &Mirror, (before, after): (&Job, &Job), now: Time) {
        let known = |job: &Job| job.status.controlled_resources.get(SERVICE_KNOWN).cloned();
        let (Some(uid), old) = (known(after), known(before)) else {
            return;
        };
        let service = service_of(mirror, after).filter(|it| uid == *it.metadata.uid);
        let born = service.and_then(|it| it.metadata.creation_timestamp);
        if let Some(born) = born.filter(|_| old.as_ref() != Some(&uid)) {
            self.timings
                .observe(Timed::ServiceToNames, "", between(born, now));
        }
    }

    /// By reason: how many of these jobs are blocked, and how often one came to be.
    pub(crate) fn blocked(&self, jobs: Option<&Mirror>) -> Vec<(&'static str, Option<u64>, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for job in jobs.into_iter().flat_map(Mirror::list::<Job>) {
            *counts.entry(&job.status.state.reason).or_default() += 1;
        }
        let row = |reason: &'static str| {
            let now = jobs.map(|_| counts.get(reason).copied().unwrap_or(0));
            (reason, now, self.blocked.get(reason).copied().unwrap_or(0))
        };
        blocked_reasons().map(row).collect()
    }

    fn job_turned(&mut self, key: &ObjectKey, job: &Job, phase: JobPhase) {
        if !matches!(phase, JobPhase::Completed | JobPhase::Failed) {
            return;
        }
        let ends = self.jobs.touch(key);
        ends.queue.clone_from(&job.spec.queue);
        match phase {
            JobPhase::Completed => ends.completed += 1,
            _ => ends.failed += 1,
        }
    }

    /// By job.
    pub(crate) fn jobs(&self) -> Vec<(ObjectKey, JobEnds)> {
        let all = self.jobs.iter();
        all.map(|(key, ends)| (key.clone(), ends.clone())).collect()
    }

    /// By namespace: how many flows have succeeded, and how many failed.
    pub(crate) fn flows(&self) -> Vec<(Box<str>, (u64, u64))> {
        let all = self.flows.iter();
        all.map(|(namespace, ends)| (namespace.clone(), *ends))
            .collect()
    }

    /// How many jobs and namespaces are not told for want of room.
    pub(crate) fn forgotten(&self) -> u64 {
        self.jobs.forgotten() + self.flows.forgotten()
    }
}

/// The job whose Service this is.
fn job_of(service: &Service) -> Option<&OwnerReference> {
    let of_job = |it: &&OwnerReference| Kind::find(&it.api_version, &it.kind) == Some(Kind::VcJob);
    service.metadata.controller().filter(of_job)
}

/// The Service of a job's own, if it was seen.
fn service_of<'a>(mirror: &'a Mirror, job: &Job) -> Option<&'a Service> {
    let meta = &job.metadata;
    let service = mirror.get::<Service>(&meta.namespace, &meta.name)?;
    let is_its = service.metadata.is_controlled_by(&meta.uid);
    is_its.then_some(&**service)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A mirror that knows of no object of any kind.
    fn nothing() -> Mirror {
        let mut mirror = Mirror::new();
        for row in api::kind::KINDS {
            let listing = mirror.begin_list(row.kind);
            mirror.end_list(listing, 1);
        }
        mirror
    }

    /// Puts an object there, made at this second; what the tallies see of it.
    fn put(mirror: &mut Mirror, kind: Kind, second: i64, object: Value) -> Change {
        put_at(mirror, kind, (second, 100 + second.unsigned_abs()), object)
    }

    /// The same of this revision.
    fn put_at(mirror: &mut Mirror, kind: Kind, at: (i64, u64), mut object: Value) -> Change {
        let (second, revision) = at;
        let meta = &mut object["metadata"];
        meta["namespace"] = json!("ml");
        meta["resourceVersion"] = json!(revision.to_string());
        meta["creationTimestamp"] = json!(Time::from_seconds(second).seconds_text());
        let change = mirror.apply(kind, &object.to_string());
        change.expect("it can be read").expect("it is new")
    }

    fn job(reason: &str, known: &str) -> Value {
        json!({
            "metadata": { "name": "train", "uid": "j" },
            "spec": { "plugins": { "svc": [] } },
            "status": { "state": { "reason": reason }, "controlledResources": { SERVICE_KNOWN: known } },
        })
    }

    fn service() -> Value {
        let owner = json!({ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "j", "controller": true });
        json!({ "metadata": { "name": "train", "uid": "s", "ownerReferences": [owner] } })
    }

    fn came(tallies: &mut Tallies, mirror: &Mirror, second: i64) -> Option<Came> {
        let job = mirror.get::<Job>("ml", "train").expect("it is there");
        let pod = ObjectKey::new(Kind::Pod, "ml", "train-w-0");
        tallies.pod_after(mirror, job, &pod, Time::from_seconds(second))
    }

    fn count(tallies: &Tallies, what: Timed) -> (u64, u64) {
        let histogram = tallies.timings().of(what).next();
        histogram.map_or((0, 0), |(_, it)| {
            (it.cumulated().last().unwrap_or(0), it.micros() / 1_000_000)
        })
    }

    /// The same of a Service, which the tallies hear of.
    fn put_service(tallies: &mut Tallies, mirror: &mut Mirror, at: (i64, u64), uid: &str) {
        let mut object = service();
        object["metadata"]["uid"] = json!(uid);
        let change = put_at(mirror, Kind::Service, at, object);
        tallies.changed(&change, mirror, Time::from_seconds(at.0));
    }

    fn delete_service(tallies: &mut Tallies, mirror: &mut Mirror, revision: u64, uid: &str) {
        let mut gone = service();
        gone["metadata"]["uid"] = json!(uid);
        gone["metadata"]["namespace"] = json!("ml");
        gone["metadata"]["resourceVersion"] = json!(revision.to_string());
        let gone = mirror.delete(Kind::Service, &gone.to_string());
        let gone = gone.expect("it can be read").expect("it was there");
        tallies.changed(&gone, mirror, Time::from_seconds(20));
    }

    fn put_pod(mirror: &mut Mirror, revision: u64) {
        let pod = json!({ "metadata": { "name": "train-w-0", "uid": format!("p{revision}") } });
        put_at(mirror, Kind::Pod, (10, revision), pod);
    }

    /// S2.8: all of it in one second, which only revisions take apart.
    #[test]
    fn s2_8_pods_before_their_service_are_told_from_those_after_it() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        put(&mut mirror, Kind::VcJob, 0, job("", ""));
        put_pod(&mut mirror, 110);
        assert_eq!(came(&mut tallies, &mirror, 10), Some(Came::First));
        put_service(&mut tallies, &mut mirror, (10, 111), "s");
        assert_eq!(came(&mut tallies, &mirror, 10), Some(Came::First));
        put_pod(&mut mirror, 112);
        assert_eq!(came(&mut tallies, &mirror, 12), Some(Came::After));
        // What becomes of it later makes it no younger.
        let mut mended = service();
        mended["spec"] = json!({ "clusterIP": "None" });
        let mended = put_at(&mut mirror, Kind::Service, (10, 113), mended);
        tallies.changed(&mended, &mirror, Time::from_seconds(13));
        assert_eq!(came(&mut tallies, &mirror, 13), Some(Came::After));
        assert_eq!(count(&tallies, Timed::ServiceToPod), (3, 2 + 3));
    }

    /// S2.1, S2.7, S2.8: only a pod that is older than the deletion is excused for it.
    #[test]
    fn s2_8_a_deleted_service_excuses_no_later_pod() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        put(&mut mirror, Kind::VcJob, 0, job("", ""));
        put_service(&mut tallies, &mut mirror, (10, 111), "s");
        put_pod(&mut mirror, 112);
        delete_service(&mut tallies, &mut mirror, 120, "s");
        assert_eq!(came(&mut tallies, &mirror, 20), Some(Came::After));
        put_pod(&mut mirror, 121);
        assert_eq!(came(&mut tallies, &mirror, 20), Some(Came::First));
        put_service(&mut tallies, &mut mirror, (10, 122), "t");
        assert_eq!(came(&mut tallies, &mirror, 20), Some(Came::First));
        put_pod(&mut mirror, 123);
        assert_eq!(came(&mut tallies, &mirror, 20), Some(Came::After));
        // One that was deleted and made anew between two looks.
        put_service(&mut tallies, &mut mirror, (10, 130), "u");
        assert_eq!(came(&mut tallies, &mirror, 20), Some(Came::After));
    }

    /// S2.8: what was never seen to come is judged by whole seconds.
    #[test]
    fn s2_8_a_service_that_was_forgotten_is_judged_by_its_time() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        put(&mut mirror, Kind::VcJob, 0, job("", ""));
        put_pod(&mut mirror, 110);
        put_at(&mut mirror, Kind::Service, (10, 111), service());
        assert_eq!(came(&mut tallies, &mirror, 10), Some(Came::After));
        put_at(&mut mirror, Kind::Service, (11, 112), service());
        assert_eq!(came(&mut tallies, &mirror, 13), Some(Came::First));
    }

    /// S2.8, S0.11: how long DNS took is timed once, and each reason to wait is counted when it comes.
    #[test]
    fn s2_8_s0_11_what_a_status_tells_is_counted_when_it_changes() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        put(&mut mirror, Kind::Service, 7, service());
        put(&mut mirror, Kind::VcJob, 0, job("", ""));
        let steps = [("QueueNotFound", ""), ("QueueNotFound", "s"), ("", "s")];
        let steps = steps
            .into_iter()
            .chain([("PodGroupPending", "s"), ("QueueNotFound", "s")]);
        for (at, (reason, known)) in (1..).zip(steps) {
            let change = put(&mut mirror, Kind::VcJob, at, job(reason, known));
            tallies.changed(&change, &mirror, Time::from_seconds(10 + at));
        }
        assert_eq!(count(&tallies, Timed::ServiceToNames), (1, 5));
        let blocked = tallies.blocked(Some(&mirror));
        assert!(
            blocked.contains(&("QueueNotFound", Some(1), 2)),
            "{blocked:?}"
        );
        assert!(
            blocked.contains(&("PodConflict", Some(0), 0)),
            "{blocked:?}"
        );
        assert!(tallies.blocked(None).contains(&("QueueNotFound", None, 2)));
    }

    /// An object of this uid goes through these phases, of which the tallies hear. Its name is the same
    /// without primes.
    fn lives(tallies: &mut Tallies, mirror: &mut Mirror, of: (Kind, &str), phases: &[&str]) {
        let (kind, uid) = of;
        let name = uid.trim_end_matches('\'');
        for phase in phases {
            let object = json!({
                "metadata": { "name": name, "uid": uid },
                "spec": { "queue": format!("q-{phase}") },
                "status": { "state": { "phase": phase } },
            });
            let revision = mirror.seen(kind) + 1;
            let change = put_at(mirror, kind, (0, revision), object);
            tallies.changed(&change, mirror, Time::from_seconds(1));
        }
    }

    #[test]
    fn ends_of_jobs_are_counted_until_they_are_deleted() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        let mut live = |name, phases: &[&str]| {
            lives(&mut tallies, &mut mirror, (Kind::VcJob, name), phases);
        };
        // What ended before it was seen is not counted, nor what changes after an end.
        live("old", &["Failed", "Failed"]);
        live("going", &["Pending", "Running", "Aborted", "Terminated"]);
        live("train", &["Running", "Failed", "Failed", "Restarting"]);
        live("train", &["Running", "Failed", "Pending", "Completed"]);
        // One that was deleted and made anew between two looks begins with nothing.
        live("anew", &["Running", "Failed"]);
        live("anew'", &["Completed", "Completed"]);
        let key = ObjectKey::new(Kind::VcJob, "ml", "train");
        let ends = JobEnds {
            queue: "q-Completed".into(),
            completed: 1,
            failed: 2,
        };
        assert_eq!(tallies.jobs(), [(key, ends)]);
        let gone = json!({ "metadata": {
            "name": "train", "namespace": "ml", "uid": "train", "resourceVersion": "999",
        } });
        let gone = mirror.delete(Kind::VcJob, &gone.to_string());
        let gone = gone.expect("it can be read").expect("it was there");
        tallies.changed(&gone, &mirror, Time::from_seconds(2));
        assert_eq!(tallies.jobs(), []);
        assert_eq!(tallies.forgotten(), 0);
    }

    #[test]
    fn ends_of_flows_are_counted_by_namespace() {
        let (mut mirror, mut tallies) = (nothing(), Tallies::default());
        let mut live = |name, phases: &[&str]| {
            lives(&mut tallies, &mut mirror, (Kind::JobFlow, name), phases);
        };
        live("old", &["Succeed", "Succeed"]);
        live("going", &["Pending", "Running", "Terminating"]);
        live("well", &["Running", "Succeed", "Succeed"]);
        live("badly", &["Running", "Failed", "Failed"]);
        live("again", &["Running", "Failed"]);
        live("anew", &["Running"]);
        live("anew'", &["Succeed"]);
        assert_eq!(tallies.flows(), [("ml".into(), (1, 2))]);
    }
}
