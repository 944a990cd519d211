//! Volcano's JobTemplate (`specs/volcano.md` 2.5): its status names the jobs that were made from it.

use std::sync::Arc;

use api::intent::ObjectKey;
use api::kind::Kind;
use api::volcano::{Job, JobTemplate, JobTemplateStatus};
use mirror::{Change, Index, Mirror};
use serde_json::json;

use crate::{Controller, Inputs, Step, write};

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "job_template",
    component: "vc-controller-manager",
    tells_refused: &[],
    watches: &[Kind::JobTemplate, Kind::VcJob],
    keys,
    step,
};

fn keys(_mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    if change.kind() == Kind::JobTemplate {
        return keys.push((*change.key).clone());
    }
    let [before, after] = [change.before::<Job>(), change.after::<Job>()]
        .map(|side: Option<&Arc<Job>>| side.and_then(|job| job.template()));
    if before != after {
        let namespace = &change.key.namespace;
        let names = before.into_iter().chain(after);
        keys.extend(names.map(|name| ObjectKey::new(Kind::JobTemplate, namespace, name)));
    }
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(it) = inputs.mirror.get::<JobTemplate>(namespace, name) else {
        return Step::idle();
    };
    if it.metadata.deletion_timestamp.is_some() {
        return Step::idle();
    }
    let jobs = inputs.mirror.keys(Index::VcJobTemplate, namespace, name);
    let new = JobTemplateStatus {
        job_depends_on_list: jobs.map(|key| key.name).collect(),
    };
    let (old, new) = (json!(it.status), json!(new));
    let patch = write::status_difference(Kind::JobTemplate, &it.metadata, &old, &new);
    Step::write(patch.into_iter().collect())
}
