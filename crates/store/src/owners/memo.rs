//! Texts that many objects share are kept once.

use std::sync::Arc;

use super::Who;

/// How many texts are remembered. Objects made alike follow each other closely; one that is
/// forgotten costs memory, never truth.
const PLACES: usize = 4_096;

/// The texts seen last, each at the one place that its own bytes name.
#[derive(Debug)]
pub(crate) struct Memo {
    texts: Box<[Option<Arc<str>>]>,
    whos: Box<[Option<Arc<Who>>]>,
}

impl Default for Memo {
    fn default() -> Memo {
        Memo {
            texts: vec![None; PLACES].into(),
            whos: vec![None; PLACES].into(),
        }
    }
}

impl Memo {
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        let place = &mut self.texts[place(text.as_bytes(), 0)];
        match place {
            Some(known) if **known == *text => known.clone(),
            _ => {
                let new: Arc<str> = text.into();
                *place = Some(new.clone());
                new
            }
        }
    }

    pub(super) fn who(&mut self, who: Who) -> Arc<Who> {
        let mut at = place(who.manager.as_bytes(), who.operation as u64);
        at = place(who.api_version.as_bytes(), at as u64);
        at = place(who.subresource.as_bytes(), at as u64);
        let place = &mut self.whos[at];
        match place {
            Some(known) if **known == who => known.clone(),
            _ => {
                let new = Arc::new(who);
                *place = Some(new.clone());
                new
            }
        }
    }
}

/// A place from bytes: eight at a time, each folded in by a multiplication.
fn place(bytes: &[u8], seed: u64) -> usize {
    let mut sum = seed ^ bytes.len() as u64;
    let mut fold =
        |word: u64| sum = (sum.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        fold(u64::from_le_bytes(*word));
    }
    for byte in rest {
        fold(u64::from(*byte));
    }
    (sum >> 40) as usize % PLACES
}
