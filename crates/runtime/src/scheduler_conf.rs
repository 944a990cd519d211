//! The scheduler's configuration while a plane is up: read again, and handed on when it has changed,
//! from a file ([`follow`]) or from its ConfigMap ([`follow_stored`]).
//!
//! The file is looked at twice a second by its name, so that a write in place, another file renamed over it,
//! and a symbolic link on the way that leads elsewhere now (as a mounted ConfigMap's `..data` does) are
//! all seen alike. What was found counts once it is found a second time: a file may be seen while it
//! is half written.

mod stored;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::scheduler_conf::{BYTES_MAX, MetricsConf, Reading, Severity, read};
use engine::{Engine, Settings};

pub use stored::{Stored, follow_stored, stored};

use crate::engine_loop::Rules;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Follows a file that holds `bytes` for as long as the plane is up. What is refused changes nothing,
/// and is told once.
pub async fn follow(path: PathBuf, bytes: Vec<u8>, rules: Rules) {
    let mut followed = Followed::new(bytes);
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let file = path.clone();
        // A file may lie on a disk that does not answer.
        let Ok(found) = tokio::task::spawn_blocking(move || look(&file)).await else {
            // It panicked, or the program ends.
            return;
        };
        let engine = match followed.see(found) {
            None => continue,
            Some(News::Unreadable(error)) => {
                let path = path.display();
                tracing::warn!("cannot read {path}, the rules stay as they are: {error}");
                continue;
            }
            Some(News::Changed(bytes)) => engine_of(&path.display().to_string(), &bytes),
        };
        if let Some(engine) = engine {
            rules.change(engine).await;
        }
    }
}

fn look(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than is understood, so that it is noticed.
    let most = BYTES_MAX as u64 + 1;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An engine of the rules that stand under this title, and whom they ask, unless they are refused; either way it is
/// said.
fn engine_of(title: &str, bytes: &[u8]) -> Option<(Engine, MetricsConf)> {
    let Reading { conf, remarks } = read(bytes);
    let all = remarks.list().into_iter();
    for remark in all.filter(|remark| remark.severity > Severity::Note) {
        let colon = if remark.place.line > 0 { "" } else { " " };
        tracing::warn!("{title}:{colon}{remark}");
    }
    let Some(conf) = conf else {
        tracing::error!("{title} is refused: the rules stay as they were");
        return None;
    };
    let settings = Settings {
        placement: conf.placement,
        local: crate::clock::local_time(),
        ..Settings::default()
    };
    match Engine::new(settings) {
        Ok((engine, _)) => {
            tracing::info!(target: "katmai", "{title}: its rules hold from now on");
            Some((engine, conf.metrics))
        }
        Err(problem) => {
            tracing::error!("{title} is refused: {problem}");
            None
        }
    }
}

/// What is new about a file.
#[derive(Debug)]
enum News {
    /// It holds this now.
    Changed(Vec<u8>),
    /// It cannot be read any more.
    Unreadable(io::Error),
}

/// A file, look by look.
struct Followed {
    /// What it held when that was told last.
    held: Vec<u8>,
    /// What it held at the last look, where that is something else.
    next: Option<Vec<u8>>,
    is_unreadable: bool,
}

impl Followed {
    fn new(held: Vec<u8>) -> Followed {
        Followed {
            held,
            next: None,
            is_unreadable: false,
        }
    }

    /// What a look found; what it tells.
    fn see(&mut self, found: io::Result<Vec<u8>>) -> Option<News> {
        let bytes = match found {
            Ok(bytes) => bytes,
            Err(error) => {
                self.next = None;
                let was_unreadable = std::mem::replace(&mut self.is_unreadable, true);
                return (!was_unreadable).then_some(News::Unreadable(error));
            }
        };
        self.is_unreadable = false;
        if bytes == self.held {
            self.next = None;
            return None;
        }
        if self.next.as_ref() != Some(&bytes) {
            self.next = Some(bytes);
            return None;
        }
        self.next = None;
        self.held.clone_from(&bytes);
        Some(News::Changed(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What looks at a file tell that finds these one after the other; `-` cannot be read.
    fn told(found: &[&str]) -> Vec<String> {
        let mut followed = Followed::new(b"a".to_vec());
        let looks = found.iter().map(|text| {
            let found = match *text {
                "-" => Err(io::ErrorKind::NotFound.into()),
                text => Ok(text.as_bytes().to_vec()),
            };
            match followed.see(found) {
                None => ".".to_owned(),
                Some(News::Changed(bytes)) => String::from_utf8(bytes).expect("a text"),
                Some(News::Unreadable(_)) => "unreadable".to_owned(),
            }
        });
        looks.collect()
    }

    #[test]
    fn a_change_counts_when_it_is_seen_twice_and_is_told_once() {
        assert_eq!(told(&["a", "b", "b", "b"]), [".", ".", "b", "."]);
        assert_eq!(told(&["b", "bc", "bc"]), [".", ".", "bc"]);
        assert_eq!(told(&["b", "a", "b", "b"]), [".", ".", ".", "b"]);
    }

    #[test]
    fn a_file_that_has_gone_is_told_once_and_may_come_back() {
        let looks = ["-", "-", "a", "-", "b", "b"];
        assert_eq!(
            told(&looks),
            ["unreadable", ".", ".", "unreadable", ".", "b"]
        );
    }

    #[test]
    fn a_rename_and_a_link_that_leads_elsewhere_are_seen() {
        let name = format!("katmai-followed-{}", std::process::id());
        let scratch = std::env::temp_dir().join(name);
        let place = |name: &str| scratch.join(name);
        for (folder, text) in [("first", "a"), ("second", "b")] {
            std::fs::create_dir_all(place(folder)).expect("a scratch directory");
            std::fs::write(place(folder).join("conf"), text).expect("a scratch file");
        }
        let link = |to: &str| {
            std::os::unix::fs::symlink(to, place("new")).expect("a link");
            std::fs::rename(place("new"), place("..data")).expect("it takes the other's place");
        };
        link("first");
        std::os::unix::fs::symlink("..data/conf", place("conf")).expect("a link");
        let found = || look(&place("conf")).expect("it can be read");
        assert_eq!(found(), b"a");
        link("second");
        assert_eq!(found(), b"b");
        std::fs::write(place("other"), "c").expect("a scratch file");
        std::fs::rename(place("other"), place("conf")).expect("it takes the link's place");
        assert_eq!(found(), b"c");
        std::fs::remove_dir_all(scratch).expect("it was made just now");
    }
}
