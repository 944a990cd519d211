//! What is said of a segment.

use std::path::PathBuf;
use std::sync::Arc;

use api::time::Time;
use driver::log::{Differs, Header, Summary, TornTail};
use serde_json::{Value, json};

/// Pods that are named of those that other settings would treat otherwise.
const NAMED_MAX: usize = 20;

/// What was found on the way.
#[derive(Default)]
pub(super) struct Found {
    pub(super) explained: Vec<(Time, String)>,
    pub(super) otherwise: Vec<driver::Otherwise>,
}

/// Everything about a segment that was played.
pub(super) struct Told {
    pub(super) path: PathBuf,
    pub(super) header: Header,
    pub(super) torn: Option<TornTail>,
    pub(super) is_keyed: bool,
    /// From what a plane of this binary decides by.
    pub(super) differs: Vec<Differs>,
    /// From the configuration that was named, where one was.
    pub(super) other_settings: Option<Vec<Differs>>,
    pub(super) summary: Summary,
    pub(super) found: Found,
}

impl Told {
    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let (header, summary) = (&self.header, &self.summary);
        let mut lines = vec![
            self.path.display().to_string(),
            format!(
                "  written by {} in term {}, katmai {}, from {} to {}",
                header.identity,
                header.term,
                header.binary,
                summary.from.micro(),
                summary.until.micro(),
            ),
        ];
        self.notes(&mut lines);
        for (at, text) in &self.found.explained {
            lines.push(format!("  {} {text}", at.micro()));
        }
        lines.push(format!(
            "  {} events, {} plans with {} places, {} requests of which {} writes: {}",
            summary.events,
            summary.plans,
            summary.places,
            summary.requests,
            summary.writes,
            match &summary.difference {
                None => format!("equal, sum {:016x}", summary.logged_sum),
                Some(_) => "they differ".to_owned(),
            }
        ));
        if let Some(difference) = &summary.difference {
            lines.push(format!(
                "  first at {}, byte {}",
                difference.now.micro(),
                difference.offset
            ));
            lines.push(format!("    logged:   {}", difference.logged));
            lines.push(format!("    replayed: {}", difference.replayed));
        }
        self.otherwise(&mut lines);
        lines
    }

    fn notes(&self, lines: &mut Vec<String>) {
        let here = env!("CARGO_PKG_VERSION");
        if self.header.binary != here {
            lines.push(format!(
                "  note: this is katmai {here}, which may decide otherwise"
            ));
        }
        if !self.differs.is_empty() {
            lines.push(
                "  note: it is played by its own settings, which differ from a plane's here in"
                    .to_owned(),
            );
            lines.extend(self.differs.iter().map(|one| format!("    {one}")));
        }
        if let Some(torn) = self.torn {
            lines.push(format!(
                "  note: the last {} bytes, from byte {}, were never finished and are left out",
                torn.bytes, torn.offset
            ));
        }
        if !self.is_keyed {
            lines.push(
                "  note: the key of its tokens is not here: secrets are not compared".to_owned(),
            );
        }
    }

    fn otherwise(&self, lines: &mut Vec<String>) {
        let Some(differs) = &self.other_settings else {
            return;
        };
        lines.push(match differs.as_slice() {
            [] => "  the other settings are the log's".to_owned(),
            _ => "  the other settings differ from the log's in".to_owned(),
        });
        lines.extend(differs.iter().map(|one| format!("    {one}")));
        let all = &self.found.otherwise;
        lines.push(format!(
            "  the other settings would have treated {} pods otherwise",
            all.len()
        ));
        for one in all.iter().take(NAMED_MAX) {
            let place = |node: &Option<Arc<str>>| match node {
                Some(node) => format!("on {node}"),
                None => "nowhere yet".to_owned(),
            };
            lines.push(format!(
                "    {} {}/{}: {} as decided, {} by these",
                one.now.micro(),
                one.pod.0,
                one.pod.1,
                place(&one.decided),
                place(&one.otherwise),
            ));
        }
        if all.len() > NAMED_MAX {
            lines.push(format!("    and {} more", all.len() - NAMED_MAX));
        }
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let (header, summary) = (&self.header, &self.summary);
        let lines = self.found.explained.iter();
        let otherwise = self.found.otherwise.iter().map(|one| {
            json!({
                "at": one.now.micro(), "namespace": &*one.pod.0, "pod": &*one.pod.1,
                "decided": one.decided.as_deref(), "otherwise": one.otherwise.as_deref(),
            })
        });
        let differs = |all: &[Differs]| -> Vec<Value> {
            let one = |it: &Differs| json!({ "name": it.name, "log": it.logged, "here": it.other });
            all.iter().map(one).collect()
        };
        json!({
            "segment": self.path.display().to_string(),
            "identity": header.identity,
            "term": header.term,
            "binary": header.binary,
            "settings": header.settings,
            "settingsDiffer": differs(&self.differs),
            "otherSettingsDiffer": self.other_settings.as_deref().map(differs),
            "from": summary.from.micro(),
            "until": summary.until.micro(),
            "events": summary.events,
            "plans": summary.plans,
            "places": summary.places,
            "requests": summary.requests,
            "writes": summary.writes,
            "secretsCompared": self.is_keyed,
            "tornBytes": self.torn.map_or(0, |torn| torn.bytes),
            "equal": summary.difference.is_none(),
            "sum": format!("{:016x}", summary.logged_sum),
            "difference": summary.difference.as_ref().map(|it| json!({
                "at": it.now.micro(), "offset": it.offset,
                "logged": it.logged, "replayed": it.replayed,
            })),
            "explained": lines.map(|(at, text)| json!([at.micro(), text])).collect::<Vec<_>>(),
            "otherwise": otherwise.collect::<Vec<_>>(),
        })
    }
}
