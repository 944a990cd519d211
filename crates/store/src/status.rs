//! Refusals in Kubernetes' own words: `metav1.Status`.

use serde_json::{Value, json};

use crate::field::{self, FieldError};
use crate::request::Response;
use crate::talk::Call;

/// A refused request. Its text and reason are what kube-apiserver answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused(Box<Parts>);

#[derive(Clone, Debug, PartialEq)]
struct Parts {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    retry_after_seconds: Option<u32>,
    continue_token: String,
    /// A Status that somebody else wrote.
    verbatim: Option<Value>,
    /// Texts for `Warning` headers.
    warnings: Vec<String>,
    /// What must be asked before anything can be said: then this is no refusal.
    calls: Vec<Call>,
}

/// Marks a refusal that is told as a page.
const NO_PAGE: &str = "NoPage";
/// Marks a refusal that is not told at all.
const NOTHING: &str = "Nothing";

/// The result of handling a request.
pub type Outcome<T> = Result<T, Refused>;

/// What an error is about: `pods "x"` or `jobs.batch "x"`.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group.
    pub group: &'a str,
    /// Plural name.
    pub plural: &'a str,
    /// Object name.
    pub name: &'a str,
}

impl About<'_> {
    /// `pods` or `jobs.batch`.
    pub fn qualified(&self) -> String {
        qualified(self.group, self.plural)
    }

    fn details(&self) -> Value {
        let mut details = json!({});
        if !self.plural.is_empty() {
            details["kind"] = json!(self.plural);
        }
        if !self.name.is_empty() {
            details["name"] = json!(self.name);
        }
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        details
    }
}

/// `pods` or `jobs.batch`.
pub fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

impl Refused {
    fn new(code: u16, reason: &'static str, message: String) -> Refused {
        Refused(Box::new(Parts {
            code,
            reason,
            message,
            details: None,
            retry_after_seconds: None,
            continue_token: String::new(),
            verbatim: None,
            warnings: Vec::new(),
            calls: Vec::new(),
        }))
    }

    fn about(mut self, about: About<'_>) -> Refused {
        self.0.details = Some(about.details());
        self
    }

    fn with_details(mut self, details: Value) -> Refused {
        self.0.details = Some(details);
        self
    }

    fn with_causes(mut self, causes: Value) -> Refused {
        let details = self.0.details.get_or_insert_with(|| json!({}));
        details["causes"] = causes;
        self
    }

    fn retry_after(mut self, seconds: u32) -> Refused {
        self.0.retry_after_seconds = Some(seconds);
        let details = self.0.details.get_or_insert_with(|| json!({}));
        details["retryAfterSeconds"] = json!(seconds);
        self
    }

    /// A webhook's refusal: its own Status, with the warnings that it gave.
    pub(crate) fn verbatim(status: Value, warnings: Vec<String>) -> Refused {
        let code = status["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        let mut refused = Refused::new(code.unwrap_or(400), "", message);
        refused.0.verbatim = Some(status);
        refused.0.warnings = warnings;
        refused
    }

    /// The same with a warning.
    pub(crate) fn warn(mut self, warning: String) -> Refused {
        self.0.warnings.push(warning);
        self
    }

    /// The same after what was said of the body.
    pub(crate) fn after(mut self, said: Vec<String>) -> Refused {
        self.0.warnings.splice(0..0, said);
        self
    }

    /// The request cannot go on before these are answered.
    pub(crate) fn question(calls: Vec<Call>) -> Refused {
        let mut refused = Refused::internal("a webhook was not asked");
        refused.0.calls = calls;
        refused
    }

    /// What must be asked first; empty for a refusal.
    pub(crate) fn take_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.0.calls)
    }

    /// 500 in the words of the failure alone.
    pub fn plain(message: String) -> Refused {
        Refused::new(500, "", message)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Refused {
        Refused::new(400, "BadRequest", message.into())
    }

    /// 401.
    pub fn unauthorized() -> Refused {
        Refused::new(401, "Unauthorized", "Unauthorized".to_owned())
    }

    /// 403 about one object, a collection, or (where no resource is named) a path.
    pub fn forbidden(about: About<'_>, why: &str) -> Refused {
        let message = match (about.plural, about.name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", about.qualified()),
            (_, name) => format!("{} {name:?} is forbidden: {why}", about.qualified()),
        };
        Refused::new(403, "Forbidden", message).about(about)
    }

    /// 403: the namespace is going away.
    pub fn terminating(about: About<'_>, namespace: &str) -> Refused {
        Refused::forbidden(
            about,
            &format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            ),
        )
        .with_causes(json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]))
    }

    /// A refusal by a review, in its own words: as a webhook's that gives a message and nothing else, so that
    /// there is no reason.
    pub fn denied(code: u16, message: String) -> Refused {
        Refused::new(code, "", message)
    }

    /// 404 about one object.
    pub fn not_found(about: About<'_>) -> Refused {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Refused::new(404, "NotFound", message).about(about)
    }

    /// 404: there is nothing to explain, for this reason.
    pub(crate) fn unexplained(about: About<'_>, why: &str) -> Refused {
        let message = format!("{} {:?}: {why}", about.qualified(), about.name);
        Refused::new(404, "NotFound", message).about(about)
    }

    /// 404: no such path.
    pub fn no_resource() -> Refused {
        let message = "the server could not find the requested resource".to_owned();
        Refused::new(404, "NotFound", message).with_details(json!({}))
    }

    /// 404 where no part of the API is responsible for the path: a page, not a Status.
    pub fn no_page() -> Refused {
        let mut refused = Refused::no_resource();
        refused.0.reason = NO_PAGE;
        refused
    }

    /// 405.
    pub fn not_allowed(about: About<'_>, action: &str) -> Refused {
        let message = format!(
            "{action} is not supported on resources of kind {:?}",
            about.qualified()
        );
        Refused::new(405, "MethodNotAllowed", message).about(About { name: "", ..about })
    }

    /// 405: a collection that is changed, or a creation with a name in its path.
    pub fn no_method() -> Refused {
        let message = "the server does not allow this method on the requested resource";
        Refused::new(405, "MethodNotAllowed", message.to_owned()).with_details(json!({}))
    }

    /// 406, as upstream's router says it: the forms that there would be.
    pub(crate) fn not_represented(forms: &[&str]) -> Refused {
        let message = format!(
            "406: Not Acceptable\n\nAvailable representations: {}",
            forms.join(", ")
        );
        Refused::new(406, "NotAcceptable", message).with_details(json!({}))
    }

    /// 404 without a word: nobody is responsible, and nobody makes a page of it.
    pub(crate) fn nothing() -> Refused {
        let mut refused = Refused::no_resource();
        refused.0.reason = NOTHING;
        refused
    }

    /// 406.
    pub fn not_acceptable() -> Refused {
        Refused::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
                .to_owned(),
        )
    }

    /// 406: the shape does not fit what is shown.
    pub(crate) fn other_shape(message: &str) -> Refused {
        Refused::new(406, "NotAcceptable", message.to_owned())
    }

    /// 409: the name is taken.
    pub fn already_exists(about: About<'_>) -> Refused {
        let message = format!("{} {:?} already exists", about.qualified(), about.name);
        Refused::new(409, "AlreadyExists", message).about(about)
    }

    /// 409: eight generated names were all taken.
    pub fn generate_name_conflict(about: About<'_>) -> Refused {
        let message = format!(
            "{} {:?} already exists, the server was not able to generate a unique name for the object",
            about.qualified(),
            about.name
        );
        Refused::new(409, "AlreadyExists", message)
            .about(about)
            .retry_after(1)
    }

    /// 409: the world has moved on.
    pub fn conflict(about: About<'_>, why: &str) -> Refused {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            about.qualified(),
            about.name
        );
        Refused::new(409, "Conflict", message).about(about)
    }

    /// 409: others own what a configuration sets otherwise.
    pub fn apply_conflict(message: String, causes: Value) -> Refused {
        Refused::new(409, "Conflict", message).with_causes(causes)
    }

    /// 409 for a stale resourceVersion.
    pub fn modified(about: About<'_>) -> Refused {
        Refused::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410 for a watch.
    pub fn watch_expired(revision: u64, oldest: u64) -> Refused {
        let message = format!("too old resource version: {revision} ({oldest})");
        Refused::new(410, "Expired", message)
    }

    /// 410 for a page; the token continues inconsistently.
    pub fn page_expired(token: String) -> Refused {
        let mut refused = Refused::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token in this \
             response to retrieve the remainder of the results. Continuing with the provided token results \
             in an inconsistent list - objects that were created, modified, or deleted between the time the \
             first chunk was returned and now may show up in the list."
                .to_owned(),
        );
        refused.0.continue_token = token;
        refused
    }

    /// 410 for an exact list.
    pub fn version_expired(revision: u64) -> Refused {
        let message = format!("The resourceVersion for the provided list is too old: {revision}");
        Refused::new(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Refused {
        Refused::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 413 for a patch that does too much.
    pub fn too_large_because(message: String) -> Refused {
        Refused::new(413, "RequestEntityTooLarge", message)
    }

    /// 415.
    pub fn media_type(accepted: &[&str]) -> Refused {
        Refused::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 422: wrong fields.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Refused {
        let message = field::invalid_message(group, kind, name, errors);
        Refused::new(422, "Invalid", message)
            .about(About {
                group,
                plural: kind,
                name,
            })
            .with_causes(Value::Array(field::causes(errors)))
    }

    /// 415 for a patch of a built-in resource, which upstream's router refuses.
    pub fn patch_type() -> Refused {
        let message = "415: Unsupported Media Type".to_owned();
        Refused::new(415, "UnsupportedMediaType", message).with_details(json!({}))
    }

    /// 422 for a patch that does not fit its object. Upstream does not say how.
    pub fn unfit_patch() -> Refused {
        let message = "the server rejected our request due to an error in our request";
        Refused::new(422, "Invalid", message.to_owned()).with_details(json!({}))
    }

    /// 422 without field causes.
    pub fn unprocessable(message: impl Into<String>) -> Refused {
        Refused::new(422, "Invalid", message.into())
    }

    /// 429: an eviction that must wait.
    pub fn too_many(message: impl Into<String>, seconds: u32) -> Refused {
        Refused::new(429, "TooManyRequests", message.into()).retry_after(seconds)
    }

    /// 429: a disruption budget forbids it, for this reason.
    pub(crate) fn disrupts(why: &str, seconds: u32) -> Refused {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let refused = Refused::new(429, "TooManyRequests", message.to_owned());
        let refused = match seconds {
            0 => refused,
            _ => refused.retry_after(seconds),
        };
        refused.with_causes(json!([{ "reason": "DisruptionBudget", "message": why }]))
    }

    /// 500 without a reason: an error of the server that has no better name.
    pub fn unknown(message: String) -> Refused {
        Refused::new(500, "", message)
    }

    /// 500.
    pub fn internal(message: &str) -> Refused {
        Refused::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        )
        .with_causes(json!([{ "message": message }]))
    }

    /// 503.
    pub fn unavailable(message: &str) -> Refused {
        Refused::new(503, "ServiceUnavailable", message.to_owned()).retry_after(1)
    }

    /// 504: it took too long.
    pub fn timeout(message: &str) -> Refused {
        Refused::new(504, "Timeout", format!("Timeout: {message}")).with_details(json!({}))
    }

    /// 504: the wanted revision is in the future.
    pub fn too_new(revision: u64, current: u64) -> Refused {
        Refused::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {revision}, current: {current}"),
        )
        .with_causes(json!([{
            "reason": "ResourceVersionTooLarge",
            "message": "Too large resource version",
        }]))
        .retry_after(1)
    }

    /// HTTP status code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// `metav1.Status.message`.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The `metav1.Status`.
    pub fn status(&self) -> Value {
        let parts = &self.0;
        if let Some(status) = &parts.verbatim {
            return status.clone();
        }
        let mut meta = json!({});
        if !parts.continue_token.is_empty() {
            meta["continue"] = json!(parts.continue_token);
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": meta,
            "status": "Failure",
            "message": parts.message,
            "code": parts.code,
        });
        if !parts.reason.is_empty() {
            status["reason"] = json!(parts.reason);
        }
        if let Some(details) = &parts.details {
            status["details"] = details.clone();
        }
        status
    }

    /// The answer.
    pub fn response(&self) -> Response {
        match self.0.reason {
            NO_PAGE => return Response::text(404, "404 page not found\n"),
            NOTHING => {
                return Response {
                    content_type: String::new(),
                    ..Response::text(404, "")
                };
            }
            _ => {}
        }
        Response {
            retry_after_seconds: self.0.retry_after_seconds,
            warnings: self.0.warnings.clone(),
            ..Response::json(self.0.code, &self.status())
        }
    }
}

/// `status: Success`, the answer to deletes that return no object.
pub fn success(about: About<'_>, uid: &str) -> Value {
    let mut details = about.details();
    if !uid.is_empty() {
        details["uid"] = json!(uid);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
