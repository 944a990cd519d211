//! What selectors and preconditions read of an object, kept in one piece of memory: its uid, the
//! values of its selectable fields, its labels. A hundred thousand pods have millions of such texts,
//! and as many small allocations would take more room than the texts.

/// The texts of one object: uid, fields, then each label's key and value.
///
/// Each stands behind its length: seven bits a byte, the lowest first, the eighth says that more
/// follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glance {
    texts: Box<[u8]>,
    fields: u16,
}

impl Glance {
    /// Packs the texts; `labels` in any order.
    pub(crate) fn of<T: AsRef<str> + Ord>(
        uid: &str,
        fields: &[impl AsRef<str>],
        labels: &mut [(T, T)],
    ) -> Glance {
        labels.sort();
        let mut packed = Vec::with_capacity(192);
        put(&mut packed, uid);
        for field in fields {
            put(&mut packed, field.as_ref());
        }
        for (key, value) in labels.iter() {
            put(&mut packed, key.as_ref());
            put(&mut packed, value.as_ref());
        }
        Glance {
            // A copy: what a vector is made shorter to keeps the room that it had.
            texts: packed.as_slice().into(),
            // A definition may name eight, and no built-in kind has more than a dozen.
            fields: u16::try_from(fields.len()).unwrap_or(u16::MAX),
        }
    }

    pub(crate) fn uid(&self) -> &str {
        self.texts().next().unwrap_or_default()
    }

    /// The value of the selectable field of that place in its resource's list.
    pub(crate) fn field(&self, index: usize) -> Option<&str> {
        (index < usize::from(self.fields)).then(|| self.texts().nth(index + 1))?
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let mut texts = self.texts().skip(1 + usize::from(self.fields));
        while let (Some(label), Some(value)) = (texts.next(), texts.next()) {
            if label >= key {
                return (label == key).then_some(value);
            }
        }
        None
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let mut rest = &*self.texts;
        std::iter::from_fn(move || {
            let mut length = 0;
            for shift in (0..).step_by(7) {
                let (byte, after) = rest.split_first()?;
                rest = after;
                length |= usize::from(byte & 0x7f) << shift;
                if *byte < 0x80 {
                    break;
                }
            }
            let (text, after) = rest.split_at_checked(length)?;
            rest = after;
            // Only whole texts are ever packed.
            std::str::from_utf8(text).ok()
        })
    }
}

fn put(packed: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    while length >= 0x80 {
        packed.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    packed.push(length as u8);
    packed.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_found_again_whatever_its_length() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 300_000] {
            let long = "ü".repeat(length / 2);
            let fields = [long.as_str(), "node-1"];
            let mut labels = [("b", "2"), ("app", &*long), ("c", "")];
            let glance = Glance::of("u-1", &fields, &mut labels);
            assert_eq!(glance.uid(), "u-1");
            assert_eq!(glance.field(0), Some(&*long));
            assert_eq!(glance.field(1), Some("node-1"));
            assert_eq!(glance.field(2), None, "a label is no field");
            assert_eq!(glance.label("app"), Some(&*long));
            assert_eq!(glance.label("b"), Some("2"));
            assert_eq!(glance.label("c"), Some(""));
            assert_eq!(glance.label("d"), None);
            assert_eq!(glance.label("a"), None);
        }
    }
}
