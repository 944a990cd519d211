//! A form → JSON text. Nothing is taken on trust.

use api::time::Time;
use serde_json::Number;

use super::super::names::Names;
use super::{DEPTH_MAX, DIGITS, FALSE, Item, MICROS, NULL, POINT, SECONDS, TRUE, item};

/// The JSON of a form that holds one value; what is wrong with it otherwise.
pub(in super::super) fn json(form: &[u8], names: &Names) -> Result<String, &'static str> {
    let mut writer = Writer {
        form,
        names,
        at: 0,
        out: Vec::with_capacity(form.len() * 2),
    };
    let first = writer.next()?;
    writer.value(first, DEPTH_MAX)?;
    if writer.at != form.len() {
        return Err("something stands behind an object");
    }
    String::from_utf8(writer.out).map_err(|_| "a text is not UTF-8")
}

struct Writer<'a> {
    form: &'a [u8],
    names: &'a Names,
    at: usize,
    out: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn next(&mut self) -> Result<Item<'a>, &'static str> {
        let (item, end) = item(self.form, self.at).ok_or("an object ends early")?;
        self.at = end;
        Ok(item)
    }

    fn value(&mut self, item: Item<'_>, depth: usize) -> Result<(), &'static str> {
        match item {
            Item::Open { is_object } => {
                let depth = depth.checked_sub(1).ok_or("an object is too deep")?;
                match is_object {
                    true => self.object(depth),
                    false => self.list(depth),
                }
            }
            Item::Text(text) => self.text(text),
            Item::Whole(number) => self.show(&Number::from(number)),
            Item::Below(number) => {
                let number = below(number).ok_or("a number is too small")?;
                self.show(&Number::from(number))
            }
            Item::Other(head, rest) => self.other(head, rest),
            Item::Close => Err("an end stands where a value is wanted"),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), &'static str> {
        self.out.push(b'{');
        let mut is_first = true;
        loop {
            let key = self.next()?;
            if key == Item::Close {
                self.out.push(b'}');
                return Ok(());
            }
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match key {
                Item::Text(text) => self.text(text)?,
                Item::Whole(number) => {
                    let name = self
                        .names
                        .name(number)
                        .ok_or("a name was never explained")?;
                    self.text(name.as_bytes())?;
                }
                _ => return Err("a key is no text"),
            }
            self.out.push(b':');
            let value = self.next()?;
            self.value(value, depth)?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), &'static str> {
        self.out.push(b'[');
        let mut is_first = true;
        loop {
            let value = self.next()?;
            if value == Item::Close {
                self.out.push(b']');
                return Ok(());
            }
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            self.value(value, depth)?;
        }
    }

    fn other(&mut self, head: u8, rest: &[u8]) -> Result<(), &'static str> {
        match head {
            NULL => self.out.extend_from_slice(b"null"),
            FALSE => self.out.extend_from_slice(b"false"),
            TRUE => self.out.extend_from_slice(b"true"),
            POINT => {
                let eight = rest.try_into().map_err(|_| "a number ends early")?;
                let number = Number::from_f64(f64::from_le_bytes(eight));
                self.show(&number.ok_or("a number is none")?)?;
            }
            DIGITS => {
                let (sign, digits) = rest.split_at(usize::from(rest.first() == Some(&b'-')));
                if digits.is_empty()
                    || digits.len() > 40
                    || digits.first() == Some(&b'0')
                    || !digits.iter().all(u8::is_ascii_digit)
                {
                    return Err("digits are none");
                }
                self.out.extend_from_slice(sign);
                self.out.extend_from_slice(digits);
            }
            SECONDS | MICROS => {
                let number = match item(rest, 0) {
                    Some((Item::Whole(number), _)) => i64::try_from(number).ok(),
                    Some((Item::Below(number), _)) => below(number),
                    _ => None,
                };
                let number = number.ok_or("a time is no number")?;
                let text = match head {
                    SECONDS => Time::from_seconds(number).seconds_text(),
                    _ => Time(number).micro(),
                };
                self.text(text.as_bytes())?;
            }
            _ => return Err("nothing begins like that"),
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
        self.show(text)
    }

    fn show(&mut self, value: &(impl serde::Serialize + ?Sized)) -> Result<(), &'static str> {
        serde_json::to_writer(&mut self.out, value).map_err(|_| "a value is no JSON")
    }
}

fn below(number: u64) -> Option<i64> {
    i64::try_from(number).ok().map(|number| !number)
}
