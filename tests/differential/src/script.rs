//! Scripts: requests and streams as text. The format is described in `tests/differential/README.md`.

use std::path::Path;

use anyhow::{Context, bail};

/// One file.
#[derive(Debug)]
pub struct Script {
    /// The file's name without its ending.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug)]
pub struct Step {
    /// The `##` line above it.
    pub heading: String,
    /// Line of its verb.
    pub line: usize,
    /// What to do.
    pub deed: Deed,
}

/// What a step does.
#[derive(Debug)]
pub enum Deed {
    /// Sends a request and compares the answers.
    Ask(Ask),
    /// Opens a stream under a name and compares how it begins.
    Watch {
        /// Its name.
        name: String,
        /// The request.
        ask: Ask,
    },
    /// Reads events of a stream and compares them.
    Events {
        /// Its name.
        name: String,
        /// When to stop reading.
        until: Until,
    },
    /// Compares which values a document of schemas lists, and for what.
    Enums(Ask),
    /// Compares what the webhooks were asked since the last such step.
    Reviews,
    /// Forgets what the webhooks were asked.
    Forget,
}

/// When enough events were read.
#[derive(Debug, PartialEq, Eq)]
pub enum Until {
    /// After so many.
    Count(usize),
    /// After an event of this type about an object of this name.
    Event(String, String),
    /// When the server ends the stream.
    End,
}

/// A request, with variables still in it.
#[derive(Debug, Default)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// Variables to take from the answer: name and path.
    pub takes: Vec<(String, String)>,
    /// What the answer must be like before it counts; asked again until it is.
    pub until: Vec<Condition>,
}

/// What an answer must be like.
#[derive(Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its code.
    Code(u16),
    /// A path that leads to this text.
    Is(String, String),
    /// A text in the body.
    Holds(String),
}

/// A body as it stands in the script.
#[derive(Debug, Default)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// YAML, sent as JSON.
    Yaml(String),
    /// Sent as it stands.
    Raw(String),
    /// YAML with field numbers for keys, sent as Kubernetes' protobuf with this version and kind.
    Protobuf(String, String, String),
}

const METHODS: &[&str] = &["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
/// Words behind the target of a PATCH.
const PATCHES: &[(&str, &str)] = &[
    ("apply", "application/apply-patch+yaml"),
    ("json", "application/json-patch+json"),
    ("merge", "application/merge-patch+json"),
    ("strategic", "application/strategic-merge-patch+json"),
];

impl Script {
    /// Reads a file.
    pub fn read(path: &Path) -> anyhow::Result<Script> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let steps = parse(&text).with_context(|| format!("in {}", path.display()))?;
        Ok(Script {
            name: name.into_owned(),
            steps,
        })
    }
}

impl Step {
    /// What reports and differences call it.
    pub fn name(&self) -> String {
        match &self.deed {
            Deed::Ask(ask) => format!("{} / {} {}", self.heading, ask.method, ask.target),
            Deed::Watch { ask, .. } => format!("{} / WATCH {}", self.heading, ask.target),
            Deed::Events { name, .. } => format!("{} / EVENTS {name}", self.heading),
            Deed::Enums(ask) => format!("{} / ENUMS {}", self.heading, ask.target),
            Deed::Reviews => format!("{} / REVIEWS", self.heading),
            Deed::Forget => format!("{} / FORGET", self.heading),
        }
    }
}

/// The steps of a text.
pub fn parse(text: &str) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut heading = String::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(title) = line.strip_prefix("## ") {
            title.trim().clone_into(&mut heading);
        } else if !line.is_empty() && !line.starts_with('#') {
            let rest = &lines[at + 1..];
            let length = rest
                .iter()
                .position(|line| begins_step(line) || line.starts_with("## "))
                .unwrap_or(rest.len());
            let deed =
                deed(line, &rest[..length]).with_context(|| format!("line {}: {line}", at + 1))?;
            steps.push(Step {
                heading: heading.clone(),
                line: at + 1,
                deed,
            });
            at += length;
        }
        at += 1;
    }
    Ok(steps)
}

fn begins_step(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    METHODS.contains(&word) || ["WATCH", "ENUMS", "EVENTS", "FORGET", "REVIEWS"].contains(&word)
}

fn deed(line: &str, below: &[&str]) -> anyhow::Result<Deed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["FORGET"] => Ok(Deed::Forget),
        ["ENUMS", target] => Ok(Deed::Enums(Ask {
            method: "GET".to_owned(),
            target: (*target).to_owned(),
            ..Ask::default()
        })),
        ["REVIEWS"] => Ok(Deed::Reviews),
        ["EVENTS", name, until @ ..] => Ok(Deed::Events {
            name: (*name).to_owned(),
            until: match until {
                ["end"] => Until::End,
                ["until", kind, of] => Until::Event((*kind).to_owned(), (*of).to_owned()),
                [count] => Until::Count(count.parse().context("how many?")?),
                _ => bail!("EVENTS NAME COUNT, EVENTS NAME until TYPE OBJECT, or EVENTS NAME end"),
            },
        }),
        ["WATCH", name, target] => Ok(Deed::Watch {
            name: (*name).to_owned(),
            ask: ask("GET", target, None, below)?,
        }),
        [method, target] if METHODS.contains(method) => {
            Ok(Deed::Ask(ask(method, target, None, below)?))
        }
        ["PATCH", target, patch] => Ok(Deed::Ask(ask("PATCH", target, Some(patch), below)?)),
        _ => bail!("no step begins so"),
    }
}

fn ask(method: &str, target: &str, patch: Option<&str>, below: &[&str]) -> anyhow::Result<Ask> {
    let mut ask = Ask {
        method: method.to_owned(),
        target: target.to_owned(),
        ..Ask::default()
    };
    if let Some(patch) = patch {
        let (_, kind) = PATCHES
            .iter()
            .find(|(word, _)| *word == patch)
            .context("no such kind of patch")?;
        ask.headers
            .push(("Content-Type".to_owned(), (*kind).to_owned()));
    }
    let mut how = "";
    let mut body = Vec::new();
    for line in below {
        let marked = line.split_at_checked(2).filter(|_| body.is_empty());
        match marked {
            Some(("> ", header)) => {
                let (name, value) = header.split_once(": ").context("> NAME: VALUE")?;
                ask.headers.push((name.to_owned(), value.trim().to_owned()));
            }
            Some(("= ", take)) => {
                let (name, path) = take.split_once(' ').context("= NAME PATH")?;
                ask.takes.push((name.to_owned(), path.trim().to_owned()));
            }
            Some(("? ", wish)) => ask.until.push(condition(wish)?),
            Some(("! ", word)) => how = word.trim(),
            _ if line.starts_with('#') => {}
            _ if line.is_empty() && body.is_empty() => {}
            _ => body.push(*line),
        }
    }
    ask.body = read_body(how, body.join("\n").trim_end())?;
    Ok(ask)
}

fn read_body(how: &str, text: &str) -> anyhow::Result<Body> {
    let words: Vec<&str> = how.split_whitespace().collect();
    Ok(match words.as_slice() {
        [] if text.is_empty() => Body::Empty,
        [] => Body::Yaml(text.to_owned()),
        ["raw"] => Body::Raw(text.to_owned()),
        ["protobuf", version, kind] => {
            Body::Protobuf((*version).to_owned(), (*kind).to_owned(), text.to_owned())
        }
        _ => bail!("! raw, or ! protobuf VERSION KIND"),
    })
}

fn condition(text: &str) -> anyhow::Result<Condition> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words.as_slice() {
        ["code", code] => Condition::Code(code.parse().context("? code NUMBER")?),
        ["holds", ..] => Condition::Holds(text["holds".len()..].trim().to_owned()),
        [path, "=", value @ ..] => Condition::Is((*path).to_owned(), value.join(" ")),
        _ => bail!("? code NUMBER, ? PATH = VALUE, or ? holds TEXT"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_headers_variables_conditions_and_a_body() {
        let text = "# about\n## first\nPOST /a?b=c\n> Accept: x/y\n= uid .metadata.uid\n? code 201\n\na: 1\n# not sent\nb:\n- GET\n\n## second\nEVENTS w until ADDED ${x}\n";
        let steps = parse(text).unwrap();
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].name(), "first / POST /a?b=c");
        let Deed::Ask(ask) = &steps[0].deed else {
            panic!("{:?}", steps[0])
        };
        assert_eq!(ask.headers, [("Accept".to_owned(), "x/y".to_owned())]);
        assert_eq!(ask.takes, [("uid".to_owned(), ".metadata.uid".to_owned())]);
        assert_eq!(ask.until, [Condition::Code(201)]);
        assert!(matches!(&ask.body, Body::Yaml(text) if text == "a: 1\nb:\n- GET"));
        assert_eq!(steps[1].name(), "second / EVENTS w");
    }

    #[test]
    fn what_is_no_step_is_refused_with_its_line() {
        let error = format!("{:#}", parse("GET /a\n\nWATCH w\n").unwrap_err());
        assert!(error.starts_with("line 3: WATCH w"), "{error}");
    }
}
