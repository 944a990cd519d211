//! Questions to a scheduler beside a cluster: who is answered, what may be told, and how the cluster's API
//! server is told of it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use client::Cluster;
use client::ask::Unanswered;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use server::{
    AskEndpoint, AskService, CertificateKeeper, FrontProxy, Listening, ServedCertificate,
};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use super::asking::{Parrot, TRAIN, let_view, message};
use super::{Answer, AsAdmin, Plane};

/// A cluster, and an endpoint beside it.
struct World {
    plane: Plane,
    cluster: Cluster,
    front: watch::Sender<Option<Arc<FrontProxy>>>,
    authorities: String,
    listening: Listening,
}

impl World {
    async fn new(answer: Result<(), Unanswered>) -> World {
        let plane = Plane::new().await;
        let cluster = Cluster::in_process(plane.api.service());
        let keeper = CertificateKeeper::Secret {
            cluster: cluster.clone(),
            namespace: "default".to_owned(),
            name: "questions".to_owned(),
            server_names: vec!["localhost".to_owned()],
        };
        let certificate = ServedCertificate::default();
        let kept = keeper.keep(&certificate, super::now()).await;
        let (front, known) = watch::channel(None);
        let door = Arc::new(Parrot(Mutex::new(answer)));
        let endpoint = AskEndpoint::new(door, cluster.clone(), known);
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let listening = endpoint.listen(loopback, &certificate).await;
        World {
            plane,
            cluster,
            front,
            authorities: kept.expect("a certificate"),
            listening: listening.expect("a socket"),
        }
    }

    /// The endpoint's answer; with a certificate, for whom the headers name.
    async fn get(&self, target: &str, headers: &[(&str, &str)], shown: AsAdmin) -> Answer {
        let stream = TcpStream::connect(self.listening.address).await;
        let tls = self.plane.tls_to(&self.authorities, "http/1.1", shown);
        let connector = TlsConnector::from(Arc::new(tls));
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = connector.connect(name, stream.expect("a socket")).await;
        let mut request = http::Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let stream = stream.expect("TLS");
        self.plane.send_on(stream, request, Value::Null).await
    }

    /// A token of a service account of `default`, and its user's name.
    async fn token(&self) -> (String, &'static str) {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let made = json!({ "metadata": { "name": "ci" } });
        assert_eq!(self.plane.as_admin("POST", accounts, made).await.code, 201);
        let asked =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let target = format!("{accounts}/ci/token");
        let token = self.plane.as_admin("POST", &target, asked).await.json();
        let token = token["status"]["token"].as_str().expect("a token");
        (token.to_owned(), "system:serviceaccount:default:ci")
    }

    /// Whoever shows the administrator's certificate is the cluster's API server.
    async fn let_the_api_server_speak_for_others(&self, name: &str) {
        let map = json!({
            "metadata": { "name": "extension-apiserver-authentication" },
            "data": {
                "requestheader-client-ca-file": self.plane.identity.authority,
                "requestheader-allowed-names": json!([name]).to_string(),
                "requestheader-username-headers": r#"["X-Remote-User"]"#,
                "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            },
        });
        let target = "/api/v1/namespaces/kube-system/configmaps";
        let made = self.plane.as_admin("POST", target, map).await;
        assert_eq!(made.code, 201, "{}", made.text());
        let front = FrontProxy::read(&self.cluster).await.expect("read");
        self.front.send_replace(front.map(Arc::new));
    }
}

#[tokio::test]
async fn who_has_a_token_of_the_cluster_is_answered_as_its_roles_say() {
    let world = World::new(Ok(())).await;
    let (token, name) = world.token().await;
    let bearer = format!("Bearer {token}");
    let ask = |headers: Vec<(&'static str, String)>| {
        let world = &world;
        async move {
            let headers: Vec<_> = headers.iter().map(|(key, it)| (*key, &**it)).collect();
            world.get(TRAIN, &headers, AsAdmin::No).await
        }
    };
    for nobody in ["", "Bearer ", "Bearer guess", "Basic YTpi"] {
        let answer = ask(vec![("authorization", nobody.to_owned())]).await;
        assert_eq!(answer.code, 401, "{nobody}");
    }
    let refused = ask(vec![("authorization", bearer.clone())]).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    assert_eq!(
        message(&refused),
        format!(
            "explanations.ask.katmai.dev \"podgroup.train\" is forbidden: User \"{name}\" cannot get resource \
             \"explanations\" in API group \"ask.katmai.dev\" in the namespace \"team-a\""
        )
    );
    // A token of its own: what was answered before is remembered for a moment.
    let world = World::new(Ok(())).await;
    let (token, _) = world.token().await;
    let subject = json!({ "kind": "ServiceAccount", "name": "ci", "namespace": "default" });
    let_view(&world.plane, "team-a", subject).await;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer)];
    let answer = world.get(TRAIN, &headers, AsAdmin::No).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let seen = format!("{name} true false");
    assert_eq!(answer.json()["status"]["message"], seen, "and no other");
    let as_other = [("authorization", &*bearer), ("impersonate-user", "bob")];
    assert_eq!(world.get(TRAIN, &as_other, AsAdmin::No).await.code, 400);
}

#[tokio::test]
async fn the_api_server_speaks_for_others_and_nobody_else_does() {
    let world = World::new(Ok(())).await;
    let alice = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" });
    let_view(&world.plane, "team-a", alice).await;
    let headers = [("x-remote-user", "alice"), ("x-remote-group", "dev")];
    // Before the cluster says who may, and without a certificate, a header is only a claim.
    assert_eq!(world.get(TRAIN, &headers, AsAdmin::Yes).await.code, 401);
    world
        .let_the_api_server_speak_for_others("katmai-admin")
        .await;
    assert_eq!(world.get(TRAIN, &headers, AsAdmin::No).await.code, 401);
    let answer = world.get(TRAIN, &headers, AsAdmin::Yes).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["status"]["message"], "alice true false");
    let masters = [
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
    ];
    let answer = world.get(TRAIN, &masters, AsAdmin::Yes).await;
    assert_eq!(answer.json()["status"]["message"], "root true true");

    let world = World::new(Ok(())).await;
    world
        .let_the_api_server_speak_for_others("front-proxy-client")
        .await;
    let answer = world.get(TRAIN, &masters, AsAdmin::Yes).await;
    assert_eq!(answer.code, 401, "its certificate has another name");
}

#[tokio::test]
async fn questions_are_all_that_is_served() {
    let world = World::new(Ok(())).await;
    world
        .let_the_api_server_speak_for_others("katmai-admin")
        .await;
    let get = |target: &'static str, accept: &'static str| {
        let world = &world;
        async move {
            let headers = [
                ("x-remote-user", "system:kube-aggregator"),
                ("x-remote-group", "system:masters"),
                ("accept", accept),
            ];
            world.get(target, &headers, AsAdmin::Yes).await
        }
    };
    let listed = get("/apis/ask.katmai.dev/v1", "").await.json();
    assert_eq!(listed["kind"], "APIResourceList");
    assert_eq!(listed["resources"][0]["name"], "explanations");
    let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = get("/apis", new).await;
    assert_eq!(all.headers["content-type"], new);
    let groups = &all.json()["items"];
    assert_eq!(groups.as_array().map(Vec::len), Some(1));
    assert_eq!(groups[0]["metadata"]["name"], "ask.katmai.dev");
    assert_eq!(
        get("/apis", "").await.json()["groups"][0]["name"],
        "ask.katmai.dev"
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = get(TRAIN, table).await.json();
    assert_eq!(table["rows"][0]["cells"][0], "podgroup.train");
    let list = TRAIN.replace("/podgroup.train", "").leak();
    for (target, code) in [
        ("/api/v1/namespaces/default/secrets/questions", 404),
        ("/apis/apps/v1", 404),
        ("/metrics", 404),
        ("/openapi/v2", 404),
        (&*list, 405),
        (
            "/apis/ask.katmai.dev/v1/namespaces/team-a/explanations/train",
            400,
        ),
        (
            "/apis/ask.katmai.dev/v1/watch/namespaces/team-a/explanations/podgroup.train",
            404,
        ),
    ] {
        assert_eq!(get(target, "").await.code, code, "{target}");
    }
}

#[tokio::test]
async fn who_cannot_answer_now_says_when_to_ask_again_and_ends_the_connection() {
    for (why, code, seconds) in [
        (Unanswered::NotReady("elsewhere".to_owned()), 503, "1"),
        (
            Unanswered::TooMany {
                retry_after_seconds: 3,
            },
            429,
            "3",
        ),
    ] {
        let world = World::new(Err(why)).await;
        world
            .let_the_api_server_speak_for_others("katmai-admin")
            .await;
        let masters = [
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
        ];
        let answer = world.get(TRAIN, &masters, AsAdmin::Yes).await;
        assert_eq!(answer.code, code);
        assert_eq!(answer.headers["retry-after"], seconds);
        // Another replica may be found by another connection.
        let ends = answer.headers.get("connection");
        assert_eq!(ends.is_some_and(|it| it == "close"), code == 503);
    }
}

#[tokio::test]
async fn the_api_server_is_told_whom_to_pass_questions_on_to() {
    let world = World::new(Ok(())).await;
    let mut service = AskService {
        namespace: "volcano-system".to_owned(),
        name: "katmai-scheduler".to_owned(),
        port: 443,
    };
    let target = "/apis/apiregistration.k8s.io/v1/apiservices/v1.ask.katmai.dev";
    let mut versions = Vec::new();
    for (port, authorities) in [(443, "a"), (443, "a"), (443, "b"), (8443, "b")] {
        service.port = port;
        let told = service.register(&world.cluster, authorities).await;
        told.expect("told");
        let stored = world.plane.as_admin("GET", target, Value::Null).await;
        let stored = stored.json();
        assert_eq!(stored["spec"]["service"]["port"], port);
        versions.push(stored["metadata"]["resourceVersion"].clone());
    }
    assert_eq!(
        versions[0], versions[1],
        "what is so already is not written"
    );
    assert_ne!(versions[1], versions[2]);
    assert_ne!(versions[2], versions[3]);
    assert!(
        service
            .host_names()
            .contains(&"katmai-scheduler.volcano-system.svc".to_owned())
    );
}
