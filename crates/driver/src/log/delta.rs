//! An object's form as what is new in it against a base that reader and writer both have.
//!
//! A delta says, again and again: so many bytes as they stand in the base, then so many of the base
//! left out, then these instead. Behind the last of it the rest of the base follows. The base is read
//! from its beginning to its end, so that no object is longer than its base and its delta together,
//! and reading one costs as much as copying it.
//!
//! How the writer finds what is new is his own affair: see [`walk`].

mod walk;

use super::bytes::{Reader, number};
use super::frame::Problem;

pub(super) use walk::Walker;

/// The longest form that is taken: more than any server stores as one object.
const FORM_MAX: usize = 32 << 20;
/// A run of the base as short as this is not worth a word of its own.
const RUN_MIN: usize = 4;

/// A delta that is being written, by runs of both forms in their order.
#[derive(Debug, Default)]
struct Edits {
    /// So many bytes of the base as they are, …
    copied: usize,
    /// … then so many left out, …
    skipped: usize,
    /// … then what stands there in the new form.
    from: usize,
    until: usize,
    /// So many bytes behind that are as they are.
    run: usize,
}

impl Edits {
    /// The next bytes are the same in both.
    #[inline]
    fn same(&mut self, length: usize) {
        self.run += length;
    }

    /// So many bytes of the base become so many of the new form.
    fn instead(&mut self, skipped: usize, inserted: usize, new: &[u8], out: &mut Vec<u8>) {
        if !self.is_empty() && self.run < RUN_MIN {
            self.skipped += self.run;
        } else {
            self.put(new, out);
            self.copied += self.run;
            self.from += self.run;
        }
        self.until += self.run + inserted;
        self.skipped += skipped;
        self.run = 0;
    }

    fn is_empty(&self) -> bool {
        self.skipped == 0 && self.from == self.until
    }

    /// Puts down what is gathered.
    fn put(&mut self, new: &[u8], out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let inserted = new.get(self.from..self.until).unwrap_or_default();
        let is_same = inserted.len() == self.skipped;
        number(out, self.copied as u64);
        number(out, (inserted.len() as u64) << 1 | u64::from(!is_same));
        if !is_same {
            number(out, self.skipped as u64);
        }
        out.extend_from_slice(inserted);
        (self.copied, self.skipped, self.from) = (0, 0, self.until);
    }
}

/// The form again; `offset` is where the delta stands in the file.
pub(super) fn apply(base: &[u8], delta: &[u8], offset: u64) -> Result<Vec<u8>, Problem> {
    let mut form = Vec::with_capacity(FORM_MAX.min(base.len() + delta.len()));
    let mut reader = Reader::new(delta, offset);
    let mut rest = base;
    while !reader.is_done() {
        let copied = reader.length()?;
        let inserted = reader.number()?;
        let length = usize::try_from(inserted >> 1).ok();
        let skipped = match inserted & 1 {
            0 => length,
            _ => Some(reader.length()?),
        };
        let inserted = length.and_then(|length| reader.take(length));
        let (Some(skipped), Some(inserted)) = (skipped, inserted) else {
            return Err(reader.problem("a delta ends early"));
        };
        let parts = rest.split_at_checked(copied);
        let parts = parts.and_then(|(run, rest)| Some((run, rest.get(skipped..)?)));
        let (run, behind) = parts.ok_or_else(|| reader.problem("a delta does not fit its base"))?;
        form.extend_from_slice(run);
        form.extend_from_slice(inserted);
        rest = behind;
    }
    form.extend_from_slice(rest);
    match form.len() > FORM_MAX {
        true => Err(reader.problem("an object is too long")),
        false => Ok(form),
    }
}
