//! Who may do what: one attack a rule, through the store's door. S-ids are the requirements'.

use api::admission::Verdict;
use api::time::Time;
use serde_json::{Value, json};
use store::{Begin, Entropy, Method, Request, Response, Settings, Store, User};

/// Counts instead of drawing: the same names in every run.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
    }
}

const NOW: Time = Time(1_800_000_000_000_000);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

struct Plane(Store);

impl Plane {
    /// A plane with the namespaces `a` and `b`.
    fn new() -> Plane {
        let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
        let commit = store.start(NOW).expect("a new plane has objects to make");
        store.finish(commit.ticket, NOW);
        let mut plane = Plane(store);
        for name in ["a", "b"] {
            plane.make(
                "/api/v1/namespaces",
                &json!({ "metadata": { "name": name } }),
            );
        }
        plane
    }

    fn begin(&mut self, user: &User, method: &str, target: &str, body: &Value) -> Begin {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            method: Method::parse(method).expect("a method"),
            path: path.to_owned(),
            query: query.to_owned(),
            accept: String::new(),
            user_agent: String::new(),
            content_type: match method {
                "PATCH" => "application/merge-patch+json".to_owned(),
                _ => "application/json".to_owned(),
            },
            body: if body.is_null() {
                Vec::new()
            } else {
                body.to_string().into_bytes()
            },
            user: user.clone(),
        };
        self.0.begin(&request, NOW, &mut |_, _| Verdict::Allowed {
            object: None,
            warnings: Vec::new(),
        })
    }

    fn ask(&mut self, user: &User, method: &str, target: &str, body: &Value) -> (u16, Value) {
        let response = match self.begin(user, method, target, body) {
            Begin::Done(response) => response,
            Begin::Commit(commit) => self.0.finish(commit.ticket, NOW),
            Begin::Watch(_) => Response::text(200, "{}"),
            other => panic!("{other:?}"),
        };
        let value = serde_json::from_slice(&response.body).unwrap_or_default();
        (response.code, value)
    }

    /// The administrator creates something.
    fn make(&mut self, target: &str, body: &Value) -> Value {
        let (code, object) = self.ask(&User::admin(), "POST", target, body);
        assert_eq!(code, 201, "{object}");
        object
    }

    /// A role with these rules: in `namespace`, or in the whole plane for none.
    fn role(&mut self, namespace: &str, name: &str, rules: Value) {
        let body = json!({ "metadata": { "name": name }, "rules": rules });
        let target = match namespace {
            "" => format!("{RBAC}/clusterroles"),
            _ => format!("{RBAC}/namespaces/{namespace}/roles"),
        };
        self.make(&target, &body);
    }

    /// Binds subjects (`User:alice`) to `ClusterRole:x` or `Role:x`.
    fn bind(&mut self, namespace: &str, role: &str, subjects: &[&str]) {
        let body = binding("bound", role, subjects);
        let target = match namespace {
            "" => format!("{RBAC}/clusterrolebindings"),
            _ => format!("{RBAC}/namespaces/{namespace}/rolebindings"),
        };
        self.make(&target, &body);
    }

    /// Each row: method, target, and the code that `user` gets.
    fn check(&mut self, user: &User, rows: &[(&str, &str, u16)]) {
        for (method, target, code) in rows {
            let (got, answer) = self.ask(user, method, target, &Value::Null);
            assert_eq!(got, *code, "{} {method} {target}: {answer}", user.name);
        }
    }

    /// The text of the refusal.
    fn refused(&mut self, user: &User, method: &str, target: &str, body: &Value) -> String {
        let (code, answer) = self.ask(user, method, target, body);
        assert_eq!(code, 403, "{answer}");
        assert_eq!(answer["reason"], "Forbidden");
        answer["message"].as_str().expect("a message").to_owned()
    }
}

fn binding(name: &str, role: &str, subjects: &[&str]) -> Value {
    let (kind, role) = role.split_once(':').expect("a kind and a name");
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<Value> = subjects
        .iter()
        .filter_map(|subject| subject.split_once(':'))
        .map(|(kind, name)| match name.split_once('/') {
            Some((namespace, name)) => {
                json!({ "kind": kind, "name": name, "namespace": namespace })
            }
            None => json!({ "apiGroup": group, "kind": kind, "name": name }),
        })
        .collect();
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": kind, "name": role },
        "subjects": subjects,
    })
}

fn user(name: &str) -> User {
    member(name, &[])
}

fn member(name: &str, groups: &[&str]) -> User {
    let mut groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
    groups.push("system:authenticated".to_owned());
    User {
        name: name.to_owned(),
        groups,
        ..User::default()
    }
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": groups, "resources": resources })
}

#[test]
fn who_has_no_binding_gets_nothing_but_what_everybody_may_read() {
    let mut plane = Plane::new();
    let alice = user("alice");
    plane.check(
        &alice,
        &[
            ("GET", "/api", 200),
            ("GET", "/apis/batch/v1", 200),
            ("GET", "/openapi/v3", 200),
            ("GET", "/version", 200),
            ("GET", "/api/v1/namespaces/a/pods", 403),
            ("GET", "/apis/nothing.example/v1/things", 403),
            ("DELETE", "/api/v1/namespaces/a", 403),
        ],
    );
    assert_eq!(
        plane.refused(&alice, "GET", "/api/v1/namespaces/a/pods", &Value::Null),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace \"a\""
    );
    assert_eq!(
        plane.refused(
            &alice,
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/x/scale",
            &Value::Null
        ),
        "deployments.apps \"x\" is forbidden: User \"alice\" cannot update resource \"deployments/scale\" in API group \"apps\" in the namespace \"a\""
    );
    assert_eq!(
        plane.refused(&alice, "GET", "/api/v1/namespaces/a", &Value::Null),
        "namespaces \"a\" is forbidden: User \"alice\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"a\""
    );
    assert_eq!(
        plane.refused(&alice, "GET", "/metrics", &Value::Null),
        "forbidden: User \"alice\" cannot get path \"/metrics\""
    );
    assert_eq!(
        plane.refused(&user("<a&b>"), "GET", "/api/v1/nodes", &Value::Null),
        "nodes is forbidden: User \"&lt;a&amp;b&gt;\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    );
}

#[test]
fn a_role_reaches_no_further_than_its_namespace_verbs_and_parts() {
    let mut plane = Plane::new();
    plane.role(
        "a",
        "reader",
        json!([rule(&["get", "list"], &[""], &["pods", "*/status"])]),
    );
    plane.bind("a", "Role:reader", &["User:alice"]);
    plane.check(
        &user("alice"),
        &[
            ("GET", "/api/v1/namespaces/a/pods", 200),
            ("GET", "/api/v1/namespaces/a/pods/x", 404),
            ("GET", "/api/v1/namespaces/a/pods/x/status", 404),
            ("GET", "/api/v1/namespaces/a/services/x/status", 404),
            ("GET", "/api/v1/namespaces/a/pods?watch=true", 403),
            ("GET", "/api/v1/namespaces/a/pods/x/log", 403),
            ("DELETE", "/api/v1/namespaces/a/pods", 403),
            ("GET", "/api/v1/namespaces/b/pods", 403),
            ("GET", "/api/v1/pods", 403),
            ("GET", "/apis/apps/v1/namespaces/a/pods", 403),
        ],
    );
    plane.check(
        &user("alice2"),
        &[("GET", "/api/v1/namespaces/a/pods", 403)],
    );
    plane.check(
        &member("bob", &["alice"]),
        &[("GET", "/api/v1/namespaces/a/pods", 403)],
    );
}

#[test]
fn resource_names_hold_lists_by_name_too() {
    let mut plane = Plane::new();
    let mut one = rule(&["get", "list", "watch", "create"], &[""], &["secrets"]);
    one["resourceNames"] = json!(["mine"]);
    plane.role("a", "one", json!([one]));
    plane.bind("a", "Role:one", &["Group:team"]);
    plane.check(
        &member("alice", &["team"]),
        &[
            ("GET", "/api/v1/namespaces/a/secrets/mine", 404),
            ("GET", "/api/v1/namespaces/a/secrets/yours", 403),
            ("GET", "/api/v1/namespaces/a/secrets", 403),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dmine",
                200,
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name!%3Dmine",
                403,
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dyours",
                403,
            ),
            (
                "GET",
                "/api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name==mine",
                200,
            ),
            // A creation has no name yet.
            ("POST", "/api/v1/namespaces/a/secrets", 403),
        ],
    );
}

#[test]
fn a_binding_speaks_for_its_account_only_and_ends_at_once() {
    let mut plane = Plane::new();
    plane.bind("", "ClusterRole:view", &["ServiceAccount:a/robot"]);
    let robot = user("system:serviceaccount:a:robot");
    plane.check(
        &robot,
        &[
            ("GET", "/api/v1/pods", 200),
            ("GET", "/api/v1/secrets", 403),
        ],
    );
    plane.check(
        &user("system:serviceaccount:b:robot"),
        &[("GET", "/api/v1/pods", 403)],
    );
    let target = format!("{RBAC}/clusterrolebindings/bound");
    let (code, _) = plane.ask(&User::admin(), "DELETE", &target, &Value::Null);
    assert_eq!(code, 200);
    plane.check(&robot, &[("GET", "/api/v1/pods", 403)]);
}

#[test]
fn a_missing_role_is_named_in_the_refusal() {
    let mut plane = Plane::new();
    plane.bind("", "ClusterRole:gone", &["User:alice"]);
    plane.bind("a", "Role:lost", &["User:alice"]);
    assert_eq!(
        plane.refused(
            &user("alice"),
            "GET",
            "/api/v1/namespaces/a/pods",
            &Value::Null
        ),
        "pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" in the namespace \"a\": RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, role.rbac.authorization.k8s.io \"lost\" not found]"
    );
}

#[test]
fn paths_are_permitted_by_prefix_and_only_in_the_whole_plane() {
    let mut plane = Plane::new();
    let rules = json!([{ "verbs": ["get"], "nonResourceURLs": ["/logs/*", "/metrics"] }]);
    plane.role("", "paths", rules);
    plane.bind("", "ClusterRole:paths", &["User:alice"]);
    plane.bind("a", "ClusterRole:paths", &["User:bob"]);
    plane.check(
        &user("alice"),
        &[
            ("GET", "/logs/x", 404),
            ("GET", "/metrics", 404),
            ("POST", "/metrics", 403),
            ("GET", "/metrics/x", 403),
            ("GET", "/logsx", 403),
        ],
    );
    plane.check(&user("bob"), &[("GET", "/metrics", 403)]);
}

#[test]
fn nobody_grants_what_they_do_not_have() {
    let mut plane = Plane::new();
    plane.bind("a", "ClusterRole:admin", &["User:alice"]);
    let alice = user("alice");
    let roles = format!("{RBAC}/namespaces/a/roles");
    let body = json!({
        "metadata": { "name": "more" },
        "rules": [
            rule(&["get", "list"], &[""], &["pods"]),
            rule(&["get", "use"], &["x.example"], &["things"]),
        ],
    });
    assert_eq!(
        plane.refused(&alice, "POST", &roles, &body),
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"x.example\"], Resources:[\"things\"], Verbs:[\"get\" \"use\"]}"
    );
    let body = json!({
        "metadata": { "name": "same" },
        "rules": [rule(&["get", "delete"], &[""], &["pods"])],
    });
    let (code, answer) = plane.ask(&alice, "POST", &roles, &body);
    assert_eq!(code, 201, "{answer}");
    let grow = json!({ "rules": [rule(&["*"], &["*"], &["*"])] });
    let text = plane.refused(&alice, "PATCH", &format!("{roles}/same"), &grow);
    assert!(
        text.ends_with("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
        "{text}"
    );
}

#[test]
fn nobody_binds_a_role_that_they_do_not_have_unless_told_so() {
    let mut plane = Plane::new();
    plane.bind("a", "ClusterRole:admin", &["User:alice"]);
    let alice = user("alice");
    let target = format!("{RBAC}/namespaces/a/rolebindings");
    let all = binding("mine", "ClusterRole:cluster-admin", &["User:alice"]);
    let text = plane.refused(&alice, "POST", &target, &all);
    assert_eq!(
        text,
        "rolebindings.rbac.authorization.k8s.io \"mine\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
    );
    let (code, answer) = plane.ask(&alice, "POST", &target, &binding("b", "Role:none", &[]));
    assert_eq!(
        (code, answer["message"].as_str()),
        (
            404,
            Some("roles.rbac.authorization.k8s.io \"none\" not found")
        )
    );
    let view = binding("view", "ClusterRole:view", &["User:bob"]);
    assert_eq!(plane.ask(&alice, "POST", &target, &view).0, 201);
    let mut bind = rule(&["bind"], &["rbac.authorization.k8s.io"], &["clusterroles"]);
    bind["resourceNames"] = json!(["cluster-admin"]);
    plane.role("a", "binder", json!([bind]));
    let body = binding("binder", "Role:binder", &["User:alice"]);
    plane.make(&target, &body);
    assert_eq!(plane.ask(&alice, "POST", &target, &all).0, 201);
}

#[test]
fn the_aggregation_rule_needs_full_authority() {
    let mut plane = Plane::new();
    plane.role(
        "",
        "roles",
        json!([rule(
            &["create"],
            &["rbac.authorization.k8s.io"],
            &["clusterroles"]
        )]),
    );
    plane.bind("", "ClusterRole:roles", &["User:alice"]);
    let body = json!({
        "metadata": { "name": "all" },
        "aggregationRule": { "clusterRoleSelectors": [{}] },
    });
    assert_eq!(
        plane.refused(
            &user("alice"),
            "POST",
            &format!("{RBAC}/clusterroles"),
            &body
        ),
        "clusterroles.rbac.authorization.k8s.io \"all\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
    );
}

#[test]
fn aggregated_roles_gather_in_the_same_write() {
    let mut plane = Plane::new();
    plane.bind("a", "ClusterRole:view", &["User:viewer"]);
    plane.bind("b", "ClusterRole:admin", &["User:admin"]);
    let (viewer, admin) = (user("viewer"), user("admin"));
    let shots = "/apis/snapshot.storage.k8s.io/v1/namespaces";
    let in_a = format!("{shots}/a/volumesnapshots");
    let in_b = format!("{shots}/b/volumesnapshots");
    plane.check(&viewer, &[("GET", &in_a, 403)]);
    let feeding = json!({
        "metadata": {
            "name": "shots",
            "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" },
        },
        "rules": [rule(&["list"], &["snapshot.storage.k8s.io"], &["volumesnapshots"])],
    });
    plane.make(&format!("{RBAC}/clusterroles"), &feeding);
    // `edit` gathers `view`, and `admin` gathers `edit`.
    plane.check(&viewer, &[("GET", &in_a, 200), ("GET", &in_b, 403)]);
    plane.check(&admin, &[("GET", &in_b, 200)]);
    let target = format!("{RBAC}/clusterroles/shots");
    plane.ask(&User::admin(), "DELETE", &target, &Value::Null);
    plane.check(&viewer, &[("GET", &in_a, 403)]);
    plane.check(&admin, &[("GET", &in_b, 403)]);
}

#[test]
fn who_may_edit_a_namespace_may_edit_its_vcjobs() {
    let mut plane = Plane::new();
    plane.bind("a", "ClusterRole:view", &["User:viewer"]);
    plane.bind("b", "ClusterRole:edit", &["User:editor"]);
    for path in [
        "batch.volcano.sh/v1alpha1/namespaces/a/cronjobs",
        "batch.volcano.sh/v1alpha1/namespaces/a/jobs",
        "bus.volcano.sh/v1alpha1/namespaces/a/commands",
        "flow.volcano.sh/v1alpha1/namespaces/a/jobflows",
        "flow.volcano.sh/v1alpha1/namespaces/a/jobtemplates",
        "scheduling.volcano.sh/v1beta1/namespaces/a/podgroups",
    ] {
        let in_a = format!("/apis/{path}");
        let in_b = in_a.replace("namespaces/a", "namespaces/b");
        plane.check(&user("viewer"), &[("GET", &in_a, 200), ("GET", &in_b, 403)]);
        plane.check(&user("editor"), &[("GET", &in_b, 200), ("GET", &in_a, 403)]);
        plane.check(&user("viewer"), &[("DELETE", &in_a, 403)]);
        plane.check(&user("editor"), &[("DELETE", &in_b, 200)]);
    }
    // Queues are the cluster's.
    let queues = "/apis/scheduling.volcano.sh/v1beta1/queues";
    plane.check(&user("editor"), &[("GET", queues, 403)]);
}

/// `deploy/roles.yaml` gives on a cluster what a plane of its own has from the start.
#[test]
fn own_roles_are_those_of_a_cluster_and_none_of_kubernetes() {
    let mut plane = Plane::new();
    let admin = member("admin", &["system:masters"]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let deployed: Vec<Value> =
        serde_saphyr::from_multiple(include_str!("../../../deploy/roles.yaml")).unwrap();
    for feeds in ["view", "edit"] {
        let own = format!("{roles}/katmai:aggregate-volcano-to-{feeds}");
        let (code, own) = plane.ask(&admin, "GET", &own, &Value::Null);
        assert_eq!(code, 200, "{own}");
        let name = format!("katmai-volcano-{feeds}");
        let of_cluster = deployed.iter().find(|one| one["metadata"]["name"] == *name);
        let of_cluster = of_cluster.expect(&name);
        assert_eq!(own["rules"], of_cluster["rules"], "{feeds}");
        assert_eq!(own["metadata"]["labels"], of_cluster["metadata"]["labels"]);
    }
    let defaults = format!("{roles}?labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults");
    let (_, defaults) = plane.ask(&admin, "GET", &defaults, &Value::Null);
    let names = defaults["items"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|one| one["metadata"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"view"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("katmai")),
        "{names:?}"
    );
}

#[test]
fn reviews_answer_for_the_asker_and_for_others() {
    let mut plane = Plane::new();
    plane.bind("a", "ClusterRole:view", &["Group:team"]);
    let alice = member("alice", &["team"]);
    let base = "/apis/authorization.k8s.io/v1";
    let pods = json!({ "namespace": "a", "verb": "get", "resource": "pods" });
    let own = format!("{base}/selfsubjectaccessreviews");
    let body = json!({ "spec": { "resourceAttributes": pods } });
    let (code, answer) = plane.ask(&alice, "POST", &own, &body);
    assert_eq!(
        (code, &answer["status"]),
        (
            201,
            &json!({
                "allowed": true,
                "reason": "RBAC: allowed by RoleBinding \"bound/a\" of ClusterRole \"view\" to Group \"team\"",
            })
        )
    );
    let (code, answer) = plane.ask(&alice, "POST", &own, &json!({ "spec": {} }));
    assert_eq!(code, 422, "{answer}");
    let others = format!("{base}/subjectaccessreviews");
    let body = json!({ "spec": { "resourceAttributes": pods, "user": "x", "groups": ["team"] } });
    plane.refused(&alice, "POST", &others, &body);
    let (_, answer) = plane.ask(&User::admin(), "POST", &others, &body);
    assert_eq!(answer["status"]["allowed"], true);
    let paths =
        json!({ "spec": { "nonResourceAttributes": { "verb": "get", "path": "/metrics" } } });
    let (_, answer) = plane.ask(&alice, "POST", &own, &paths);
    assert_eq!(answer["status"], json!({ "allowed": false }));
    let local = format!("{base}/namespaces/b/localsubjectaccessreviews");
    let body = json!({
        "metadata": { "namespace": "b" },
        "spec": { "resourceAttributes": pods, "user": "x" },
    });
    let (code, answer) = plane.ask(&User::admin(), "POST", &local, &body);
    assert_eq!(code, 422, "{answer}");
}

#[test]
fn a_rules_review_lists_what_the_asker_holds() {
    let mut plane = Plane::new();
    let target = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let body = json!({ "spec": { "namespace": "a" } });
    let (_, answer) = plane.ask(&user("alice"), "POST", target, &body);
    let rules = answer["status"]["resourceRules"].as_array().expect("rules");
    assert_eq!(rules.len(), 2, "{answer}");
    assert_eq!(answer["status"]["incomplete"], false);
    let (_, answer) = plane.ask(&User::admin(), "POST", target, &body);
    let rules = answer["status"]["resourceRules"].as_array().expect("rules");
    let all = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    assert!(rules.contains(&all), "{answer}");
    let (code, _) = plane.ask(&user("alice"), "POST", target, &json!({ "spec": {} }));
    assert_eq!(code, 400);
}

/// A token's claims for `robot` in `a`, bound as the request says.
fn claims(plane: &mut Plane, spec: &Value) -> Value {
    let target = "/api/v1/namespaces/a/serviceaccounts/robot/token";
    match plane.begin(&User::admin(), "POST", target, &json!({ "spec": spec })) {
        Begin::Mint(mint) => mint.claims,
        other => panic!("{other:?}"),
    }
}

fn with_robot() -> Plane {
    let mut plane = Plane::new();
    let robot = json!({ "metadata": { "name": "robot" } });
    plane.make("/api/v1/namespaces/a/serviceaccounts", &robot);
    plane
}

fn speaks_for(plane: &Plane, claims: &Value, now: Time) -> Result<String, String> {
    let api = [store::API_AUDIENCE.to_owned()];
    let found = plane.0.token_user(claims, &api, now)?;
    Ok(found.user.name)
}

#[test]
fn a_token_dies_with_its_time_audience_account_and_pod() {
    let mut plane = with_robot();
    let robot = Ok("system:serviceaccount:a:robot".to_owned());
    let free = claims(&mut plane, &json!({}));
    assert_eq!(speaks_for(&plane, &free, NOW), robot);
    let late = NOW.plus_ms(3_600_000);
    assert_eq!(
        speaks_for(&plane, &free, late),
        Err("service account token has expired".to_owned())
    );
    let other = claims(&mut plane, &json!({ "audiences": ["vault"] }));
    assert!(speaks_for(&plane, &other, NOW).is_err());
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "serviceAccountName": "robot", "containers": [{ "name": "c", "image": "i" }] },
    });
    plane.make("/api/v1/namespaces/a/pods", &pod);
    let bound = json!({ "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "p" } });
    let bound = claims(&mut plane, &bound);
    assert_eq!(speaks_for(&plane, &bound, NOW), robot);
    let admin = User::admin();
    plane.ask(
        &admin,
        "DELETE",
        "/api/v1/namespaces/a/pods/p",
        &Value::Null,
    );
    assert_eq!(
        speaks_for(&plane, &bound, NOW),
        Err("service account token has been invalidated".to_owned())
    );
    // Another pod of the same name is another pod.
    plane.make("/api/v1/namespaces/a/pods", &pod);
    assert!(speaks_for(&plane, &bound, NOW).is_err());
    let account = "/api/v1/namespaces/a/serviceaccounts/robot";
    plane.ask(&admin, "DELETE", account, &Value::Null);
    assert_eq!(
        speaks_for(&plane, &free, NOW),
        Err("serviceaccounts \"robot\" not found".to_owned())
    );
}

#[test]
fn a_token_as_every_pod_gets_it_lives_for_a_year_and_says_when_it_would_have_ended() {
    let mut plane = with_robot();
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "serviceAccountName": "robot", "containers": [{ "name": "c", "image": "i" }] },
    });
    plane.make("/api/v1/namespaces/a/pods", &pod);
    let to_pod = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p" });
    let usual = json!({ "boundObjectRef": to_pod, "expirationSeconds": 3_607 });
    let usual = claims(&mut plane, &usual);
    let issued = usual["iat"].as_i64().expect("a time");
    assert_eq!(usual["exp"], issued + 365 * 24 * 3_600);
    assert_eq!(usual["kubernetes.io"]["warnafter"], issued + 3_607);
    let late = NOW.plus_ms(300 * 24 * 3_600_000);
    assert!(speaks_for(&plane, &usual, late).is_ok());
    // Not for others, not for other lengths, not without a pod.
    for spec in [
        json!({ "boundObjectRef": to_pod, "expirationSeconds": 3_607, "audiences": ["vault"] }),
        json!({ "boundObjectRef": to_pod, "expirationSeconds": 3_608 }),
        json!({ "expirationSeconds": 3_607 }),
    ] {
        let other = claims(&mut plane, &spec);
        let seconds = spec["expirationSeconds"].as_i64().expect("a number");
        assert_eq!(other["exp"], issued + seconds, "{spec}");
        assert!(other["kubernetes.io"]["warnafter"].is_null(), "{spec}");
    }
}

#[test]
fn a_token_request_is_checked() {
    let mut plane = with_robot();
    let target = "/api/v1/namespaces/a/serviceaccounts/robot/token";
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    plane.make("/api/v1/namespaces/a/pods", &pod);
    let bound = |kind: &str, name: &str, uid: &str| json!({ "boundObjectRef": { "apiVersion": "v1", "kind": kind, "name": name, "uid": uid } });
    let rows = [
        (
            json!({ "expirationSeconds": 60 }),
            422,
            "may not specify a duration less than 10 minutes",
        ),
        (
            json!({ "expirationSeconds": 1_i64 << 33 }),
            422,
            "may not specify a duration larger than 2^32 seconds",
        ),
        (bound("Pod", "none", ""), 404, "pods \"none\" not found"),
        (
            bound("Pod", "p", ""),
            400,
            "cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.",
        ),
        (
            bound("ConfigMap", "p", ""),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            bound("Secret", "none", ""),
            404,
            "secrets \"none\" not found",
        ),
    ];
    for (spec, code, text) in rows {
        let (got, answer) = plane.ask(&User::admin(), "POST", target, &json!({ "spec": spec }));
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(got == code && message.ends_with(text), "{spec}: {answer}");
    }
    plane.refused(&user("alice"), "POST", target, &json!({}));
}

#[test]
fn the_first_roles_come_back_unless_that_is_turned_off() {
    let mut plane = Plane::new();
    let roles = format!("{RBAC}/clusterroles");
    let clear = json!({ "rules": [] });
    for name in ["system:basic-user", "system:discovery"] {
        let (code, _) = plane.ask(&User::admin(), "PATCH", &format!("{roles}/{name}"), &clear);
        assert_eq!(code, 200);
    }
    let off = json!({ "metadata": { "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "false" } } });
    plane.ask(
        &User::admin(),
        "PATCH",
        &format!("{roles}/system:discovery"),
        &off,
    );
    plane.check(
        &user("alice"),
        &[("GET", "/version", 200), ("GET", "/openapi/v3", 403)],
    );
    let mut again = Store::new(Settings::default(), Box::new(Counting(0)));
    for record in plane.0.snapshot() {
        again.load(&record.encode()).expect("its own record");
    }
    let commit = again.start(NOW).expect("a role lacks its rules");
    again.finish(commit.ticket, NOW);
    let mut again = Plane(again);
    let own = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    assert_eq!(again.ask(&user("alice"), "POST", own, &json!({})).0, 201);
    again.check(&user("alice"), &[("GET", "/openapi/v3", 403)]);
}
