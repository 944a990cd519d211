//! States of a queue × what is done to it (`specs/volcano.md` 2.2), under a parent that is open and
//! one that is not, with groups in it and without. What is written passes the webhooks, or it would not be there.

use api::kind::Kind;
use serde_json::json;

use super::world::World;

/// State before, action, then the state that follows: with no group, with one, and both again under
/// a closed parent.
const TABLE: &str = "
    -        OpenQueue   Open     Open     Closed   Closing
    -        CloseQueue  Closed   Closing  Closed   Closing
    -        -           Open     Open     Closed   Closing
    Open     OpenQueue   Open     Open     Closed   Closing
    Open     CloseQueue  Closed   Closing  Closed   Closing
    Open     -           Open     Open     Closed   Closing
    Closing  OpenQueue   Open     Open     Closed   Closing
    Closing  CloseQueue  Closed   Closing  Closed   Closing
    Closing  -           Closed   Closing  Closed   Closing
    Closed   OpenQueue   Open     Open     Closed   Closed
    Closed   CloseQueue  Closed   Closed   Closed   Closed
    Closed   -           Closed   Closed   Closed   Closed
    Unknown  OpenQueue   Open     Open     Closed   Closing
    Unknown  CloseQueue  Closed   Closing  Closed   Closing
    Unknown  -           Open     Open     Closed   Closing
";

/// How a queue of that state ends; where it names no parent, that is the root.
fn ends_as(state: &str, action: &str, column: usize, parent: Option<&str>) -> String {
    let mut world = World::new();
    world.is_quiet = true;
    let is_parent_closed = column >= 2;
    let of_parent = if is_parent_closed { "Closed" } else { "Open" };
    let team = json!({ "spec": { "parent": "root" }, "status": { "state": of_parent } });
    world.appear(
        Kind::Queue,
        "",
        "root",
        json!({ "status": { "state": "Open" } }),
    );
    world.appear(Kind::Queue, "", "team", team);
    if column % 2 == 1 {
        let group = json!({ "spec": { "queue": "q" } });
        world.appear(Kind::PodGroup, "ml", "g", group);
    }
    if action != "-" {
        let command = json!({ "action": action, "target": { "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q", "uid": "q" } });
        world.appear(Kind::Command, "default", "c", command);
    }
    let mut queue = json!({ "metadata": { "uid": "q" }, "spec": {} });
    if let Some(parent) = parent {
        queue["spec"]["parent"] = json!(parent);
    }
    if state != "-" {
        queue["status"] = json!({ "state": state });
    }
    world.appear(Kind::Queue, "", "q", queue);
    world.run(&["queue"]);
    assert_eq!(
        world.count(Kind::Command),
        0,
        "a command is carried out or refused"
    );
    let queue = world.get(Kind::Queue, "", "q").expect("the queue stays");
    let state = queue["status"]["state"].as_str();
    // While it is closing nobody may change it.
    if state != Some("Closing") {
        let wanted = parent.unwrap_or("root");
        assert_eq!(queue["spec"]["parent"], wanted, "{state:?} {action}");
    }
    state.unwrap_or("-").to_owned()
}

#[test]
fn each_state_of_a_queue_answers_to_each_action() {
    for line in TABLE.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (state, action) = (words[0], words[1]);
        let found = [0, 1, 2, 3].map(|column| ends_as(state, action, column, Some("team")));
        assert_eq!(found[..], words[2..], "{line}");
        // The root is open.
        let found = [0, 1].map(|column| ends_as(state, action, column, None));
        assert_eq!(found[..], words[2..4], "{line}");
    }
}
