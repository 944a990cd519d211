//! Who gets in, as whom.

use serde_json::{Value, json};

use super::{AsAdmin, PODS, Plane};

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn get(target: &str) -> http::request::Builder {
    http::Request::builder().uri(target)
}

fn bearing(method: &str, target: &str, token: &str) -> http::request::Builder {
    get(target)
        .method(method)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
}

#[tokio::test]
async fn nobody_sees_more_than_health_and_version_without_a_credential() {
    let plane = Plane::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(plane.send(get(path), Value::Null).await.code, 200, "{path}");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/livez/ping",
        "/metrics",
        "/openapi/v3",
        PODS,
    ] {
        let answer = plane.send(get(path), Value::Null).await;
        assert_eq!(
            (answer.code, answer.json()),
            (
                401,
                json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
                })
            ),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_bad_credential_is_refused_even_where_none_is_needed() {
    let plane = Plane::new().await;
    for token in ["", "x", "a.b.c", "alice-toke", "alice-token2"] {
        let answer = plane.send(bearing("GET", "/api", token), Value::Null).await;
        assert_eq!(answer.code, 401, "{token}");
    }
    let answer = plane.send(bearing("GET", "/livez", "x"), Value::Null).await;
    assert_eq!(answer.code, 401);
    let basic = get("/api").header("authorization", "Basic YWxpY2U6YWxpY2UtdG9rZW4=");
    assert_eq!(plane.send(basic, Value::Null).await.code, 401);
}

#[tokio::test]
async fn a_token_of_the_file_is_its_user_and_no_more() {
    let plane = Plane::new().await;
    let who = plane.as_alice("POST", WHO, json!({})).await;
    assert_eq!(
        who.json()["status"]["userInfo"],
        json!({ "username": "alice", "uid": "7", "groups": ["dev", "system:authenticated"] })
    );
    assert_eq!(plane.as_alice("GET", PODS, Value::Null).await.code, 403);
    assert_eq!(plane.as_alice("GET", "/api", Value::Null).await.code, 200);
    let metrics = plane.as_alice("GET", "/metrics", Value::Null).await;
    assert_eq!(
        metrics.json()["message"],
        "forbidden: User \"alice\" cannot get path \"/metrics\""
    );
    plane.let_alice(&["pods"]).await;
    assert_eq!(plane.as_alice("GET", PODS, Value::Null).await.code, 200);
}

#[tokio::test]
async fn a_certificate_is_its_name_and_organisations() {
    let plane = Plane::new().await;
    let who = plane.as_admin("POST", WHO, json!({})).await.json();
    let info = &who["status"]["userInfo"];
    assert_eq!(info["username"], "katmai-admin");
    assert_eq!(
        info["groups"],
        json!(["system:masters", "system:authenticated"])
    );
    let id = info["extra"]["authentication.kubernetes.io/credential-id"][0].as_str();
    assert!(id.is_some_and(|id| id.starts_with("X509SHA256=")), "{info}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_does_not_get_through_the_handshake() {
    let (plane, other) = (Plane::new().await, Plane::new().await);
    let socket = tokio::net::TcpStream::connect(plane.address())
        .await
        .expect("a socket");
    let mut config = other.tls("http/1.1", AsAdmin::Yes);
    // It believes our server, and shows a certificate of its own authority.
    let ours = plane.tls("http/1.1", AsAdmin::No);
    config
        .dangerous()
        .set_certificate_verifier(Believes::of(&ours));
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    // With TLS 1.3 the refusal comes with the first read.
    let refused = match connector.connect(name, socket).await {
        Err(_) => true,
        Ok(mut stream) => {
            use tokio::io::AsyncReadExt;
            !matches!(stream.read(&mut [0; 16]).await, Ok(count) if count > 0)
        }
    };
    assert!(refused);
}

/// Takes any server for the right one.
#[derive(Debug)]
struct Believes(std::sync::Arc<rustls::crypto::CryptoProvider>);

impl Believes {
    fn of(config: &rustls::ClientConfig) -> std::sync::Arc<Believes> {
        std::sync::Arc::new(Believes(config.crypto_provider().clone()))
    }
}

impl rustls::client::danger::ServerCertVerifier for Believes {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test]
async fn an_accounts_token_opens_the_door_until_the_account_is_gone() {
    let plane = Plane::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let robot = json!({ "metadata": { "name": "robot" } });
    assert_eq!(plane.as_admin("POST", accounts, robot).await.code, 201);
    let target = format!("{accounts}/robot/token");
    let made = plane
        .as_admin("POST", &target, json!({ "spec": {} }))
        .await
        .json();
    let token = made["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned();
    let who = plane
        .send(bearing("POST", WHO, &token), json!({}))
        .await
        .json();
    let info = &who["status"]["userInfo"];
    assert_eq!(info["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        info["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = |token: &str, audience: &str| json!({ "spec": { "token": token, "audiences": [audience] } });
    let api = "https://kubernetes.default.svc.cluster.local";
    let seen = plane
        .as_admin("POST", reviews, review(&token, api))
        .await
        .json();
    assert_eq!(seen["status"]["authenticated"], true);
    assert_eq!(seen["status"]["audiences"], json!([api]));
    for (token, audience) in [(token.as_str(), "vault"), ("x", api)] {
        let seen = plane
            .as_admin("POST", reviews, review(token, audience))
            .await
            .json();
        assert_eq!(seen["status"]["authenticated"], Value::Null, "{seen}");
        assert!(seen["status"]["error"].is_string(), "{seen}");
    }
    // Another plane's key signs nothing for this one.
    let other = Plane::new().await;
    assert_eq!(
        other
            .send(bearing("GET", "/api", &token), Value::Null)
            .await
            .code,
        401
    );
    let target = format!("{accounts}/robot");
    assert_eq!(
        plane.as_admin("DELETE", &target, Value::Null).await.code,
        200
    );
    assert_eq!(
        plane
            .send(bearing("GET", "/api", &token), Value::Null)
            .await
            .code,
        401
    );
}

#[tokio::test]
async fn to_act_for_somebody_needs_the_verb() {
    let plane = Plane::new().await;
    let acting = |name: &str| bearing("POST", WHO, "alice-token").header("impersonate-user", name);
    let refused = plane.send(acting("bob"), json!({})).await;
    assert_eq!(
        refused.json()["message"],
        "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
    );
    plane.let_alice(&["users"]).await;
    let who = plane.send(acting("bob"), json!({})).await.json();
    assert_eq!(
        who["status"]["userInfo"],
        json!({ "username": "bob", "groups": ["system:authenticated"] })
    );
    // The verb on users does not reach groups: nobody becomes a master so.
    let master = acting("bob").header("impersonate-group", "system:masters");
    let refused = plane.send(master, json!({})).await;
    assert_eq!(
        refused.json()["message"],
        "groups \"system:masters\" is forbidden: User \"alice\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope"
    );
    let groups = bearing("POST", WHO, "alice-token").header("impersonate-group", "system:masters");
    assert_eq!(plane.send(groups, json!({})).await.code, 500);
}

#[tokio::test]
async fn the_audit_log_says_who_did_what() {
    let plane = Plane::new().await;
    let request = bearing("GET", PODS, "alice-token")
        .header("audit-id", "my-id")
        .header("user-agent", "test");
    let answer = plane.send(request, Value::Null).await;
    assert_eq!(answer.headers["audit-id"], "my-id");
    plane
        .as_admin("DELETE", "/api/v1/namespaces/default/pods/x", Value::Null)
        .await;
    let log = plane.audit();
    assert_eq!(log.len(), 2, "{log:?}");
    let mut first = log[0].clone();
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        assert!(first[time].take().is_string());
    }
    assert_eq!(
        first,
        json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": "my-id",
            "stage": "ResponseComplete",
            "requestURI": PODS,
            "verb": "list",
            "user": { "username": "alice", "uid": "7", "groups": ["dev", "system:authenticated"] },
            "sourceIPs": ["127.0.0.1"],
            "userAgent": "test",
            "objectRef": { "resource": "pods", "namespace": "default", "apiVersion": "v1" },
            "responseStatus": { "metadata": {}, "code": 403 },
            "annotations": { "authorization.k8s.io/decision": "forbid" },
            "requestReceivedTimestamp": null,
            "stageTimestamp": null,
        })
    );
    assert_eq!(
        (&log[1]["verb"], &log[1]["objectRef"]["name"]),
        (&json!("delete"), &json!("x"))
    );
    assert_eq!(log[1]["responseStatus"]["code"], 404);
}
