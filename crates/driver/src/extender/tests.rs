//! Answers, good and bad, and their form in the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Giving, Opinion, Query, Vector};

use super::read::{Frame, Heard, of, sane};

fn nodes(names: &[&str]) -> Frame {
    Frame::Nodes(names.iter().map(|name| Arc::from(*name)).collect())
}

fn tasks(uids: &[&str]) -> Frame {
    Frame::Tasks(uids.iter().map(|uid| Arc::from(*uid)).collect())
}

/// What an answer comes to, in the form in which it is logged.
fn read(query: &Query, frame: &Frame, body: &str) -> String {
    match of(query, frame, body.as_bytes()) {
        Ok(heard) => heard.text().replace('\n', "|"),
        Err(why) => format!("! {why}"),
    }
}

#[test]
fn answers_are_read_as_go_reads_them() {
    let fits = Query::Fits(1, "n".into());
    let rows = [
        (&fits, "{}", "0 |yes"),
        (&fits, r#"{"code":0,"status":""}"#, "0 |yes"),
        (&fits, r#"{"status":"too hot"}"#, "0 |no too hot"),
        (&fits, r#"{"code":0,"status":"no"}"#, "0 |no no"),
        (&fits, r#"{"Code":3,"STATUS":"no\nway"}"#, "0 |no no way"),
        (&fits, r#"{"code":2}"#, "0 |no code 2"),
        (
            &fits,
            r#"{"code":"2"}"#,
            "! code of its answer is no whole number",
        ),
        (
            &fits,
            r#"{"code":2,"status":[]}"#,
            "! status of its answer is no text",
        ),
        (&fits, "[]", "! its answer is no object"),
        (&Query::Enters("g".into()), r#"{"status":7}"#, "0 |yes"),
        (&Query::Enters("g".into()), "{}", "0 |neither"),
        (
            &Query::Enters("g".into()),
            r#"{"status":-1}"#,
            "0 |no the extender says no",
        ),
        (
            &Query::Enters("g".into()),
            r#"{"status":0.5}"#,
            "! status of its answer is no whole number",
        ),
        (&Query::Ready("g".into(), 2), r#"{"status":true}"#, "0 |yes"),
        (
            &Query::Ready("g".into(), 2),
            "{}",
            "0 |no the extender says no",
        ),
        (
            &Query::Ready("g".into(), 2),
            r#"{"status":1}"#,
            "! status of its answer is neither true nor false",
        ),
        (
            &Query::Overused("q".into()),
            r#"{"overused":true}"#,
            "0 |overused true",
        ),
    ];
    for (query, body, wanted) in rows {
        assert_eq!(
            read(query, &Frame::Nothing, body),
            wanted,
            "{query:?} {body}"
        );
    }
}

#[test]
fn points_of_whom_nobody_asked_or_beyond_all_measure_do_not_count() {
    let (query, frame) = (Query::Points(1), nodes(&["a", "b", "c"]));
    let rows = [
        (
            r#"{"nodeScore":{"a":1,"b":-0.5}}"#,
            "0 |points|1000000 a|-500000 b",
        ),
        (
            r#"{"nodeScore":{"a":1e6,"b":1000001,"x":1}}"#,
            "2 the points of b cannot be meant|points|1000000000000 a",
        ),
        (r#"{"nodeScore":null}"#, "0 |points"),
        (r#"{"nodeScore":[]}"#, "! nodeScore of its answer is no map"),
        (
            r#"{"nodeScore":{"a":1},"errorMessage":"broken"}"#,
            "! broken",
        ),
    ];
    for (body, wanted) in rows {
        assert_eq!(read(&query, &frame, body), wanted, "{body}");
    }
}

#[test]
fn victims_are_of_those_that_were_proposed() {
    let query = Query::Gives("g".into(), Giving::WithinQueue);
    let frame = tasks(&["u1", "u2"]);
    let rows = [
        (
            r#"{"status":1,"victims":[{"UID":"u2"},{"UID":"u9"},7]}"#,
            "2 a victim was not proposed|victims|u2",
        ),
        (r#"{"status":1}"#, "0 |victims"),
        (r#"{"victims":[{"UID":"u2"}]}"#, "0 |neither"),
        (
            r#"{"status":-1,"victims":[{"UID":"u2"}]}"#,
            "0 |no the extender says no",
        ),
        (
            r#"{"status":1,"victims":{}}"#,
            "! victims of its answer is no list",
        ),
    ];
    for (body, wanted) in rows {
        assert_eq!(read(&query, &frame, body), wanted, "{body}");
    }
}

#[test]
fn what_is_logged_is_read_again() {
    let names: BTreeSet<Arc<str>> = ["a".into(), "b c".into()].into();
    let opinions = [
        Opinion::Yes,
        Opinion::No("too hot".into()),
        Opinion::No("".into()),
        Opinion::Neither,
        Opinion::Failed("gone".into()),
        Opinion::Overused(true, Vector::ZERO),
        Opinion::Points(Arc::new([("a".into(), -3), ("b".into(), i64::MAX)].into())),
        Opinion::Points(Arc::default()),
        Opinion::Victims(Arc::new(names)),
        Opinion::Victims(Arc::default()),
    ];
    for opinion in opinions {
        let heard = Heard {
            opinion,
            refused_count: 2,
            refused: "a victim was not proposed".to_owned(),
        };
        assert_eq!(Heard::of_text(&heard.text()), Some(heard));
    }
    for text in [
        "",
        "0",
        "0 \nmaybe",
        "x \nyes",
        "0 \npoints\na",
        "0 \noverused",
    ] {
        assert_eq!(Heard::of_text(text), None, "{text:?}");
    }
}

#[test]
fn words_of_others_are_short_and_on_one_line() {
    assert_eq!(sane("a\nb\u{7}c"), "a b c");
    assert_eq!(sane(&"ü".repeat(1_000)).chars().count(), 161);
}
