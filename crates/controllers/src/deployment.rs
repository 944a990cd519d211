//! Deployments: one ReplicaSet for each template that was ever wanted, and a way from the old ones
//! to the new one that never has too few pods that can work, nor too many in all.
//!
//! A step looks at the ReplicaSets only. It names the newest revision, makes its ReplicaSet,
//! scales, and tells the status; each is a stage that the next step sees done.

use std::sync::Arc;

use api::core::{Deployment, Pod, ReplicaSet};
use api::intent::{Intent, ObjectKey};
use api::kind::Kind;
use mirror::{Change, Mirror};

use crate::adoption::{self, Owner};
use crate::note::Occasion;
use crate::{Controller, Inputs, Step};

pub(crate) mod revisions;
mod rolling;
mod scaling;
mod status;

/// The row.
pub const CONTROLLER: Controller = Controller {
    name: "deployment",
    component: "deployment-controller",
    tells_refused: &[],
    watches: &[Kind::Deployment, Kind::Pod, Kind::ReplicaSet],
    keys,
    step,
};

fn keys(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    match change.kind() {
        Kind::Deployment => keys.push((*change.key).clone()),
        Kind::ReplicaSet => {
            crate::keys::of_owner(change, Kind::Deployment, keys);
            adoption::keys_of_adopters::<Deployment>(
                mirror,
                change,
                |it| Some(&it.spec.selector),
                keys,
            );
        }
        _ => of_pod(mirror, change, keys),
    }
}

/// Only a Deployment that recreates its pods waits for old ones to have gone.
fn of_pod(mirror: &Mirror, change: &Change, keys: &mut Vec<ObjectKey>) {
    let after = change.after::<Pod>();
    let Some(pod) = change.before::<Pod>() else {
        return;
    };
    if after.is_some_and(|pod| !pod.is_finished()) {
        return;
    }
    let namespace = &pod.metadata.namespace;
    let Some(set) = pod.metadata.controller() else {
        return;
    };
    let Some(set) = mirror.get::<ReplicaSet>(namespace, &set.name) else {
        return;
    };
    let Some(owner) = set.metadata.controller() else {
        return;
    };
    if let Some(deployment) = mirror.get::<Deployment>(namespace, &owner.name)
        && &*deployment.spec.strategy.kind == "Recreate"
    {
        keys.push(ObjectKey::new(Kind::Deployment, namespace, &owner.name));
    }
}

/// Everything that one step looks at.
struct View<'a> {
    inputs: &'a Inputs<'a>,
    it: &'a Deployment,
    /// The ReplicaSet of the wanted template.
    new: Option<Arc<ReplicaSet>>,
    /// All others, the oldest first.
    old: Vec<Arc<ReplicaSet>>,
}

fn step(inputs: &Inputs<'_>) -> Step {
    let (namespace, name) = (&inputs.key.namespace, &inputs.key.name);
    let Some(it) = inputs.mirror.get::<Deployment>(namespace, name) else {
        return Step::idle();
    };
    let owner = Owner {
        kind: Kind::Deployment,
        meta: &it.metadata,
        selector: &it.spec.selector,
    };
    let claimed = adoption::claim::<ReplicaSet>(inputs.mirror, owner, None, |_| true);
    if !claimed.intents.is_empty() {
        return Step::write(claimed.intents);
    }
    let (new, old) = revisions::parted(it, claimed.own, inputs.settings);
    let view = View {
        inputs,
        it,
        new,
        old,
    };
    view.step()
}

impl View<'_> {
    fn step(&self) -> Step {
        if self.it.metadata.deletion_timestamp.is_some() {
            return Step::write(self.settled_status().into_iter().collect());
        }
        if let Some(patch) = self.pausing() {
            return Step::write(vec![patch]);
        }
        let named = self.name_revision();
        if !named.is_empty() {
            return Step::write(named);
        }
        if self.it.spec.paused || self.is_scaling() {
            let mut intents = self.scale();
            if self.it.spec.paused && intents.is_empty() {
                intents.extend(self.clean_up());
            }
            intents.extend(self.settled_status());
            return Step::write(intents);
        }
        match &*self.it.spec.strategy.kind {
            "Recreate" => self.recreate(),
            _ => self.roll(),
        }
    }

    fn roll(&self) -> Step {
        if self.new.is_none() {
            return self.create();
        }
        let mut intents = self.grow_new();
        if intents.is_empty() {
            intents = self.shrink_old();
        }
        if intents.is_empty() && self.is_complete(&self.it.status) {
            intents = self.clean_up();
        }
        self.with_progress(intents)
    }

    fn recreate(&self) -> Step {
        let mut intents: Vec<Intent> = Vec::new();
        for set in self.old.iter().filter(|set| replicas(set) > 0) {
            intents.extend(self.resize(set, 0));
        }
        if !intents.is_empty() || self.old_runs() {
            return self.with_progress(intents);
        }
        let Some(new) = &self.new else {
            return self.create();
        };
        intents.extend(self.resize(new, self.wanted()));
        if intents.is_empty() && self.is_complete(&self.it.status) {
            intents = self.clean_up();
        }
        self.with_progress(intents)
    }

    /// Whether a pod of an old template may still be at work.
    fn old_runs(&self) -> bool {
        self.old.iter().any(|set| {
            let mut pods = self.inputs.mirror.owned_by::<Pod>(&set.metadata.uid);
            set.status.replicas > 0 || pods.any(|pod| !pod.is_finished())
        })
    }

    /// Adds what there is to be told about the progress.
    fn with_progress(&self, mut intents: Vec<Intent>) -> Step {
        let (status, wake_at) = self.progress_status();
        intents.extend(status);
        Step::write(intents).or_wake_at(wake_at)
    }

    fn wanted(&self) -> i32 {
        self.it.spec.replicas.unwrap_or(1)
    }

    /// All ReplicaSets, the new one last.
    fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// ReplicaSets that are to have pods.
    fn active(&self) -> Vec<&Arc<ReplicaSet>> {
        self.all().filter(|set| replicas(set) > 0).collect()
    }

    fn occasion<'a>(&'a self, id: &'a str) -> Occasion<'a> {
        Occasion {
            kind: Kind::Deployment,
            meta: &self.it.metadata,
            component: CONTROLLER.component,
            id,
        }
    }
}

/// How many pods a ReplicaSet is to have.
fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}
