//! Strings that may be secret become tokens: the same string the same token, and nobody without the
//! key can tell which string it was.

use serde_json::{Value, json};

use crate::kind::Kind;

const PREFIX: &[u8] = b"tok:";
const LENGTH: usize = 20;
/// Deeper JSON than any reader of ours takes.
const DEPTH_MAX: usize = 512;
const LAST_APPLIED: &[u8] = b"kubectl.kubernetes.io/last-applied-configuration";

/// Makes tokens under one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    key: Option<[u64; 2]>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.key.is_some() { "keyed" } else { "blank" };
        f.debug_tuple("Tokens").field(&how).finish()
    }
}

/// What the strings inside a value are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Plain,
    /// All of them are secret.
    Secret,
    /// The list of a container's variables.
    Variables,
    /// One variable, whose `value` is secret.
    Variable,
}

struct Level {
    inside: Inside,
    is_object: bool,
    /// The next string is a key.
    wants_key: bool,
}

impl Tokens {
    /// Tokens under a key that is written down nowhere in the log.
    pub fn keyed(key: [u8; 16]) -> Tokens {
        let half = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&key[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Tokens {
            key: Some([half(0), half(8)]),
        }
    }

    /// One token for all strings: for those who have the log and not its key.
    pub fn blank() -> Tokens {
        Tokens { key: None }
    }

    /// Whether one token stands for all strings.
    pub fn is_blank(&self) -> bool {
        self.key.is_none()
    }

    /// The JSON of an object, or of a part of one, with tokens. What is a token stays one, so that
    /// doing it twice is doing it once.
    pub fn text(&self, kind: Kind, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let is_data = matches!(kind, Kind::Secret | Kind::ConfigMap);
        let mut levels: Vec<Level> = Vec::new();
        let mut key: (usize, usize) = (0, 0);
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            match byte {
                b'"' => {
                    let end = end_of_string(text, at);
                    let string = &text[at + 1..end.max(at + 1)];
                    let level = levels.last_mut();
                    let is_key = level.as_ref().is_some_and(|level| level.wants_key);
                    if let (true, Some(level)) = (is_key, level) {
                        level.wants_key = false;
                        key = (at + 1, end.max(at + 1));
                        out.extend_from_slice(&text[at..(end + 1).min(text.len())]);
                    } else if is_secret(levels.last(), &text[key.0..key.1]) {
                        out.push(b'"');
                        self.token(string, &mut out);
                        out.push(b'"');
                    } else {
                        out.extend_from_slice(&text[at..(end + 1).min(text.len())]);
                    }
                    at = end + 1;
                    continue;
                }
                b'{' | b'[' if levels.len() < DEPTH_MAX => {
                    let is_object = byte == b'{';
                    let name = &text[key.0..key.1];
                    let inside = inside(&levels, name, is_object, is_data);
                    levels.push(Level {
                        inside,
                        is_object,
                        wants_key: is_object,
                    });
                }
                b'}' | b']' => {
                    levels.pop();
                }
                b',' => {
                    if let Some(level) = levels.last_mut() {
                        level.wants_key = level.is_object;
                    }
                }
                _ => {}
            }
            out.push(byte);
            at += 1;
        }
        out
    }

    /// Data of a Secret or ConfigMap with tokens.
    pub fn data(&self, data: &Value) -> Value {
        let whole = json!({ "data": data }).to_string();
        let told = self.text(Kind::ConfigMap, whole.as_bytes());
        let mut told: Value = serde_json::from_slice(&told).unwrap_or_default();
        told["data"].take()
    }

    fn token(&self, string: &[u8], out: &mut Vec<u8>) {
        if string.is_empty() {
            return;
        }
        let Some(key) = self.key else {
            out.extend_from_slice(PREFIX);
            return;
        };
        if is_token(string) {
            out.extend_from_slice(string);
            return;
        }
        let sum = sip(key, string);
        out.extend_from_slice(PREFIX);
        for nibble in (0..16).rev() {
            out.push(b"0123456789abcdef"[((sum >> (nibble * 4)) & 15) as usize]);
        }
    }
}

/// Whether an object of a kind, as far as the mirror reads it, may hold a secret string.
pub fn holds_secrets(kind: Kind, text: &[u8]) -> bool {
    matches!(
        kind,
        Kind::BatchCronJob
            | Kind::BatchJob
            | Kind::ConfigMap
            | Kind::ControllerRevision
            | Kind::Deployment
            | Kind::ReplicaSet
            | Kind::Secret
            | Kind::StatefulSet
            | Kind::VcJob
    ) || std::str::from_utf8(text).is_ok_and(|text| text.contains("last-applied-configuration"))
}

fn inside(levels: &[Level], key: &[u8], is_object: bool, is_data: bool) -> Inside {
    let Some(parent) = levels.last() else {
        return Inside::Plain;
    };
    match parent.inside {
        Inside::Secret => return Inside::Secret,
        Inside::Variables if is_object => return Inside::Variable,
        _ => {}
    }
    if !parent.is_object {
        return Inside::Plain;
    }
    match key {
        b"env" if !is_object => Inside::Variables,
        b"args" | b"command" if !is_object => Inside::Secret,
        b"data" | b"stringData" | b"binaryData" if is_data && levels.len() == 1 => Inside::Secret,
        _ => Inside::Plain,
    }
}

fn is_secret(level: Option<&Level>, key: &[u8]) -> bool {
    let Some(level) = level else {
        return false;
    };
    match level.inside {
        Inside::Secret => true,
        Inside::Variable if key == b"value" => true,
        _ => level.is_object && key == LAST_APPLIED,
    }
}

fn is_token(string: &[u8]) -> bool {
    string.len() == LENGTH
        && string.starts_with(PREFIX)
        && string[PREFIX.len()..]
            .iter()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

/// Where the string that begins at `at` has its closing quote.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            b'"' => return end,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    text.len()
}

/// SipHash-2-4.
fn sip(key: [u64; 2], text: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut eights = text.chunks_exact(8);
    for eight in &mut eights {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        absorb(&mut state, u64::from_le_bytes(word));
    }
    let mut last = [0; 8];
    let rest = eights.remainder();
    last[..rest.len()].copy_from_slice(rest);
    last[7] = (text.len() & 255) as u8;
    absorb(&mut state, u64::from_le_bytes(last));
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    round(state);
    state[0] ^= word;
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Kind, text: &str) -> String {
        let tokens = Tokens::keyed([7; 16]);
        String::from_utf8(tokens.text(kind, text.as_bytes())).unwrap()
    }

    #[test]
    fn the_sums_are_those_of_siphash() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8);
        let half = |at| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let key = [half(0), half(8)];
        assert_eq!(sip(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(sip(key, &bytes[..15]), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn values_of_variables_arguments_and_commands_are_tokens_and_names_are_not() {
        let told = text(
            Kind::Pod,
            r#"{"metadata":{"labels":{"args":"x","value":"y"}},"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"pass\"word"},{"name":"B","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],"args":["--token=1"],"command":["sh",""]}]}}"#,
        );
        for gone in ["pass", "word", "--token", "\"sh\""] {
            assert!(!told.contains(gone), "{gone} in {told}");
        }
        for there in [
            r#""args":"x""#,
            r#""value":"y""#,
            r#""name":"A""#,
            r#""key":"k""#,
            r#","""#,
        ] {
            assert!(told.contains(there), "{there} in {told}");
        }
        assert_eq!(text(Kind::Pod, &told), told);
        assert!(serde_json::from_str::<Value>(&told).is_ok());
    }

    #[test]
    fn data_of_secrets_and_config_maps_and_what_was_last_applied_are_tokens() {
        let secret = r#"{"metadata":{"name":"s","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":1}"}},"data":{"password":"aGVsbG8="},"type":"Opaque"}"#;
        let told = text(Kind::Secret, secret);
        assert!(
            !told.contains("aGVsbG8") && !told.contains(r#"{\"data"#),
            "{told}"
        );
        assert!(told.contains("password") && told.contains("Opaque"));
        let other = r#"{"data":{"a":"b"}}"#;
        assert_eq!(text(Kind::Pod, other), other);
        assert_ne!(text(Kind::ConfigMap, other), other);
    }

    #[test]
    fn another_key_gives_other_tokens_and_no_key_one_for_all() {
        let map = br#"{"data":{"a":"b","c":"d"}}"#;
        let one = Tokens::keyed([1; 16]).text(Kind::ConfigMap, map);
        assert_ne!(one, Tokens::keyed([2; 16]).text(Kind::ConfigMap, map));
        let blank = Tokens::blank().text(Kind::ConfigMap, &one);
        assert_eq!(blank, br#"{"data":{"a":"tok:","c":"tok:"}}"#);
    }

    #[test]
    fn broken_text_is_passed_through_without_a_panic() {
        for broken in [
            "\"",
            "{\"a",
            "[[[",
            "]]}",
            "{\"env\":[{\"value\":\"x\\",
            "\\",
        ] {
            text(Kind::Secret, broken);
        }
    }
}
