//! Answers that are about the API itself: discovery, OpenAPI, version.

use crate::begin::version_document;
use crate::request::{Method, Request, Response};
use crate::status::{Outcome, Refused};
use crate::store::Store;

impl Store {
    pub(crate) fn document(&self, request: &Request, segments: &[String]) -> Outcome<Response> {
        if request.method != Method::Get {
            return Err(Refused::no_resource());
        }
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        match &parts[..] {
            ["version"] => Ok(version_document(&self.settings.kubernetes_version)),
            _ => Err(Refused::no_resource()),
        }
    }
}
