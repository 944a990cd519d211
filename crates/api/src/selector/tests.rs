use super::*;

fn labels(text: &str) -> TextMap {
    text.split(' ')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

#[test]
fn label_queries_match_and_print_as_in_go() {
    for (text, printed, yes, no) in [
        ("", "", "x=y", "-"),
        ("x=a", "x=a", "x=a", "x=b"),
        ("x==a", "x==a", "x=a", "y=a"),
        ("x!=a,y=b", "x!=a,y=b", "y=b", "x=a y=b"),
        ("  x  in ( b , a )", "x in (a,b)", "x=b", "x=c"),
        ("x in ()", "x in ()", "x=", "y=1"),
        ("x in (,a)", "x in (,a)", "x=", "x=b"),
        ("x in (a,,b)", "x in (,a,b)", "x=", "x=c"),
        ("x notin (a,b)", "x notin (a,b)", "y=a", "x=a"),
        ("x", "x", "x=", "y=1"),
        ("!x", "!x", "y=1", "x="),
        ("x>1,z<10", "x>1,z<10", "x=2 z=9", "x=1 z=9"),
        ("x>1", "x>1", "x=2", "x=text"),
        ("in in (in)", "in in (in)", "in=in", "in=notin"),
        ("b,a", "a,b", "a=1 b=2", "a=1"),
        ("x=,y", "x=,y", "x= y=1", "x=1 y=1"),
        (
            "volcano.sh/job-name=j",
            "volcano.sh/job-name=j",
            "volcano.sh/job-name=j",
            "x=y",
        ),
    ] {
        let query = LabelQuery::parse(text).unwrap();
        assert_eq!(query.to_string(), printed, "{text}");
        let matches = |set: &str| {
            let set = labels(set);
            query.matches(|key| set.get(key).map(|value| &**value))
        };
        assert!(matches(yes), "{text} should match {yes}");
        assert!(no == "-" || !matches(no), "{text} should not match {no}");
    }
}

#[test]
fn label_query_errors_are_the_texts_of_go() {
    for (text, error) in [
        ("x=a||y=b", "values[0][x]: Invalid value: \"a||y\""),
        (
            "==a",
            "found '==', expected: !, identifier, or 'end of string'",
        ),
        ("x,", "found '', expected: identifier after ','"),
        (
            "x a",
            "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "x in a",
            "unable to parse requirement: found 'a' expected: '('",
        ),
        (
            "x in (a",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "x in (=)",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        ),
        ("x=a b", "found 'b', expected: ',' or 'end of string'"),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "a/b/c=d",
            "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a qualified name must",
        ),
        (
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        let message = LabelQuery::parse(text).unwrap_err();
        assert!(message.contains(error), "{text}: {message}");
    }
}

#[test]
fn selector_objects_match_all_their_parts() {
    let selector: LabelSelector = serde_json::from_str(
        r#"{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"NotIn","values":["x"]},{"key":"c","operator":"DoesNotExist"}]}"#,
    )
    .unwrap();
    assert!(selector.matches(&labels("a=1 b=y")));
    assert!(!selector.matches(&labels("a=1 b=x")));
    assert!(!selector.matches(&labels("a=1 c=")));
    assert_eq!(
        selector.query().unwrap().to_string(),
        "a in (1),b notin (x),!c"
    );
    assert!(LabelSelector::default().matches(&labels("a=1")));
    let bad: LabelSelector =
        serde_json::from_str(r#"{"matchExpressions":[{"key":"b","operator":"Near"}]}"#).unwrap();
    assert!(!bad.matches(&labels("b=1")));
    assert_eq!(
        bad.query().unwrap_err(),
        "\"Near\" is not a valid label selector operator"
    );
}

#[test]
fn field_selectors_match_and_print_as_in_go() {
    let selector =
        FieldSelector::parse(r"spec.nodeName!=n1,status.phase=Running,m=a\,b\=\\").unwrap();
    assert_eq!(selector.exact("status.phase"), Some("Running"));
    assert_eq!(selector.exact("spec.nodeName"), None);
    assert_eq!(selector.exact("m"), Some(r"a,b=\"));
    assert_eq!(
        selector.to_string(),
        r"m=a\,b\=\\,spec.nodeName!=n1,status.phase=Running"
    );
    assert!(selector.matches(|field| match field {
        "status.phase" => "Running".into(),
        "m" => r"a,b=\".into(),
        _ => "".into(),
    }));
    assert!(
        FieldSelector::parse("a==b")
            .unwrap()
            .matches(|_| "b".into())
    );
    assert!(FieldSelector::parse("").unwrap().is_empty());
}

#[test]
fn field_selector_errors_are_the_texts_of_go() {
    for (text, error) in [
        ("abc", "invalid selector: 'abc'; can't understand 'abc'"),
        (
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            r"a=\x",
            r"invalid field selector: invalid escape sequence: \x",
        ),
        (
            r"a=\",
            r"invalid field selector: invalid escape sequence: \",
        ),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap_err(), error);
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "[a-c!=(),<> \\\\.in\u{e4}]{0,24}") {
            if let Ok(query) = LabelQuery::parse(&text) {
                let printed = query.to_string();
                prop_assert_eq!(LabelQuery::parse(&printed).unwrap(), query);
            }
            if let Ok(selector) = FieldSelector::parse(&text) {
                let printed = selector.to_string();
                prop_assert_eq!(FieldSelector::parse(&printed).unwrap().to_string(), printed);
            }
        }
    }
}
