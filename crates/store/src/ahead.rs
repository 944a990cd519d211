//! Bodies that are read before their request's turn comes, beside whatever the store does meanwhile.

use crate::json::{self, Body, Twice};
use crate::request::{Method, Request};

/// A body that was read ahead.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    twice: Twice,
    read: Result<Body, String>,
}

impl Ahead {
    /// Reads the body of a creation or a replacement; of anything else, nothing.
    pub(crate) fn read(request: &Request) -> Option<Ahead> {
        let may_be = matches!(request.method, Method::Post | Method::Put);
        if !may_be || media_type(request) != "application/json" {
            return None;
        }
        // A guess, which only costs a second reading where it is wrong.
        let twice = match group(&request.path) {
            Some(group) if group.contains('.') && !group.ends_with(".k8s.io") => Twice::LastWins,
            _ => Twice::Together,
        };
        let read = json::read_as(&request.body, twice);
        Some(Ahead { twice, read })
    }

    /// What was read, if it was read in this way.
    pub(crate) fn taken(self, twice: Twice) -> Option<Result<Body, String>> {
        (self.twice == twice).then_some(self.read)
    }
}

/// The media type of a body, without its parameters.
pub(crate) fn media_type(request: &Request) -> &str {
    let said = request.content_type.split(';').next();
    said.unwrap_or_default().trim()
}

/// `batch` of `/apis/batch/v1/…`.
fn group(path: &str) -> Option<&str> {
    path.strip_prefix("/apis/")?.split('/').next()
}
