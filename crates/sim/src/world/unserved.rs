//! What a driver knows when it asks for a pod: that its job's Service stands.

use api::core::Service;
use api::intent::{Action, Intent};
use api::kind::Kind;
use api::volcano::Job;
use driver::Request;
use mirror::Mirror;

use super::World;
use crate::judge::Finding;
use crate::stored::{list, text};

impl World {
    /// S2.7: whoever has heard that a job's Service has gone, or is going, asks for no pod of it before he has
    /// heard of another. A pod that was asked for before that may come without one: no server
    /// refuses it.
    pub(super) fn check_served(&mut self, at: usize, request: &Request) {
        let Request::Write(intent) = request else {
            return;
        };
        if let Some(job) = unserved(self.replicas[at].driver.mirror(), intent) {
            let pod = &intent.target.name;
            let text = format!("pod {pod} is asked for while {job} is known to have no Service");
            self.tell(vec![Finding { law: "S2.7", text }]);
        }
    }
}

/// The job of a pod that is to be made, where its Service is not there.
fn unserved<'a>(mirror: &Mirror, intent: &'a Intent) -> Option<&'a str> {
    let Action::Create { body } = &intent.action else {
        return None;
    };
    if intent.target.kind != Kind::Pod {
        return None;
    }
    let mut owners = list(&body["metadata"]["ownerReferences"]).iter();
    let owner = owners.find(|owner| owner["controller"] == true && owner["kind"] == "Job")?;
    let (space, name) = (&intent.target.namespace, text(&owner["name"]));
    let job = mirror.get::<Job>(space, name)?;
    let uid = &job.metadata.uid;
    if **uid != *text(&owner["uid"]) || !job.spec.has_plugin("svc") {
        return None;
    }
    let stands = mirror.get::<Service>(space, name).is_some_and(|service| {
        let meta = &service.metadata;
        meta.is_controlled_by(uid) && meta.deletion_timestamp.is_none()
    });
    (!stands).then_some(name)
}
