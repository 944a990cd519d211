//! Says events: moving lines on a terminal, plain lines in a pipe, JSON for machines.

use std::time::Duration;

use api::time::Time;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use crate::console::{self, Colour, Console, Live};
use crate::start::Format;
use crate::view::Event;

/// Lines of the moving picture; more workloads than this share what fits.
const SCREEN_LINES_MAX: usize = 12;
const TICK: Duration = Duration::from_millis(100);

/// One way of saying events.
pub(crate) struct Printer {
    way: Way,
    colour: Colour,
}

enum Way {
    #[cfg(test)]
    Heard(std::sync::Arc<std::sync::Mutex<Vec<String>>>),
    Plain,
    Json,
    Moving {
        picture: MultiProgress,
        lines: Vec<ProgressBar>,
    },
}

impl Printer {
    pub(crate) fn new(format: Format, console: Console) -> Printer {
        let way = match (format, console.live) {
            (Format::Json, _) => Way::Json,
            (Format::Text, Live::Piped) => Way::Plain,
            (Format::Text, Live::Terminal) => Way::Moving {
                picture: MultiProgress::with_draw_target(ProgressDrawTarget::stdout()),
                lines: Vec::new(),
            },
        };
        Printer {
            way,
            colour: console.colour,
        }
    }

    /// Keeps what would be said, for tests.
    #[cfg(test)]
    pub(crate) fn heard(lines: std::sync::Arc<std::sync::Mutex<Vec<String>>>) -> Printer {
        Printer {
            way: Way::Heard(lines),
            colour: Colour::Off,
        }
    }

    pub(crate) fn event(&self, event: &Event, now: Time) {
        match &self.way {
            #[cfg(test)]
            Way::Heard(lines) => lines.lock().unwrap().push(event.to_string()),
            Way::Json => console::say(&json_line(event, now)),
            Way::Plain if is_routine(event) => {}
            Way::Plain => console::say(&event.to_string()),
            Way::Moving { picture, .. } => {
                // What moves is in the picture; only what stays is printed above it.
                if is_routine(event)
                    || matches!(event, Event::Workload { .. } | Event::Waits { .. })
                {
                    return;
                }
                let text = paint(event, self.colour);
                if picture.println(&text).is_err() {
                    console::say(&text);
                }
            }
        }
    }

    /// Redraws the moving picture, where there is one.
    pub(crate) fn screen(&mut self, text: &[String]) {
        let Way::Moving { picture, lines } = &mut self.way else {
            return;
        };
        let wanted = text.len().min(SCREEN_LINES_MAX);
        while lines.len() < wanted {
            lines.push(picture.add(line()));
        }
        for extra in lines.drain(wanted..) {
            extra.finish_and_clear();
        }
        for (line, text) in lines.iter().zip(text) {
            // Only a workload turns its wheel; what is said about it stands still below.
            match text.strip_prefix("  ") {
                Some(text) => {
                    line.set_style(style("    {wide_msg}"));
                    line.set_message(text.to_owned());
                }
                None => {
                    line.set_style(style("{spinner} {wide_msg}"));
                    line.set_message(text.clone());
                }
            }
        }
    }

    /// Takes the moving picture away and says the end.
    pub(crate) fn finish(&mut self, summary: &Event, now: Time) {
        if let Way::Moving { picture, lines } = &mut self.way {
            for line in lines.drain(..) {
                line.finish_and_clear();
            }
            // The picture is gone already; what remains of it cannot hide the summary.
            drop(picture.clear());
            console::say(&paint(summary, self.colour));
            return;
        }
        self.event(summary, now);
    }
}

fn line() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(TICK);
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Every task begins as Pending; people want to read only why one stays so.
fn is_routine(event: &Event) -> bool {
    matches!(event, Event::Task { phase, .. } if phase == "Pending")
}

/// `{"at":…,"event":…,…}`.
fn json_line(event: &Event, now: Time) -> String {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["at"] = Value::from(now.micro());
    value.to_string()
}

/// Text with the name of a task in a colour of its own, so that the eye can follow one task.
pub(crate) fn paint(event: &Event, colour: Colour) -> String {
    match (event, colour) {
        (Event::Log { task, line }, Colour::On) => {
            let sum: usize = task.bytes().map(usize::from).sum();
            format!("\u{1b}[{}m{task}\u{1b}[0m | {line}", 31 + sum % 6)
        }
        (event, _) => event.to_string(),
    }
}
