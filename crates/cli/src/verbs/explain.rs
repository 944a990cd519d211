//! `katmai explain`.

use api::ask::Subject;
use api::kind::Kind;
use clap::{Args, Command, FromArgMatches, ValueEnum};

use super::Verb;
use super::rehearsing::Rehearsing;
use crate::start::RehearsalQuestion;

/// The row.
pub const VERB: Verb = Verb {
    name: "explain",
    command: || {
        Arguments::augment_args(
            Command::new("explain")
                .about("Say why a workload waits, who holds what it needs, and what would help"),
        )
        .after_help(AFTER)
    },
    begin: |matches| {
        let Arguments {
            kind,
            name,
            namespace,
            rehearsing,
        } = Arguments::from_arg_matches(matches)?;
        rehearsing.begin(RehearsalQuestion::Explain(Subject {
            kind: kind.kind(),
            namespace,
            name,
        }))
    },
};

const AFTER: &str = "\
Each remedy was proved: the decision was made again with it, and the workload was admitted.
Nothing is changed in the cluster.

A dump is what this writes, for instance:
  kubectl get queues,podgroups,vcjobs,pods,nodes,priorityclasses,pvc,pv,storageclasses,resourcequotas,pdb -A -o yaml

Exit codes: 0 it was explained, 1 there is nothing to explain or the cluster cannot be read, 2 a file is wrong.";

#[derive(Args)]
struct Arguments {
    /// What it is
    #[arg(value_enum, value_name = "KIND")]
    kind: Word,
    /// What it is called
    #[arg(value_name = "NAME")]
    name: String,
    /// Its namespace
    #[arg(long, short, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    rehearsing: Rehearsing,
}

/// What can be asked about.
#[derive(Clone, Copy, ValueEnum)]
enum Word {
    /// A pod
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// A PodGroup
    #[value(name = "podgroup", alias = "podgroups", alias = "pg")]
    PodGroup,
    /// A Job of Volcano's
    #[value(name = "vcjob", alias = "vcjobs", alias = "vj")]
    VcJob,
}

impl Word {
    fn kind(self) -> Kind {
        match self {
            Word::Pod => Kind::Pod,
            Word::PodGroup => Kind::PodGroup,
            Word::VcJob => Kind::VcJob,
        }
    }
}
