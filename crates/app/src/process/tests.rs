//! Processes beside a cluster: what they are told, what they read, and what they say of themselves.

mod told;

use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::Full;

use super::*;

/// A code, and what its message says.
type Says = (u16, &'static str);

/// A cluster that gives these answers one after another, and what it was asked.
fn cluster(answers: &'static [Says]) -> (client::Cluster, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&asked);
    let service = tower::service_fn(move |request: http::Request<client::Body>| {
        let mut asked = hears.lock().expect("nobody panicked");
        let (code, why) = answers[asked.len()];
        let name = request.uri().path().rsplit('/').next().unwrap_or_default();
        asked.push(format!("{} {name}", request.method()));
        let body = serde_json::json!({ "kind": "Status", "message": why }).to_string();
        let response = http::Response::builder().status(code);
        let response = response.body(Full::new(Bytes::from(body)));
        std::future::ready(Ok::<_, Infallible>(response.expect("a response")))
    });
    (client::Cluster::in_process(service), asked)
}

fn leading(is_leading: bool) -> Counted {
    let mut counted = Counted::default();
    counted.metrics.is_leading = is_leading;
    counted
}

#[tokio::test(start_paused = true)]
async fn first_queues_that_are_there_are_not_made_and_a_reason_is_told_once() {
    const HERE: Says = (200, "");
    const NOT_HERE: Says = (404, "not found");
    const MADE: Says = (201, "");
    const EXISTS: Says = (409, "already exists");
    const SILENT: Says = (500, "the webhook does not answer");
    const REFUSED: Says = (403, "the webhook says no");
    // Answers, what is asked, and what is told.
    let rows: [(&'static [Says], &str, &[&str]); 6] = [
        (&[HERE, HERE], "GET root, GET team", &[]),
        (
            &[NOT_HERE, MADE, NOT_HERE, MADE],
            "GET root, POST queues, GET team, POST queues",
            &[],
        ),
        (
            &[NOT_HERE, EXISTS, HERE],
            "GET root, POST queues, GET team",
            &[],
        ),
        // Who cannot look asks to make it, as upstream does.
        (
            &[REFUSED, EXISTS, HERE],
            "GET root, POST queues, GET team",
            &[],
        ),
        (
            &[
                HERE, NOT_HERE, SILENT, NOT_HERE, SILENT, NOT_HERE, REFUSED, NOT_HERE, REFUSED,
                HERE,
            ],
            "GET root, GET team, POST queues, GET team, POST queues, GET team, POST queues, GET team, \
             POST queues, GET team",
            &[
                "cannot make the queue \"team\": the webhook does not answer",
                "cannot make the queue \"team\": the webhook says no",
            ],
        ),
        (
            &[NOT_HERE, SILENT, HERE, NOT_HERE, SILENT, HERE],
            "GET root, POST queues, GET root, GET team, POST queues, GET team",
            &[
                "cannot make the queue \"root\": the webhook does not answer",
                "cannot make the queue \"team\": the webhook does not answer",
            ],
        ),
    ];
    for (answers, expected, reasons) in rows {
        let (cluster, asked) = cluster(answers);
        let (_counts, counted) = watch::channel(leading(true));
        let mut told = Vec::new();
        found_queues(cluster, counted, "team".into(), |why| {
            told.push(why.to_owned());
        })
        .await;
        let asked = asked.lock().expect("nobody panicked");
        assert_eq!(asked.join(", "), expected);
        assert_eq!(told, reasons, "{expected}");
    }
}

/// S1.8: nor is a first queue written, or looked for, before leadership.
#[tokio::test]
async fn first_queues_wait_until_this_process_may_write() {
    let (cluster, asked) = cluster(&[(200, ""), (200, "")]);
    let (counts, counted) = watch::channel(leading(false));
    let many = || asked.lock().expect("nobody panicked").len();
    let found = found_queues(cluster, counted, "team".into(), |why| panic!("{why}"));
    tokio::join!(found, async {
        tokio::task::yield_now().await;
        assert_eq!(many(), 0, "another may be at it");
        counts.send_replace(leading(true));
    });
    assert_eq!(many(), 2);
}

fn standing(is_held: bool, holder: &str) -> driver::LeaseStanding {
    driver::LeaseStanding {
        lease: ObjectKey::new(Kind::Lease, "volcano-system", "volcano"),
        is_held,
        holder: holder.into(),
        transitions: 0,
        renewed: None,
        foreign: None,
    }
}

/// The kinds that a process reads which was typed so.
fn read_by(typed: &[&str]) -> Vec<Kind> {
    let typed = typed.iter().map(Into::into).collect();
    let cli::start::Outcome::Start(start) = cli::parse(typed) else {
        panic!("it is none");
    };
    let cli::start::Start::Beside(process) = *start else {
        panic!("it is none beside a cluster");
    };
    let (settings, ..) = settings(&process).expect("it can be set up");
    Driver::new(settings).unread().collect()
}

#[test]
fn roles_are_enough_to_read_what_is_read() {
    let roles = include_str!("../../../../deploy/roles.yaml");
    let may_read = |role: &str, kind: Kind| {
        let of_role = format!("kind: ClusterRole\nmetadata:\n  name: {role}\n");
        let rules = roles.split("---").find(|it| it.contains(&of_role));
        let version = kind.api_version();
        let group = version.rsplit_once('/').map_or("\"\"", |it| it.0);
        let group = format!("apiGroups: [{group}]");
        let mut rules = rules.expect("there is such a role").split("  - ");
        rules.any(|rule| {
            let mut lines = rule.lines();
            let is_of_group = lines.next().is_some_and(|line| line == group);
            let resources = lines.next().unwrap_or_default().trim();
            let resources = resources
                .trim_start_matches("resources: [")
                .trim_end_matches(']');
            let is_named = resources.split(", ").any(|it| it == kind.row().plural);
            is_of_group && is_named && rule.contains("verbs: [get, list, watch]")
        })
    };
    for (role, typed) in [
        ("katmai-scheduler", vec!["katmai", "scheduler"]),
        ("katmai-scheduler", vec!["katmai", "agent-scheduler"]),
        (
            "katmai-controllers",
            vec!["katmai", "controllers", "--controllers=*"],
        ),
        ("katmai-controllers", vec!["katmai", "hypernode-controller"]),
    ] {
        let kinds = read_by(&typed);
        assert!(!kinds.is_empty(), "{typed:?} reads something");
        let missing: Vec<Kind> = kinds
            .into_iter()
            .filter(|kind| !may_read(role, *kind))
            .collect();
        assert_eq!(missing, [], "{typed:?}");
    }
    let asked = crate::webhooks::FOLLOWED.iter();
    let missing: Vec<&Kind> = asked
        .filter(|kind| !may_read("katmai-webhooks", **kind))
        .collect();
    assert_eq!(missing, [] as [&Kind; 0], "webhooks");
}

/// The documents of a file below `deploy/`.
fn documents(text: &str) -> Vec<Value> {
    let read = ::api::yaml::documents(text, ::api::yaml::Limits::MANIFESTS);
    let read = read.expect("it is YAML");
    read.iter()
        .map(|document| document.json().expect("it is plain"))
        .collect()
}

#[test]
fn webhooks_may_write_their_registrations_and_no_others() {
    let roles = documents(include_str!("../../../../deploy/roles.yaml"));
    let role = roles
        .iter()
        .find(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == "katmai-webhooks");
    let rules = role.expect("there is such a role")["rules"].as_array();
    let named = rules.expect("it has rules").iter().find_map(|rule| {
        let names = rule["resourceNames"].as_array()?;
        assert_eq!(
            rule["verbs"],
            serde_json::json!(["get", "update", "delete"])
        );
        Some(names.clone())
    });
    let own = review::WEBHOOKS.iter();
    let own: Vec<Value> = own.map(|it| it.configuration_name().into()).collect();
    assert_eq!(named.expect("some are named"), own);
}

/// What a policy of the network lets in is where the process listens.
#[test]
fn the_network_is_open_where_processes_listen_and_nowhere_else() {
    let policies = documents(include_str!("../../../../deploy/network.yaml"));
    let ports = |name: &str| -> Vec<u64> {
        let policy = policies.iter().find(|it| it["metadata"]["name"] == name);
        let rules = policy.expect("there is one")["spec"]["ingress"].as_array();
        let rules = rules.expect("it lets some in").iter();
        let ports = rules.flat_map(|rule| {
            assert!(rule["from"].is_array(), "it says whom");
            rule["ports"].as_array().expect("it says where")
        });
        let mut ports: Vec<u64> = ports.filter_map(|it| it["port"].as_u64()).collect();
        ports.sort_unstable();
        ports
    };
    let listens = |typed: &[&str]| -> Vec<u64> {
        let typed = typed.iter().map(Into::into).collect();
        let cli::start::Outcome::Start(start) = cli::parse(typed) else {
            panic!("it is none");
        };
        let at: Vec<Option<SocketAddr>> = match *start {
            cli::start::Start::Beside(process) => {
                let asked = match &process.deciding {
                    Deciding::Scheduler { questions, .. } => questions.as_ref(),
                    Deciding::Controllers(_) => None,
                };
                let asked = asked.map(|it| it.address);
                vec![process.doors.metrics, process.doors.health, asked]
            }
            cli::start::Start::Webhooks(request) => vec![Some(request.address), request.health],
            _ => panic!("it is none beside a cluster"),
        };
        let mut ports: Vec<u64> = at
            .into_iter()
            .flatten()
            .map(|it| it.port().into())
            .collect();
        ports.sort_unstable();
        ports
    };
    let both = ["--enable-metrics", "--enable-healthz"];
    let scheduler = ["vc-scheduler", both[0], both[1], "--ask-address=:8444"];
    assert_eq!(ports("katmai-scheduler"), listens(&scheduler));
    let controllers = ["vc-controller-manager", both[0], both[1]];
    assert_eq!(ports("katmai-controllers"), listens(&controllers));
    let webhooks = ["vc-webhook-manager", both[1]];
    assert_eq!(ports("katmai-webhooks"), listens(&webhooks));
}

#[test]
fn who_cannot_do_its_work_yet_says_what_it_lacks() {
    let mut counted = Counted {
        leases: vec![standing(false, "")],
        unread: vec![Kind::Pod, Kind::Queue],
        ..Counted::default()
    };
    // S1.9: who may not read its Lease never hears of a holder.
    let why = unready(&counted).expect("it does not know its Lease");
    assert!(why.contains("volcano-system/volcano"), "{why}");
    counted.leases = vec![standing(false, "other")];
    assert_eq!(unready(&counted), None, "it waits for its turn");
    // Of several Leases those behind the one that it waits for have not been asked for.
    counted.leases.push(standing(false, ""));
    assert_eq!(unready(&counted), None, "it waits for the first");
    counted.leases[0] = standing(true, "");
    assert!(unready(&counted).is_some(), "it does not know the second");
    counted.leases[1] = standing(false, "other");
    assert_eq!(unready(&counted), None, "it waits for the second");
    counted.leases = vec![standing(true, "")];
    counted.metrics.is_leading = true;
    let why = unready(&counted).expect("it has not read all");
    assert_eq!(why, "not read yet: pods, queues");
    counted.unread.clear();
    assert_eq!(unready(&counted), None);
}
