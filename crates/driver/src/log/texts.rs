//! Texts of the objects that were written down last, so that an object that changes again need not be
//! put down again to see what is new.

use std::collections::{BTreeMap, VecDeque};

use mirror::Object;

/// So many bytes of texts are kept.
const BYTES_MAX: usize = 8 << 20;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// By where the object lies. It is held, so that nothing else can come to lie there.
    held: BTreeMap<usize, (Object, Vec<u8>)>,
    /// The oldest first; some are gone already.
    order: VecDeque<usize>,
    bytes: usize,
}

impl Texts {
    /// Takes the text of an object out, where it is known.
    pub(super) fn take(&mut self, object: &Object) -> Option<Vec<u8>> {
        let (_, text) = self.held.remove(&object.address())?;
        self.bytes -= text.len();
        Some(text)
    }

    /// Keeps the text of an object for a while.
    pub(super) fn keep(&mut self, object: &Object, text: Vec<u8>) {
        let address = object.address();
        self.bytes += text.len();
        self.order.push_back(address);
        if let Some((_, old)) = self.held.insert(address, (object.clone(), text)) {
            self.bytes -= old.len();
        }
        while self.bytes > BYTES_MAX || self.order.len() > 2 * self.held.len() + 1_024 {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            // Where it was taken and another has come to lie there, that one goes early.
            if let Some((_, text)) = self.held.remove(&oldest) {
                self.bytes -= text.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::kind::Kind;

    fn map(name: &str) -> Object {
        let text = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        Object::decode(Kind::ConfigMap, &text).expect("it is well formed")
    }

    #[test]
    fn the_text_of_that_very_object_comes_back_once() {
        let mut texts = Texts::default();
        let (one, twin) = (map("one"), map("one"));
        texts.keep(&one, b"one".to_vec());
        assert_eq!(texts.take(&twin), None);
        assert_eq!(texts.take(&one), Some(b"one".to_vec()));
        assert_eq!(texts.take(&one), None);
        assert_eq!(texts.bytes, 0);
    }

    #[test]
    fn texts_are_bounded_in_bytes_and_in_number() {
        let mut texts = Texts::default();
        let large: Vec<Object> = (0..40).map(|at| map(&at.to_string())).collect();
        for object in &large {
            texts.keep(object, vec![b'x'; BYTES_MAX / 10]);
            assert!(texts.bytes <= BYTES_MAX);
        }
        assert_eq!(texts.held.len(), 10);
        assert!(texts.take(&large[0]).is_none() && texts.take(&large[39]).is_some());
        for at in 0..10_000 {
            let object = map(&at.to_string());
            texts.keep(&object, Vec::new());
            texts.take(&object);
            assert!(texts.order.len() < 1_100, "{}", texts.order.len());
        }
    }
}
