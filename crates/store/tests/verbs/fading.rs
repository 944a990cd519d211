//! Events fade an hour after their last change.

use super::*;

const EVENTS: &str = "/api/v1/namespaces/default/events";
const HOUR_MS: i64 = 3_600_000;

fn event(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "involvedObject": { "namespace": "default" }, "message": "m" })
}

/// Begins a write at that moment.
fn begin(store: &mut Store, method: Method, path: &str, body: &Value, now: Time) -> Begin {
    let request = Request {
        method,
        path: path.to_owned(),
        query: String::new(),
        accept: String::new(),
        user_agent: String::new(),
        content_type: match method {
            Method::Patch => "application/merge-patch+json".to_owned(),
            _ => "application/json".to_owned(),
        },
        body: body.to_string().into_bytes(),
        user: User::admin(),
    };
    store.begin(&request, now, &mut |_, _| Verdict::Allowed {
        object: None,
        warnings: Vec::new(),
    })
}

fn write(store: &mut Store, method: Method, path: &str, body: &Value, now: Time) -> Vec<u8> {
    match begin(store, method, path, body, now) {
        Begin::Commit(commit) => {
            let answer = store.finish(commit.ticket, now);
            assert!(answer.code < 300, "{}", answer.code);
            commit.record
        }
        other => panic!("{other:?}"),
    }
}

fn names(plane: &mut Plane) -> Vec<String> {
    let (_, list) = plane.ask("GET", EVENTS, &Value::Null);
    let items = list["items"].as_array().expect("items");
    let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
    items.iter().filter_map(name).collect()
}

#[test]
fn an_hour_after_its_last_change_an_event_goes_when_another_comes() {
    let mut plane = Plane::new();
    let later = |ms: i64| NOW.plus_ms(ms);
    let post = |plane: &mut Plane, name: &str, ms: i64| {
        write(&mut plane.0, Method::Post, EVENTS, &event(name), later(ms));
    };
    post(&mut plane, "old", 0);
    post(&mut plane, "renewed", 0);
    let renewed = format!("{EVENTS}/renewed");
    let again = json!({ "count": 2 });
    write(
        &mut plane.0,
        Method::Patch,
        &renewed,
        &again,
        later(HOUR_MS / 2),
    );
    post(&mut plane, "young", HOUR_MS - 1);
    assert_eq!(names(&mut plane), ["old", "renewed", "young"]);
    let mut watch = plane.watch(&format!(
        "{EVENTS}?watch=1&resourceVersion={}",
        plane.0.revision()
    ));
    post(&mut plane, "new", HOUR_MS);
    assert_eq!(names(&mut plane), ["new", "renewed", "young"]);
    let (said, _) = plane.said(&mut watch, later(HOUR_MS));
    assert_eq!(said, ["DELETED old", "ADDED new"]);
    post(&mut plane, "newer", HOUR_MS * 3 / 2);
    assert_eq!(names(&mut plane), ["new", "newer", "young"]);
}

#[test]
fn a_sweep_that_was_not_kept_is_made_again() {
    let mut plane = Plane::new();
    write(&mut plane.0, Method::Post, EVENTS, &event("old"), NOW);
    let late = NOW.plus_ms(HOUR_MS);
    let Begin::Commit(_) = begin(&mut plane.0, Method::Post, EVENTS, &event("lost"), late) else {
        panic!("a write");
    };
    plane.0.abandon("the disk is full");
    assert_eq!(names(&mut plane), ["old"]);
    write(&mut plane.0, Method::Post, EVENTS, &event("new"), late);
    assert_eq!(names(&mut plane), ["new"]);
}

#[test]
fn a_sweep_is_in_the_record_of_the_write_that_made_it() {
    let mut store = Store::new(Settings::default(), Box::new(Counting(0)));
    let first = store.start(NOW).expect("objects to make");
    let mut records = vec![first.record];
    store.finish(first.ticket, NOW);
    let late = NOW.plus_ms(HOUR_MS);
    for (name, now) in [("a", NOW), ("b", NOW), ("c", late)] {
        records.push(write(&mut store, Method::Post, EVENTS, &event(name), now));
    }
    let mut again = Store::new(Settings::default(), Box::new(Counting(99)));
    for record in &records {
        again.load(record).expect("a whole record");
    }
    again.start(late);
    let mut again = Plane(again);
    assert_eq!(names(&mut again), ["c"]);
    let later = late.plus_ms(HOUR_MS);
    write(&mut again.0, Method::Post, EVENTS, &event("d"), later);
    assert_eq!(names(&mut again), ["d"]);
}
