//! What an extender is told, from objects.

use api::kind::Kind;
use mirror::{Mirror, Rows, extender_body};
use model::{Key, Question, Tables};
use serde_json::{Value, json};

#[test]
fn minima_of_tasks_are_added_up_however_large_they_are() {
    let most = i32::MAX;
    let group = json!({
        "metadata": { "name": "g", "namespace": "a", "uid": "g", "resourceVersion": "1" },
        "spec": { "minMember": 1, "minTaskMember": { "x": most, "y": most, "z": most } },
    });
    let mut rows = Rows::new(vec!["volcano".into()]);
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    let change = mirror.apply(Kind::PodGroup, &group.to_string());
    let change = change.expect("it is read").expect("it is news");
    rows.feed(&mirror, &change, &mut tables);
    let gang = tables.gang_keyed(&Key::new("a", "g"));
    let question = Question::Enters(gang.expect("the group has a row"));
    let body = extender_body(&mirror, &tables, &question);
    let body: Value = serde_json::from_slice(&body).expect("it is JSON");
    let total = &body["job"]["TaskMinAvailableTotal"];
    assert_eq!(total, &json!(3 * i64::from(most)));
}
