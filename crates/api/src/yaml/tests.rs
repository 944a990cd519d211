use proptest::prelude::*;

use super::*;

const SMALL: Limits = Limits {
    depth: 8,
    nodes: 100,
};

fn json(text: &str) -> String {
    let told = |flaw: Flaw| {
        let Place { line, column } = flaw.place;
        format!("{line}:{column}: {}: {}", flaw.field, flaw.message)
    };
    let node = first(text, SMALL).map(|(node, _)| node.expect("a document"));
    let read = node.and_then(|node| node.json());
    read.map_or_else(told, |value| value.to_string())
}

#[test]
fn words_mean_what_go_reads() {
    for (text, meaning) in [
        ("~", Meaning::Nothing),
        ("off", Meaning::Flag(false)),
        ("Y", Meaning::Flag(true)),
        ("0644", Meaning::Whole(420)),
        ("-0x10", Meaning::Whole(-16)),
        ("1_000", Meaning::Whole(1000)),
        ("18446744073709551616", Meaning::Whole(1 << 64)),
        ("1e3", Meaning::Decimal(1000.0)),
        ("-.5", Meaning::Decimal(-0.5)),
        ("-.inf", Meaning::Decimal(f64::NEG_INFINITY)),
        ("1e999", Meaning::Text),
        ("--5", Meaning::Text),
        ("5m", Meaning::Text),
        ("NaN", Meaning::Text),
        ("'5'", Meaning::Text),
    ] {
        let (node, _) = first(text, SMALL).expect("no flaw");
        let Some(Value::Scalar(scalar)) = node.map(|node| node.value) else {
            panic!("{text} is no scalar");
        };
        assert_eq!(scalar.meaning, meaning, "{text}");
    }
}

#[test]
fn aliases_and_merges_are_written_out() {
    let text = "a: &it {x: 1, y: 2}\nb: *it\nc: {<<: *it, y: 3}\n";
    let wanted = r#"{"a":{"x":1,"y":2},"b":{"x":1,"y":2},"c":{"x":1,"y":3}}"#;
    assert_eq!(json(text), wanted);
}

#[test]
fn what_json_cannot_say_is_refused_with_its_place() {
    let said = json("a:\n  b: .nan\n");
    assert!(said.starts_with("2:6: a.b: infinity"), "{said}");
    assert_eq!(
        json("a: 1\nb: 2\na: 3\n"),
        "3:1: a: this field is given twice"
    );
}

#[test]
fn what_multiplies_itself_is_cut_off() {
    let mut text = "a0: &a0 [x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let below = level - 1;
        text.push_str(&format!(
            "a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n"
        ));
    }
    assert!(json(&text).contains("more than 100 values in one file"));
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(json(&nested(20)).contains("nested deeper than 8 levels"));
    assert!(first(&nested(50_000), SMALL).is_err());
}

#[test]
fn a_path_leads_to_its_key_or_as_far_as_there_is_something() {
    let text = "a:\n  b.c/d:\n  - x: 1\n  - y: 2\n";
    let (node, _) = first(text, SMALL).expect("no flaw");
    let node = node.expect("a document");
    let at = |path: &str| {
        let Place { line, column } = node.locate(path);
        (line, column)
    };
    assert_eq!(at(""), (1, 1));
    assert_eq!(at("a.b.c/d"), (2, 3));
    assert_eq!(at("a.b.c/d[1].y"), (4, 5));
    assert_eq!(at("a.b.c/d[1].z.z"), (4, 5));
    assert_eq!(at("a.b.c/d[7]"), (2, 3));
    assert_eq!(at("z"), (1, 1));
}

#[test]
fn only_the_first_document_is_looked_at_where_one_is_wanted() {
    let (node, next) = first("a: 1\n---\nb: [1\n", SMALL).expect("no flaw");
    assert!(node.is_some());
    assert_eq!(next.map(|place| place.line), Some(3));
    assert_eq!(first("", SMALL), Ok((None, None)));
}

proptest! {
    #[test]
    fn any_text_gives_a_tree_or_a_flaw(text in "[ -~\\n\\t]{0,200}") {
        if let Ok(all) = documents(&text, SMALL) {
            for node in all {
                if let Ok(value) = node.json() {
                    prop_assert_eq!(Node::of_json(&value).json(), Ok(value));
                }
            }
        }
    }
}
