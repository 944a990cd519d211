//! Objects and lists that are not whole yet.

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde_json::Error;

use super::Put;

/// See the module's page.
pub(in super::super::super) struct Open<'a, 'b> {
    pub(super) put: &'a mut Put<'b>,
    pub(super) part: usize,
    /// The object around it, where it is the content of a variant.
    pub(super) outer: Option<usize>,
}

impl Open<'_, '_> {
    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.put)
    }

    #[inline]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.put.name(name);
        value.serialize(&mut *self.put)
    }

    #[inline]
    fn close(self) -> Result<(), Error> {
        self.put.form.close(self.part);
        if let Some(outer) = self.outer {
            self.put.form.close(outer);
        }
        Ok(())
    }
}

/// Lists in all of serde's shapes.
macro_rules! lists {
    ($($trait:ident $method:ident,)*) => { $(
        impl $trait for Open<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )* };
}

lists! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

/// Objects whose keys are names.
macro_rules! structs {
    ($($trait:ident,)*) => { $(
        impl $trait for Open<'_, '_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        }
    )* };
}

structs! {
    SerializeStruct,
    SerializeStructVariant,
}

impl SerializeMap for Open<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let from = self.put.form.bytes.len();
        key.serialize(&mut *self.put)?;
        self.put.key_from(from)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}
