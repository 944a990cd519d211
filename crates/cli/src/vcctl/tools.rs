//! Upstream's commands of one deed: `vsub`, `vjobs`, `vqueues`, `vcancel`, `vsuspend` and `vresume`.
//!
//! Their short flags are the other way round than those of `vcctl job`: `-n` is the name, `-N` the namespace.

use std::ffi::OsString;
use std::fmt::Write;

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser};
use serde_json::Value;

use super::end::End;
use super::told::{Form, Manner, NOTHING, Told};
use super::{Asked, Common, job, queue};
use crate::rest::{Place, Rest, text};
use crate::start::Outcome;

/// What `vsub` takes where neither a flag nor a variable says anything.
const IMAGE: &str = "busybox";
const NAMESPACE: &str = "default";
const SCHEDULER: &str = "volcano";

/// One of them.
pub(crate) struct Tool {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Its flags and its help, under any name.
    pub(super) command: fn() -> Command,
    /// What its flags ask for.
    read: fn(&ArgMatches) -> Result<(Asked, Common), clap::Error>,
}

/// All of them, alphabetical.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "vcancel",
        command: Typed::<Cancel>::command,
        read: |matches| read::<Cancel>(matches, Request::Cancel),
    },
    Tool {
        name: "vjobs",
        command: Typed::<Jobs>::command,
        read: |matches| read::<Jobs>(matches, Request::Jobs),
    },
    Tool {
        name: "vqueues",
        command: Typed::<Queues>::command,
        read: |matches| read::<Queues>(matches, Request::Queues),
    },
    Tool {
        name: "vresume",
        command: Typed::<Resume>::command,
        read: |matches| read::<Resume>(matches, Request::Resume),
    },
    Tool {
        name: "vsub",
        command: Typed::<Submit>::command,
        read: |matches| read::<Submit>(matches, Request::Submit),
    },
    Tool {
        name: "vsuspend",
        command: Typed::<Suspend>::command,
        read: |matches| read::<Suspend>(matches, Request::Suspend),
    },
];

impl Tool {
    /// The tool of that name.
    pub(crate) fn called(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// It as a program of its own.
    pub(crate) fn whole(&self) -> Command {
        super::as_upstream((self.command)().name(self.name))
    }

    /// Understands what follows its name; speaks where nothing is left to be done.
    pub(crate) fn parse(&self, arguments: Vec<OsString>) -> Outcome {
        self.understand(arguments)
            .unwrap_or_else(|end| Outcome::Exit(end.say()))
    }

    /// The same, or how that ends which leaves nothing to be done.
    pub(super) fn understand(&self, arguments: Vec<OsString>) -> Result<Outcome, End> {
        let command = (self.command)().name(self.name);
        let (asked, common) = super::typed(command, arguments, self.read)?;
        common.ask(asked)
    }
}

#[derive(Parser)]
struct Typed<T: Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    common: Common,
}

fn read<T: Args>(
    matches: &ArgMatches,
    request: fn(T) -> Request,
) -> Result<(Asked, Common), clap::Error> {
    let Typed { own, common } = Typed::<T>::from_arg_matches(matches)?;
    Ok((Asked::Tool(request(own)), common))
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Cancel(Cancel),
    Jobs(Jobs),
    Queues(Queues),
    Resume(Resume),
    Submit(Submit),
    Suspend(Suspend),
}

/// cancel a job
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Cancel {
    #[command(flatten)]
    named: Named,
}

/// resume a job
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Resume {
    #[command(flatten)]
    named: Named,
}

/// abort a job
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Suspend {
    #[command(flatten)]
    named: Named,
}

/// A job by its name.
#[derive(Args, Clone, Debug, PartialEq)]
struct Named {
    /// the namespace of job
    #[arg(short = 'N', long, default_value = "default")]
    namespace: String,
    /// the name of job
    #[arg(short, long, default_value = "")]
    name: String,
}

/// list jobs, or view one
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Jobs {
    /// the namespace of job
    #[arg(short = 'N', long, default_value = "default")]
    namespace: String,
    /// the name of job
    #[arg(short, long, default_value = "")]
    name: String,
    /// list jobs with specified scheduler name
    #[arg(short = 'S', long, default_value = "")]
    scheduler: String,
    /// list jobs in all namespaces
    #[arg(long)]
    all_namespaces: bool,
    /// fuzzy matching jobName
    #[arg(long, default_value = "")]
    selector: String,
}

/// list queues, or one
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Queues {
    /// the name of queue
    #[arg(short, long, default_value = "")]
    name: String,
}

/// submit a job of one task
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Submit {
    /// the container image of job
    #[arg(
        short,
        long,
        env = "VOLCANO_DEFAULT_IMAGE",
        hide_env_values = true,
        default_value = IMAGE
    )]
    image: String,
    /// the namespace of job
    #[arg(
        short = 'N',
        long,
        env = "VOLCANO_DEFAULT_JOB_NAMESPACE",
        hide_env_values = true,
        default_value = NAMESPACE
    )]
    namespace: String,
    /// the name of job
    #[arg(short, long, default_value = "")]
    name: String,
    /// the minimal available tasks of job
    #[arg(short, long, default_value_t = 1)]
    min: i32,
    /// the total tasks of job
    #[arg(short, long, default_value_t = 1)]
    replicas: i32,
    /// the resource request of the task
    #[arg(short = 'R', long, default_value = "cpu=1000m,memory=100Mi")]
    requests: String,
    /// the resource limit of the task
    #[arg(short = 'L', long, default_value = "cpu=1000m,memory=100Mi")]
    limits: String,
    /// the scheduler for this job
    #[arg(
        short = 'S',
        long,
        env = "VOLCANO_SCHEDULER_NAME",
        hide_env_values = true,
        default_value = SCHEDULER
    )]
    scheduler: String,
    /// the command of job, split as a shell would
    #[arg(short, long, default_value = "")]
    command: String,
}

impl Request {
    /// Where the objects of a list are; none of what is no list.
    pub(super) fn listed(&self) -> anyhow::Result<Option<Vec<String>>> {
        Ok(match self {
            Request::Jobs(jobs) if jobs.name.is_empty() => {
                Some(vec![job::Request::listed(&jobs.list())?])
            }
            Request::Queues(queues) if queues.name.is_empty() => Some(queue::listed()),
            _ => None,
        })
    }

    pub(super) fn shows_objects(&self) -> bool {
        match self {
            Request::Jobs(_) | Request::Queues(_) | Request::Submit(_) => true,
            Request::Cancel(_) | Request::Resume(_) | Request::Suspend(_) => false,
        }
    }
}

impl Jobs {
    fn list(&self) -> job::List {
        job::List {
            namespace: self.namespace.clone(),
            scheduler: self.scheduler.clone(),
            all_namespaces: self.all_namespaces,
            selector: self.selector.clone(),
            queue: String::new(),
        }
    }
}

impl Named {
    fn job(&self) -> job::Named {
        job::Named {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

pub(super) async fn answer(request: &Request, manner: Manner, rest: &Rest) -> anyhow::Result<Told> {
    let as_job = match request {
        Request::Queues(queues) => return vqueues(&queues.name, manner.form, rest).await,
        Request::Cancel(Cancel { named }) => {
            if named.name.is_empty() {
                bail!("job name is mandatory to cancel a particular job");
            }
            job::answer(&job::Request::Delete(named.job()), manner, rest).await?;
            return Ok(Told::Text(format!(
                "cancel job {} successfully",
                named.name
            )));
        }
        Request::Resume(Resume { named }) => job::Request::Resume(named.job()),
        Request::Suspend(Suspend { named }) => job::Request::Suspend(named.job()),
        Request::Submit(submit) => job::Request::Run(submitted(submit)?),
        Request::Jobs(jobs) if jobs.name.is_empty() => job::Request::List(jobs.list()),
        Request::Jobs(jobs) => job::Request::View(job::Named {
            namespace: jobs.namespace.clone(),
            name: jobs.name.clone(),
        }),
    };
    job::answer(&as_job, manner, rest).await
}

fn submitted(submit: &Submit) -> anyhow::Result<job::Run> {
    let command = shlex::split(&submit.command);
    let command =
        command.with_context(|| format!("--command {:?}: a quote is open", submit.command))?;
    // A variable that is empty says nothing, as upstream.
    let given = |value: &str, default: &str| match value {
        "" => default.to_owned(),
        value => value.to_owned(),
    };
    Ok(job::Run {
        image: given(&submit.image, IMAGE),
        namespace: given(&submit.namespace, NAMESPACE),
        name: submit.name.clone(),
        min: submit.min,
        replicas: submit.replicas,
        requests: submit.requests.clone(),
        limits: submit.limits.clone(),
        scheduler: given(&submit.scheduler, SCHEDULER),
        filename: String::new(),
        command,
    })
}

/// Upstream prints counters that nobody writes any more; these are counted.
async fn vqueues(name: &str, form: Form, rest: &Rest) -> anyhow::Result<Told> {
    let is_list = name.is_empty();
    let objects = match name {
        "" => rest.list(queue::QUEUES).await?,
        name => {
            let place = Place {
                collection: queue::QUEUES.to_owned(),
                name: name.to_owned(),
            };
            vec![rest.get(&place).await?]
        }
    };
    let groups = queue::groups(rest).await?;
    let mut table = queue_table(&objects, &groups);
    if form == Form::Wide {
        table = queue::wide(&table, &objects);
    }
    let told = Told::Objects { objects, table };
    Ok(match is_list {
        true => told,
        false => told.of_one(),
    })
}

fn queue_table(queues: &[Value], groups: &[Value]) -> String {
    if queues.is_empty() {
        return NOTHING.to_owned();
    }
    let mut out = String::new();
    let mut row = |name: &str, cells: [&str; 6]| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{name:<25}");
        for cell in cells {
            let _ = write!(out, "{cell:<8}");
        }
        out.push('\n');
    };
    row(
        "Name",
        [
            "Weight", "State", "Inqueue", "Pending", "Running", "Unknown",
        ],
    );
    for queue in queues {
        let name = text(queue, &["metadata", "name"]);
        let count = |phase| queue::count(groups, name, phase).to_string();
        row(
            name,
            [
                &queue["spec"]["weight"].as_i64().unwrap_or(1).to_string(),
                text(queue, &["status", "state"]),
                &count("Inqueue"),
                &count("Pending"),
                &count("Running"),
                &count("Unknown"),
            ],
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::start::{Question, Start};

    fn asked(typed: &[&str]) -> Request {
        let (name, rest) = typed.split_first().expect("a tool has a name");
        let tool = Tool::called(name).expect("it is one of the tools");
        let Outcome::Start(start) = tool.parse(rest.iter().map(OsString::from).collect()) else {
            panic!("{typed:?} is not understood");
        };
        match *start {
            Start::Ask(_, Question::Vcctl(request)) => match request.asked {
                Asked::Tool(request) => request,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn short_flags_are_the_other_way_round() {
        assert!(TOOLS.is_sorted_by_key(|tool| tool.name));
        let named = Named {
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
        };
        for (tool, request) in [
            (
                "vcancel",
                Request::Cancel(Cancel {
                    named: named.clone(),
                }),
            ),
            (
                "vsuspend",
                Request::Suspend(Suspend {
                    named: named.clone(),
                }),
            ),
            ("vresume", Request::Resume(Resume { named })),
        ] {
            assert_eq!(asked(&[tool, "-N", "ns", "-n", "a"]), request);
        }
        let all = asked(&[
            "vjobs",
            "-S",
            "volcano",
            "--all-namespaces",
            "--selector",
            "x",
        ]);
        let listed = |request: Request| request.listed().expect("no name leads elsewhere");
        assert_eq!(
            listed(all).expect("it is a list"),
            ["/apis/batch.volcano.sh/v1alpha1/jobs"]
        );
        assert_eq!(listed(asked(&["vjobs", "-n", "a"])), None);
    }

    #[test]
    fn what_is_submitted_runs_what_a_shell_would() {
        let Request::Submit(submit) = asked(&["vsub", "-n", "a", "-c", "sh -c 'echo \"one two\"'"])
        else {
            panic!("something is submitted");
        };
        let run = submitted(&submit).expect("quotes are closed");
        assert_eq!(run.command, ["sh", "-c", "echo \"one two\""]);
        let empty = Submit {
            image: String::new(),
            namespace: String::new(),
            scheduler: String::new(),
            ..submit.clone()
        };
        let run = submitted(&empty).expect("quotes are closed");
        assert_eq!(
            [run.image, run.namespace, run.scheduler],
            ["busybox", "default", "volcano"]
        );
        let open = Submit {
            command: "sh -c 'echo".to_owned(),
            ..submit
        };
        assert!(submitted(&open).is_err());
    }

    #[test]
    fn queues_have_upstreams_columns() {
        let queue = json!({ "metadata": { "name": "default" }, "spec": { "weight": 1 }, "status": { "state": "Open" } });
        let group = json!({ "spec": { "queue": "default" }, "status": { "phase": "Running" } });
        let table = queue_table(&[queue], &[group]);
        insta::assert_snapshot!(table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"), @r"
        Name                     Weight  State   Inqueue Pending Running Unknown
        default                  1       Open    0       0       1       0
        ");
    }
}
