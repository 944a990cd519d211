//! What selectors say of one device: a card with a model, a version and memory.

use super::{Device, Lens, Selector, Trait};

fn card() -> Device {
    let attributes = [
        ("model", Trait::Text("h100".into())),
        ("index", Trait::Number(3)),
        ("healthy", Trait::Truth(true)),
        ("driverVersion", Trait::Version("1.30.2".into())),
        ("ext.example.com/family", Trait::Text("hopper".into())),
    ];
    Device {
        driver: "gpu.example.com".into(),
        attributes: attributes.map(|(name, value)| (name.into(), value)).into(),
        capacity: [("memory".into(), "80Gi".into())].into(),
        is_parted: true,
    }
}

fn says(text: &str) -> String {
    let selector = match Selector::compile(text) {
        Ok(selector) => selector,
        Err(why) => return format!("no selector: {}", why.lines().next().unwrap_or("")),
    };
    let lens = Lens::new();
    let seen = lens.see(&card()).expect("the card can be read");
    match lens.selects(&selector, &seen) {
        Ok(truth) => truth.to_string(),
        Err(why) => format!("error: {why}"),
    }
}

#[test]
fn a_selector_asks_about_driver_attributes_and_capacity() {
    let rows = [
        ("true", "true"),
        ("device.allowMultipleAllocations", "true"),
        (r#"device.driver == "gpu.example.com""#, "true"),
        (
            r#"device.attributes["gpu.example.com"].model == "h100""#,
            "true",
        ),
        (r#"device.attributes["gpu.example.com"].index > 3"#, "false"),
        (r#"device.attributes["gpu.example.com"].healthy"#, "true"),
        (
            r#"device.attributes["ext.example.com"].family.startsWith("hop")"#,
            "true",
        ),
        (
            r#"device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))"#,
            "true",
        ),
        (
            r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0"#,
            "true",
        ),
        (
            r#"device.capacity["gpu.example.com"].memory.isLessThan(quantity("40Gi"))"#,
            "false",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(says(text), expected, "{text}");
    }
}

#[test]
fn a_domain_of_which_nothing_is_said_is_empty_and_a_name_in_it_is_missing() {
    let rows = [
        (
            r#"has(device.attributes["other.example.com"].model)"#,
            "false",
        ),
        (
            r#"device.attributes["other.example.com"].model == "h100""#,
            "error: no such key: model",
        ),
        (r#""other.example.com" in device.attributes"#, "false"),
        (
            r#"device.attributes["gpu.example.com"].size == 1"#,
            "error: no such key: size",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(says(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_question_about_a_device_is_no_selector() {
    for text in [
        "device.",
        "device.drivers == ''",
        "node.name == ''",
        "device.driver",
        "1",
        &format!("{}true", "true && ".repeat(2_000)),
    ] {
        let said = says(text);
        assert!(said.starts_with("no selector: "), "{text}: {said}");
    }
}

#[test]
fn an_answer_that_is_no_truth_or_takes_too_long_is_an_error() {
    let rows = [
        (
            r#"device.attributes["gpu.example.com"].model"#,
            "error: must evaluate to bool",
        ),
        (
            "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, \
             [1,2,3,4,5,6,7,8,9].all(d, a + b + c + d > 0))))",
            "error: actual cost limit exceeded",
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(says(text), expected, "{text}");
    }
}

#[test]
fn a_device_whose_version_is_none_cannot_be_seen() {
    let mut card = card();
    card.attributes
        .insert("v".into(), Trait::Version("1..2".into()));
    let why = Lens::new().see(&card).map(|_| ()).unwrap_err();
    assert!(why.starts_with("attribute v: "), "{why}");
}
