use super::*;

fn check(text: &str) -> String {
    match parse("job.yaml", text.to_owned()) {
        Ok(documents) => documents
            .iter()
            .map(|document| document.object.to_string())
            .collect::<Vec<_>>()
            .join("\n"),
        Err(mistake) => mistake.to_string(),
    }
}

const HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[test]
fn documents_are_read_in_order_and_empty_ones_are_skipped() {
    let text = format!("---\n{HEAD}---\n# only a comment\n---\n{HEAD}...\n");
    assert_eq!(check(&text).lines().count(), 2);
}

#[test]
fn json_is_read_like_yaml() {
    let json = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {\"name\": \"a\"}\n}\n";
    insta::assert_snapshot!(check(json), @r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#);
}

#[test]
fn scalars_mean_what_kubernetes_tools_read() {
    let text = format!(
        "{HEAD}data: {{a: 0644, b: yes, c: 1_000, d: 1e3, e: \"5\", f: 5m, g: ~, h: 0x10, i: 1.5, j: -3, k: 1.2.3, l: 2026-01-01}}\n"
    );
    insta::assert_snapshot!(check(&text).split("\"data\":").nth(1).unwrap(), @r#"{"a":420,"b":true,"c":1000,"d":1000.0,"e":"5","f":"5m","g":null,"h":16,"i":1.5,"j":-3,"k":"1.2.3","l":"2026-01-01"},"kind":"ConfigMap","metadata":{"name":"a"}}"#);
}

#[test]
fn a_field_given_twice_is_refused_with_its_place() {
    insta::assert_snapshot!(check("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n"), @"job.yaml:5:3: metadata.name: this field is given twice");
}

#[test]
fn broken_yaml_names_line_and_column() {
    let said = check("apiVersion: v1\nkind: [Pod\nmetadata: {}\n");
    assert!(said.starts_with("job.yaml:3:"), "{said}");
}

#[test]
fn what_is_no_object_is_refused() {
    insta::assert_snapshot!(check("- a\n- b\n"), @"job.yaml:1:1: expected an object with apiVersion and kind");
    insta::assert_snapshot!(check("kind: Pod\nmetadata: {name: a}\n"), @"job.yaml:1:1: apiVersion: Required value");
    insta::assert_snapshot!(check("apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n"), @"job.yaml:3:1: metadata.name: Required value: name or generateName is required");
    insta::assert_snapshot!(check("apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5\n"), @"job.yaml:4:3: metadata.name: Invalid value: must be a string");
}

#[test]
fn a_list_is_its_items_and_keeps_their_places() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n  spec:\n    wrong: 1\n";
    let documents = parse("list.yaml", text.to_owned()).unwrap();
    assert_eq!(documents.len(), 1);
    assert_eq!(documents[0].locate("spec.wrong"), (9, 5));
    assert_eq!(documents[0].locate("spec.missing.deeper"), (8, 3));
}

#[test]
fn aliases_that_multiply_are_stopped_in_bounded_time() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        text.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            [below.as_str(); 10].join(",")
        ));
    }
    let said = check(&text);
    assert!(said.contains("more than 2000000 values"), "{said}");
}

#[test]
fn deep_nesting_is_stopped() {
    let said = check(&"[".repeat(100_000));
    assert!(said.starts_with("job.yaml:1:"), "{said}");
    let mut said = check(&format!("a: {}{}", "{b: ".repeat(500), "}".repeat(500)));
    said.truncate(60);
    assert!(said.starts_with("job.yaml:1:"), "{said}");
}

#[test]
fn merge_keys_fill_in_what_is_missing() {
    let text = format!("{HEAD}x: &base {{a: 1, b: 2}}\ndata:\n  <<: *base\n  a: 3\n");
    assert!(
        check(&text).contains(r#""data":{"a":3,"b":2}"#),
        "{}",
        check(&text)
    );
}
