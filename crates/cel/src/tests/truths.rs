//! Expressions that hold, by what they are about.

use serde_json::{Value, json};

use crate::kinds::Type;
use crate::signatures::{FUNCTIONS, Signature, overloads};
use crate::{Expression, Rules, Trust};

/// What a rule that is looked at as closely as can be says of an object.
fn said(schema: &Value, rule: &str, object: &Value) -> Vec<String> {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "no"}]);
    match Rules::compile(&schema, "spec", Trust::Doubted) {
        Ok(rules) => rules.expect("there is a rule").complaints(object, None),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

fn holds(schema: &Value, object: &Value, rules: &[&str]) {
    for rule in rules {
        assert_eq!(said(schema, rule, object), [""; 0], "{rule}");
    }
}

fn hold(rules: &[&str]) {
    holds(&json!({"type": "object"}), &json!({}), rules);
}

#[test]
fn literals_stand_for_what_they_say() {
    let escapes = [
        (r"\a", "7"),
        (r"\b", "8"),
        (r"\f", "12"),
        (r"\n", "10"),
        (r"\r", "13"),
        (r"\t", "9"),
        (r"\v", "11"),
        (r#"\""#, "34"),
        (r"\'", "39"),
        (r"\\", "92"),
        (r"\?", "63"),
        (r"\`", "96"),
        (r"\x41", "65"),
        (r"\X7f", "127"),
        (r"\101", "65"),
        (r"\u0041", "65"),
        (r"\U00000041", "65"),
    ];
    for (escape, number) in escapes {
        let octal = format!("{:03o}", number.parse::<u8>().expect("a byte"));
        let rule = format!(r"'<{escape}>' == '<\{octal}>' && '{escape}'.size() == 1");
        hold(&[&rule]);
        if !escape.starts_with(['\\']) || !escape[1..].starts_with(['u', 'U']) {
            hold(&[&format!(r"b'{escape}' == b'\{octal}'")]);
        }
    }
    hold(&[
        "1e+3 == 1000.0 && 1e-3 == 0.001 && 1.5E2 == 150.0 && .5 == 0.5 && 2e2 == 200.0",
        "0x1F == 31 && 0xffu == 255u && 7U == 7u && -0x10 == -16 && 12 == 10 + 2",
        r"'\u00e9' == 'é' && '\xe9' == 'é' && '\351' == 'é' && '\U0001F600'.size() == 1",
        r"b'\xe9'.size() == 1 && b'é'.size() == 2 && bytes('é') == b'\303\251'",
        r"r'\n'.size() == 2 && R'\x41' == '\\x41' && br'\n'.size() == 2",
        "'''a'b''c''' == 'a\\'b\\'\\'c' && \"\"\"a\"b\"\"\" == 'a\"b' && '' == \"\"",
        "'''a\r\nb\rc''' == 'a\\nb\\nc'",
    ]);
}

#[test]
fn whole_numbers_and_texts_are_compared_as_they_are() {
    let operators = ["==", "!=", "<", "<=", ">", ">="];
    let truths = |order: std::cmp::Ordering| {
        [
            order.is_eq(),
            order.is_ne(),
            order.is_lt(),
            order.is_le(),
            order.is_gt(),
            order.is_ge(),
        ]
    };
    let ask = |left: &Value, operator: &str, right: &Value| {
        let expression = Expression::compile(&format!("a {operator} b")).expect("it compiles");
        expression.truth(&[("a", left), ("b", right)])
    };
    for (left, right) in [(1, 1), (1, 2), (2, 1), (-1, 1), (i64::MIN, i64::MAX)] {
        for (operator, truth) in operators.iter().zip(truths(left.cmp(&right))) {
            let found = ask(&json!(left), operator, &json!(right));
            assert_eq!(found, Ok(truth), "{left} {operator} {right}");
        }
    }
    for (left, right) in [("a", "a"), ("a", "b"), ("b", "a"), ("", "a"), ("Z", "é")] {
        for (operator, truth) in operators.iter().zip(truths(left.cmp(right))) {
            let found = ask(&json!(left), operator, &json!(right));
            assert_eq!(found, Ok(truth), "{left} {operator} {right}");
        }
    }
}

#[test]
fn lists_and_maps_give_what_is_at_a_place_and_tell_what_is_not() {
    hold(&[
        "[3, 4][1] == 4 && [3, 4][0] == 3 && {'a': 1}['a'] == 1",
        "[[1, 2], [3]].flatten(1) == [1, 2, 3] && [dyn([1]), dyn([[2]])].flatten(2) == [1, 2]",
        "dyn([7, 8]) != dyn(0) && dyn({'a': 1}) != dyn('a') && !(dyn(0) == dyn([7]))",
        "[1, 2, 3, 4].slice(1, 3) == [2, 3] && lists.range(3) == [0, 1, 2]",
        "[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1}",
        "[1, 2].size() == 2 && size('éa') == 2 && size({'a': 1}) == 1 && size(b'é') == 2",
        "[?optional.none(), ?optional.of(2), 3] == [2, 3] && {?'a': optional.none()} == {}",
        "[1, 2][?1].value() == 2 && ![1, 2][?2].hasValue() && {'a': 1}.?b.orValue(7) == 7",
        "has({'a': 1}.a) && !has({'a': 1}.b) && {false: 'a', true: 'b'}[true] == 'b'",
        "{'b': 1, 'a': 2}.map(k, k) == ['a', 'b'] && !true == false && dyn(1) == 1",
    ]);
    for (expression, why) in [
        ("[1][1] == 1", "index out of bounds: 1"),
        ("[1][-1] == 1", "index out of bounds: -1"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("{'a': 1}.b == 1", "no such key: b"),
        ("1 / a == 1", "division by zero"),
        ("1 % a == 1", "modulus by zero"),
        ("9223372036854775807 + b == 1", "integer overflow"),
        ("nobody == 1", "undeclared reference to 'nobody'"),
        ("b", "must evaluate to bool"),
    ] {
        let compiled = Expression::compile(expression).expect("it compiles");
        let (none, one) = (json!(0), json!(1));
        let told = compiled.truth(&[("a", &none), ("b", &one)]);
        let told = told.expect_err(expression);
        let wanted = format!("expression '{expression}' resulted in error: {why}");
        assert_eq!(told, wanted);
    }
}

#[test]
fn an_object_is_seen_as_its_schema_says() {
    let text = || json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "some": {"type": "object", "properties": {"a": text(), "a-b.c/d__e": text(), "in": text()}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": text()}},
        "whole": {"type": "integer"},
        "part": {"type": "number"},
        "either": {"x-kubernetes-int-or-string": true},
        "day": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "date-time"},
        "long": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "truth": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "number"}},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
    }});
    let object = json!({
        "map": {"a-b": 1}, "some": {"a": "x", "a-b.c/d__e": "y", "in": "z"},
        "open": {"a": "x", "b": 1}, "whole": 3, "part": 3, "either": 4, "day": "2024-05-06",
        "time": "2024-05-06T07:08:09Z", "long": "1h30m", "raw": "eHk=", "truth": true,
        "list": [1, 2.5], "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}},
    });
    holds(
        &schema,
        &object,
        &[
            "self.map['a-b'] == 1 && self.map.size() == 1",
            "self.some.a == 'x' && self.some.__in__ == 'z'",
            "self.some.a__dash__b__dot__c__slash__d__underscores__e == 'y'",
            "self.open.a == 'x'",
            "self.whole == 3 && self.part == 3.0 && self.either == 4",
            "type(self.either) == int && type(self.part) == double",
            "self.day == timestamp('2024-05-06T00:00:00Z')",
            "self.time.getHours() == 7 && self.long == duration('90m')",
            "self.raw == b'xy' && self.truth && self.list == [1.0, 2.5]",
            "self.pod.kind == 'Pod' && self.pod.metadata.name == 'n' && self.pod.apiVersion == 'v1'",
        ],
    );
    let told = said(&schema, "self.some.b == 'x'", &object);
    assert!(told.iter().any(|it| it.contains("undefined field 'b'")));
    let text = said(&schema, "self.pod.spec == 'x'", &object);
    assert!(text.iter().any(|it| it.contains("undefined field 'spec'")));
}

#[test]
fn messages_are_the_values_of_their_fields() {
    hold(&[
        "google.protobuf.BoolValue{value: true} && !google.protobuf.BoolValue{}",
        "google.protobuf.BytesValue{value: b'x'} == b'x' && google.protobuf.BytesValue{} == b''",
        "google.protobuf.DoubleValue{value: 1.5} == 1.5 && google.protobuf.DoubleValue{} == 0.0",
        "google.protobuf.FloatValue{value: 1.5} == 1.5 && google.protobuf.FloatValue{value: 0.1} != 0.1",
        "google.protobuf.Int32Value{value: 7} == 7 && google.protobuf.Int32Value{} == 0",
        "google.protobuf.Int64Value{value: 7} == 7 && google.protobuf.Int64Value{} == 0",
        "google.protobuf.UInt32Value{value: 7u} == 7u && google.protobuf.UInt32Value{} == 0u",
        "google.protobuf.UInt64Value{value: 7u} == 7u && google.protobuf.UInt64Value{} == 0u",
        "google.protobuf.StringValue{value: 'x'} == 'x' && google.protobuf.StringValue{} == ''",
        "google.protobuf.Duration{seconds: 1, nanos: 5} == duration('1.000000005s')",
        "google.protobuf.Timestamp{} == timestamp('1970-01-01T00:00:00Z')",
        "google.protobuf.Timestamp{seconds: 5, nanos: -1} < timestamp('1970-01-01T00:00:05Z')",
        "google.protobuf.ListValue{values: [dyn(1), dyn('x')]} == [dyn(1.0), dyn('x')]",
        "google.protobuf.ListValue{} == [] && google.protobuf.Struct{} == {}",
        "google.protobuf.Struct{fields: {'a': 9007199254740991}}.a == 9007199254740991.0",
        "google.protobuf.Struct{fields: {'a': 9007199254740992}}.a == '9007199254740992'",
        "google.protobuf.Struct{fields: {'a': 9007199254740992u}}.a == '9007199254740992'",
        "google.protobuf.Struct{fields: {'b': {'c': null}}}.b.c == null && google.protobuf.Struct{fields: {'a': 7u}}.a == 7.0",
        "google.protobuf.Struct{fields: {'a': duration('1.5s')}}.a == '1.5s'",
        "google.protobuf.Struct{fields: {'a': timestamp(0)}}.a == '1970-01-01T00:00:00Z'",
        "google.protobuf.Value{number_value: 1.5} == 1.5 && google.protobuf.Value{bool_value: true} == true",
        "google.protobuf.Value{string_value: 'x'} == 'x' && google.protobuf.Value{null_value: 0} == null",
        "google.protobuf.Value{string_value: 'x', number_value: 1.0} == 1.0",
        "google.protobuf.Value{list_value: [1]} == [1.0] && google.protobuf.Value{struct_value: {'a': 1}}.a == 1.0",
    ]);
    for (rule, why) in [
        (
            "google.protobuf.Int64Value{other: 1} == 1",
            "undefined field 'other'",
        ),
        (
            "google.protobuf.Int64Value{value: 'x'} == 1",
            "expected type of field 'value' is 'int' but provided type is 'string'",
        ),
        (
            "google.protobuf.UInt32Value{value: 4294967296u} == 1u",
            "unsigned integer overflow",
        ),
        (
            "google.protobuf.Value{null_value: 2147483648} == null",
            "integer overflow",
        ),
    ] {
        let told = said(&json!({"type": "object"}), rule, &json!({}));
        assert!(told.iter().any(|it| it.contains(why)), "{rule}: {told:?}");
    }
}

#[test]
fn a_mistake_is_shown_with_a_mark_below_its_place() {
    let wide = 16_384;
    let told = |text: &str| crate::parse::parse(text).expect_err("it is wrong");
    let lines = |text: &str| told(text).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        lines("true &&\n\t'é' + a b")[1..],
        [" |  'é' + a b", " | ..．......^"]
    );
    assert_eq!(lines("a é")[2], " | ..＾");
    let long = |length: usize| format!("a b{}", " ".repeat(length - 3));
    assert_eq!(lines(&long(wide)).len(), 3);
    assert_eq!(lines(&long(wide + 1)).len(), 1);
}

/// An expression of a type; `text` is what a text is.
fn sample(kind: &Type, text: &str) -> Option<String> {
    let of = |kind: &Type| sample(kind, text);
    Some(match kind {
        Type::Bool => "true".to_owned(),
        Type::Bytes => "b'ab'".to_owned(),
        Type::Double => "1.5".to_owned(),
        Type::Duration => "duration('1s')".to_owned(),
        Type::Int | Type::Letter(_) => "1".to_owned(),
        Type::Dyn => "dyn([1])".to_owned(),
        Type::String => format!("'{text}'"),
        Type::Timestamp => "timestamp('1970-01-01T00:00:00Z')".to_owned(),
        Type::Uint => "1u".to_owned(),
        Type::Opaque("net.CIDR") => "cidr('10.0.0.0/8')".to_owned(),
        Type::Opaque("net.IP") => "ip('10.0.0.1')".to_owned(),
        Type::Named("kubernetes.NamedFormat") => "format.dns1123Label()".to_owned(),
        Type::Named("kubernetes.Quantity") => "quantity('1')".to_owned(),
        Type::Named("kubernetes.Semver") => "semver('1.2.3')".to_owned(),
        Type::Named("kubernetes.URL") => "url('https://a.b/c?d=e')".to_owned(),
        Type::List(item) => format!("[{}]", of(item)?),
        Type::Map(both) => format!("{{{}: {}}}", of(&both.0)?, of(&both.1)?),
        Type::Optional(inner) => format!("optional.of({})", of(inner)?),
        _ => return None,
    })
}

/// What a text has to be for a function to understand it.
fn understood(name: &str) -> &'static str {
    match name {
        "bool" => "true",
        "cidr" | "containsCIDR" | "isCIDR" => "10.0.0.0/8",
        "containsIP" | "ip" | "ip.isCanonical" => "10.0.0.1",
        "duration" => "1s",
        "format.named" => "dns1123Label",
        "semver" => "1.2.3",
        "timestamp" => "1970-01-01T00:00:00Z",
        "url" => "https://a.b",
        _ if name.starts_with("get") => "UTC",
        _ => "1",
    }
}

/// A call of a function in one of its ways; none where people cannot write one down.
fn call(name: &str, way: &Signature) -> Option<String> {
    let texts = way.takes.iter().map(|kind| match (name, kind) {
        ("flatten", Type::List(item)) if matches!(**item, Type::Dyn) => Some("[dyn([1])]".into()),
        (_, kind) => sample(kind, understood(name)),
    });
    let args: Vec<String> = texts.collect::<Option<_>>()?;
    let sign = name.trim_matches('_');
    Some(match (name, &args[..]) {
        (_, [one]) if name.ends_with('_') && !name.starts_with('_') || name == "-_" => {
            format!("{sign}({one})")
        }
        ("_?_:_", [a, b, c]) => format!("{a} ? {b} : {c}"),
        ("_[_]" | "_[?_]", [of, at]) => {
            let at = if of.contains('{') { at } else { "0" };
            let sign = if name == "_[?_]" { "?" } else { "" };
            format!("{of}[{sign}{at}]")
        }
        ("@in", [a, b]) => format!("{a} in {b}"),
        ("format", [..]) => "'%s'.format([dyn(1)])".to_owned(),
        ("optional.none", []) => "optional.none()".to_owned(),
        _ if name.contains('@') => return None,
        (_, [a, b]) if name.starts_with('_') => format!("{a} {sign} {b}"),
        (_, [target, rest @ ..]) if way.has_target => {
            format!("{target}.{name}({})", rest.join(", "))
        }
        _ => format!("{name}({})", args.join(", ")),
    })
}

#[test]
fn whatever_may_be_called_can_be_run() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, _) in FUNCTIONS {
        for way in overloads(name).expect("it is in the list") {
            let Some(call) = call(name, &way) else {
                continue;
            };
            // Its type is right, and it never has an answer.
            if call == "duration(1)" {
                continue;
            }
            count += 1;
            let rule = format!("[{call}].size() == 1");
            let told = said(&json!({"type": "object"}), &rule, &json!({}));
            // Texts in lists that are written down have no greatest length: too dear, but right.
            let told = told
                .into_iter()
                .filter(|why| !why.contains("estimated rule cost"));
            wrong.extend(told.map(|why| format!("{call}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 300, "{count}");
}

#[test]
fn conversions_are_those_of_the_real_servers_language() {
    hold(&[
        "bool(true) && bool('t') && bool('TRUE') && !bool('0') && !bool('False')",
        "bytes(b'x') == b'x' && duration(duration('1s')) == duration('1s')",
        "int(duration('1.5s')) == 1500000000 && int(timestamp('1970-01-02T00:00:00.9Z')) == 86400",
        "int(timestamp('1969-12-31T23:59:59.5Z')) == -1",
        "string(true) == 'true' && string(duration('90m')) == '5400s'",
        "string(duration('-1.5s')) == '-1.5s'",
        "string(timestamp('2024-05-06T07:08:09Z')) == '2024-05-06T07:08:09Z'",
        "string(timestamp('2024-05-06T07:08:09.120Z')) == '2024-05-06T07:08:09.12Z'",
        "timestamp(timestamp(5)) == timestamp('1970-01-01T00:00:05Z')",
        "timestamp(-62135596800) == timestamp('0001-01-01T00:00:00Z')",
        "timestamp(253402300799) == timestamp('9999-12-31T23:59:59Z')",
        "duration('1s') + timestamp(4) == timestamp(5) && timestamp(4) + duration('1s') == timestamp(5)",
        "[optional.of(1), optional.none(), optional.of(3)].unwrapOpt() == [1, 3]",
        "optional.unwrap([optional.none(), optional.of(2)]) == [2]",
    ]);
    for (number, text) in [
        ("0.0", "0"),
        ("1.0", "1"),
        ("-2.5", "-2.5"),
        ("100000.0", "100000"),
        ("123456.789", "123456.789"),
        ("1000000.0", "1e+06"),
        ("1234567.5", "1.2345675e+06"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1e21", "1e+21"),
        ("-1.5e-300", "-1.5e-300"),
        ("1.0 / 0.0", "+Inf"),
        ("-1.0 / 0.0", "-Inf"),
        ("0.0 / 0.0", "NaN"),
    ] {
        hold(&[&format!("string({number}) == '{text}'")]);
    }
    for (rule, why) in [
        (
            "bool('yes')",
            "type conversion error from 'string' to 'bool'",
        ),
        (
            "duration(1) == duration('1s')",
            "type conversion error from 'int' to 'google.protobuf.Duration'",
        ),
        (
            "timestamp(253402300800) == timestamp(0)",
            "timestamp overflow",
        ),
        (
            "timestamp(-62135596801) == timestamp(0)",
            "timestamp overflow",
        ),
    ] {
        let told = said(&json!({"type": "object"}), rule, &json!({}));
        assert!(told.iter().any(|it| it.contains(why)), "{rule}: {told:?}");
    }
}
