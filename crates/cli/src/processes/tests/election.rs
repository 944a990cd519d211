//! Which Leases are held for what is typed.

use super::*;

/// A scheduler's configuration that speaks of schedulers, wherever somebody might look for their names.
const OF_OTHERS: &str = "\
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
    arguments:
      scheduler-name: third
configurations:
- name: allocate
  arguments:
    scheduler-name: third
    schedulerNames: third,fourth
";

/// A file that lies there for as long as this is held.
pub(super) struct Written(pub(super) PathBuf);

impl Written {
    pub(super) fn new(name: &str, text: &str) -> Written {
        let name = format!("katmai-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("it can be written");
        Written(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // Where it cannot be removed nobody is in its way.
        drop(std::fs::remove_file(&self.0));
    }
}

/// Namespace and names of the Leases.
fn leases(typed: &[&str]) -> (String, Vec<String>) {
    let election = process(typed).election.expect("somebody else may decide");
    let names = election.names.iter().map(|name| name.to_string());
    (election.namespace.to_string(), names.collect())
}

/// S1.1: the default lease name is a pure function of the parsed scheduler names.
#[test]
fn leases_are_named_by_whom_they_are_for_and_by_nothing_else() {
    let file = Written::new("volcano-scheduler.conf", OF_OTHERS);
    crate::scheduler_conf::load(&file.0).expect("a scheduler can decide by it");
    let conf = format!("--scheduler-conf={}", file.0.display());
    let a_and_b = leases(&[
        "katmai",
        "scheduler",
        "--scheduler-name=b",
        "--scheduler-name=a",
    ])
    .1;
    assert_eq!(a_and_b, ["a", "b"]);
    for same in [
        ["--scheduler-name=a", "--scheduler-name=b", "--v=1"],
        ["--scheduler-name=a,b", "--scheduler-name=b", "--v=1"],
        [&conf, "--scheduler-name=a", "--scheduler-name=b"],
        [
            "--scheduler-name=a",
            "--scheduler-name=b",
            "--default-queue=q",
        ],
        [
            "--scheduler-name=a",
            "--agent-scheduler-name=b",
            "--lock-object-namespace=ns",
        ],
    ] {
        let typed = ["katmai", "scheduler"].into_iter().chain(same);
        assert_eq!(leases(&typed.collect::<Vec<_>>()).1, a_and_b, "{same:?}");
    }
    let sets = [
        leases(&["katmai", "scheduler"]).1,
        leases(&["katmai", "scheduler", "--scheduler-name=a"]).1,
        leases(&["katmai", "scheduler", "--scheduler-name=b"]).1,
        leases(&["katmai", "agent-scheduler"]).1,
        leases(&["katmai", "controllers"]).1,
        a_and_b,
    ];
    let distinct: BTreeSet<&Vec<String>> = sets.iter().collect();
    assert_eq!(distinct.len(), sets.len(), "{sets:?}");
    assert_eq!(sets[0], ["volcano"]);
    assert_eq!(sets[3], ["agent-scheduler"]);
    assert_eq!(sets[4], ["vc-controller-manager"]);
    // Nor where no flag names anybody.
    for (verb, lease) in [("scheduler", &sets[0]), ("agent-scheduler", &sets[3])] {
        assert_eq!(leases(&["katmai", verb, &conf]).1, *lease, "{verb}");
    }
}

/// S1.1: nothing of the environment has a say; the test above holds in one that speaks of schedulers.
#[test]
fn leases_are_named_alike_in_every_environment() {
    let tests = std::env::current_exe().expect("this is a program");
    let named =
        "processes::tests::election::leases_are_named_by_whom_they_are_for_and_by_nothing_else";
    let outcome = std::process::Command::new(tests)
        .args(["--exact", named])
        .envs([
            ("HELM_RELEASE_NAME", "other"),
            ("HOSTNAME", "volcano-scheduler-0"),
            ("KUBE_POD_NAMESPACE", "elsewhere"),
            ("LEADER_ELECT_RESOURCE_NAME", "mine"),
            ("POD_NAME", "volcano-scheduler-0"),
            ("SCHEDULER_NAME", "third"),
        ])
        .output()
        .expect("a test can run itself");
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        outcome.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// S1.4: explicit new before explicit old before default; the old one is warned of once.
#[test]
fn the_newer_flag_holds_before_the_older_one() {
    const NEW: &str = "--leader-elect-resource-namespace=new";
    const OLD: &str = "--lock-object-namespace=old";
    let rows: &[(&[&str], &str, usize)] = &[
        (&[], "volcano-system", 0),
        (&[NEW], "new", 0),
        (&[OLD], "old", 1),
        (&[OLD, NEW], "new", 1),
        (&[NEW, OLD], "new", 1),
        (
            &["--leader-elect-resource-namespace=volcano-system", OLD],
            "volcano-system",
            1,
        ),
        (&["--lock-object-namespace="], "volcano-system", 1),
    ];
    let has_both = |row: &&Row| {
        let names: Vec<&str> = row.flags().map(|flag| flag.name).collect();
        names.contains(&"lock-object-namespace")
            && names.contains(&"leader-elect-resource-namespace")
    };
    let verbs: Vec<&str> = PROCESSES
        .iter()
        .filter(has_both)
        .map(|it| it.verb)
        .collect();
    let elected = [
        "controllers",
        "hypernode-controller",
        "agent-scheduler",
        "scheduler",
    ];
    assert_eq!(verbs, elected);
    for verb in verbs {
        for (typed, namespace, deprecations) in rows {
            let whole: Vec<&str> = ["katmai", verb].iter().chain(*typed).copied().collect();
            assert_eq!(leases(&whole).0, *namespace, "{whole:?}");
            let told = warnings(verb, typed);
            assert_eq!(told.len(), *deprecations, "{whole:?}: {told:?}");
            assert!(
                told.iter()
                    .all(|it| it.contains("lock-object-namespace: deprecated"))
            );
        }
    }
    let named = [
        "katmai",
        "scheduler",
        "--leader-elect-resource-name=mine",
        "--scheduler-name=a",
    ];
    assert_eq!(leases(&named).1, ["mine"]);
    let alone = process(&["katmai", "scheduler", "--leader-elect=false"]);
    assert!(alone.election.is_none());
}

/// Manifests of old name other locks, which Volcano's schedulers do not look at.
#[test]
fn a_lease_is_held_whatever_lock_is_named() {
    let leases = |typed: &[&str]| {
        let process = process(typed);
        process.election.map(|election| election.names)
    };
    let said = leases(&[
        "katmai",
        "scheduler",
        "--leader-elect-resource-lock=endpoints",
    ]);
    assert!(said.is_some());
    assert_eq!(said, leases(&["katmai", "scheduler"]));
}

/// A name that no object can have makes a Lease of its own all the same; a Lease that is named has to be one.
#[test]
fn a_scheduler_of_any_name_has_a_lease() {
    let of = |name: &str| {
        let leases = leases(&["vc-scheduler", &format!("--scheduler-name={name}")]).1;
        assert_eq!(leases.len(), 1, "{leases:?}");
        assert!(
            api::names::check_subdomain(&leases[0]).is_empty(),
            "{leases:?}"
        );
        leases[0].clone()
    };
    assert_eq!(of("my.scheduler-1"), "my.scheduler-1");
    assert_eq!(of("UPPER"), "upper-51d156b2727ae687");
    let long = "x".repeat(300);
    let odd = [
        "UPPER", "Upper", "upper", "a_b", "a-b", "a b", "-", "_", "ä", &long,
    ];
    let different: BTreeSet<String> = odd.iter().map(|name| of(name)).collect();
    assert_eq!(different.len(), odd.len(), "{different:?}");
}

/// S1.6: one Lease is held by whoever does the same work, which takes more words than the names that are served,
/// and the same ones whatever the Lease is called.
#[test]
fn schedulers_say_what_they_hold_their_leases_for() {
    let serves = |typed: &[&str]| {
        let whole: Vec<&str> = ["katmai"].iter().chain(typed).copied().collect();
        let election = process(&whole).election.expect("somebody else may decide");
        election.serves.to_string()
    };
    assert_eq!(serves(&["scheduler"]), "pods of volcano");
    assert_eq!(
        serves(&["agent-scheduler"]),
        "pods of agent-scheduler one by one"
    );
    let whole = [
        "scheduler",
        "--scheduler-name=b,a",
        "--agent-scheduler-name=c",
        "--node-selector=pool:x",
        "--scheduler-sharding-mode=hard",
        "--leader-elect-resource-name=ours",
    ];
    assert_eq!(
        serves(&whole),
        "pods of a, b; pods of c one by one; on nodes of pool:x; hard shard volcano"
    );
}

/// S1.6: one Lease is held by whoever runs the same controllers; whoever waits for it and runs others is told.
#[test]
fn controllers_say_what_they_hold_their_lease_for() {
    let serves = |typed: &[&str]| {
        let whole: Vec<&str> = ["katmai", "controllers"]
            .iter()
            .chain(typed)
            .copied()
            .collect();
        let election = process(&whole).election.expect("somebody else may decide");
        assert_eq!(*election.names, ["vc-controller-manager".into()]);
        election.serves.to_string()
    };
    assert_eq!(serves(&[]), "controllers of volcano");
    assert_eq!(
        serves(&[
            "--scheduler-name=b,a",
            "--controllers=-sharding-controller,*"
        ]),
        "controllers of a, b"
    );
    assert_eq!(
        serves(&["--controllers=gc-controller,+job-controller"]),
        "job-controller, gc-controller of volcano"
    );
    let shards = "--controllers=sharding-controller";
    assert_eq!(serves(&[shards]), "sharding-controller of volcano");
    assert_eq!(
        serves(&[shards, "--enable-node-event-trigger=false"]),
        "sharding-controller of volcano"
    );
    assert!(serves(&["--controllers=*"]).contains("sharding-controller"));
    assert_ne!(
        serves(&["--feature-gates=CronVolcanoJobSupport=false"]),
        serves(&[])
    );
}
