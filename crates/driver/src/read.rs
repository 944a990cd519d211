//! What streams bring, read from JSON already: that is most of the work with it, and asks for nothing that
//! the driver holds, so that a shell does it wherever it reads, beside the loop.

use api::call::{Page, WatchLine};
use api::intent::Refusal;
use api::kind::Kind;
use mirror::{Object, Problem};

/// An object, or why it cannot be read.
pub type Read = Result<Object, Problem>;

/// One page of a list.
#[derive(Debug)]
pub struct ReadPage {
    /// The objects as they came.
    pub items: Vec<Read>,
    /// The list's resourceVersion.
    pub revision: u64,
    /// Empty on the last page.
    pub continue_token: String,
}

impl ReadPage {
    /// Reads a page of that kind.
    pub fn of(kind: Kind, page: Page) -> ReadPage {
        let items = page.items.iter();
        ReadPage {
            items: items.map(|item| Object::decode(kind, item.get())).collect(),
            revision: page.revision,
            continue_token: page.continue_token,
        }
    }
}

/// One line of a watch.
#[derive(Debug)]
pub enum ReadLine {
    /// The object is there now (added or modified).
    Applied(Read),
    /// The object has gone; this is its last state.
    Deleted(Read),
    /// Nothing older than this revision will come.
    Bookmark(u64),
    /// The stream ends: 410 asks for a new list.
    Failed(Refusal),
}

impl ReadLine {
    /// Reads a line of that kind.
    pub fn of(kind: Kind, line: WatchLine) -> ReadLine {
        match line {
            WatchLine::Applied(text) => ReadLine::Applied(Object::decode(kind, text.get())),
            WatchLine::Deleted(text) => ReadLine::Deleted(Object::decode(kind, text.get())),
            WatchLine::Bookmark(revision) => ReadLine::Bookmark(revision),
            WatchLine::Failed(refusal) => ReadLine::Failed(refusal),
        }
    }
}
