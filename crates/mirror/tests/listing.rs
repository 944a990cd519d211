//! The mirror's laws on events: idempotence, stale events, recreation, lists by set difference.

use api::core::{ConfigMap, Pod};
use api::kind::Kind;
use mirror::{Index, Mirror};
use serde_json::json;

fn pod(name: &str, uid: &str, revision: u64, node: &str) -> String {
    json!({
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid,
            "resourceVersion": revision.to_string(),
            "annotations": { "scheduling.k8s.io/group-name": "train" },
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Thing", "name": "owner", "uid": "owner-uid" }
            ],
        },
        "spec": { "nodeName": node },
    })
    .to_string()
}

fn on_node(mirror: &Mirror, node: &str) -> Vec<String> {
    mirror
        .pods_on(node)
        .map(|pod| pod.metadata.name.to_string())
        .collect()
}

#[test]
fn an_object_is_found_by_name_owner_node_and_group_until_it_has_gone() {
    let mut mirror = Mirror::new();
    let change = mirror
        .apply(Kind::Pod, &pod("a", "u1", 5, ""))
        .unwrap()
        .unwrap();
    assert!(change.before.is_none() && change.after.is_some());
    assert!(on_node(&mirror, "node-1").is_empty());
    mirror
        .apply(Kind::Pod, &pod("a", "u1", 6, "node-1"))
        .unwrap();
    assert_eq!(on_node(&mirror, "node-1"), ["a"]);
    assert_eq!(mirror.owned_by::<Pod>("owner-uid").count(), 1);
    assert_eq!(mirror.owned_by::<ConfigMap>("owner-uid").count(), 0);
    assert_eq!(mirror.pods_of_group("ml", "train").count(), 1);
    assert_eq!(mirror.by_uid("u1").unwrap().name(), "a");
    mirror
        .delete(Kind::Pod, &pod("a", "u1", 7, "node-1"))
        .unwrap();
    assert!(mirror.get::<Pod>("ml", "a").is_none());
    assert!(on_node(&mirror, "node-1").is_empty());
    assert!(mirror.by_uid("u1").is_none());
    assert_eq!(mirror.keys(Index::PodGroup, "ml", "train").count(), 0);
}

#[test]
fn a_stale_event_changes_nothing_even_after_a_deletion() {
    let mut mirror = Mirror::new();
    mirror
        .apply(Kind::Pod, &pod("a", "u1", 6, "node-1"))
        .unwrap();
    let stale = mirror.apply(Kind::Pod, &pod("a", "u1", 5, "")).unwrap();
    assert!(stale.is_none());
    mirror
        .delete(Kind::Pod, &pod("a", "u1", 7, "node-1"))
        .unwrap();
    let risen = mirror
        .apply(Kind::Pod, &pod("a", "u1", 6, "node-1"))
        .unwrap();
    assert!(risen.is_none(), "a deleted pod must not rise again");
    assert_eq!(mirror.count(Kind::Pod), 0);
}

#[test]
fn a_recreation_is_one_change_with_two_uids_and_its_predecessors_deletion_is_ignored() {
    let mut mirror = Mirror::new();
    mirror
        .apply(Kind::Pod, &pod("a", "u1", 5, "node-1"))
        .unwrap();
    let change = mirror
        .apply(Kind::Pod, &pod("a", "u2", 9, ""))
        .unwrap()
        .unwrap();
    assert!(change.is_recreation());
    assert!(on_node(&mirror, "node-1").is_empty());
    assert!(mirror.by_uid("u1").is_none());
    let late = mirror
        .delete(Kind::Pod, &pod("a", "u1", 10, "node-1"))
        .unwrap();
    assert!(late.is_none());
    let pod = mirror.get::<Pod>("ml", "a").expect("it is held");
    assert_eq!(pod.metadata.uid.to_string(), "u2");
}

#[test]
fn a_list_replaces_by_set_difference_and_keeps_what_it_cannot_read() {
    let mut mirror = Mirror::new();
    for (name, revision) in [("a", 1), ("b", 2), ("c", 3)] {
        mirror
            .apply(Kind::Pod, &pod(name, name, revision, ""))
            .unwrap();
    }
    let listing = mirror.begin_list(Kind::Pod);
    assert!(
        mirror
            .list_item(&listing, &pod("a", "a", 1, ""))
            .unwrap()
            .is_none()
    );
    assert!(
        mirror
            .list_item(&listing, &pod("d", "d", 7, ""))
            .unwrap()
            .is_some()
    );
    let broken = r#"{"metadata":{"name":"c","namespace":"ml"},"spec":{"nodeName":5}}"#;
    let problem = mirror.list_item(&listing, broken).unwrap_err();
    assert!(problem.to_string().starts_with("cannot read Pod ml/c: "));
    let gone = mirror.end_list(listing, 8);
    assert_eq!(gone.len(), 1);
    assert_eq!(&*gone[0].key.name, "b");
    assert_eq!(mirror.count(Kind::Pod), 3);
    assert_eq!(mirror.seen(Kind::Pod), 8);
    assert!(mirror.is_listed(Kind::Pod));
}

#[test]
fn bad_json_is_a_problem_with_the_name_that_could_be_read() {
    let mut mirror = Mirror::new();
    let problem = mirror.apply(Kind::Pod, "{").unwrap_err();
    assert!(problem.message.contains("EOF"), "{problem}");
    let nameless = mirror.apply(Kind::Pod, "{}").unwrap_err();
    assert_eq!(&*nameless.message, "metadata.name is empty");
}
