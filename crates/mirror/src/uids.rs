//! Which object has a uid.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::intent::ObjectKey;

/// Keys by uid. A uid as servers make them is held as the number that it writes, which takes no memory of
/// its own; any other text as it is.
#[derive(Debug, Default)]
pub(crate) struct Uids {
    numbers: BTreeMap<u128, Arc<ObjectKey>>,
    texts: BTreeMap<Box<str>, Arc<ObjectKey>>,
}

impl Uids {
    pub(crate) fn get(&self, uid: &str) -> Option<&Arc<ObjectKey>> {
        match number(uid) {
            Some(number) => self.numbers.get(&number),
            None => self.texts.get(uid),
        }
    }

    /// The object of this key has the uid from now on; an empty one is nobody's.
    pub(crate) fn insert(&mut self, uid: &str, key: &Arc<ObjectKey>) {
        let key = Arc::clone(key);
        match number(uid) {
            Some(number) => self.numbers.insert(number, key),
            None if uid.is_empty() => None,
            None => self.texts.insert(uid.into(), key),
        };
    }

    /// The object of this key has it no more, if it had it.
    pub(crate) fn remove(&mut self, uid: &str, key: &Arc<ObjectKey>) {
        if self.get(uid) == Some(key) {
            match number(uid) {
                Some(number) => self.numbers.remove(&number),
                None => self.texts.remove(uid),
            };
        }
    }
}

/// The number that a uid writes, if it is written as servers do: no two texts write the same.
fn number(uid: &str) -> Option<u128> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let bytes = uid.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let digit = match byte {
            b'-' if DASHES.contains(&at) => continue,
            _ if DASHES.contains(&at) => return None,
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use api::kind::Kind;

    use super::*;

    #[test]
    fn every_uid_finds_its_object_however_it_is_written() {
        let mut uids = Uids::default();
        let texts = [
            "0000002a-5a1c-4d2e-9f00-000000000001",
            "0000002A-5a1c-4d2e-9f00-000000000001",
            "0000002a-5a1c-4d2e-9f00+000000000001",
            "0000002a-5a1c-4d2e-9f00-00000000000-",
            "0000002a05a1c-4d2e-9f00-000000000001",
            "u",
        ];
        let key = |name: &str| Arc::new(ObjectKey::new(Kind::Pod, "ml", name));
        for text in texts {
            uids.insert(text, &key(text));
        }
        assert_eq!((uids.numbers.len(), uids.texts.len()), (1, 5));
        for text in texts {
            assert_eq!(uids.get(text).map(|key| &*key.name), Some(text));
            uids.remove(text, &key("another"));
            assert!(uids.get(text).is_some());
            uids.remove(text, &key(text));
            assert!(uids.get(text).is_none());
        }
        uids.insert("", &key("nobody"));
        assert!(uids.get("").is_none());
    }
}
