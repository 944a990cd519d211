//! External admission webhooks: which are asked about a request, what they are told, what their
//! answers mean.
//!
//! Nothing here calls anybody: a request that must ask stops with [`crate::Calls`], and comes back
//! with the answers (see [`crate::talk`]).

mod address;
mod answer;
mod ask;
mod check;
mod conditions;
mod matching;
mod read;

pub(crate) use ask::{Passing, Round};
pub(crate) use check::{
    check_client, check_conditions, check_rule, check_versions, default, validate,
};
pub(crate) use conditions::Condition;
pub(crate) use read::Client;

use std::sync::Arc;

use api::selector::LabelSelector;

use crate::registry::Resource;

/// The webhooks of all visible configurations, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) mutating: Arc<Vec<Hook>>,
    pub(crate) validating: Arc<Vec<Hook>>,
}

impl Hooks {
    pub(crate) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}

/// Whether a resource's objects are configurations of webhooks.
pub(crate) fn is_configuration(row: &Resource) -> bool {
    matches!(&*row.shelf, read::MUTATING | read::VALIDATING)
}

/// One webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    /// The configuration that it stands in.
    pub(crate) configuration: Box<str>,
    pub(crate) name: Box<str>,
    /// Which of its configuration's webhooks it is.
    pub(crate) position: usize,
    pub(crate) rules: Vec<Rule>,
    pub(crate) namespaces: LabelSelector,
    pub(crate) objects: LabelSelector,
    pub(crate) conditions: Vec<Condition>,
    /// `matchPolicy: Equivalent`.
    pub(crate) takes_equivalents: bool,
    /// `failurePolicy: Ignore`.
    pub(crate) fails_open: bool,
    /// May be asked about what will not be written.
    pub(crate) takes_dry_runs: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(crate) is_asked_again: bool,
    pub(crate) timeout_seconds: u64,
    pub(crate) client: Client,
    /// The version of `admission.k8s.io` that it is told in; `None` if it takes none of ours.
    pub(crate) review_version: Option<&'static str>,
}

/// Which requests a webhook is for.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) operations: Vec<Box<str>>,
    pub(crate) groups: Vec<Box<str>>,
    pub(crate) versions: Vec<Box<str>>,
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) scope: Box<str>,
}
