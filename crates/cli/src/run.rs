//! `katmai run`: apply, follow, say, and tell the verdict.

use std::sync::Arc;
use std::time::Duration;

use api::time::Time;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::console::{self, Console};
use crate::manifest::{Document, Mistake};
use crate::printer::Printer;
use crate::rest::{Place, Refusal, Rest, Seen, is_definition, text};
use crate::start::{Cleanup, Follow, Format, RunRequest};
use crate::view::{Effect, Event, LogSource, Verdict, View, WorkloadKind};
use crate::{EXIT_BAD_INPUT, EXIT_FAILED, logs};

/// How long pods may be seen running once everything has ended.
const LAST_STATES: Duration = Duration::from_millis(500);
/// How long logs may take to arrive once everything has ended.
const LAST_LINES: Duration = Duration::from_secs(3);
/// How often the moving picture is drawn anew when nothing happens.
const PICTURE: Duration = Duration::from_millis(200);
/// Exit code of an interrupted run, as shells have it.
const EXIT_INTERRUPTED: u8 = 130;
/// The same of one that was asked to end.
const EXIT_TERMINATED: u8 = 143;

/// The clock, as a value for the view.
pub(crate) fn now() -> Time {
    Time(jiff::Timestamp::now().as_microsecond())
}

/// Applies a request's manifests and follows them to the end.
pub(crate) async fn answer(
    request: RunRequest,
    cluster: Arc<dyn Cluster>,
    console: Console,
) -> anyhow::Result<u8> {
    let printer = Printer::new(request.format, console);
    let told = perform(&request, cluster, printer).await?;
    Ok(told.unwrap_or_else(|mistakes| complain(&mistakes, request.format)))
}

async fn perform(
    request: &RunRequest,
    cluster: Arc<dyn Cluster>,
    printer: Printer,
) -> anyhow::Result<Result<u8, Vec<Mistake>>> {
    let mut run = Run {
        rest: Rest::new(cluster),
        printer,
        view: View::default(),
        created: Vec::new(),
        watches: JoinSet::new(),
    };
    let told = match run.apply(request).await? {
        Ok(seen) => Ok(run.follow(seen, request).await?),
        Err(mistakes) => Err(mistakes),
    };
    run.clean(request.cleanup).await?;
    Ok(told)
}

/// Tells what is wrong with a manifest, and gives the exit code for it.
pub(crate) fn complain(mistakes: &[Mistake], format: Format) -> u8 {
    for mistake in mistakes {
        match format {
            Format::Text => console::complain(&format!("error: {mistake}")),
            Format::Json => console::say(
                &serde_json::json!({
                    "event": "mistake", "file": mistake.file, "line": mistake.line,
                    "column": mistake.column, "field": mistake.field, "message": mistake.message,
                })
                .to_string(),
            ),
        }
    }
    EXIT_BAD_INPUT
}

struct Run {
    rest: Rest,
    printer: Printer,
    view: View,
    /// What this run has made, with how it is called.
    created: Vec<(String, Place)>,
    watches: JoinSet<()>,
}

impl Run {
    /// Rehearses every document, so that a wrong one leaves nothing half-written, then applies all:
    /// definitions of kinds first, of which objects may be here, too.
    async fn apply(
        &mut self,
        request: &RunRequest,
    ) -> anyhow::Result<Result<mpsc::Receiver<Seen>, Vec<Mistake>>> {
        let mut placed = Vec::new();
        let mut mistakes = Vec::new();
        let documents = request.documents.iter();
        let (definitions, others): (Vec<_>, Vec<_>) =
            documents.partition(|it| is_definition(&it.object));
        for definition in &definitions {
            self.rest.promise(&definition.object).await;
        }
        for document in definitions.into_iter().chain(others) {
            match self.rehearse(document, &request.namespace).await {
                Ok(place) => placed.push((document, place)),
                Err(error) => mistakes.extend(mistakes_of(document, error)?),
            }
        }
        if !mistakes.is_empty() {
            return Ok(Err(mistakes));
        }
        let (sender, receiver) = mpsc::channel(1024);
        for (document, place) in placed {
            let (applied, object) = match self.rest.apply(&place, &document.object).await {
                Ok(done) => done,
                Err(error) => {
                    mistakes.extend(mistakes_of(document, error)?);
                    continue;
                }
            };
            if applied == crate::rest::Applied::Created {
                let made = Place {
                    collection: place.collection.clone(),
                    name: text(&object, &["metadata", "name"]).to_owned(),
                };
                self.created.push((document.title(), made));
            }
            let event = Event::Applied {
                object: document.title(),
                action: applied.word().to_owned(),
            };
            self.printer.event(&event, now());
            if is_definition(&document.object) {
                self.rest.until_served(&document.object).await?;
            }
            self.watch(&object, &sender);
        }
        if mistakes.is_empty() {
            return Ok(Ok(receiver));
        }
        // Some mistakes are seen only once other objects are there.
        self.watches.abort_all();
        self.undo().await?;
        Ok(Err(mistakes))
    }

    /// Takes away what this run has made, the last first.
    async fn undo(&mut self) -> anyhow::Result<()> {
        while let Some((object, place)) = self.created.pop() {
            self.rest.delete(&place).await?;
            let action = "deleted".to_owned();
            self.printer
                .event(&Event::Applied { object, action }, now());
        }
        Ok(())
    }

    async fn rehearse(&self, document: &Document, namespace: &str) -> anyhow::Result<Place> {
        let place = self.rest.place(&document.object, namespace).await?;
        if self.rest.is_to_come(&document.object).await? {
            return Ok(place);
        }
        if let Err(error) = self.rest.rehearse(&place, &document.object).await {
            let wrong = error
                .downcast_ref::<Refusal>()
                .is_none_or(is_wrong_in_itself);
            if wrong {
                return Err(error);
            }
        }
        Ok(place)
    }

    /// Watches a workload, its pods and its gang.
    fn watch(&mut self, object: &Value, seen: &mpsc::Sender<Seen>) {
        let Some(kind) = self.view.follow(object, now()) else {
            return;
        };
        let namespace = text(object, &["metadata", "namespace"]);
        let name = text(object, &["metadata", "name"]);
        let uid = text(object, &["metadata", "uid"]);
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let groups = format!(
            "/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups?fieldSelector=metadata.name%3D"
        );
        let own = format!("fieldSelector=metadata.name%3D{name}");
        let targets = match kind {
            WorkloadKind::VcJob => vec![
                format!("/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs?{own}"),
                format!("{groups}{name}-{uid}"),
                format!("{pods}?labelSelector=volcano.sh%2Fjob-name%3D{name}"),
            ],
            WorkloadKind::BatchJob => vec![
                format!("/apis/batch/v1/namespaces/{namespace}/jobs?{own}"),
                format!("{groups}podgroup-{uid}"),
                format!("{pods}?labelSelector=batch.kubernetes.io%2Fcontroller-uid%3D{uid}"),
            ],
            WorkloadKind::Pod => vec![format!("{pods}?{own}")],
            WorkloadKind::JobFlow => vec![format!(
                "/apis/flow.volcano.sh/v1alpha1/namespaces/{namespace}/jobflows?{own}"
            )],
        };
        for target in targets {
            self.watches
                .spawn(self.rest.clone().watch(target, seen.clone()));
        }
    }

    async fn follow(
        &mut self,
        mut seen: mpsc::Receiver<Seen>,
        request: &RunRequest,
    ) -> anyhow::Result<u8> {
        let (lines, mut said) = mpsc::channel(4096);
        let mut readers = JoinSet::new();
        let patience = sleep_for(request.timeout);
        tokio::pin!(patience);
        let mut picture = tokio::time::interval(PICTURE);
        // Listened for all along: between two looks a signal would go unheard.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut code = None;
        while code.is_none() {
            code = match self.view.verdict() {
                Some(verdict) => Some(verdict.exit_code()),
                None => tokio::select! {
                    Some(report) = seen.recv() => { self.take(report, &lines, &mut readers)?; None }
                    Some(event) = said.recv() => { self.printer.event(&event, now()); None }
                    () = &mut patience => Some(Verdict::TimedOut.exit_code()),
                    Some(()) = interrupt.recv() => Some(EXIT_INTERRUPTED),
                    Some(()) = terminate.recv() => Some(EXIT_TERMINATED),
                    _ = picture.tick() => { self.pass(); None }
                },
            };
        }
        let code = code.unwrap_or(EXIT_FAILED);
        if self.view.verdict().is_some() {
            self.last_states(&mut seen, &lines, &mut readers).await?;
        }
        drop(lines);
        self.last_lines(&mut said, &mut readers, code).await;
        let summary = Event::Summary {
            workloads: self.view.summary(now()),
            exit_code: code,
        };
        if self.view.is_empty() && request.format == Format::Text {
            return Ok(code);
        }
        self.printer.finish(&summary, now());
        Ok(code)
    }

    /// Time has passed.
    fn pass(&mut self) {
        let now = now();
        for event in self.view.pass(now) {
            self.printer.event(&event, now);
        }
        self.printer.screen(&self.view.screen(now));
    }

    fn take(
        &mut self,
        report: Seen,
        lines: &mpsc::Sender<Event>,
        readers: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let effects = match report {
            Seen::Changed(object) => self.view.see(&object, now()),
            Seen::Gone(object) => self.view.gone(&object, now()),
            Seen::Lost(error) => anyhow::bail!("cannot follow the workloads: {error}"),
        };
        for effect in effects {
            match effect {
                Effect::Say(event) => self.printer.event(&event, now()),
                Effect::Log(source) => {
                    readers.spawn(read_log(self.rest.clone(), source, lines.clone()));
                }
            }
        }
        self.printer.screen(&self.view.screen(now()));
        Ok(())
    }

    /// Pods are watched beside their workload, whose end may be heard of before theirs: the summary wants them.
    async fn last_states(
        &mut self,
        seen: &mut mpsc::Receiver<Seen>,
        lines: &mpsc::Sender<Event>,
        readers: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let late = tokio::time::sleep(LAST_STATES);
        tokio::pin!(late);
        while self.view.has_running_pods() {
            tokio::select! {
                Some(report) = seen.recv() => self.take(report, lines, readers)?,
                () = &mut late => break,
            }
        }
        Ok(())
    }

    /// Prints what the logs still hold. Logs of a run that was cut short are not waited for.
    async fn last_lines(
        &mut self,
        said: &mut mpsc::Receiver<Event>,
        readers: &mut JoinSet<()>,
        code: u8,
    ) {
        let is_cut = [
            EXIT_INTERRUPTED,
            EXIT_TERMINATED,
            Verdict::TimedOut.exit_code(),
        ];
        if is_cut.contains(&code) {
            readers.abort_all();
        }
        let drain = async {
            while let Some(event) = said.recv().await {
                self.printer.event(&event, now());
            }
        };
        // Whatever has not come by then belongs to a container that never ends.
        drop(tokio::time::timeout(LAST_LINES, drain).await);
        readers.abort_all();
    }

    async fn clean(&mut self, cleanup: Cleanup) -> anyhow::Result<()> {
        self.watches.abort_all();
        if cleanup == Cleanup::Keep {
            return Ok(());
        }
        for (_, place) in self.created.drain(..).rev() {
            self.rest.delete(&place).await?;
        }
        Ok(())
    }
}

async fn read_log(rest: Rest, source: LogSource, lines: mpsc::Sender<Event>) {
    let label = source.label.clone();
    if let Err(error) = logs::read(rest, source, Follow::ToTheEnd, lines.clone()).await {
        let lost = Event::Warning {
            object: label,
            message: format!("cannot read the log: {error}"),
        };
        // The run is over when nobody receives any more.
        drop(lines.send(lost).await);
    }
}

async fn sleep_for(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// Whether an object is refused for what it says, whatever else exists: a queue or a namespace of
/// the same manifest is not there yet when its users are rehearsed.
fn is_wrong_in_itself(refusal: &Refusal) -> bool {
    match refusal.code {
        400 => !refusal.message.contains("denied the request"),
        413 | 415 | 422 => true,
        _ => false,
    }
}

/// A refusal as mistakes with lines; any other error stays an error.
fn mistakes_of(document: &Document, error: anyhow::Error) -> anyhow::Result<Vec<Mistake>> {
    let refusal = error.downcast::<Refusal>()?;
    // Who may not ask, and a server in trouble, say nothing about the manifest.
    if matches!(refusal.code, 401 | 429 | 500..) {
        return Err(refusal.into());
    }
    Ok(mistakes_in(document, &refusal))
}

/// What a refusal says of a document, each with its line.
pub(crate) fn mistakes_in(document: &Document, refusal: &Refusal) -> Vec<Mistake> {
    let unknown = strict_fields(&refusal.message);
    if !unknown.is_empty() {
        let wrong = unknown.into_iter();
        return wrong
            .map(|(field, what)| document.mistake(&field, what))
            .collect();
    }
    let causes: Vec<Mistake> = refusal
        .causes
        .iter()
        .filter(|(field, _)| !field.is_empty() && field != "<nil>")
        .map(|(field, message)| document.mistake(field, message.clone()))
        .collect();
    if !causes.is_empty() {
        return causes;
    }
    let mut mistake = document.mistake("", refusal.message.clone());
    if let Some(field) = named_field(&refusal.message) {
        (mistake.line, mistake.column) = document.locate(&field);
    }
    mistake.message = format!("{}: {}", document.title(), mistake.message);
    vec![mistake]
}

/// The fields of `strict decoding error: unknown field "spec.a", duplicate field "spec.b"`.
fn strict_fields(message: &str) -> Vec<(String, String)> {
    let Some((_, list)) = message.split_once("strict decoding error: ") else {
        return Vec::new();
    };
    let mut fields = Vec::new();
    for what in ["unknown field", "duplicate field"] {
        for part in list.split(&format!("{what} \"")).skip(1) {
            if let Some((field, _)) = part.split_once('"') {
                fields.push((field.to_owned(), what.to_owned()));
            }
        }
    }
    fields
}

/// The first word that looks like the path of a field, such as `spec.task[0].name`.
fn named_field(message: &str) -> Option<String> {
    message
        .split([' ', '"', ',', ';'])
        .map(|word| word.trim_end_matches([':', '.']))
        .find(|word| {
            ["spec.", "metadata.", "job.spec", "status."]
                .iter()
                .any(|begin| word.starts_with(begin))
        })
        .map(|word| word.strip_prefix("job.").unwrap_or(word).to_owned())
}

#[cfg(test)]
mod tests;
