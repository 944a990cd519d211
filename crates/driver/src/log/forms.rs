//! Forms of the objects that were written down last, so that an object that changes again need not be
//! put down again to see what is new.
//!
//! A table by where objects lie: what it holds is held alive, so that nothing else can come to lie
//! there. An object has a few rows to choose from; where all are taken one of them goes, and what is
//! not here is put down again.

use mirror::Object;

use super::form::Form;

/// So many bytes of memory are kept.
const BYTES_MAX: usize = 16 << 20;
/// Rows that an object may have.
const CHOICE: usize = 4;
/// Rows of the smallest table and of the largest.
const ROWS_MIN: usize = 1 << 8;
const ROWS_MAX: usize = 1 << 16;
/// Forms whose memory waits to be used again.
const SPARE_MAX: usize = 64;
/// A form of more memory than this gives it back.
const SPARE_BYTES_MAX: usize = 16 << 10;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Forms {
    /// Where the objects of the rows lie; 0 for none.
    addresses: Vec<usize>,
    rows: Vec<Option<(Object, Form)>>,
    held: usize,
    bytes: usize,
    /// Which row goes next where there is too much.
    hand: usize,
    spare: Vec<Form>,
}

impl Default for Forms {
    fn default() -> Forms {
        Forms {
            addresses: vec![0; ROWS_MIN],
            rows: (0..ROWS_MIN).map(|_| None).collect(),
            held: 0,
            bytes: 0,
            hand: 0,
            spare: Vec::new(),
        }
    }
}

impl Forms {
    /// Takes the form of an object out, where it is known.
    pub(super) fn take(&mut self, object: &Object) -> Option<Form> {
        let address = object.address();
        let row = self.choice(address, address)?;
        self.remove(row)
    }

    /// Keeps the form of an object for a while.
    pub(super) fn keep(&mut self, object: &Object, form: Form) {
        if self.held * 2 >= self.rows.len() && self.rows.len() < ROWS_MAX {
            self.grow();
        }
        self.bytes += form.memory();
        self.put(object.clone(), form);
        while self.bytes > BYTES_MAX {
            self.hand = (self.hand + 1) % self.rows.len();
            let old = self.remove(self.hand);
            self.give_back(old);
        }
    }

    /// An empty form in memory that was used before, where there is some.
    pub(super) fn spare(&mut self) -> Form {
        let mut form = self.spare.pop().unwrap_or_else(Form::roomy);
        form.clear();
        form
    }

    /// Takes the memory of a form that is done with.
    pub(super) fn give_back(&mut self, form: impl Into<Option<Form>>) {
        if let Some(form) = form.into()
            && self.spare.len() < SPARE_MAX
            && form.memory() <= SPARE_BYTES_MAX
        {
            self.spare.push(form);
        }
    }

    /// The row of the object that lies there, or the first free one (0) that it may have.
    fn choice(&self, address: usize, wanted: usize) -> Option<usize> {
        let first = self.first(address);
        let rows = self.addresses.get(first..first + CHOICE)?;
        rows.iter()
            .position(|it| *it == wanted)
            .map(|at| first + at)
    }

    fn first(&self, address: usize) -> usize {
        // The high bits of the product depend on all of the address. Objects lie one after the other,
        // each as far from the last, and one product alone may lay such a row into few places.
        let once = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let product = (once ^ (once >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let choices = self.rows.len() / CHOICE;
        (product >> (64 - choices.ilog2())) as usize * CHOICE
    }

    fn put(&mut self, object: Object, form: Form) {
        let address = object.address();
        let row = self.choice(address, address);
        let row = row.or_else(|| self.choice(address, 0)).unwrap_or_else(|| {
            self.hand = (self.hand + 1) % self.rows.len();
            self.first(address) + self.hand % CHOICE
        });
        let old = self.remove(row);
        self.give_back(old);
        if let (Some(place), Some(held)) = (self.addresses.get_mut(row), self.rows.get_mut(row)) {
            *place = address;
            *held = Some((object, form));
            self.held += 1;
        }
    }

    fn remove(&mut self, row: usize) -> Option<Form> {
        let (_, form) = self.rows.get_mut(row)?.take()?;
        self.addresses[row] = 0;
        self.bytes -= form.memory();
        self.held -= 1;
        Some(form)
    }

    fn grow(&mut self) {
        let rows = self.rows.len() * 2;
        self.addresses = vec![0; rows];
        let old = std::mem::replace(&mut self.rows, (0..rows).map(|_| None).collect());
        self.held = 0;
        // What shared a choice comes apart as the table doubles, so that none has to go.
        for (object, form) in old.into_iter().flatten() {
            self.put(object, form);
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

    fn form(bytes: &[u8]) -> Form {
        Form {
            bytes: bytes.to_vec(),
            ..Form::default()
        }
    }

    fn bytes(form: Option<Form>) -> Option<Vec<u8>> {
        form.map(|form| form.bytes)
    }

    #[test]
    fn the_form_of_that_very_object_comes_back_once() {
        let mut forms = Forms::default();
        let (one, twin) = (map("one"), map("one"));
        forms.keep(&one, form(b"one"));
        assert_eq!(bytes(forms.take(&twin)), None);
        assert_eq!(bytes(forms.take(&one)), Some(b"one".to_vec()));
        assert_eq!(bytes(forms.take(&one)), None);
        assert_eq!((forms.bytes, forms.held), (0, 0));
    }

    #[test]
    fn forms_are_bounded_in_bytes() {
        let mut forms = Forms::default();
        let all: Vec<Object> = (0..40).map(|at| map(&at.to_string())).collect();
        for object in &all {
            forms.keep(object, form(&vec![b'x'; BYTES_MAX / 10]));
            assert!(forms.bytes <= BYTES_MAX);
        }
        assert!((1..=10).contains(&forms.held), "{}", forms.held);
    }

    #[test]
    fn most_of_what_was_kept_last_is_there_however_many_they_are() {
        let mut forms = Forms::default();
        let all: Vec<Object> = (0..20_000).map(|at| map(&at.to_string())).collect();
        for object in &all {
            forms.keep(object, form(object.name().as_bytes()));
        }
        assert!(forms.rows.len() <= ROWS_MAX);
        let held = forms.held;
        let mut found = 0;
        for object in &all {
            let known = bytes(forms.take(object));
            found += usize::from(known.is_some());
            assert!(known.is_none_or(|known| known == object.name().as_bytes()));
        }
        assert_eq!(found, held);
        assert!(found > all.len() * 9 / 10, "{found}");
        assert_eq!((forms.bytes, forms.held), (0, 0));
    }
}
