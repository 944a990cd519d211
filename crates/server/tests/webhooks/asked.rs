//! An API server that is told whom to ask, and asks.

use api::call::Call;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use client::Cluster;
use http_body_util::{BodyExt as _, Full};
use review::registration::Address;
use review::{Settings, WEBHOOKS, Webhook};
use serde_json::{Value, json};
use server::{Registrar, Unasked};
use tower::ServiceExt as _;

use super::{World, job};

const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CHANGERS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const JUDGES: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

impl World {
    async fn call(&self, method: &'static str, target: &str, body: &Value) -> (u16, Value) {
        let call = Call {
            method,
            target: target.to_owned(),
            content_type: "application/json",
            body: match body {
                Value::Null => Vec::new(),
                body => body.to_string().into_bytes(),
            },
        };
        let answer = self.cluster.send(&call).await.expect("an answer");
        let body = serde_json::from_slice(&answer.body).expect("JSON");
        (answer.code, body)
    }

    fn registrar(&self, address: Option<Address>) -> Registrar {
        let settings = Settings::default();
        let all = WEBHOOKS.iter().filter(|it| it.is_wanted(&settings));
        Registrar {
            cluster: self.cluster.clone(),
            webhooks: all.collect(),
            settings,
            address,
            own_namespace: "katmai-system".to_owned(),
        }
    }

    fn address(&self) -> Option<Address> {
        Some(Address::Url(self.listening.url()))
    }
}

fn pod(name: &str, scheduler: &str) -> Value {
    json!({
        "metadata": { "name": name, "annotations": { "volcano.sh/jdb-min-available": "none" } },
        "spec": { "schedulerName": scheduler, "containers": [{ "name": "c", "image": "i" }] },
    })
}

#[tokio::test]
async fn an_api_server_asks_and_says_what_it_was_answered() {
    let world = World::new().await;
    let registrar = world.registrar(world.address());
    let unasked = registrar.register(&world.authorities).await;
    assert_eq!(unasked, Unasked::default());

    let queue = json!({ "metadata": { "name": "default" }, "status": { "state": "Open" } });
    world.facts.apply(api::kind::Kind::Queue, queue);
    let mut ring = job("ring");
    ring["spec"]["tasks"][0]["dependsOn"] = json!({ "name": ["default0"] });
    let (code, status) = world.call("POST", JOBS, &ring).await;
    let said = "admission webhook \"validatejob.volcano.sh\" denied the request: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);";
    assert_eq!((code, &status["message"]), (400, &json!(said)));
    let (code, stored) = world.call("POST", JOBS, &job("good")).await;
    assert_eq!(
        (code, &stored["spec"]["minAvailable"]),
        (201, &json!(2)),
        "{stored}"
    );

    let (code, status) = world.call("POST", PODS, &pod("ours", "volcano")).await;
    assert_eq!(code, 400, "{status}");
    let (code, status) = world
        .call("POST", PODS, &pod("theirs", "default-scheduler"))
        .await;
    assert_eq!(code, 201, "{status}");
}

#[tokio::test]
async fn where_nobody_answers_pods_pass_and_jobs_do_not() {
    let world = World::new().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let registrar = world.registrar(Some(Address::Url(url)));
    registrar.register(&world.authorities).await;
    let (code, status) = world.call("POST", PODS, &pod("ours", "volcano")).await;
    assert_eq!(code, 201, "{status}");
    let (code, status) = world.call("POST", JOBS, &job("j")).await;
    assert_eq!(code, 500, "{status}");
}

#[tokio::test]
async fn a_registration_that_is_there_is_kept_and_gets_our_authorities() {
    let world = World::new().await;
    let charts = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "volcano-admission-service-jobs-validate", "labels": { "app": "chart" } },
        "webhooks": [{
            "name": "validatejob.volcano.sh", "admissionReviewVersions": ["v1"], "sideEffects": "NoneOnDryRun",
            "clientConfig": { "url": "https://localhost/jobs/validate" }, "timeoutSeconds": 7,
            "rules": [{ "apiGroups": ["batch.volcano.sh"], "apiVersions": ["v1alpha1"], "operations": ["CREATE"], "resources": ["jobs"] }],
        }],
    });
    assert_eq!(world.call("POST", JUDGES, &charts).await.0, 201);
    let registrar = world.registrar(None);
    let missing = registrar.register(&world.authorities).await;
    let others = registrar.webhooks.iter().map(|it| it.configuration_name());
    let others: Vec<String> = others
        .filter(|it| !it.ends_with("-jobs-validate"))
        .collect();
    assert_eq!(missing.missing, others);

    let path = format!("{JUDGES}/volcano-admission-service-jobs-validate");
    let (_, kept) = world.call("GET", &path, &Value::Null).await;
    assert_eq!(kept["metadata"]["labels"]["app"], "chart");
    let webhook = &kept["webhooks"][0];
    assert_eq!(webhook["timeoutSeconds"], 7);
    let bundle = STANDARD.encode(&world.authorities);
    assert_eq!(webhook["clientConfig"]["caBundle"], bundle.as_str());
    // What is as it should be is not written.
    registrar.register(&world.authorities).await;
    let (_, again) = world.call("GET", &path, &Value::Null).await;
    assert_eq!(
        again["metadata"]["resourceVersion"],
        kept["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn a_registration_of_ours_follows_the_settings_and_one_of_others_does_not() {
    let world = World::new().await;
    let mut registrar = world.registrar(world.address());
    registrar.settings.queue_gates = true;
    registrar.webhooks = vec![Webhook::at("/pods/mutate").expect("it is a row")];
    let bundle = world.authorities.as_str();
    registrar.register(bundle).await;
    let path = format!("{CHANGERS}/volcano-admission-service-pods-mutate");
    let (_, mut stored) = world.call("GET", &path, &Value::Null).await;
    assert!(stored["webhooks"][0]["matchConditions"].is_array());
    // By hand.
    stored["metadata"]["labels"] = json!({ "team": "a" });
    stored["webhooks"][0]["timeoutSeconds"] = 7.into();
    assert_eq!(world.call("PUT", &path, &stored).await.0, 200);
    registrar.register(bundle).await;
    let (_, kept) = world.call("GET", &path, &Value::Null).await;
    assert_eq!(kept["webhooks"][0]["timeoutSeconds"], 7);

    let group = json!({ "resourceGroups": [{ "resourceGroup": "gpu", "object": { "key": "namespace", "value": ["ml"] }, "labels": { "pool": "b" } }] });
    registrar.settings.resource_groups = review::ResourceGroup::read(group).expect("a group");
    // Somebody starts it anew who does not know where it is found.
    let address = registrar.address.take();
    registrar.register(bundle).await;
    let (_, anew) = world.call("GET", &path, &Value::Null).await;
    let condition = &anew["webhooks"][0]["matchConditions"][0]["expression"];
    let condition = condition.as_str().expect("a condition");
    assert!(
        condition.ends_with(" || request.namespace in ['ml']"),
        "{condition}"
    );
    let found = &anew["webhooks"][0]["clientConfig"];
    assert_eq!(*found, kept["webhooks"][0]["clientConfig"]);
    assert_eq!(anew["metadata"]["labels"]["team"], "a");
    registrar.address = address;

    let mut foreign = stored.clone();
    foreign["metadata"] = json!({ "name": stored["metadata"]["name"] });
    assert_eq!(world.call("DELETE", &path, &Value::Null).await.0, 200);
    assert_eq!(world.call("POST", CHANGERS, &foreign).await.0, 201);
    let unasked = registrar.register(bundle).await;
    assert_eq!(
        unasked.conditional,
        ["volcano-admission-service-pods-mutate"]
    );
    let (_, kept) = world.call("GET", &path, &Value::Null).await;
    assert_eq!(
        kept["webhooks"][0]["matchConditions"],
        stored["webhooks"][0]["matchConditions"]
    );
}

/// An API server that refuses what is about one registration, to whoever asks.
fn forbidding(world: &World, name: &'static str) -> Cluster {
    let api = world.api.service();
    Cluster::in_process(tower::service_fn(move |request: http::Request<_>| {
        let (api, is_refused) = (api.clone(), request.uri().path().contains(name));
        async move {
            if !is_refused {
                return api.oneshot(request).await;
            }
            let body = json!({ "kind": "Status", "code": 403, "message": "not for you" });
            let body = Full::new(Bytes::from(body.to_string()));
            let body = body.map_err(|never| match never {}).boxed_unsync();
            let mut refusal = http::Response::new(body);
            *refusal.status_mut() = http::StatusCode::FORBIDDEN;
            Ok(refusal)
        }
    }))
}

#[tokio::test]
async fn one_registration_that_cannot_be_seen_to_holds_up_no_other() {
    let world = World::new().await;
    let refused = "volcano-admission-service-cronjobs-validate";
    let registrar = Registrar {
        cluster: forbidding(&world, refused),
        ..world.registrar(world.address())
    };
    let unasked = registrar.register(&world.authorities).await;
    let (name, why) = &unasked.failed[0];
    assert_eq!((name.as_str(), unasked.failed.len()), (refused, 1));
    assert!(why.contains("not for you"), "{why}");
    for webhook in registrar.webhooks.iter().skip(1) {
        let (plural, name) = (webhook.configuration_plural(), webhook.configuration_name());
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
        assert_eq!(
            world.call("GET", &path, &Value::Null).await.0,
            200,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_registration_that_is_not_wanted_any_more_stops_nobody() {
    let world = World::judging(vec![Webhook::at("/queues/validate").expect("it is a row")]).await;
    let mut registrar = world.registrar(world.address());
    let bundle = world.authorities.as_str();
    assert_eq!(registrar.register(bundle).await, Unasked::default());
    let name = "volcano-admission-service-jobs-validate";
    let path = format!("{JUDGES}/{name}");
    let (code, ours) = world.call("GET", &path, &Value::Null).await;
    assert_eq!(code, 200);
    // What is asked meanwhile passes, and who asks is told.
    let mut ring = job("ring");
    ring["spec"]["tasks"][0]["dependsOn"] = json!({ "name": ["default0"] });
    let (code, status) = world.call("POST", JOBS, &ring).await;
    assert_eq!(code, 201, "{status}");

    // It leads to other webhooks.
    registrar.webhooks = vec![Webhook::at("/queues/validate").expect("it is a row")];
    let address = registrar
        .address
        .replace(Address::Url("https://elsewhere".to_owned()));
    registrar.register(bundle).await;
    assert_eq!(world.call("GET", &path, &Value::Null).await.0, 200);
    // Nobody says where we are.
    registrar.address = None;
    let unwanted = registrar.register(bundle).await.unwanted;
    assert!(unwanted.contains(&name.to_owned()), "{unwanted:?}");
    assert_eq!(world.call("GET", &path, &Value::Null).await.0, 200);
    registrar.address = address;
    assert_eq!(registrar.register(bundle).await, Unasked::default());
    for (collection, left) in [(CHANGERS, 0), (JUDGES, 1)] {
        let (_, all) = world.call("GET", collection, &Value::Null).await;
        assert_eq!(all["items"].as_array().map(Vec::len), Some(left), "{all}");
    }

    // That of somebody else stays.
    let mut foreign = ours;
    foreign["metadata"] = json!({ "name": name });
    assert_eq!(world.call("POST", JUDGES, &foreign).await.0, 201);
    assert_eq!(registrar.register(bundle).await.unwanted, [name]);
    ring["metadata"]["name"] = "again".into();
    let (code, status) = world.call("POST", JOBS, &ring).await;
    assert_eq!(code, 201, "{status}");
}

/// What an API server must take from us, for each path, with everything on.
#[tokio::test]
async fn every_registration_and_policy_is_one_that_an_api_server_takes() {
    let world = World::new().await;
    let group =
        json!({ "resourceGroups": [{ "resourceGroup": "gpu", "labels": { "pool": "b" } }] });
    let gates = Settings {
        queue_gates: true,
        ..Settings::default()
    };
    let settings = Settings {
        resource_groups: review::ResourceGroup::read(group).expect("a group"),
        ..gates.clone()
    };
    let registrar = Registrar {
        webhooks: WEBHOOKS.iter().collect(),
        settings,
        ..world.registrar(Some(Address::Service {
            namespace: "volcano-system".to_owned(),
            name: "volcano-admission-service".to_owned(),
        }))
    };
    let unasked = registrar.register(&world.authorities).await;
    assert_eq!(unasked, Unasked::default());
    let group = "/apis/admissionregistration.k8s.io/v1";
    for object in WEBHOOKS.iter().flat_map(|it: &Webhook| it.policy(&gates)) {
        let kind = object["kind"].as_str().expect("a kind").to_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(policy) => format!("{policy}ies"),
            None => format!("{kind}s"),
        };
        let answer = world
            .call("POST", &format!("{group}/{plural}"), &object)
            .await;
        assert_eq!(answer.0, 201, "{}", answer.1);
    }
}
