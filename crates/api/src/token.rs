//! Strings that may be secret become tokens: the same string the same token, and nobody without the
//! key can tell which string it was. And where in an object such strings stand.

use serde_json::Value;
use siphasher::sip::SipHasher24;

use crate::kind::Kind;

const PREFIX: &[u8] = b"tok:";
const LENGTH: usize = 20;
/// Holds an object as somebody applied it.
const LAST_APPLIED: &[u8] = b"kubectl.kubernetes.io/last-applied-configuration";

/// Makes tokens under one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    key: Option<[u8; 16]>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.key.is_some() { "keyed" } else { "blank" };
        f.debug_tuple("Tokens").field(&how).finish()
    }
}

impl Tokens {
    /// Tokens under a key that is written down nowhere in the log.
    pub fn keyed(key: [u8; 16]) -> Tokens {
        Tokens { key: Some(key) }
    }

    /// One token for all strings: for those who have the log and not its key.
    pub fn blank() -> Tokens {
        Tokens { key: None }
    }

    /// Whether one token stands for all strings.
    pub fn is_blank(&self) -> bool {
        self.key.is_none()
    }

    /// The token of a string. A token is its own, so that doing it twice is doing it once, and the
    /// empty string is no secret.
    pub fn token(&self, string: &[u8]) -> Token {
        let mut token = Token {
            bytes: [0; LENGTH],
            length: 0,
        };
        match self.key {
            _ if string.is_empty() => {}
            None => token.put(PREFIX),
            Some(_) if is_token(string) => token.put(string),
            Some(key) => {
                let sum = SipHasher24::new_with_key(&key).hash(string);
                token.put(PREFIX);
                for nibble in (0..16).rev() {
                    let nibble = ((sum >> (nibble * 4)) & 15) as usize;
                    token.put(&b"0123456789abcdef"[nibble..=nibble]);
                }
            }
        }
        token
    }

    /// Data of a Secret or ConfigMap with tokens.
    pub fn data(&self, data: &Value) -> Value {
        match data {
            Value::Object(_) | Value::Array(_) => self.hidden(data),
            other => other.clone(),
        }
    }

    fn hidden(&self, value: &Value) -> Value {
        match value {
            Value::String(string) => {
                let token = self.token(string.as_bytes());
                Value::String(String::from_utf8_lossy(&token).into_owned())
            }
            Value::Array(list) => list.iter().map(|value| self.hidden(value)).collect(),
            Value::Object(map) => {
                let rows = map.iter();
                rows.map(|(key, value)| (key.clone(), self.hidden(value)))
                    .collect()
            }
            other => other.clone(),
        }
    }
}

/// What stands for a string.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Token {
    fn put(&mut self, bytes: &[u8]) {
        let room = self.bytes.iter_mut().skip(self.length);
        room.zip(bytes).for_each(|(to, from)| *to = *from);
        self.length = LENGTH.min(self.length + bytes.len());
    }
}

impl std::ops::Deref for Token {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// An object or list inside an object of some kind, so far as secrets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    inside: Inside,
    is_object: bool,
    /// The whole of an object that holds data.
    is_data: bool,
}

/// What the strings inside a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Plain,
    /// All of them are secret.
    Secret,
    /// The list of a container's variables.
    Variables,
    /// One variable, whose `value` is secret.
    Variable,
}

impl Place {
    /// An object as a whole.
    pub fn top(kind: Kind) -> Place {
        Place {
            inside: Inside::Plain,
            is_object: true,
            is_data: holds_data(kind),
        }
    }

    /// What stands in it under a key, or as an item of a list: another object, or else a list.
    #[must_use]
    pub fn within(self, key: &[u8], is_object: bool) -> Place {
        let inside = match (self.inside, key) {
            (Inside::Secret, _) => Inside::Secret,
            (Inside::Variables, _) if is_object => Inside::Variable,
            _ if !self.is_object => Inside::Plain,
            (_, b"env") if !is_object => Inside::Variables,
            (_, b"args" | b"command") if !is_object => Inside::Secret,
            (_, b"data" | b"stringData" | b"binaryData") if self.is_data => Inside::Secret,
            _ => Inside::Plain,
        };
        Place {
            inside,
            is_object,
            is_data: false,
        }
    }

    /// Whether a string that stands in it under a key, or as an item of a list, may be secret.
    pub fn hides(self, key: &[u8]) -> bool {
        match self.inside {
            Inside::Secret => true,
            Inside::Variable if key == b"value" => true,
            _ => self.is_object && key == LAST_APPLIED,
        }
    }
}

/// Whether there may be secrets under such a key, wherever it stands and but for what
/// [`holds_data`]: where no key of an object is one of these it holds none.
#[inline]
pub fn may_hide(key: &[u8]) -> bool {
    match key.len() {
        3 => key == b"env",
        4 => key == b"args",
        7 => key == b"command",
        48 => key == LAST_APPLIED,
        _ => false,
    }
}

/// Whether objects of a kind hold data, any of which may be secret.
pub fn holds_data(kind: Kind) -> bool {
    matches!(kind, Kind::Secret | Kind::ConfigMap)
}

fn is_token(string: &[u8]) -> bool {
    string.len() == LENGTH
        && string.starts_with(PREFIX)
        && string[PREFIX.len()..]
            .iter()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hex(sum: u64) -> String {
        format!("tok:{sum:016x}")
    }

    fn token(tokens: &Tokens, string: &[u8]) -> String {
        String::from_utf8(tokens.token(string).to_vec()).expect("tokens are letters")
    }

    #[test]
    fn the_sums_are_those_of_siphash() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8);
        let tokens = Tokens::keyed(bytes);
        assert_eq!(token(&tokens, &bytes[..15]), hex(0xa129_ca61_49be_45e5));
        assert_eq!(token(&tokens, &bytes[..1]), hex(0x74f8_39c5_93dc_67fd));
        assert_eq!(token(&tokens, &bytes[..8]), hex(0x93f5_f579_9a93_2462));
    }

    #[test]
    fn a_token_is_its_own_and_nothing_has_none() {
        let tokens = Tokens::keyed([7; 16]);
        let once = token(&tokens, b"hunter2");
        assert_eq!(token(&tokens, once.as_bytes()), once);
        assert_ne!(token(&Tokens::keyed([8; 16]), b"hunter2"), once);
        assert_eq!(token(&tokens, b""), "");
        assert_eq!(token(&Tokens::blank(), once.as_bytes()), "tok:");
        assert_eq!(token(&Tokens::blank(), b"hunter2"), "tok:");
    }

    #[test]
    fn only_some_keys_have_secrets_under_them() {
        assert_eq!(LAST_APPLIED.len(), 48);
        for key in [b"env", b"args".as_slice(), b"command", LAST_APPLIED] {
            assert!(may_hide(key));
        }
        let keys = [b"name", b"value".as_slice(), b"data", b"", b"enw"];
        let top = Place::top(Kind::VcJob);
        for key in keys {
            let list = top.within(key, false);
            assert!(!may_hide(key) && !top.hides(key) && !list.hides(b""));
            assert!(!list.within(b"", true).hides(b"value"));
        }
        assert!(holds_data(Kind::Secret) && !holds_data(Kind::VcJob));
        assert!(Place::top(Kind::Secret).within(b"data", true).hides(b"a"));
    }

    #[test]
    fn data_have_tokens_at_any_depth_and_keep_their_keys() {
        let data = json!({ "a": "b", "c": { "d": ["e", 1, ""] }, "f": null });
        let blank = json!({ "a": "tok:", "c": { "d": ["tok:", 1, ""] }, "f": null });
        assert_eq!(Tokens::blank().data(&data), blank);
        let told = Tokens::keyed([1; 16]).data(&data);
        assert_ne!(told, Tokens::keyed([2; 16]).data(&data));
        assert_eq!(Tokens::keyed([1; 16]).data(&told), told);
        assert_eq!(Tokens::blank().data(&json!("a")), json!("a"));
    }
}
