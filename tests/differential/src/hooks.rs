//! Webhooks that both servers call; the path says how one behaves.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What was asked, by the side that asked.
type Asked = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

/// The listening webhooks.
pub struct Hooks {
    address: String,
    authority: String,
    asked: Asked,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hooks {
    /// Listens on a free port.
    pub async fn start() -> anyhow::Result<Hooks> {
        let (authority, acceptor) = credentials()?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?.to_string();
        let asked = Asked::default();
        let heard = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, heard) = (acceptor.clone(), heard.clone());
                tokio::spawn(async move {
                    let Ok(socket) = acceptor.accept(socket).await else {
                        return;
                    };
                    let service = service_fn(move |request| answer(request, heard.clone()));
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // A caller that hangs up has had enough.
                    drop(
                        builder
                            .serve_connection(TokioIo::new(socket), service)
                            .await,
                    );
                });
            }
        });
        Ok(Hooks {
            address,
            authority,
            asked,
            task,
        })
    }

    /// Where one side finds them.
    pub fn url(&self, side: &str) -> String {
        format!("https://{}/{side}", self.address)
    }

    /// `caBundle`.
    pub fn authority(&self) -> String {
        STANDARD.encode(&self.authority)
    }

    /// What a side asked since the last time, in the order of paths: validating ones run side by
    /// side.
    pub fn take(&self, side: &str) -> Vec<Value> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = asked.remove(side).unwrap_or_default();
        taken.sort_by_key(|one| one["path"].as_str().map(str::to_owned));
        taken
    }
}

fn credentials() -> anyhow::Result<(String, TlsAcceptor)> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate()?;
    let serving = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?
        .signed_by(&key, &issuer)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(serving.pem().as_bytes())?],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())?,
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((authority.pem(), TlsAcceptor::from(Arc::new(config))))
}

async fn answer(
    request: Request<Incoming>,
    asked: Asked,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let (side, behaviour) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or_default();
    let kind = request.headers().get("content-type").cloned();
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    let record = json!({
        "path": behaviour,
        "contentType": kind.and_then(|kind| kind.to_str().ok().map(str::to_owned)),
        "review": review,
    });
    asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(side.to_owned())
        .or_default()
        .push(record);
    let reply = behave(behaviour, &review).await;
    Ok(reply.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR, "it broke")))
}

/// `allow`, `deny/CODE/TEXT`, `warn/TEXT`, `label/KEY/VALUE`, `patch/BASE64`, `slow`, `broken`,
/// `nonsense`, `stranger`, `convert`, `convert-adding/KEY`, `convert-below/SIZE`,
/// `refuse-conversion`.
async fn behave(behaviour: &str, review: &Value) -> anyhow::Result<Response<Full<Bytes>>> {
    let words: Vec<&str> = behaviour.split('/').collect();
    let uid = review["request"]["uid"].clone();
    let admitted = |more: Value| {
        let mut response = json!({"uid": uid, "allowed": true});
        merge(&mut response, more);
        let version = review["apiVersion"].clone();
        ok(&json!({"apiVersion": version, "kind": "AdmissionReview", "response": response}))
    };
    Ok(match words.as_slice() {
        ["allow", ..] => admitted(json!({})),
        ["deny", code, text @ ..] => {
            let code: u16 = code.parse()?;
            let message = text.join(" ").replace('_', " ");
            admitted(json!({"allowed": false, "status": {"code": code, "message": message}}))
        }
        ["mute"] => admitted(json!({"allowed": false})),
        ["warn", text] => admitted(json!({"warnings": [text.replace('_', " ")]})),
        ["label", key, value] => {
            let labels = &review["request"]["object"]["metadata"]["labels"];
            let patch = if labels.is_object() {
                json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}])
            } else {
                json!([{"op": "add", "path": "/metadata/labels", "value": {*key: value}}])
            };
            admitted(patched(&patch.to_string()))
        }
        ["patch", encoded] => admitted(json!({"patchType": "JSONPatch", "patch": encoded})),
        ["slow"] => std::future::pending().await,
        ["broken"] => status(StatusCode::INTERNAL_SERVER_ERROR, "it broke"),
        ["nonsense"] => status(StatusCode::OK, "not a review"),
        ["stranger"] => admitted(json!({"uid": "somebody-else"})),
        ["convert"] => converted(review, None)?,
        ["convert-adding", key] => converted(review, Some(key))?,
        ["convert-below", limit] => {
            let limit: i64 = limit.parse()?;
            let objects = review["request"]["objects"].as_array();
            let is_large = |object: &Value| {
                let spec = &object["spec"];
                spec["size"].as_i64().or(spec["count"].as_i64()) >= Some(limit)
            };
            match objects.into_iter().flatten().any(is_large) {
                true => unconverted(review, "it is too large"),
                false => converted(review, None)?,
            }
        }
        ["refuse-conversion"] => unconverted(review, "it does not convert today"),
        _ => status(StatusCode::NOT_FOUND, "no such behaviour"),
    })
}

fn unconverted(review: &Value, why: &str) -> Response<Full<Bytes>> {
    ok(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"],
            "convertedObjects": [],
            "result": {"status": "Failure", "message": why},
        },
    }))
}

/// `spec.size` of v1 is `spec.count` of every other version; what is `added` stands in the
/// annotations and, unasked, in the spec.
fn converted(review: &Value, added: Option<&str>) -> anyhow::Result<Response<Full<Bytes>>> {
    let wanted = review["request"]["desiredAPIVersion"].clone();
    let objects = review["request"]["objects"]
        .as_array()
        .context("no objects")?;
    let (old, new) = match wanted.as_str() {
        Some(version) if version.ends_with("/v1") => ("count", "size"),
        _ => ("size", "count"),
    };
    let converted: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            object["apiVersion"] = wanted.clone();
            if let Some(spec) = object["spec"].as_object_mut()
                && let Some(value) = spec.remove(old)
            {
                spec.insert(new.to_owned(), value);
            }
            if let Some(key) = added {
                object["metadata"]["annotations"][key] = json!(key);
                object["spec"][key] = json!(key);
            }
            object
        })
        .collect();
    Ok(ok(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"],
            "convertedObjects": converted,
            "result": {"status": "Success"},
        },
    })))
}

fn patched(patch: &str) -> Value {
    json!({"patchType": "JSONPatch", "patch": STANDARD.encode(patch)})
}

fn merge(to: &mut Value, more: Value) {
    if let (Value::Object(to), Value::Object(more)) = (to, more) {
        to.extend(more);
    }
}

fn ok(body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    response.headers_mut().insert(
        "content-type",
        http::HeaderValue::from_static("application/json"),
    );
    response
}

fn status(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = code;
    response
}
