//! The form in which a client wants objects, read from `Accept`.

use crate::status::{Outcome, Refused};

/// How an object is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The shape.
    pub shape: Shape,
    /// The media type that was asked for, echoed in the answer.
    media_type: String,
}

/// The shape of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The object itself.
    Whole,
    /// Only `metadata`.
    Partial,
    /// Rows and columns.
    Table,
}

impl View {
    /// The whole object as JSON.
    pub fn whole() -> View {
        View {
            shape: Shape::Whole,
            media_type: "application/json".to_owned(),
        }
    }

    /// The first form in `accept` that this server speaks.
    pub fn parse(accept: &str) -> Outcome<View> {
        if accept.trim().is_empty() {
            return Ok(View::whole());
        }
        for choice in accept.split(',') {
            let mut parts = choice.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "*/*" | "application/*") {
                continue;
            }
            let parameters: Vec<(&str, &str)> =
                parts.filter_map(|part| part.split_once('=')).collect();
            let parameter = |key: &str| {
                parameters
                    .iter()
                    .find(|(name, _)| *name == key)
                    .map_or("", |(_, value)| value)
            };
            let shape = match parameter("as") {
                "" => Shape::Whole,
                "Table" if parameter("v") == "v1" => Shape::Table,
                "PartialObjectMetadata" | "PartialObjectMetadataList"
                    if ["v1", "v1beta1"].contains(&parameter("v")) =>
                {
                    Shape::Partial
                }
                _ => continue,
            };
            return Ok(View {
                shape,
                media_type: "application/json".to_owned(),
            });
        }
        Err(Refused::not_acceptable())
    }

    /// `Content-Type` of the answer.
    pub fn content_type(&self) -> String {
        self.media_type.clone()
    }
}
