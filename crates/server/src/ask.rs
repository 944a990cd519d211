//! Questions to the scheduler, on behalf of whoever asks the API: what it may be told is decided by its roles.

use std::sync::Arc;

use client::ask::{AskDoor, Asker, Unanswered};
use futures::future::BoxFuture;
use store::{Explain, Refused, Response, User};

use crate::plane::Plane;

/// Asks the scheduler of a plane and answers the client.
pub(crate) async fn answer(
    door: Option<Arc<dyn AskDoor>>,
    plane: Arc<Plane>,
    explain: Explain,
    user: User,
) -> Response {
    let Some(door) = door else {
        return Refused::unavailable("nobody of this plane decides yet").response();
    };
    answer_by(&*door, explain, Arc::new(Role { plane, user })).await
}

/// Asks the scheduler behind a door and answers the client.
pub(crate) async fn answer_by(
    door: &dyn AskDoor,
    explain: Explain,
    asker: Arc<dyn Asker>,
) -> Response {
    match door.explain(explain.subject.clone(), asker).await {
        Ok(report) => explain.answered(&report),
        Err(Unanswered::Nothing(why)) => explain.nothing(&why).response(),
        Err(Unanswered::NotReady(why)) => Refused::unavailable(&why).response(),
        Err(
            many @ Unanswered::TooMany {
                retry_after_seconds,
            },
        ) => Refused::too_many(many.to_string(), retry_after_seconds).response(),
    }
}

/// Somebody who asks, and sees what its roles let it see.
struct Role {
    plane: Arc<Plane>,
    user: User,
}

impl Asker for Role {
    fn name(&self) -> &str {
        &self.user.name
    }

    fn sees<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, bool> {
        let sees = self.plane.read_store().sees(&self.user, namespace);
        Box::pin(std::future::ready(sees))
    }

    fn sees_nodes(&self) -> BoxFuture<'_, bool> {
        let sees = self.plane.read_store().sees_nodes(&self.user);
        Box::pin(std::future::ready(sees))
    }
}
