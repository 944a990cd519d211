use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;

const OF_CERTIFICATE: &str = "/api/v1/namespaces/volcano-system/secrets/katmai-scheduler-questions";
const OF_FRONT: &str =
    "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const OF_DOOR: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.ask.katmai.dev";

/// An API that keeps what is written to it, and every line that it was asked.
#[derive(Clone)]
struct Api {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    asked: watch::Sender<Vec<String>>,
}

impl Api {
    fn new() -> Api {
        Api {
            objects: Arc::default(),
            asked: watch::Sender::default(),
        }
    }

    fn cluster(&self) -> client::Cluster {
        let api = self.clone();
        client::Cluster::in_process(tower::service_fn(
            move |request: http::Request<client::Body>| {
                let api = api.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.expect("it is whole").to_bytes();
                    let path = head.uri.path().to_owned();
                    let (code, body) = api.answer(head.method.as_str(), path, body);
                    let response = http::Response::builder().status(code);
                    Ok::<_, Infallible>(response.body(Full::new(body)).expect("a response"))
                }
            },
        ))
    }

    fn answer(&self, method: &str, path: String, body: Bytes) -> (u16, Bytes) {
        self.asked
            .send_modify(|asked| asked.push(format!("{method} {path}")));
        let mut objects = self.objects.lock().expect("nobody panicked");
        if method == "GET" {
            let nothing = || json!({ "kind": "Status", "message": "not found" }).to_string();
            return match objects.get(&path) {
                Some(object) => (200, object.clone()),
                None => (404, nothing().into()),
            };
        }
        let object: Value = serde_json::from_slice(&body).expect("it is JSON");
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        let path = match method {
            "POST" => format!("{path}/{name}"),
            _ => path,
        };
        objects.insert(path, body.clone());
        (200, body)
    }

    /// What was asked since the last call.
    fn asked(&self) -> Vec<String> {
        self.asked.send_replace(Vec::new())
    }

    fn writes(&self) -> Vec<String> {
        let mut asked = self.asked();
        asked.retain(|line| !line.starts_with("GET "));
        asked
    }

    /// What a scheduler keeps up here that is asked by this Service, and says whether it leads.
    fn kept(&self, service: Option<AskService>) -> (Kept, watch::Sender<Counted>) {
        let wish = Questions {
            address: ([127, 0, 0, 1], 0).into(),
            service: service.map(|it| cli::start::AskService {
                namespace: it.namespace,
                name: it.name,
                port: it.port,
            }),
            tls: None,
        };
        let (leads, counted) = watch::channel(Counted::default());
        let kept = Kept {
            keeper: keeper(&wish, &self.cluster()),
            service: super::service(&wish),
            served: ServedCertificate::default(),
            front: watch::Sender::default(),
            cluster: self.cluster(),
            counted,
        };
        (kept, leads)
    }
}

fn questions() -> Option<AskService> {
    Some(AskService {
        namespace: "volcano-system".to_owned(),
        name: "questions".to_owned(),
        port: 443,
    })
}

/// S1.8: whatever is missing, a standby looks, and writes nothing.
#[tokio::test]
async fn s1_8_who_may_not_decide_only_looks_at_the_certificate() {
    let api = Api::new();
    let (standby, _leads) = api.kept(questions());
    assert!(!standby.look(false).await.expect("it can look"));
    assert_eq!(api.asked(), [format!("GET {OF_CERTIFICATE}")]);

    // A leader that is asked by no Service: its certificate lacks names, and the API server knows of nobody.
    let (leader, _leads) = api.kept(None);
    assert!(leader.look(true).await.expect("it can keep one"));
    let secrets = OF_CERTIFICATE.trim_end_matches("/katmai-scheduler-questions");
    assert_eq!(api.writes(), [format!("POST {secrets}")]);
    assert!(standby.look(false).await.expect("it can look"));
    let looked = [OF_CERTIFICATE, OF_FRONT].map(|path| format!("GET {path}"));
    assert_eq!(api.asked(), looked);

    // What it would have written.
    assert!(standby.look(true).await.expect("it can keep one"));
    let doors = OF_DOOR.trim_end_matches("/v1.ask.katmai.dev");
    let wanted = [format!("PUT {OF_CERTIFICATE}"), format!("POST {doors}")];
    assert_eq!(api.writes(), wanted);
}

/// S1.8: that lasts for as long as another leads, and no longer.
#[tokio::test(start_paused = true)]
async fn s1_8_a_standby_writes_once_it_leads() {
    const LOOKS: usize = 50;
    let api = Api::new();
    let (leader, _leads) = api.kept(None);
    assert!(leader.look(true).await.expect("it can keep one"));
    api.asked();
    let (standby, leads) = api.kept(questions());
    let mut asked = api.asked.subscribe();
    tokio::join!(standby.keep(), async move {
        let many = asked.wait_for(|asked| asked.len() >= LOOKS).await;
        let many = many.expect("it looks again and again").clone();
        assert!(many.iter().all(|line| line.starts_with("GET ")), "{many:?}");
        leads.send_modify(|it| it.metrics.is_leading = true);
        let doors = |line: &String| line.starts_with("POST ") && line.ends_with("/apiservices");
        let told = asked.wait_for(|asked| asked.iter().any(doors)).await;
        assert!(told.is_ok());
        // Nobody counts any more: it ends.
        drop((told, leads));
    });
}
