use super::*;
use crate::duration::Duration;

/// What is read, a line for each thing, and then the remarks.
fn check(text: &str) -> String {
    let mut remarks = Remarks::default();
    let conf = SchedulerConf::read(text.as_bytes(), &mut remarks);
    let mut lines = vec![format!("actions {}", conf.actions.join(" "))];
    for (at, tier) in conf.tiers.iter().enumerate() {
        let plugins = tier.iter().map(|plugin| {
            let keys = plugin.switches.iter().chain(&plugin.arguments);
            let keys: Vec<String> = keys
                .map(|entry| format!("{}@{}", entry.key, entry.place.line))
                .collect();
            format!("{}({})", plugin.name, keys.join(" "))
        });
        let plugins: Vec<String> = plugins.collect();
        lines.push(format!("tier {at}: {}", plugins.join(" ")));
    }
    for action in &conf.configurations {
        lines.push(format!("{} has {}", action.name, action.arguments.len()));
    }
    lines.extend(remarks.list().iter().map(ToString::to_string));
    lines.join("\n")
}

#[test]
fn names_are_trimmed_and_may_come_twice() {
    let text = "actions: \" enqueue,allocate , allocate\"\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: no\n    arguments:\n      a.b: 1\n-\nconfigurations:\n- name: allocate\n  arguments: {predicateErrorCacheEnable: false}\n";
    assert_eq!(
        check(text),
        "actions enqueue allocate allocate\ntier 0: gang(enableJobOrder@5 a.b@7)\ntier 1: \nallocate has 1"
    );
    let json = r#"{"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}"#;
    assert_eq!(check(json), "actions allocate\ntier 0: gang()");
}

#[test]
fn a_wrong_shape_refuses_with_its_place() {
    for (text, said) in [
        (
            "",
            "error: actions: no action is named; write actions: \"enqueue, allocate, backfill\"",
        ),
        ("- a\n", "1:1: error: a map is wanted, a list is there"),
        (
            "actions: [allocate]\n",
            "1:10: error: actions: a text is wanted, a list is there; write actions: \"enqueue, allocate, backfill\"",
        ),
        (
            "actions: allocate\ntiers:\n  plugins: []\n",
            "3:3: error: tiers: a list is wanted, a map is there; begin each item with a dash",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - gang\n",
            "4:5: error: tiers[0].plugins[0]: a map is wanted, a text is there",
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: 5\n",
            "5:16: error: tiers[0].plugins[0].arguments: a map is wanted, a whole number is there",
        ),
        (
            "actions: allocate\nmetrics:\n  tls: {insecureSkipVerify: true}\n",
            "3:8: error: metrics.tls: a text is wanted, a map is there; write it as one key with dots, such as tls.insecureSkipVerify: \"true\"",
        ),
    ] {
        let told = check(text);
        assert!(told.contains(said), "{text}\nsaid: {told}");
    }
    let broken = check("actions: allocate\ntiers:\n- plugins: [\n");
    assert!(broken.contains(": error: "), "{broken}");
}

#[test]
fn what_nobody_knows_is_left_out_and_told_with_what_was_meant() {
    let text =
        "Actions: x\nactions: allocate,\nactions: allocate,,\ntiers:\n- plugin: []\n---\nmore: 1\n";
    assert_eq!(
        check(text),
        "actions allocate\n\
         tier 0: \n\
         1:1: warning: Actions: there is no such key: it is left out; did you mean actions?\n\
         3:1: warning: actions: this key is given twice: the last one counts; remove the other one\n\
         3:1: warning: actions: a comma has no action beside it; remove the comma: Volcano refuses the file because of it\n\
         5:3: warning: tiers[0].plugin: there is no such key: it is left out; did you mean plugins?\n\
         7:1: warning: another document begins here: nobody reads it; remove it"
    );
}

#[test]
fn metrics_have_their_types() {
    let read = |text: &str| {
        let mut remarks = Remarks::default();
        let text = format!("actions: allocate\nmetrics: {{{text}}}\n");
        let conf = SchedulerConf::read(text.as_bytes(), &mut remarks);
        let told: Vec<String> = remarks.list().iter().map(ToString::to_string).collect();
        (conf.metrics, told.join("\n"))
    };
    let (metrics, told) = read(
        "type: elasticsearch, address: 'https://es', interval: 1m, tls.insecureSkipVerify: true, elasticsearch.index: i, elasticsearch.username: u, elasticsearch.password: hidden",
    );
    assert_eq!(told, "");
    assert_eq!(metrics.source, Some(MetricsSource::Elasticsearch));
    assert_eq!(metrics.interval, Duration::from_seconds(60));
    assert!(metrics.insecure_skip_verify);
    assert_eq!(metrics.elasticsearch.index, "i");
    assert_eq!(metrics.elasticsearch.hostname_field_name, "host.hostname");
    assert!(!format!("{metrics:?}").contains("hidden"));

    let (metrics, told) =
        read("type: promtheus, interval: -3s, tls.insecureSkipVerify: maybe, adress: x");
    assert_eq!(metrics, MetricsConf::default());
    assert_eq!(told.lines().count(), 4, "{told}");
    let (_, told) = read("type: prometheus");
    assert!(told.contains("a type without an address"), "{told}");
    let (_, told) = read("type: prometheus_adaptor");
    assert_eq!(told, "");
    for (address, is_one) in [
        ("http://prometheus.monitoring:9090", true),
        ("https://user:word@[2001:db8::1]:9090/below", true),
        ("https://host/", true),
        ("::::", false),
        ("prometheus:9090", false),
        ("http://", false),
        ("http://:9090", false),
        ("http://host:many", false),
        ("http://two words", false),
        ("http://host/?query", false),
    ] {
        let (metrics, told) = read(&format!("type: prometheus, address: '{address}'"));
        assert_eq!(metrics.address, address);
        assert_eq!(!told.contains("this is no address"), is_one, "{told}");
    }
}

#[test]
fn what_is_too_large_is_refused_unread() {
    let large = check(&"#".repeat(BYTES_MAX + 1));
    assert!(large.contains("bytes are too many"), "{large}");
    let mut remarks = Remarks::default();
    SchedulerConf::read(b"actions: \xff", &mut remarks);
    assert!(remarks.is_refused());
}

#[test]
fn actions_and_plugins_are_so_many_at_most() {
    let many = check(&format!("actions: {}\n", "allocate,".repeat(65)));
    assert!(many.contains("65 actions are too many"), "{many}");
    let plugins = "  - name: gang\n".repeat(257);
    let many = check(&format!("actions: allocate\ntiers:\n- plugins:\n{plugins}"));
    assert!(
        many.contains("2:1: error: tiers: so many plugins"),
        "{many}"
    );
}

#[test]
fn a_file_that_is_wrong_throughout_has_a_list_that_ends() {
    let mut text = "actions: allocate\n".to_owned();
    for at in 0..10_000 {
        text.push_str(&format!("key{at}: 1\n"));
    }
    let mut remarks = Remarks::default();
    SchedulerConf::read(text.as_bytes(), &mut remarks);
    assert_eq!((remarks.list().len(), remarks.more()), (100, 9_900));
}
