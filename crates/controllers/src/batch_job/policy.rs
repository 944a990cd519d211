//! What the job's rules say about a pod that has failed.

use api::batch::{ExitCodes, Job, PodFailureRule};
use api::core::{ContainerStatus, Pod};

/// What is to be done about a failed pod.
pub(super) enum Verdict {
    /// It counts as usual.
    Count,
    /// Its index fails.
    FailIndex,
    /// The job fails, with these words.
    FailJob(String),
    /// It does not count.
    Ignore,
}

/// The first rule that matches decides.
pub(super) fn verdict(job: &Job, pod: &Pod) -> Verdict {
    let rules = job.spec.pod_failure_policy.iter().flat_map(|it| &it.rules);
    for (index, rule) in rules.enumerate() {
        let Some(words) = matched(rule, pod) else {
            continue;
        };
        match &*rule.action {
            "Ignore" => return Verdict::Ignore,
            "FailIndex" => return Verdict::FailIndex,
            "Count" => return Verdict::Count,
            "FailJob" => {
                return Verdict::FailJob(format!("{words} matching FailJob rule at index {index}"));
            }
            // An action of a later version changes nothing here.
            _ => {}
        }
    }
    Verdict::Count
}

/// How a rule applies to a pod, in words.
fn matched(rule: &PodFailureRule, pod: &Pod) -> Option<String> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    if let Some(codes) = &rule.on_exit_codes {
        let lists = [
            &pod.status.container_statuses[..],
            &pod.status.init_container_statuses,
        ];
        let container = lists.iter().find_map(|list| failed_with(list, codes))?;
        let ended = container.state.terminated.as_ref()?;
        return Some(format!(
            "Container {} for pod {namespace}/{name} failed with exit code {}",
            container.name, ended.exit_code
        ));
    }
    let conditions = pod.status.conditions.iter();
    let condition = conditions.into_iter().find(|condition| {
        rule.on_pod_conditions.iter().any(|pattern| {
            let status = match &*pattern.status {
                "" => "True",
                status => status,
            };
            pattern.kind == condition.kind && status == &*condition.status
        })
    })?;
    let kind = &condition.kind;
    Some(format!("Pod {namespace}/{name} has condition {kind}"))
}

fn failed_with<'a>(list: &'a [ContainerStatus], codes: &ExitCodes) -> Option<&'a ContainerStatus> {
    list.iter().find(|container| {
        let is_named = codes
            .container_name
            .as_ref()
            .is_none_or(|name| *name == container.name);
        let ended = container.state.terminated.as_ref();
        is_named
            && ended.is_some_and(|ended| {
                let is_listed = codes.values.contains(&ended.exit_code);
                let is_meant = match &*codes.operator {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    _ => false,
                };
                ended.exit_code != 0 && is_meant
            })
    })
}
