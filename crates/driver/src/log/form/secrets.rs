//! A form with tokens instead of what may be secret.

use api::kind::Kind;
use api::token::{Place, Tokens};

use super::super::names::Names;
use super::{DEPTH_MAX, Form, Item, Part, item, put_text};

/// The same value with tokens, into `out`, and where its parts end. What is no form stays as it is.
pub(in super::super) fn told(
    form: &[u8],
    kind: Kind,
    tokens: &Tokens,
    names: &Names,
    out: &mut Form,
) {
    out.clear();
    let mut walk = Walk {
        form,
        names,
        tokens,
        at: 0,
        copied: 0,
        out,
    };
    if let Some(Item::Open { is_object }) = walk.next() {
        let top = Place::top(kind);
        match is_object {
            true => walk.object(top, DEPTH_MAX),
            false => walk.list(top.within(b"", false), DEPTH_MAX),
        };
    }
    walk.copy_to(form.len());
}

struct Walk<'a> {
    form: &'a [u8],
    names: &'a Names,
    tokens: &'a Tokens,
    at: usize,
    /// Up to here it stands in `out`.
    copied: usize,
    out: &'a mut Form,
}

impl<'a> Walk<'a> {
    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let (item, end) = item(self.form, self.at)?;
        self.at = end;
        Some(item)
    }

    fn copy_to(&mut self, end: usize) {
        let bytes = self.form.get(self.copied..end).unwrap_or_default();
        self.out.bytes.extend_from_slice(bytes);
        self.copied = end;
    }

    /// What follows the beginning of an object; `None` where it is cut short.
    fn object(&mut self, place: Place, depth: usize) -> Option<()> {
        let part = self.begin();
        loop {
            let key = match self.next()? {
                Item::Close => break,
                Item::Text(text) => text,
                Item::Whole(number) => self.names.name(number).unwrap_or_default().as_bytes(),
                _ => return None,
            };
            self.value(place, key, depth)?;
        }
        self.end(part);
        Some(())
    }

    fn list(&mut self, place: Place, depth: usize) -> Option<()> {
        let part = self.begin();
        while self.form.get(self.at) != Some(&super::CLOSE) {
            self.value(place, b"", depth)?;
        }
        self.at += 1;
        self.end(part);
        Some(())
    }

    fn value(&mut self, place: Place, key: &[u8], depth: usize) -> Option<()> {
        let from = self.at;
        match self.next()? {
            Item::Open { is_object } => {
                let depth = depth.checked_sub(1)?;
                let place = place.within(key, is_object);
                match is_object {
                    true => self.object(place, depth),
                    false => self.list(place, depth),
                }
            }
            Item::Text(text) if place.hides(key) => {
                self.copy_to(from);
                put_text(&mut self.out.bytes, &self.tokens.token(text));
                self.copied = self.at;
                Some(())
            }
            Item::Close => None,
            _ => Some(()),
        }
    }

    fn begin(&mut self) -> usize {
        self.out.parts.push(Part::default());
        self.out.parts.len() - 1
    }

    fn end(&mut self, part: usize) {
        // What is not copied yet is copied as it is.
        let end = self.out.bytes.len() + self.at - self.copied;
        let next = self.out.parts.len() as u32;
        if let Some(part) = self.out.parts.get_mut(part) {
            *part = Part {
                end: end as u32,
                next,
            };
        }
    }
}
