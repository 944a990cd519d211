//! What the cluster's API server says about those who ask: a TokenReview says who somebody is, a
//! SubjectAccessReview what they may do.
//!
//! An answer is remembered for a moment, so that who asks often does not make the API server be asked as
//! often; of so many that ask at once each is asked about after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::call::Call;
use client::Cluster;
use client::ask::Asker;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use store::{Asked, Refused, User};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

/// How long an answer of the API server counts.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Answers that are remembered; one more is asked for each time.
const ANSWERS_MAX: usize = 4_096;
/// Reviews that are under way at once.
const AT_ONCE_MAX: usize = 16;
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const SUBJECTS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The digest of a review: tokens are not kept.
type Digest = [u8; 32];

pub(super) struct Access {
    cluster: Cluster,
    remembered: Mutex<BTreeMap<Digest, (Instant, Value)>>,
    at_once: Semaphore,
}

impl Access {
    pub(super) fn new(cluster: Cluster) -> Access {
        Access {
            cluster,
            remembered: Mutex::default(),
            at_once: Semaphore::new(AT_ONCE_MAX),
        }
    }

    /// Whose token it is; none where nobody's.
    pub(super) async fn user_of(&self, token: &str) -> Result<Option<User>, Refused> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token },
        });
        let status = self.review(TOKENS, &review).await?;
        if status["authenticated"] != true {
            return Ok(None);
        }
        let user = &status["user"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(text).collect()
        };
        let extra = user["extra"].as_object().into_iter().flatten();
        Ok(Some(User {
            name: text(&user["username"]),
            groups: texts(&user["groups"]),
            uid: text(&user["uid"]),
            extra: extra
                .map(|(key, values)| (key.clone(), texts(values)))
                .collect(),
        }))
    }

    /// Whether somebody may do this.
    pub(super) async fn allows(&self, user: &User, asked: &Asked) -> Result<bool, Refused> {
        let target = asked.target.clone().unwrap_or_default();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.name,
                "groups": user.groups,
                "uid": user.uid,
                "extra": user.extra,
                "resourceAttributes": {
                    "namespace": target.namespace,
                    "verb": asked.verb,
                    "group": target.group,
                    "version": target.version,
                    "resource": target.plural,
                    "name": target.name,
                },
            },
        });
        Ok(self.review(SUBJECTS, &review).await?["allowed"] == true)
    }

    /// The status that the API server gives a review.
    async fn review(&self, target: &str, review: &Value) -> Result<Value, Refused> {
        let body = review.to_string().into_bytes();
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        digest.update(target.as_bytes());
        digest.update(&body);
        let digest = digest.finish();
        let digest = Digest::try_from(digest.as_ref()).map_err(|_| unsaid("no digest"))?;
        if let Some(status) = self.recall(&digest) {
            return Ok(status);
        }
        let turn = self.at_once.acquire().await;
        let _turn = turn.map_err(|cause| unsaid(&cause.to_string()))?;
        let call = Call {
            method: "POST",
            target: target.to_owned(),
            content_type: "application/json",
            body,
        };
        let answer = self.cluster.send(&call).await;
        let answer = answer.and_then(|answer| answer.accepted());
        let answer = answer.map_err(|error| {
            tracing::warn!("cannot ask the API server about who asks: {error}");
            unsaid("the API server does not say who may ask")
        })?;
        let mut told: Value =
            serde_json::from_slice(&answer.body).map_err(|cause| unsaid(&cause.to_string()))?;
        let status = told["status"].take();
        self.remember(digest, &status);
        Ok(status)
    }

    fn recall(&self, digest: &Digest) -> Option<Value> {
        let known = self.remembered.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        let (until, status) = known.get(digest)?;
        (*until > Instant::now()).then(|| status.clone())
    }

    fn remember(&self, digest: Digest, status: &Value) {
        let known = self.remembered.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= ANSWERS_MAX {
            known.retain(|_, (until, _)| *until > now);
        }
        if known.len() < ANSWERS_MAX {
            known.insert(digest, (now + REMEMBERED, status.clone()));
        }
    }
}

/// Nobody is told anything while it is not known what they may be told.
fn unsaid(why: &str) -> Refused {
    Refused::unavailable(why)
}

/// Somebody who asks, and sees what the cluster's API server says.
pub(super) struct Looked {
    access: Arc<Access>,
    user: User,
    /// Whether all namespaces may be seen, which spares the question about each.
    everything: OnceCell<bool>,
}

impl Looked {
    pub(super) fn new(access: Arc<Access>, user: User) -> Looked {
        Looked {
            access,
            user,
            everything: OnceCell::new(),
        }
    }

    async fn may_see(&self, namespace: &str) -> bool {
        let asked = store::seeing(namespace);
        let seen = self.access.allows(&self.user, &asked).await;
        seen.unwrap_or(false)
    }
}

impl Asker for Looked {
    fn name(&self) -> &str {
        &self.user.name
    }

    fn sees<'a>(&'a self, namespace: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let everything = self.everything.get_or_init(|| self.may_see("")).await;
            *everything || self.may_see(namespace).await
        })
    }

    fn sees_nodes(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let seen = self.access.allows(&self.user, &store::seeing_nodes()).await;
            seen.unwrap_or(false)
        })
    }
}
