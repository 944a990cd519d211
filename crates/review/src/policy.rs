//! What of the rules can be said in CEL, as ValidatingAdmissionPolicies (and, in [`changes`], as
//! MutatingAdmissionPolicies): an API server evaluates them itself, so that nobody needs to be asked.
//!
//! Invariant: a policy denies nothing that the rule of the same row allows. Each expression that cannot
//! be evaluated passes (`failurePolicy: Ignore`), and the rule behind it, if it is served, still judges.
//!
//! What a policy cannot say: anything about other objects (is the queue there, open, a leaf; sums over
//! siblings; children of a queue that is deleted), order in a graph (rings of tasks, flows and queues),
//! whole pod templates, cron schedules, time zones and patterns.

mod changes;
mod jobs;

use api::admission::Operation;
use serde_json::{Value, json};

pub use self::changes::Mutation;
use crate::{CREATES, PluginKeys, Settings, WRITES, Webhook};

const UPDATES: &[Operation] = &[Operation::Update];
const DELETES: &[Operation] = &[Operation::Delete];

/// One sentence of a rule.
struct Sentence {
    /// The row that says it, too.
    path: &'static str,
    /// For these requests.
    on: &'static [Operation],
    /// Holds for what is accepted.
    holds: &'static str,
    /// What is said where it does not.
    message: &'static str,
}

const fn say(
    path: &'static str,
    on: &'static [Operation],
    holds: &'static str,
    message: &'static str,
) -> Sentence {
    Sentence {
        path,
        on,
        holds,
        message,
    }
}

const JOBS: &str = "/jobs/validate";
const QUEUES: &str = "/queues/validate";
const PODS: &str = "/pods/validate";
const PODGROUPS: &str = "/podgroups/validate";
const JOBFLOWS: &str = "/jobflows/validate";
const CRONJOBS: &str = "/cronjobs/validate";
const TIER: &str = crate::pod_group::TIER_TWICE;
const KEYS: &str = "arguments of job plugins must not hold a private key";
const FIXED: &str = crate::vcjob::FIXED;

/// All of them, by path.
const SENTENCES: &[Sentence] = &[
    say(
        CRONJOBS,
        WRITES,
        "has(object.spec.schedule) && object.spec.schedule != ''",
        "schedule is required, but got empty",
    ),
    say(
        CRONJOBS,
        WRITES,
        "!has(object.spec.schedule) || !object.spec.schedule.contains('TZ')",
        "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
    ),
    say(
        CRONJOBS,
        WRITES,
        "!has(object.spec.timeZone) || object.spec.timeZone != ''",
        "timeZone must be nil or non-empty string, got empty string",
    ),
    say(
        CRONJOBS,
        WRITES,
        "!has(object.spec.timeZone) || object.spec.timeZone.lowerAscii() != 'local'",
        "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
    ),
    say(
        CRONJOBS,
        WRITES,
        "object.metadata.name.size() <= 52",
        "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)",
    ),
    say(
        "/hypernodes/validate",
        WRITES,
        "has(object.spec.members) && object.spec.members.size() > 0",
        "member must have at least one member",
    ),
    say(
        JOBFLOWS,
        WRITES,
        "object.spec.flows.exists(f, object.spec.flows.filter(g, g.name == f.name).size() > 1) || object.spec.flows.all(f, !has(f.dependsOn) || !has(f.dependsOn.targets) || f.dependsOn.targets.all(x, object.spec.flows.exists(g, g.name == x)))",
        "jobflow Flow is not DAG: vertex is not defined",
    ),
    say(
        JOBFLOWS,
        WRITES,
        "object.spec.flows.exists(f, object.spec.flows.filter(g, g.name == f.name).size() > 1) || object.spec.flows.all(f, !has(f.dependsOn) || !has(f.dependsOn.targets) || !(f.name in f.dependsOn.targets))",
        "jobflow Flow is not DAG",
    ),
    say(
        JOBS,
        CREATES,
        "has(object.spec.tasks) && object.spec.tasks.size() > 0",
        "No task specified in job spec",
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.minAvailable) || t.minAvailable <= (has(t.replicas) ? t.replicas : 0))",
        "'minAvailable' is greater than 'replicas' in task",
    ),
    say(
        JOBS,
        UPDATES,
        "object.spec.tasks.all(t, !has(t.replicas) || t.replicas >= 0)",
        "'replicas' must be >= 0 in task",
    ),
    say(
        JOBS,
        UPDATES,
        "object.spec.tasks.all(t, !has(t.minAvailable) || t.minAvailable >= 0)",
        "'minAvailable' must be >= 0 in task",
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.minAvailable) || object.spec.minAvailable >= 0",
        "job 'minAvailable' must be >= 0",
    ),
    say(
        JOBS,
        WRITES,
        "!has(object.spec.minAvailable) || object.spec.minAvailable <= object.spec.tasks.map(t, has(t.replicas) ? t.replicas : 0).sum()",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.name) || t.name == '' || object.spec.tasks.filter(u, has(u.name) && u.name == t.name).size() == 1)",
        "duplicated task name",
    ),
    say(
        JOBS,
        WRITES,
        "!has(object.spec.networkTopology) || !has(object.spec.networkTopology.highestTierAllowed) || !has(object.spec.networkTopology.highestTierName) || object.spec.networkTopology.highestTierAllowed == null || object.spec.networkTopology.highestTierName == ''",
        TIER,
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.partitionPolicy) || !has(t.partitionPolicy.networkTopology) || !has(t.partitionPolicy.networkTopology.highestTierAllowed) || !has(t.partitionPolicy.networkTopology.highestTierName) || t.partitionPolicy.networkTopology.highestTierAllowed == null || t.partitionPolicy.networkTopology.highestTierName == '')",
        TIER,
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.totalPartitions > 0)",
        "'TotalPartitions' must be greater than 0",
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.partitionSize > 0)",
        "'PartitionSize' must be greater than 0",
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.partitionPolicy) || t.partitionPolicy.totalPartitions * t.partitionPolicy.partitionSize == (has(t.replicas) ? t.replicas : 0))",
        "'Replicas' are not equal to TotalPartitions*PartitionSize",
    ),
    say(
        JOBS,
        WRITES,
        "object.spec.tasks.all(t, !has(t.partitionPolicy) || !has(t.partitionPolicy.minPartitions) || t.partitionPolicy.minPartitions <= 0 || !has(t.minAvailable) || t.partitionPolicy.minPartitions * t.partitionPolicy.partitionSize == t.minAvailable)",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, !has(p.exitCode) || p.exitCode == null || ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0)))",
        "must not specify event and exitCode simultaneously",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, has(p.exitCode) || (has(p.event) && p.event != '') || (has(p.events) && p.events.size() > 0))",
        "either event and exitCode should be specified",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, !has(p.exitCode) || p.exitCode != 0)",
        "0 is not a valid error code",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, !has(p.event) || !(p.event in ['OutOfSync', 'CommandIssued', 'PodRunning']))",
        "invalid policy event",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, !has(p.events) || p.events.all(e, !(e in ['OutOfSync', 'CommandIssued', 'PodRunning'])))",
        "invalid policy event",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.policies) || object.spec.policies.all(p, !has(p.event) || p.event == '' || (has(p.action) && p.action in ['AbortJob', 'RestartJob', 'RestartTask', 'RestartPod', 'RestartPartition', 'TerminateJob', 'CompleteJob', 'ResumeJob']))",
        "invalid policy action",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.exitCode) || p.exitCode == null || ((!has(p.event) || p.event == '') && (!has(p.events) || p.events.size() == 0))))",
        "must not specify event and exitCode simultaneously",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, has(p.exitCode) || (has(p.event) && p.event != '') || (has(p.events) && p.events.size() > 0)))",
        "either event and exitCode should be specified",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.exitCode) || p.exitCode != 0))",
        "0 is not a valid error code",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.event) || !(p.event in ['OutOfSync', 'CommandIssued', 'PodRunning'])))",
        "invalid policy event",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.events) || p.events.all(e, !(e in ['OutOfSync', 'CommandIssued', 'PodRunning']))))",
        "invalid policy event",
    ),
    say(
        JOBS,
        CREATES,
        "object.spec.tasks.all(t, !has(t.policies) || t.policies.all(p, !has(p.event) || p.event == '' || (has(p.action) && p.action in ['AbortJob', 'RestartJob', 'RestartTask', 'RestartPod', 'RestartPartition', 'TerminateJob', 'CompleteJob', 'ResumeJob'])))",
        "invalid policy action",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.volumes) || object.spec.volumes.all(v, has(v.mountPath) && v.mountPath != '')",
        "mountPath is required",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.volumes) || object.spec.volumes.all(v, object.spec.volumes.filter(w, w.mountPath == v.mountPath).size() == 1)",
        "duplicated mountPath",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.volumes) || object.spec.volumes.all(v, (has(v.volumeClaimName) && v.volumeClaimName != '') || has(v.volumeClaim))",
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.volumeClaimName) || v.volumeClaimName == '' || !has(v.volumeClaim) || v.volumeClaim == null)",
        "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.queue) || object.spec.queue != 'root'",
        "can not submit job to root queue",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.plugins) || object.spec.plugins.all(p, p in ['env', 'hcclrank', 'mpi', 'pytorch', 'ray', 'ssh', 'svc', 'tensorflow'])",
        "unable to find job plugin",
    ),
    say(
        JOBS,
        CREATES,
        "!has(object.spec.plugins) || object.spec.plugins.all(p, object.spec.plugins[p] == null || object.spec.plugins[p].all(a, !a.contains('PRIVATE KEY-----') && !a.matches('^-*ssh-private-key(=|$)')))",
        KEYS,
    ),
    say(
        JOBS,
        UPDATES,
        "object.spec.tasks.size() == oldObject.spec.tasks.size()",
        "job updates may not add or remove tasks",
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.queue) || object.spec.queue == '' || !has(oldObject.spec.queue) || object.spec.queue == oldObject.spec.queue",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.ttlSecondsAfterFinished) || !has(oldObject.spec.ttlSecondsAfterFinished) || object.spec.ttlSecondsAfterFinished == oldObject.spec.ttlSecondsAfterFinished",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.maxRetry) || !has(oldObject.spec.maxRetry) || object.spec.maxRetry == oldObject.spec.maxRetry",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.minSuccess) || !has(oldObject.spec.minSuccess) || object.spec.minSuccess == oldObject.spec.minSuccess",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.schedulerName) || object.spec.schedulerName == '' || !has(oldObject.spec.schedulerName) || oldObject.spec.schedulerName == '' || object.spec.schedulerName == oldObject.spec.schedulerName",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(object.spec.plugins) || object.spec.plugins.all(p, object.spec.plugins[p] == null || object.spec.plugins[p].size() == 0 || (has(oldObject.spec.plugins) && p in oldObject.spec.plugins))",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "!has(oldObject.spec.plugins) || oldObject.spec.plugins.all(p, oldObject.spec.plugins[p] == null || oldObject.spec.plugins[p].size() == 0 || (has(object.spec.plugins) && p in object.spec.plugins))",
        FIXED,
    ),
    say(
        JOBS,
        UPDATES,
        "(has(object.spec.policies) ? object.spec.policies.size() : 0) == (has(oldObject.spec.policies) ? oldObject.spec.policies.size() : 0)",
        FIXED,
    ),
    say(
        PODGROUPS,
        CREATES,
        "!has(object.spec.networkTopology) || !has(object.spec.networkTopology.highestTierAllowed) || !has(object.spec.networkTopology.highestTierName) || object.spec.networkTopology.highestTierAllowed == null || object.spec.networkTopology.highestTierName == ''",
        TIER,
    ),
    say(
        PODGROUPS,
        CREATES,
        "!has(object.spec.subGroupPolicy) || object.spec.subGroupPolicy.all(s, !has(s.networkTopology) || !has(s.networkTopology.highestTierAllowed) || !has(s.networkTopology.highestTierName) || s.networkTopology.highestTierAllowed == null || s.networkTopology.highestTierName == '')",
        TIER,
    ),
    say(
        PODS,
        CREATES,
        "!has(object.metadata.annotations) || !('volcano.sh/jdb-min-available' in object.metadata.annotations) || !('volcano.sh/jdb-max-unavailable' in object.metadata.annotations)",
        "not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time",
    ),
    say(
        PODS,
        CREATES,
        "!has(object.metadata.annotations) || ['volcano.sh/jdb-min-available', 'volcano.sh/jdb-max-unavailable'].all(k, !(k in object.metadata.annotations) || (object.metadata.annotations[k].matches('[1-9]') && !object.metadata.annotations[k].startsWith('-') && !object.metadata.annotations[k].matches('^[1-9][0-9][0-9]+%$')))",
        "it must be a positive integer, or a valid percentage which between 1% ~ 99%",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.spec.capability) || object.spec.capability.all(r, !quantity(string(object.spec.capability[r])).isLessThan(quantity('0')))",
        "requestBody.spec.capability: must be greater than or equal to 0",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.spec.deserved) || object.spec.deserved.all(r, !quantity(string(object.spec.deserved[r])).isLessThan(quantity('0')))",
        "requestBody.spec.deserved: must be greater than or equal to 0",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.spec.guarantee) || !has(object.spec.guarantee.resource) || object.spec.guarantee.resource.all(r, has(object.spec.deserved) && r in object.spec.deserved && !quantity(string(object.spec.deserved[r])).isLessThan(quantity(string(object.spec.guarantee.resource[r]))))",
        "deserved must be >= guarantee",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.spec.deserved) || !has(object.spec.capability) || object.spec.deserved.all(r, !(r in object.spec.capability) || !quantity(string(object.spec.deserved[r])).isGreaterThan(quantity(string(object.spec.capability[r]))))",
        "deserved must be <= capability",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.status) || !has(object.status.state) || object.status.state in ['', 'Open', 'Closed']",
        "queue state must be in [Open Closed]",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.metadata.annotations) || !('volcano.sh/hierarchy' in object.metadata.annotations) || !('volcano.sh/hierarchy-weights' in object.metadata.annotations) || object.metadata.annotations['volcano.sh/hierarchy'].split('/').size() == object.metadata.annotations['volcano.sh/hierarchy-weights'].split('/').size()",
        "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
    ),
    say(
        QUEUES,
        WRITES,
        "!has(object.metadata.annotations) || !('volcano.sh/hierarchy-weights' in object.metadata.annotations) || object.metadata.annotations['volcano.sh/hierarchy-weights'] == '' || object.metadata.annotations['volcano.sh/hierarchy-weights'].split('/').all(w, w.matches('[1-9]') && !w.startsWith('-'))",
        "weights in volcano.sh/hierarchy-weights must be numbers larger than 0",
    ),
    say(
        QUEUES,
        CREATES,
        "!has(object.spec.parent) || object.spec.parent == 'root' || object.spec.parent != object.metadata.name",
        "a queue cannot use itself as parent",
    ),
    say(
        QUEUES,
        DELETES,
        "!(oldObject.metadata.name in ['default', 'root'])",
        "the queues `default` and `root` can not be deleted",
    ),
];

/// One validation of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validation {
    /// CEL over `object`, `oldObject` and `request`: true for what is accepted.
    pub expression: String,
    /// What is said where it is false.
    pub message: &'static str,
}

impl Webhook {
    /// What of its rule can be said in CEL; none of those who change objects, and not all of the others.
    pub fn validations(&self, settings: &Settings) -> Vec<Validation> {
        let own = SENTENCES.iter().filter(|it| it.path == self.path);
        own.filter(|it| it.message != KEYS || settings.plugin_keys == PluginKeys::Refused)
            .map(|it| Validation {
                expression: it.guarded(self.operations),
                message: it.message,
            })
            .collect()
    }

    /// Its policy and the binding that makes it count, Validating or Mutating; nothing where there is
    /// nothing that can be said.
    pub fn policy(&self, settings: &Settings) -> Vec<Value> {
        let (rest, sort) = match self.mutates() {
            true => (self.changing(settings), "Mutating"),
            false => (self.judging(settings), "Validating"),
        };
        let Some(mut spec) = rest else {
            return Vec::new();
        };
        spec["failurePolicy"] = "Ignore".into();
        spec["matchConstraints"] = json!({ "resourceRules": [self.resource_rule()] });
        if let Some(expression) = self.condition(settings) {
            spec["matchConditions"] = json!([{ "name": "ours", "expression": expression }]);
        }
        let name = format!("katmai{}", self.path.replace('/', "-"));
        let mut bound = json!({ "policyName": name });
        if !self.mutates() {
            bound["validationActions"] = json!(["Deny"]);
        }
        let object = |kind: String, spec: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": { "name": name },
                "spec": spec,
            })
        };
        vec![
            object(format!("{sort}AdmissionPolicy"), spec),
            object(format!("{sort}AdmissionPolicyBinding"), bound),
        ]
    }

    /// The rest of the policy of its validations; `None` where there are none.
    fn judging(&self, settings: &Settings) -> Option<Value> {
        let validations = self.validations(settings);
        let validations: Vec<Value> = validations
            .into_iter()
            .map(|it| json!({ "expression": it.expression, "message": it.message }))
            .collect();
        (!validations.is_empty()).then(|| json!({ "validations": validations }))
    }
}

impl Sentence {
    /// The expression, which holds for requests of other sorts.
    fn guarded(&self, all: &[Operation]) -> String {
        match guard(self.on, all) {
            Some(guard) => format!("!({guard}) || ({})", self.holds),
            None => self.holds.to_owned(),
        }
    }
}

/// Whether a request is of these sorts, in CEL; `None` where all are.
fn guard(on: &[Operation], all: &[Operation]) -> Option<String> {
    if on == all {
        return None;
    }
    let words = on
        .iter()
        .map(|it| format!("'{}'", crate::registration::word(*it)));
    let words: Vec<String> = words.collect();
    Some(format!("request.operation in [{}]", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WEBHOOKS;

    #[test]
    fn sentences_stand_by_path_and_each_path_is_a_webhook_that_judges() {
        assert!(SENTENCES.is_sorted_by_key(|it| it.path));
        for sentence in SENTENCES {
            let webhook = Webhook::at(sentence.path).expect("it is a row");
            assert!(!webhook.mutates());
            assert!(sentence.on.iter().all(|it| webhook.operations.contains(it)));
        }
        let judging = WEBHOOKS.iter().filter(|webhook| !webhook.mutates());
        for webhook in judging {
            assert_eq!(webhook.policy(&Settings::default()).len(), 2);
        }
    }
}
