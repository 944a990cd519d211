//! Arguments of the verbs that ask a cluster without changing it: which cluster, by which rules.

use std::path::PathBuf;

use clap::Args;

use super::serving::WhomArguments;
use super::shape::Place;
use crate::manifest::{self, Mistake};
use crate::start::{
    Connection, Format, Outcome, RehearsalQuestion, RehearsalRequest, RehearsalRules, Start,
};
use crate::{EXIT_BAD_INPUT, console, run, scheduler_conf};

// Which cluster is asked, and how.
#[derive(Args)]
pub(super) struct Rehearsing {
    /// The cluster as lists of its objects: files, directories, or - for standard input [default: the plane that is up]
    #[arg(long, value_name = "FILE|DIRECTORY|-", conflicts_with_all = ["kubeconfig", "data_dir"])]
    pub(super) dump: Vec<String>,
    /// Ask the cluster of this kubeconfig
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    kubeconfig: Option<PathBuf>,
    /// Decide by this volcano-scheduler.conf [default: that of the plane, of the ConfigMap volcano-system/volcano-scheduler-configmap, or Volcano's built-in one]
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Format,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    whom: WhomArguments,
}

impl Rehearsing {
    /// What is to be started for a question.
    pub(super) fn begin(self, question: RehearsalQuestion) -> anyhow::Result<Outcome> {
        let format = self.output;
        let dump = match self.dump.is_empty() {
            true => Vec::new(),
            false => match manifest::read(&self.dump) {
                Ok(documents) => documents,
                Err(mistakes) => return Ok(complain(&mistakes, format)),
            },
        };
        let plane = match &self.kubeconfig {
            Some(kubeconfig) => self.place.running_by(kubeconfig)?,
            None if self.dump.is_empty() => self.place.running()?,
            None => None,
        };
        let connection = match (self.kubeconfig, self.dump.is_empty()) {
            (_, false) => None,
            (Some(path), true) => Some(Connection {
                kubeconfig: Some(path),
                master: None,
            }),
            (None, true) => Some(self.place.connection()?),
        };
        let is_known = plane.is_some();
        let (of_plane, words) = plane
            .map(|plane| (plane.scheduler_conf, plane.serving))
            .unwrap_or_default();
        let may_be_asked = self.scheduler_conf.is_none() && !self.whom.is_given();
        let whom = match self.whom.is_given() {
            true => self.whom,
            false => WhomArguments::of_words(&words)?,
        };
        let given = self.scheduler_conf.as_deref();
        let loaded = given.or(of_plane.as_deref()).map(scheduler_conf::load);
        let rules = match loaded.transpose() {
            Ok(None) if is_known => RehearsalRules::OfCluster,
            Ok(None) => RehearsalRules::Unknown,
            Ok(Some(loaded)) => match given {
                Some(_) => RehearsalRules::Given(loaded.conf),
                None => RehearsalRules::OfPlane(loaded.conf),
            },
            Err(error) => {
                console::complain(&format!("error: {error:#}"));
                return Ok(Outcome::Exit(EXIT_BAD_INPUT));
            }
        };
        Ok(Outcome::Start(Box::new(Start::Rehearse(
            RehearsalRequest {
                connection,
                dump,
                question,
                rules,
                serving: whom.serving()?,
                may_be_asked,
                format,
            },
        ))))
    }
}

pub(super) fn complain(mistakes: &[Mistake], format: Format) -> Outcome {
    Outcome::Exit(run::complain(mistakes, format))
}
