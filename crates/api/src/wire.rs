//! Macros that keep wire structs readable: a field is its doc, its name and its type.
//!
//! What they add to every struct: camelCase names, absent and `null` both read as the empty
//! value, and (for kinds that are written back) unknown fields kept in `rest`.

/// Structs that are only read from the wire. Unknown fields are skipped. What they hold can be put
/// down again, empty fields left out: the decision log keeps what decisions see, and no more.
macro_rules! read_only {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty, )*
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $(
            $(#[$field_meta])*
            #[serde(
                deserialize_with = "crate::meta::null_as_default",
                skip_serializing_if = "crate::meta::is_default"
            )]
            pub $field: $type,
        )* }
    )* };
}

/// A struct that is only read, held in two parts: what mostly differs from object to object, and what those
/// of one template share. On the wire the fields of both stand side by side, and they are read so: the
/// first part gives way to the second.
macro_rules! parted {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty $(as $wire:literal)?, )*
        }

        $(#[$common_meta:meta])*
        pub struct $common:ident {
            $( $(#[$common_field_meta:meta])* pub $common_field:ident : $common_type:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            /// What it has in common with others.
            pub common: crate::shared::Shared<$common>,
        }

        $(#[$common_meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $common {
            $( $(#[$common_field_meta])* pub $common_field: $common_type, )*
        }

        impl std::ops::Deref for $name {
            type Target = $common;

            fn deref(&self) -> &$common {
                &self.common
            }
        }

        impl std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $common {
                &mut self.common
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                #[derive(Default, serde::Deserialize)]
                #[serde(rename_all = "camelCase", default)]
                struct Wire {
                    $(
                        #[serde(deserialize_with = "crate::meta::null_as_default")]
                        $( #[serde(rename = $wire)] )?
                        $field: $type,
                    )*
                    $(
                        #[serde(deserialize_with = "crate::meta::null_as_default")]
                        $common_field: $common_type,
                    )*
                }
                let wire = Wire::deserialize(deserializer)?;
                Ok($name {
                    $( $field: wire.$field, )*
                    common: crate::shared::Shared::new($common {
                        $( $common_field: wire.$common_field, )*
                    }),
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(serde::Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Wire<'a> {
                    $(
                        #[serde(skip_serializing_if = "crate::meta::is_default_there")]
                        $( #[serde(rename = $wire)] )?
                        $field: &'a $type,
                    )*
                    $(
                        #[serde(skip_serializing_if = "crate::meta::is_default_there")]
                        $common_field: &'a $common_type,
                    )*
                }
                Wire {
                    $( $field: &self.$field, )*
                    $( $common_field: &self.common.$common_field, )*
                }
                .serialize(serializer)
            }
        }
    };
}

/// Structs that are read and written back: empty fields are left out, as Go's `omitempty` does,
/// and unknown ones survive in `rest`. Where absent differs from empty, the field is an `Option`.
macro_rules! round_trip {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident : $type:ty, )*
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(
                    deserialize_with = "crate::meta::null_as_default",
                    skip_serializing_if = "crate::meta::is_default"
                )]
                pub $field: $type,
            )*
            /// Fields that this version does not know.
            #[serde(flatten)]
            pub rest: serde_json::Map<String, serde_json::Value>,
        }
    )* };
}

/// An enum of wire texts. The first variant is the absent one, written as the empty text.
macro_rules! texts {
    ($(#[$meta:meta])* pub enum $name:ident {
        $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            /// Not set.
            #[default]
            Unset,
            $( $(#[$variant_meta])* $variant, )*
        }

        impl $name {
            /// Every value but the absent one, in wire order.
            pub const ALL: &[$name] = &[$( $name::$variant, )*];

            /// The text on the wire.
            pub const fn text(self) -> &'static str {
                match self {
                    $name::Unset => "",
                    $( $name::$variant => $text, )*
                }
            }

            /// Reads the text on the wire; `None` for a text that is none of these.
            pub fn parse(text: &str) -> Option<$name> {
                match text {
                    "" => Some($name::Unset),
                    $( $text => Some($name::$variant), )*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.text())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                $name::parse(&text).ok_or_else(|| {
                    serde::de::Error::custom(format!(
                        "{text:?} is not one of {:?}",
                        $name::ALL.iter().map(|value| value.text()).collect::<Vec<_>>()
                    ))
                })
            }
        }
    };
}
