//! What may be a name, and what Kubernetes says where it may not.
//!
//! Every `check_*` gives the list of complaints, empty for a good name, in Kubernetes' words.

/// Greatest length of a DNS label.
pub const LABEL_BYTES_MAX: usize = 63;
/// Greatest length of a DNS subdomain, and so of most object names.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;
/// What server-made names end in: no vowels and no look-alikes.
pub const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them.
pub const SUFFIX_LENGTH: usize = 5;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_KEY: &str = "[-._a-zA-Z0-9]+";

const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const LABEL_1035_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const CONFIG_KEY_TEXT: &str =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/// RFC 1123 label: the names of namespaces, tasks and containers.
pub fn check_label(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        complaints.push(too_long(LABEL_BYTES_MAX));
    }
    if !is_label(text) {
        complaints.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern(LABEL_TEXT, LABEL, &["my-name", "123-abc"])
        });
    }
    complaints
}

/// RFC 1123 subdomain: the names of most objects.
pub fn check_subdomain(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        complaints.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(text) {
        complaints.push(pattern(SUBDOMAIN_TEXT, SUBDOMAIN, &["example.com"]));
    }
    complaints
}

/// RFC 1035 label: the names of Services.
pub fn check_label_1035(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        complaints.push(too_long(LABEL_BYTES_MAX));
    }
    if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
        complaints.push(pattern(
            LABEL_1035_TEXT,
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    complaints
}

/// Label and annotation keys: a name, perhaps behind a DNS subdomain and a slash.
pub fn check_qualified(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let examples = &["MyName", "my.name", "123-abc"];
    let mut parts = text.split('/');
    let first = parts.next().unwrap_or_default();
    let name = match (parts.next(), parts.next()) {
        (None, _) => first,
        (Some(name), None) => {
            if first.is_empty() {
                complaints.push("prefix part must be non-empty".to_owned());
            } else {
                for complaint in check_subdomain(first) {
                    complaints.push(format!("prefix part {complaint}"));
                }
            }
            name
        }
        (Some(_), Some(_)) => {
            let text = pattern(QUALIFIED_TEXT, QUALIFIED, examples);
            return vec![format!(
                "a qualified name {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        complaints.push(format!("name part {}", too_many_bytes(LABEL_BYTES_MAX)));
    }
    if !is_name_part(name) {
        let text = pattern(QUALIFIED_TEXT, QUALIFIED, examples);
        complaints.push(format!("name part {text}"));
    }
    complaints
}

/// Label values.
pub fn check_label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        complaints.push(too_many_bytes(LABEL_BYTES_MAX));
    }
    if !text.is_empty() && !is_name_part(text) {
        let examples = &["MyValue", "my_value", "12345"];
        complaints.push(pattern(LABEL_VALUE_TEXT, LABEL_VALUE, examples));
    }
    complaints
}

/// Keys of ConfigMaps and Secrets.
pub fn check_config_key(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        complaints.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if text.is_empty() || !text.bytes().all(is_name_byte) {
        let examples = &["key.name", "KEY_NAME", "key-name"];
        complaints.push(pattern(CONFIG_KEY_TEXT, CONFIG_KEY, examples));
    }
    match text {
        "." => complaints.push("must not be '.'".to_owned()),
        ".." => complaints.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => complaints.push("must not start with '..'".to_owned()),
        _ => {}
    }
    complaints
}

/// Names of container ports.
pub fn check_port_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |text: &str| complaints.push(text.to_owned());
    if text.len() > 15 {
        complain(&too_long(15));
    }
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || !text.bytes().all(known) {
        complain("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        complain("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        complain("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        complain("must not begin or end with a hyphen");
    }
    complaints
}

/// Names of environment variables: printable ASCII without `=`.
pub fn check_env_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.is_empty() {
        complaints.push("environment variable name must be non-empty".to_owned());
    }
    if !text
        .bytes()
        .all(|byte| (0x20..0x7f).contains(&byte) && byte != b'=')
    {
        complaints.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    complaints
}

/// Path segments: names that no other rule restricts, such as those of RBAC roles.
pub fn check_path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ['/', '%']
        .into_iter()
        .filter(|c| text.contains(*c))
        .map(|c| format!("may not contain '{c}'"))
        .collect()
}

/// `prefix` cut so that the random ending fits a DNS label, as the server makes names from
/// `generateName`; `draw(n)` gives a number below n.
pub fn generate(prefix: &str, mut draw: impl FnMut(usize) -> usize) -> String {
    let mut end = prefix.len().min(LABEL_BYTES_MAX - SUFFIX_LENGTH);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    for _ in 0..SUFFIX_LENGTH {
        let index = draw(SUFFIX_ALPHABET.len()) % SUFFIX_ALPHABET.len();
        name.push(char::from(SUFFIX_ALPHABET[index]));
    }
    name
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    inner(*first) && inner(*last) && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| is_name_byte(*byte))
}

fn too_long(bytes: usize) -> String {
    format!("must be no more than {bytes} characters")
}

/// Labels and their keys are measured in other words.
fn too_many_bytes(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

fn pattern(text: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    format!(
        "{text} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

/// Go's `%v` of a list of texts: `[a b]`.
pub fn go_list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    format!("[{}]", texts.join(" "))
}

/// Go's `%q` of a text: double quotes, with escapes for what cannot be printed.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_pass() {
        let none: Vec<String> = Vec::new();
        for text in ["a", "a-b", "0", "a0"] {
            assert_eq!(check_label(text), none, "{text}");
            assert_eq!(check_subdomain(text), none, "{text}");
        }
        assert_eq!(check_subdomain("a.b-c.0"), none);
        assert_eq!(check_qualified("volcano.sh/task_Spec.1"), none);
        assert_eq!(check_label_value(""), none);
        assert_eq!(check_label_value("A_b.c"), none);
        assert_eq!(check_port_name("http-0"), none);
        assert_eq!(check_config_key(".a_B"), none);
    }

    #[test]
    fn bad_names_are_refused_in_the_words_of_kubernetes() {
        assert_eq!(
            check_label("A"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(check_label("a.b"), ["must not contain dots"]);
        assert_eq!(
            check_label(&"a".repeat(64)),
            ["must be no more than 63 characters"]
        );
        assert_eq!(
            check_subdomain("-a"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(
            check_label_1035("1a"),
            [
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            check_qualified("a b"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(check_qualified("/a"), ["prefix part must be non-empty"]);
        assert!(check_qualified("a/b/c")[0].starts_with("a qualified name must consist"));
        assert_eq!(check_qualified("")[0], "name part must be non-empty");
        assert_eq!(check_config_key(".."), ["must not be '..'"]);
        assert_eq!(
            check_port_name("1"),
            ["must contain at least one letter (a-z)"]
        );
        assert_eq!(check_path_segment("a/b"), ["may not contain '/'"]);
    }

    #[test]
    fn a_generated_name_fits_a_label() {
        let name = generate(&"a".repeat(100), |n| n - 1);
        assert_eq!(name.len(), 63);
        assert!(name.ends_with("99999"));
        assert_eq!(generate("job-", |_| 0), "job-bbbbb");
    }
}
