//! A number or a text: a port by number or by name, an amount or a percentage.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `intstr.IntOrString`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text, such as a port's name or `25%`.
    Text(Box<str>),
}

impl Default for IntOrString {
    fn default() -> IntOrString {
        IntOrString::Int(0)
    }
}

impl IntOrString {
    /// The number, or the number that the text spells, else 0, as `IntValue` upstream.
    pub fn int_value(&self) -> i32 {
        match self {
            IntOrString::Int(number) => *number,
            IntOrString::Text(text) => text.parse().unwrap_or(0),
        }
    }

    /// The number itself, or that percentage of `total`; `None` where the text is no percentage.
    /// A fraction is rounded as asked.
    pub fn of(&self, total: i64, rounding: Rounding) -> Option<i64> {
        match self {
            IntOrString::Int(number) => Some(i64::from(*number)),
            IntOrString::Text(text) => {
                let percent: i64 = text.strip_suffix('%')?.parse::<i32>().ok()?.into();
                let product = i128::from(percent) * i128::from(total);
                let up = match rounding {
                    Rounding::Up => 99,
                    Rounding::Down => 0,
                };
                i64::try_from((product + up).div_euclid(100)).ok()
            }
        }
    }
}

/// What becomes of a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next greater whole number.
    Up,
    /// To the next smaller whole number.
    Down,
}

impl std::fmt::Display for IntOrString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IntOrString::Int(number) => number.fmt(f),
            IntOrString::Text(text) => text.fmt(f),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            IntOrString::Int(number) => serializer.serialize_i32(*number),
            IntOrString::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IntOrString, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = IntOrString;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an int32 or a string")
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<IntOrString, E> {
                let number = i32::try_from(number)
                    .map_err(|_| E::custom(format!("{number} is out of range for an int32")))?;
                Ok(IntOrString::Int(number))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<IntOrString, E> {
                let number = i32::try_from(number)
                    .map_err(|_| E::custom(format!("{number} is out of range for an int32")))?;
                Ok(IntOrString::Int(number))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::Text(text.into()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_of_the_total_and_rounded_as_asked() {
        let quarter: IntOrString = serde_json::from_str("\"25%\"").unwrap();
        assert_eq!(quarter.of(10, Rounding::Up), Some(3));
        assert_eq!(quarter.of(10, Rounding::Down), Some(2));
        let three: IntOrString = serde_json::from_str("3").unwrap();
        assert_eq!(three.of(10, Rounding::Up), Some(3));
        assert_eq!(IntOrString::Text("x".into()).of(10, Rounding::Up), None);
        assert_eq!(serde_json::to_string(&quarter).unwrap(), "\"25%\"");
        assert!(serde_json::from_str::<IntOrString>("4294967296").is_err());
    }
}
