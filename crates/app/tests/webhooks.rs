//! `katmai webhooks` as a user types it, as far as it needs no cluster, or one that does not answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

fn webhooks(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_katmai"))
        .arg("webhooks")
        .args(arguments)
        .output()
        .expect("it can be started")
}

/// Kind and name of what is printed.
fn printed(output: &Output) -> Vec<(String, String)> {
    assert!(output.status.success(), "{output:?}");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["kind"], "List");
    let items = list["items"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    items
        .map(|item| (text(&item["kind"]), text(&item["metadata"]["name"])))
        .collect()
}

#[test]
fn policies_are_printed_with_their_bindings() {
    let all = printed(&webhooks(&["--print", "policies"]));
    let count = |kind: &str| all.iter().filter(|(it, _)| it == kind).count();
    assert_eq!(count("ValidatingAdmissionPolicy"), 7);
    assert_eq!(count("ValidatingAdmissionPolicyBinding"), 7);
    // Gates are off.
    assert_eq!(count("MutatingAdmissionPolicy"), 3);
    let gates = "--feature-gates=SchedulingGatesQueueAdmission=true";
    let all = printed(&webhooks(&["--print", "policies", gates]));
    assert!(all.contains(&(
        "MutatingAdmissionPolicy".into(),
        "katmai-pods-mutate".into()
    )));
}

#[test]
fn registrations_are_printed_for_what_is_served() {
    let arguments = [
        "--print=registrations",
        "--webhook-url=https://hooks.example.com",
        "--enabled-admission=/jobs/mutate,/pods/mutate,/queues/validate",
    ];
    let of = |name: &str| format!("volcano-admission-service-{name}");
    assert_eq!(
        printed(&webhooks(&arguments)),
        [
            ("MutatingWebhookConfiguration".to_owned(), of("jobs-mutate")),
            // Pods have nothing to be given.
            (
                "ValidatingWebhookConfiguration".to_owned(),
                of("queues-validate")
            ),
        ]
    );
}

#[test]
fn only_pods_of_resource_groups_are_asked_about_unless_they_are_too_many_to_name() {
    let registered = |namespaces: usize| {
        let names: Vec<String> = (0..namespaces).map(|at| format!("team-{at}")).collect();
        let file = serde_json::json!({ "resourceGroups": [
            { "object": { "key": "namespace", "value": names }, "labels": { "pool": "b" } },
        ] });
        let path = std::env::temp_dir().join(format!(
            "katmai-groups-{}-{namespaces}.yaml",
            std::process::id()
        ));
        std::fs::write(&path, file.to_string()).expect("a file");
        let output = webhooks(&[
            "--print=registrations",
            "--webhook-url=https://hooks.example.com",
            "--enabled-admission=/pods/mutate",
            &format!("--admission-conf={}", path.display()),
        ]);
        std::fs::remove_file(&path).expect("cleaned up");
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let conditions = list["items"][0]["webhooks"][0]["matchConditions"].clone();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (conditions[0]["expression"].clone(), told)
    };
    assert_eq!(
        registered(2),
        (
            Value::from("request.namespace in ['team-0', 'team-1']"),
            String::new()
        )
    );
    let (condition, told) = registered(10_000);
    assert_eq!(condition, Value::Null);
    assert!(
        told.contains("/pods/mutate is asked about every pod of the cluster"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    for (arguments, said) in [
        (&["--print=registrations"][..], "--webhook-service-name"),
        (
            &["--enabled-admission=/jobs/guess", "--print=policies"],
            "/jobs/guess",
        ),
        (
            &["--admission-conf=/nowhere", "--print=policies"],
            "/nowhere",
        ),
    ] {
        let output = webhooks(arguments);
        assert!(!output.status.success());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(said), "{told}");
    }
}

/// What an API answers to a method and a path; nothing is silence.
type Answers = fn(&str, &str) -> Option<&'static str>;

/// An API, and a process that was told of it.
struct Beside {
    process: Child,
    /// What the API is asked, as it comes.
    asked: mpsc::Receiver<String>,
    kubeconfig: PathBuf,
}

impl Beside {
    fn start(answers: Answers, arguments: &[&str]) -> Beside {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let kubeconfig = std::env::temp_dir().join(format!(
            "katmai-webhooks-{}-{}",
            std::process::id(),
            address.port()
        ));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).expect("a file");
        let (ask, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, ask) = (socket.expect("a connection"), ask.clone());
                std::thread::spawn(move || answer(socket, answers, &ask));
            }
        });
        let process = Command::new(env!("CARGO_BIN_EXE_katmai"))
            .arg("webhooks")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(arguments)
            .spawn()
            .expect("it can be started");
        Beside {
            process,
            asked,
            kubeconfig,
        }
    }

    /// Waits until the API is asked this.
    fn waits_for(&self, request: &str) {
        let mut asked = self.asked.iter();
        assert!(asked.any(|it| it.starts_with(request)), "{request}");
    }

    /// Its exit code after SIGTERM.
    fn ends(mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.expect("it can be told").success());
        let code = self.process.wait().expect("it ends").code();
        std::fs::remove_file(&self.kubeconfig).expect("cleaned up");
        code
    }
}

/// Answers the requests of one connection until it ends.
fn answer(socket: TcpStream, answers: Answers, ask: &mpsc::Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let mut socket = socket;
    loop {
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        let mut words = head.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        // Whoever listened may have gone.
        let _ = ask.send(format!("{method} {path}"));
        if let Some(answer) = answers(method, path) {
            socket.write_all(answer.as_bytes()).ok()?;
        }
    }
}

/// An address that nobody listens at.
fn free() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a socket");
    free.local_addr().expect("an address")
}

/// The body at a path of a process's health.
fn told(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_process_whose_api_does_not_answer_ends_when_it_is_asked_to() {
    let beside = Beside::start(|_, _| None, &[]);
    beside.waits_for("GET /api/v1/namespaces/volcano-system/secrets/katmai-webhooks");
    assert_eq!(beside.ends(), Some(0));
}

#[test]
fn a_process_that_may_not_list_says_so_and_ends_when_it_is_asked_to() {
    let health = free();
    let answers: Answers = |method, path| {
        Some(match (method, path.contains("/secrets")) {
            ("GET", true) => "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            ("POST", true) => "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}",
            _ => "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}",
        })
    };
    let place = format!("--healthz-address={health}");
    let beside = Beside::start(answers, &["--enable-healthz", &place]);
    beside.waits_for("GET /apis/scheduling.volcano.sh/v1beta1/queues");
    let said = told(health, "/readyz");
    assert!(said.starts_with("HTTP/1.1 503"), "{said}");
    assert!(
        said.contains("namespaces, queues have not been listed yet"),
        "{said}"
    );
    assert_eq!(beside.ends(), Some(0));
}

#[test]
fn a_process_that_may_not_register_is_ready_and_names_each_registration() {
    let [health, door] = [free(), free()];
    let answers: Answers = |method, path| {
        let is_list = path.contains("/namespaces?") || path.contains("/queues?");
        match (method, path.contains("/secrets")) {
            ("GET", true) => Some("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"),
            ("POST", true) => Some("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}"),
            _ if path.contains("watch=") => None,
            _ if is_list => Some(
                "HTTP/1.1 200 OK\r\ncontent-length: 47\r\n\r\n{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
            ),
            _ => Some("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\n{}"),
        }
    };
    let place = format!("--healthz-address={health}");
    let port = format!("--port={}", door.port());
    let here = "--listen-address=127.0.0.1";
    let beside = Beside::start(answers, &["--enable-healthz", &place, here, &port]);
    // The first is refused, and so the last is asked for all the same.
    beside.waits_for("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/volcano-admission-service-cronjobs-validate");
    beside.waits_for("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/volcano-admission-service-queues-validate");
    let late = Instant::now() + Duration::from_secs(20);
    let said = std::iter::repeat_with(|| told(health, "/readyz"))
        .find(|said| said.contains("\r\n\r\nok\n") || Instant::now() > late)
        .expect("it is asked again and again");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    for name in ["cronjobs-validate", "jobs-mutate", "queues-validate"] {
        let fault = format!("cannot see to the registration volcano-admission-service-{name}: ");
        assert!(said.contains(&fault), "{said}");
    }
    assert_eq!(beside.ends(), Some(0));
}
