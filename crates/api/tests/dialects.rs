//! Whatever version a server speaks, our rooms read the same, and what they say is said in its words.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its golden has failed"
)]

use api::call;
use api::dialect::{self, Dialect, Spoken};
use api::intent::{Action, Intent, ObjectKey, Part};
use api::kind::Kind;
use api::native::PodGroup;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn golden(version: &str) -> Value {
    let text = match version {
        "v1beta1" => include_str!("wire/native/v1beta1.yaml"),
        "v1alpha3" => include_str!("wire/native/v1alpha3.yaml"),
        _ => include_str!("wire/native/v1alpha2.yaml"),
    };
    serde_saphyr::from_str(text).unwrap()
}

fn read(text: &RawValue) -> PodGroup {
    serde_json::from_str(text.get()).unwrap()
}

fn patch() -> Intent {
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "reason": "r", "message": "m" });
    let conditions = [
        condition("PodGroupInitiallyScheduled"),
        condition("DisruptionTarget"),
    ];
    Intent {
        target: ObjectKey::new(Kind::NativeGroup, "ml", "trainer"),
        action: Action::Patch {
            uid: "u1".into(),
            resource_version: "77".into(),
            part: Part::Status,
            patch: json!({ "status": { "conditions": conditions } }),
        },
    }
}

#[test]
fn a_group_reads_the_same_in_each_version() {
    let ours = read(&to_raw_value(&golden("v1beta1")).unwrap());
    assert!(ours.is_disrupted_whole() && ours.is_disrupted() && !ours.is_scheduled());
    let versions: Vec<&str> = dialect::versions(Kind::NativeGroup).collect();
    assert_eq!(versions, ["v1beta1", "v1alpha3", "v1alpha2"]);
    for version in &versions[1..] {
        let dialect = Dialect::find(Kind::NativeGroup, version).unwrap();
        let heard = dialect.heard(to_raw_value(&golden(version)).unwrap());
        assert_eq!(read(&heard), ours, "{version}");
        let mut whole = golden(version);
        dialect::hear(&mut whole);
        assert_eq!(whole, golden("v1beta1"), "{version}");
    }
    assert!(Dialect::find(Kind::NativeGroup, "v1beta1").is_none());
    let mut own = golden("v1beta1");
    dialect::hear(&mut own);
    assert_eq!(own, golden("v1beta1"));
}

#[test]
fn a_status_is_written_in_the_words_of_the_version() {
    let said = |version: &str| {
        let call = call::write(&patch());
        let call = match Dialect::find(Kind::NativeGroup, version) {
            Some(dialect) => dialect.said(call),
            None => call,
        };
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        let conditions = body["status"]["conditions"].as_array().unwrap().clone();
        let kinds = conditions.iter().map(|it| it["type"].as_str().unwrap());
        let kinds: Vec<String> = kinds.map(str::to_owned).collect();
        assert_eq!(body["metadata"]["resourceVersion"], "77");
        (call.target, kinds.join(" "))
    };
    let target = |version: &str| {
        let at = "namespaces/ml/podgroups/trainer/status?fieldManager=katmai";
        format!("/apis/scheduling.k8s.io/{version}/{at}")
    };
    let now = "PodGroupInitiallyScheduled DisruptionTarget";
    let then = "PodGroupScheduled DisruptionTarget";
    assert_eq!(said("v1beta1"), (target("v1beta1"), now.to_owned()));
    assert_eq!(said("v1alpha3"), (target("v1alpha3"), now.to_owned()));
    assert_eq!(said("v1alpha2"), (target("v1alpha2"), then.to_owned()));
}

#[test]
fn a_group_of_an_older_version_that_is_odd_is_left_to_whoever_reads_it() {
    let dialect = Dialect::find(Kind::NativeGroup, "v1alpha2").unwrap();
    for text in [
        r#"7"#,
        r#"{"spec":7,"status":[]}"#,
        r#"{"spec":{"disruptionMode":{"all":{}},"podGroupTemplateRef":7},"status":{"conditions":[7]}}"#,
    ] {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let _read_or_refused: Result<PodGroup, _> = serde_json::from_str(dialect.heard(raw).get());
    }
    let single = r#"{"spec":{"disruptionMode":"Pod"}}"#;
    let single = dialect.heard(RawValue::from_string(single.to_owned()).unwrap());
    assert!(!read(&single).is_disrupted_whole());
}

#[test]
fn a_server_is_asked_for_the_kind_and_not_only_for_its_group() {
    let asked = dialect::asked(Kind::NativeGroup, "v1alpha3");
    assert_eq!(asked.target, "/apis/scheduling.k8s.io/v1alpha3");
    let list = |names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        json!({ "resources": names }).to_string()
    };
    let serves = |code: u16, body: &str| {
        let answer = dialect::serves(Kind::NativeGroup, code, body.as_bytes());
        answer.map_err(|refusal| refusal.code)
    };
    assert_eq!(serves(200, &list(&["workloads", "podgroups"])), Ok(true));
    assert_eq!(
        serves(200, &list(&["workloads", "podgroups/status"])),
        Ok(false)
    );
    assert_eq!(serves(404, "404 page not found\n"), Ok(false));
    assert_eq!(serves(503, "{}"), Err(503));
    assert_eq!(
        dialect::versions_text(Kind::NativeGroup),
        "v1beta1, v1alpha3 or v1alpha2"
    );
    assert!(dialect::has_several(Kind::NativeGroup) && !dialect::has_several(Kind::Pod));
}

#[test]
fn whoever_belongs_to_a_group_names_it_as_the_server_knows_it() {
    let claim = |version: &str| Intent {
        target: ObjectKey::new(Kind::ResourceClaim, "ml", "c"),
        action: Action::Create {
            body: json!({ "metadata": { "name": "c", "ownerReferences": [
                { "apiVersion": version, "kind": "PodGroup", "name": "trainer", "uid": "u1" },
                { "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u2" },
            ] } }),
        },
    };
    let ours = claim("scheduling.k8s.io/v1beta1");
    let mut spoken = Spoken::default();
    assert_eq!(*spoken.named(&ours), ours, "nothing is known yet");
    spoken.note(Kind::NativeGroup, None);
    assert_eq!(*spoken.named(&ours), ours);
    spoken.note(
        Kind::NativeGroup,
        Dialect::find(Kind::NativeGroup, "v1alpha2"),
    );
    assert_eq!(*spoken.named(&ours), claim("scheduling.k8s.io/v1alpha2"));
    let volcanos = claim("scheduling.volcano.sh/v1beta1");
    assert_eq!(*spoken.named(&volcanos), volcanos);
    spoken.forget(Kind::NativeGroup);
    assert_eq!(*spoken.named(&ours), ours);
}
