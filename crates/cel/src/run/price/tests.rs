//! What each function costs of texts and lists whose sizes show every rounding.

use std::sync::Arc;

use kube_cel::cel::Value;
use serde_json::{Value as Json, json};

use super::{bulk, cost, toil};
use crate::value::dynamic;

/// A text of so many letters, each of two bytes: what counts letters differs from what counts bytes.
fn text(letters: usize) -> Json {
    json!("é".repeat(letters))
}

fn list(items: usize) -> Json {
    json!(vec![1; items])
}

fn texts(items: usize, letters: usize) -> Json {
    json!(vec!["é".repeat(letters); items])
}

fn values(json: &[Json]) -> Vec<Value> {
    json.iter().map(dynamic).collect()
}

fn bytes(count: usize) -> Value {
    Value::Bytes(Arc::new(vec![7; count]))
}

fn check(rows: &[(&str, Vec<Json>, u64)]) {
    for (name, given, wanted) in rows {
        let found = cost(name, &values(given));
        assert_eq!(found, *wanted, "{name} of {given:?}");
    }
}

#[test]
fn what_compares_and_adds_costs_a_tenth_of_what_it_goes_through() {
    check(&[
        ("_==_", vec![text(31), text(25)], 3),
        ("_!=_", vec![text(11), text(99)], 2),
        ("_==_", vec![list(30), list(12)], 2),
        ("_==_", vec![json!(5), text(99)], 1),
        ("_==_", vec![json!({}), json!({})], 0),
        ("_<_", vec![text(31), text(25)], 3),
        ("_<=_", vec![text(31), text(25)], 3),
        ("_>_", vec![text(31), text(25)], 3),
        ("_>=_", vec![text(31), text(25)], 3),
        ("_<_", vec![json!(31), json!(25)], 1),
        ("_+_", vec![text(25), text(31)], 6),
        ("_+_", vec![list(25), list(31)], 1),
        ("@in", vec![json!(1), list(7)], 7),
        ("@in", vec![json!("a"), json!({"a": 1, "b": 2})], 1),
    ]);
    assert_eq!(cost("_<_", &[bytes(31), bytes(25)]), 3);
    assert_eq!(cost("_+_", &[bytes(25), bytes(31)]), 6);
}

#[test]
fn what_walks_a_text_costs_by_its_letters() {
    check(&[
        ("matches", vec![text(25), text(9)], 9),
        ("find", vec![text(29), text(8)], 6),
        ("findAll", vec![text(30), text(1), json!(2)], 4),
        ("contains", vec![text(25), text(31)], 12),
        ("replace", vec![text(26), text(1), text(2)], 6),
        ("split", vec![text(25), text(1)], 5),
        ("isCanonical", vec![text(21)], 5),
        ("validate", vec![json!(1), text(25)], 96),
        ("string", vec![json!(7)], 1),
        ("bytes", vec![text(25)], 3),
        ("size", vec![text(99)], 1),
    ]);
    let walkers = [
        "lowerAscii",
        "upperAscii",
        "substring",
        "trim",
        "url",
        "quantity",
        "isQuantity",
        "semver",
        "isSemver",
        "ip",
        "isIP",
        "cidr",
        "isCIDR",
        "format",
        "quote",
        "startsWith",
        "endsWith",
    ];
    for name in walkers {
        check(&[
            (name, vec![text(26), text(99)], 3),
            (name, vec![text(30)], 3),
        ]);
    }
    assert_eq!(cost("string", &[bytes(25)]), 3);
    assert_eq!(cost("bytes", &[bytes(25)]), 3);
    assert_eq!(cost("contains", &[bytes(25), bytes(9)]), 3);
}

#[test]
fn what_walks_a_list_costs_by_its_items() {
    for name in ["indexOf", "lastIndexOf", "isSorted", "sum", "max", "min"] {
        check(&[
            (name, vec![list(7)], 7),
            (name, vec![text(25)], 5),
            (name, vec![texts(3, 15)], 9),
            (name, vec![json!([1, [2, 3], null])], 4),
            (name, vec![json!({"twentyfive letters, so..": [1, 2]})], 4),
        ]);
    }
    let numbered = [(1.into(), Value::Int(1)), (2.into(), Value::Null)];
    let numbered = crate::value::map_of(numbered.into_iter());
    assert_eq!(cost("sum", &[numbered]), 4, "a key that is no text is one");
    assert_eq!(cost("sum", &[bytes(39)]), 3);
    check(&[
        ("join", vec![texts(3, 15), text(1)], 18),
        ("distinct", vec![texts(7, 3)], 113),
        ("sort", vec![list(7)], 109),
        ("sort", vec![list(0)], 11),
        ("sort", vec![json!(1)], 1),
        ("reverse", vec![list(7)], 18),
        ("slice", vec![list(7), json!(1), json!(2)], 18),
        ("flatten", vec![list(7)], 18),
        ("range", vec![json!(9)], 20),
        ("range", vec![json!(-9)], 11),
        ("range", vec![json!("no number")], 1),
        ("contains", vec![list(3), list(4)], 13),
        ("intersects", vec![list(3), list(4)], 13),
        ("equivalent", vec![list(3), list(4)], 25),
    ]);
    assert_eq!(
        cost("distinct", &[Value::List(Arc::new(vec![bytes(1); 7]))]),
        113
    );
}

#[test]
fn what_costs_nothing_toils_all_the_same() {
    let deep = || json!([[1, 2]]);
    for (name, given, wanted) in [
        // Nine bytes hold three bytes three times, and ten ends of nothing: each makes ten.
        (
            "replace",
            vec![json!("abcabcabc"), json!("abc"), json!("0123456789")],
            40,
        ),
        (
            "replace",
            vec![json!("abcabcabc"), json!(""), json!("0123456789")],
            110,
        ),
        ("replace", vec![json!("abc"), json!("b")], 0),
        (
            "format",
            vec![json!("%.12f and %.3e"), json!([1, "abc"])],
            20,
        ),
        ("format", vec![json!("%.f %d 7"), json!([1])], 1),
        ("format", vec![json!("%.5"), json!([])], 5),
        ("join", vec![list(3), json!("1234")], 12),
        ("_==_", vec![deep(), json!([[1]])], 3),
        ("_!=_", vec![json!([[1]]), deep()], 3),
        ("_==_", vec![list(9), list(9)], 0),
        ("_==_", vec![json!({"a": "xyz"}), json!({"a": "wxyz"})], 5),
        ("@in", vec![json!([1]), json!([[1]])], 5),
        ("@in", vec![json!(1), list(9)], 0),
        ("flatten", vec![deep()], 4),
        ("indexOf", vec![deep(), json!(1)], 5),
        ("lastIndexOf", vec![deep(), json!(1)], 5),
        (
            "contains",
            vec![json!([[1], [2]]), json!([1, 2, 3, 4, 5, 6, 7, 8])],
            18,
        ),
        ("distinct", vec![deep()], 4),
        ("equivalent", vec![json!([{}, {}]), list(2)], 6),
        ("intersects", vec![list(2), json!([{}])], 6),
        ("distinct", vec![list(9)], 0),
        ("size", vec![deep()], 0),
    ] {
        let found = toil(name, &values(&given), 1_000);
        assert_eq!(found, wanted, "{name} of {given:?}");
    }
}

#[test]
fn counting_ends_soon_after_the_limit() {
    let of = |json: Json, limit| bulk(&dynamic(&json), limit);
    assert_eq!(of(json!([1, [2, "abc"], {"k": null}]), 100), 10);
    assert_eq!(of(list(50), 100), 51);
    assert_eq!(of(list(50), 51), 51);
    assert_eq!(of(list(50), 10), 11);
    assert_eq!(bulk(&bytes(9), 100), 10);
}
