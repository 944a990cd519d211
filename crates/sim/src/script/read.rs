//! A script's text, read line by line.

use api::duration::Duration;
use api::kind::{KINDS, Kind};
use api::quantity::Quantity;
use serde_json::{Value, json};

use super::{Deed, Mistake, Script, Step, Wish};
use crate::fault::Fault;
use crate::settings::Settings;

/// Lines of one script.
const LINES_MAX: usize = 1_000;
/// The most pods of one gang, nodes of one world.
const MANY: u64 = 1_000;

impl Script {
    /// Reads the part of a text above `---`. Documents below `create` are read by `decode`.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn read(
        text: &str,
        decode: &dyn Fn(&str) -> Result<Value, String>,
    ) -> Result<Script, Mistake> {
        let mut script = Script {
            settings: Settings::new(1),
            scheduler: None,
            steps: Vec::new(),
        };
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .take_while(|(_, line)| *line != "---")
            .peekable();
        while let Some((number, line)) = lines.next() {
            let mistake = |text: String| Mistake { line: number, text };
            if number > LINES_MAX {
                return Err(mistake(format!("a script has at most {LINES_MAX} lines")));
            }
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut document = String::new();
            while let Some((_, inner)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
                document.push_str(inner);
                document.push('\n');
            }
            script
                .line(number, line, &document, decode)
                .map_err(mistake)?;
        }
        Ok(script)
    }

    fn line(
        &mut self,
        number: usize,
        line: &str,
        document: &str,
        decode: &dyn Fn(&str) -> Result<Value, String>,
    ) -> Result<(), String> {
        let mut words = Words::of(line);
        let step = match words.next("a verb")? {
            "world" => return self.world(&mut words),
            "scheduler" => {
                self.scheduler = Some(document.to_owned());
                return words.end();
            }
            "fault" => {
                let fault = words.fault()?;
                self.settings
                    .faults
                    .set(fault, words.number("rate", u64::MAX)?);
                return words.end();
            }
            "storm" => {
                self.settings.faults.until_ms = words.time()?;
                return words.end();
            }
            "at" => {
                let at = words.time()?;
                Step::At(at, words.deed(document, decode)?)
            }
            "run" => Step::Run(words.time()?),
            "expect" => Step::Expect(words.wish()?),
            other => return Err(format!("{other} is no verb of a script")),
        };
        words.end()?;
        self.steps.push((number, step));
        Ok(())
    }

    fn world(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        for (key, value) in words.pairs()? {
            let number = || {
                value
                    .parse::<u32>()
                    .map_err(|_| format!("{key}={value} is no number"))
            };
            match key {
                "cpu" => {
                    let cpu = value.parse::<Quantity>();
                    self.settings.nodes.cpu =
                        cpu.map_err(|_| format!("{key}={value} is no quantity"))?;
                }
                "latency" => self.settings.latency_ms_max = milliseconds(value)?,
                "nodes" => self.settings.nodes.nodes = number()?.min(MANY as u32),
                "replicas" => self.settings.replicas = number()?.min(5),
                "seed" => self.settings.seed = u64::from(number()?),
                _ => return Err(format!("a world has no {key}")),
            }
        }
        Ok(())
    }
}

/// The words of a line, taken one after the other.
struct Words<'a> {
    rest: Vec<&'a str>,
    taken: usize,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        Words {
            rest: line.split_whitespace().collect(),
            taken: 0,
        }
    }

    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        let at = self.taken;
        let word = self
            .rest
            .get(at)
            .copied()
            .ok_or(format!("{what} is missing"))?;
        self.taken = at + 1;
        Ok(word)
    }

    fn end(&self) -> Result<(), String> {
        match self.rest.get(self.taken) {
            None => Ok(()),
            Some(word) => Err(format!("{word} is too much")),
        }
    }

    /// What is left, as `key=value`.
    fn pairs(&mut self) -> Result<Vec<(&'a str, &'a str)>, String> {
        let from = std::mem::replace(&mut self.taken, self.rest.len());
        let left = &self.rest[from..];
        let pair = |word: &&'a str| {
            word.split_once('=')
                .ok_or(format!("{word} is no key=value"))
        };
        left.iter().map(pair).collect()
    }

    fn time(&mut self) -> Result<i64, String> {
        milliseconds(self.next("a time")?)
    }

    fn fault(&mut self) -> Result<Fault, String> {
        let name = self.next("a fault")?;
        Fault::find(name).ok_or(format!("there is no fault {name}"))
    }

    fn kind(&mut self) -> Result<Kind, String> {
        let name = self.next("a kind")?;
        let mut called = KINDS.iter().filter(|row| row.kind.is_called(name));
        let on_the_wire = || {
            let mut rows = KINDS.iter();
            rows.find(|row| row.name == name && row.kind != Kind::BatchJob)
        };
        let row = called.next().or_else(on_the_wire);
        row.map(|row| row.kind)
            .ok_or(format!("there is no kind {name}"))
    }

    fn number(&mut self, key: &str, max: u64) -> Result<u64, String> {
        let word = self.next(key)?;
        let value = word
            .strip_prefix(key)
            .and_then(|rest| rest.strip_prefix('='));
        let number = value.and_then(|value| value.parse().ok());
        number
            .filter(|number| *number <= max)
            .ok_or(format!("{word} is not {key}=NUMBER"))
    }

    fn deed(
        &mut self,
        document: &str,
        decode: &dyn Fn(&str) -> Result<Value, String>,
    ) -> Result<Deed, String> {
        Ok(match self.next("a deed")? {
            "command" => Deed::Command {
                job: self.next("a job")?.to_owned(),
                action: match self.next("an action")? {
                    "AbortJob" => "AbortJob",
                    "ResumeJob" => "ResumeJob",
                    other => return Err(format!("{other} is no command")),
                },
            },
            "create" => Deed::Create(decode(document)?),
            "delete" => Deed::Delete {
                kind: self.kind()?,
                name: self.next("a name")?.to_owned(),
            },
            "gang" => Deed::Create(self.gang()?),
            "patch" => Deed::Patch {
                kind: self.kind()?,
                name: self.next("a name")?.to_owned(),
                patch: decode(document)?,
            },
            "strike" => Deed::Strike(self.fault()?),
            other => return Err(format!("{other} is no deed of a script")),
        })
    }

    fn gang(&mut self) -> Result<Value, String> {
        let name = self.next("a name")?;
        let (mut pods, mut cpu, mut runs, mut exit) = (1, "1", "1s", "0");
        let (mut class, mut queue, mut min) = ("", "", None);
        for (key, value) in self.pairs()? {
            match key {
                "class" => class = value,
                "cpu" => cpu = value,
                "exit" => exit = value,
                "min" => {
                    let number = value.parse::<u64>();
                    min = Some(number.map_err(|_| format!("min={value} is no number"))?);
                }
                "queue" => queue = value,
                "pods" => {
                    pods = value
                        .parse()
                        .map_err(|_| format!("pods={value} is no number"))?
                }
                "runs" => runs = value,
                _ => return Err(format!("a gang has no {key}")),
            }
        }
        if pods > MANY {
            return Err(format!("a gang of a script has at most {MANY} pods"));
        }
        let mut job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "minAvailable": min.unwrap_or(pods),
                "schedulerName": "volcano",
                "tasks": [{
                    "name": "work",
                    "replicas": pods,
                    "template": {
                        "metadata": { "annotations": {
                            "katmai.dev/sim-duration": runs,
                            "katmai.dev/sim-exit-code": exit,
                        }},
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{
                                "name": "main",
                                "image": "busybox",
                                "resources": { "requests": { "cpu": cpu } },
                            }],
                        },
                    },
                }],
            },
        });
        for (key, value) in [("priorityClassName", class), ("queue", queue)] {
            if !value.is_empty() {
                job["spec"][key] = json!(value);
            }
        }
        Ok(job)
    }

    fn wish(&mut self) -> Result<Wish, String> {
        Ok(match self.next("a wish")? {
            "count" => Wish::Count {
                kind: self.kind()?,
                count: self
                    .next("a number")?
                    .parse()
                    .map_err(|_| "a number is missing")?,
            },
            "field" => Wish::Field {
                kind: self.kind()?,
                name: self.next("a name")?.to_owned(),
                path: self.next("a path")?.to_owned(),
                value: self.next("a value")?.to_owned(),
            },
            "job" => Wish::Job {
                name: self.next("a name")?.to_owned(),
                phase: self.next("a phase")?.to_owned(),
            },
            "quiet" => Wish::Quiet,
            other => return Err(format!("{other} is nothing to expect")),
        })
    }
}

fn milliseconds(text: &str) -> Result<i64, String> {
    let parsed = Duration::parse(text).map_err(|_| format!("{text} is no time"))?;
    Ok(parsed.micros().max(0) / 1_000)
}
