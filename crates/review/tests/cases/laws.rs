//! What holds of every object: a change made twice is made once, a patch makes of one object the
//! other, and odd values are judged as others are.

use api::admission::{Operation, Review};
use review::{ResourceGroup, Settings, WEBHOOKS, Webhook, patch};
use serde_json::{Value, json};

use super::file::{File, yaml};
use super::odd;
use super::{files, world};

/// Objects of many lines are tried elsewhere.
const BYTES_MAX: usize = 20_000;

fn all() -> Vec<File> {
    let read = |path| File::read(&std::fs::read_to_string(path).unwrap());
    files().into_iter().map(read).collect()
}

#[test]
fn a_change_made_twice_is_made_once_and_its_patch_makes_it() {
    let mut changes = 0;
    for file in all() {
        for case in &file.cases {
            let settings = world::settings(case);
            let (old, new) = case.objects(&file.base);
            let facts = world::World(&file.there);
            for webhook in WEBHOOKS.iter().filter(|it| it.mutates()) {
                let review = world::review(&file, case, (&old, &new));
                let passed = webhook.judge(&settings, &review, &facts).unwrap();
                let Some(changed) = passed.object else {
                    continue;
                };
                changes += 1;
                let mut patched = new.clone();
                apply(&mut patched, &patch(&new, &changed));
                assert_eq!(patched, changed);
                let again = world::review(&file, case, (&old, &changed));
                let again = webhook.judge(&settings, &again, &facts).unwrap();
                assert!(again.object.is_none(), "{changed}: {again:?}");
            }
        }
    }
    assert!(changes > 30, "{changes}");
}

#[test]
fn a_patch_makes_of_one_object_the_other_whatever_they_hold() {
    for file in all().iter().filter(|it| it.base.is_object()) {
        let base = &file.base;
        for path in odd::paths(base) {
            for value in odd::values() {
                let odd = odd::with(base, &path, value);
                for (old, new) in [(base, &odd), (&odd, base)] {
                    let mut patched = old.clone();
                    apply(&mut patched, &patch(old, new));
                    assert_eq!(patched, *new);
                }
            }
        }
    }
}

#[test]
fn whatever_a_field_holds_is_judged_without_a_panic() {
    let group = yaml(
        "{resourceGroups: [{object: {key: namespace, value: [ml]}, labels: {a: b}, schedulerName: s, tolerations: [{}]}]}",
    );
    let settings = Settings {
        queue_gates: true,
        resource_groups: ResourceGroup::read(group).unwrap(),
        ..Settings::default()
    };
    for file in all()
        .iter()
        .filter(|it| it.base.to_string().len() < BYTES_MAX)
    {
        let facts = world::World(&file.there);
        for webhook in WEBHOOKS.iter().filter(|it| it.kind.row().name == file.kind) {
            for path in odd::paths(&file.base) {
                for value in odd::values() {
                    let odd = odd::with(&file.base, &path, value);
                    judge(webhook, &settings, &facts, (&odd, &odd));
                    judge(webhook, &settings, &facts, (&file.base, &odd));
                }
            }
        }
    }
}

fn judge(
    webhook: &Webhook,
    settings: &Settings,
    facts: &world::World<'_>,
    (old, new): (&Value, &Value),
) {
    for operation in [Operation::Create, Operation::Update, Operation::Delete] {
        let review = Review {
            operation,
            kind: webhook.kind,
            subresource: "",
            namespace: "ml",
            name: "odd",
            object: Some(new).filter(|_| operation != Operation::Delete),
            old: Some(old).filter(|_| operation != Operation::Create),
            user: "ann",
            dry_run: false,
        };
        // Either answer is right.
        drop(webhook.judge(settings, &review, facts));
    }
}

/// Performs a JSON patch (RFC 6902), as far as ours go.
fn apply(object: &mut Value, patch: &[Value]) {
    for operation in patch {
        let path = operation["path"].as_str().unwrap();
        let value = operation["value"].clone();
        let Some((above, last)) = path.rsplit_once('/') else {
            *object = value;
            continue;
        };
        let last = last.replace("~1", "/").replace("~0", "~");
        let place = object.pointer_mut(above).unwrap();
        match (operation["op"].as_str().unwrap(), place) {
            ("remove", Value::Object(fields)) => assert!(fields.remove(&last).is_some()),
            ("add", Value::Object(fields)) => assert!(fields.insert(last, value).is_none()),
            ("replace", Value::Object(fields)) => assert!(fields.insert(last, value).is_some()),
            ("replace", Value::Array(items)) => items[last.parse::<usize>().unwrap()] = value,
            (other, place) => panic!("{other} at {path} of {}", json!(place)),
        }
    }
}
