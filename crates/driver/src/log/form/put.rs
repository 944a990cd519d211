//! Values → their form.

mod open;

use serde::Serialize;
use serde::ser::{Error as _, Serializer};
use serde_json::Error;

use api::time::{MICROS_NAME, SECONDS_NAME};
use api::token::may_hide;

use super::super::names::Names;
use super::{
    DIGITS, FALSE, Form, Item, LIST, MICROS, NULL, OBJECT, POINT, SECONDS, TEXT_1, TRUE, item,
    put_signed, put_text, put_whole,
};
use crate::log::bytes;
use open::Open;

/// Puts a value down behind what the form holds. A form that begins empty holds one value then.
pub(in super::super) fn put(
    value: &(impl Serialize + ?Sized),
    names: &mut Names,
    form: &mut Form,
) -> Result<(), Error> {
    value.serialize(&mut Put {
        form: &mut *form,
        names: &mut *names,
    })?;
    form.may_hide |= names.may_hide();
    Ok(())
}

struct Put<'a> {
    form: &'a mut Form,
    names: &'a mut Names,
}

impl<'b> Put<'b> {
    fn open(&mut self, head: u8) -> Open<'_, 'b> {
        let part = self.form.open(head);
        Open {
            put: self,
            part,
            outer: None,
        }
    }

    /// Begins the content of a variant: `{"Variant": …}`.
    fn open_variant(&mut self, variant: &'static str, head: u8) -> Open<'_, 'b> {
        let outer = self.form.open(OBJECT);
        self.name(variant);
        let mut open = self.open(head);
        open.outer = Some(outer);
        open
    }

    #[inline]
    fn name(&mut self, name: &'static str) {
        let number = self.names.number(name);
        put_whole(&mut self.form.bytes, number);
    }

    #[inline]
    fn head(&mut self, head: u8) {
        self.form.bytes.push(head);
    }

    /// What was put down at `from` is a key. Keys of objects are texts.
    #[inline]
    fn key_from(&mut self, from: usize) -> Result<(), Error> {
        match item(&self.form.bytes, from) {
            Some((Item::Text(text), _)) => {
                self.form.may_hide |= may_hide(text);
                Ok(())
            }
            _ => self.key_as_text(from),
        }
    }

    fn key_as_text(&mut self, from: usize) -> Result<(), Error> {
        let text = match item(&self.form.bytes, from) {
            Some((Item::Whole(number), _)) => number.to_string(),
            Some((Item::Below(number), _)) => (!number as i64).to_string(),
            Some((Item::Other(TRUE, _), _)) => "true".to_owned(),
            Some((Item::Other(FALSE, _), _)) => "false".to_owned(),
            _ => return Err(Error::custom("a key is no text")),
        };
        self.form.bytes.truncate(from);
        put_text(&mut self.form.bytes, text.as_bytes());
        Ok(())
    }
}

impl<'a, 'b> Serializer for &'a mut Put<'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'a, 'b>;
    type SerializeTuple = Open<'a, 'b>;
    type SerializeTupleStruct = Open<'a, 'b>;
    type SerializeTupleVariant = Open<'a, 'b>;
    type SerializeMap = Open<'a, 'b>;
    type SerializeStruct = Open<'a, 'b>;
    type SerializeStructVariant = Open<'a, 'b>;

    /// Times are numbers then. Nobody else asks.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.head(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        put_signed(&mut self.form.bytes, value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.serialize_u64(value),
            (_, Ok(value)) => self.serialize_i64(value),
            _ => self.digits(&value.to_string()),
        }
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        put_whole(&mut self.form.bytes, value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        match u64::try_from(value) {
            Ok(value) => self.serialize_u64(value),
            Err(_) => self.digits(&value.to_string()),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        // Of its own shortest digits, not of those of the longer number that it is.
        self.serialize_f64(value.to_string().parse().map_err(Error::custom)?)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            // JSON has no other word for it.
            return self.serialize_unit();
        }
        self.head(POINT);
        self.form.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        put_text(&mut self.form.bytes, value.as_bytes());
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.head(NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        match name {
            SECONDS_NAME => self.head(SECONDS),
            MICROS_NAME => self.head(MICROS),
            _ => {}
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let part = self.form.open(OBJECT);
        self.name(variant);
        value.serialize(&mut *self)?;
        self.form.close(part);
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open(LIST))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open_variant(variant, LIST))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open(OBJECT))
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open(OBJECT))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Open<'a, 'b>, Error> {
        Ok(self.open_variant(variant, OBJECT))
    }

    /// Writes in place, and moves the text where its length takes more room than is thought.
    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        use std::fmt::Write;
        let from = self.form.bytes.len();
        self.head(TEXT_1);
        write!(Shown(&mut self.form.bytes), "{value}").map_err(Error::custom)?;
        let length = self.form.bytes.len() - from - 1;
        match (u8::try_from(length), self.form.bytes.get_mut(from)) {
            (Ok(length), Some(head)) if length < TEXT_1 => *head = TEXT_1 + length,
            _ => {
                let text = self.form.bytes.split_off(from + 1);
                self.form.bytes.truncate(from);
                put_text(&mut self.form.bytes, &text);
            }
        }
        Ok(())
    }
}

/// Takes letters.
struct Shown<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Shown<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Put<'_> {
    fn digits(&mut self, digits: &str) -> Result<(), Error> {
        self.head(DIGITS);
        bytes::text(&mut self.form.bytes, digits.as_bytes());
        Ok(())
    }
}
