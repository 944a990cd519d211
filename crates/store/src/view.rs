//! The form in which a client wants objects, read from `Accept`.

use serde_json::Value;

use crate::request::Response;
use crate::status::{Outcome, Refused};
use crate::table::MetaVersion;

/// How an object is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The shape.
    pub shape: Shape,
    /// The version of the shape, where it is not the object's own.
    pub(crate) version: MetaVersion,
    /// What the client thinks that it asks for.
    asked: Asked,
    /// The media type that was asked for, echoed in the answer.
    media_type: String,
}

/// What a client thinks that it asks for, as far as the shape tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Either,
    List,
    One,
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
            version: MetaVersion::V1,
            asked: Asked::Either,
            media_type: JSON.to_owned(),
        }
    }

    /// Refuses one object to who asked for the metadata of a list. `kind` is the object's.
    pub(crate) fn shows_one(&self, kind: &str) -> Outcome<()> {
        match self.asked {
            Asked::List => Err(Refused::other_shape(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})"
            ))),
            Asked::Either | Asked::One => Ok(()),
        }
    }

    /// Refuses a list to who asked for the metadata of one object. `kind` is the list's.
    pub(crate) fn shows_list(&self, kind: &str) -> Outcome<()> {
        match self.asked {
            Asked::One => Err(Refused::other_shape(&format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{kind})"
            ))),
            Asked::Either | Asked::List => Ok(()),
        }
    }

    /// The first form in `accept` that this server speaks.
    pub(crate) fn parse(accept: &str) -> Result<View, Unfit> {
        let mut unfit = Unfit::Media;
        for choice in choices(accept) {
            if !choice.is_spoken() {
                continue;
            }
            let version = match choice.parameter("v") {
                "v1" => Some(MetaVersion::V1),
                "v1beta1" => Some(MetaVersion::V1Beta1),
                _ => None,
            };
            let (shape, asked) = match choice.parameter("as") {
                "" => (Shape::Whole, Asked::Either),
                _ if choice.parameter("g") != "meta.k8s.io" => {
                    unfit = Unfit::Shape;
                    continue;
                }
                "Table" if version.is_some() => (Shape::Table, Asked::Either),
                "PartialObjectMetadata" if version.is_some() => (Shape::Partial, Asked::One),
                "PartialObjectMetadataList" if version.is_some() => (Shape::Partial, Asked::List),
                _ => {
                    unfit = Unfit::Shape;
                    continue;
                }
            };
            return Ok(View {
                shape,
                version: version.unwrap_or(MetaVersion::V1),
                asked,
                media_type: JSON.to_owned(),
            });
        }
        if accept.trim().is_empty() {
            return Ok(View::whole());
        }
        Err(unfit)
    }

    /// `Content-Type` of the answer.
    pub fn content_type(&self) -> String {
        self.media_type.clone()
    }
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

/// Why a client's wish is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// No media type that is spoken here.
    Media,
    /// No such shape.
    Shape,
}

/// One of the forms that a client takes.
pub(crate) struct Choice<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl Choice<'_> {
    /// The value of a parameter; empty where there is none.
    pub(crate) fn parameter(&self, key: &str) -> &str {
        let mut all = self.parameters.iter();
        all.find(|(name, _)| *name == key)
            .map_or("", |(_, value)| value)
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.media, JSON | "*/*" | "application/*")
    }

    pub(crate) fn is(&self, media: &str) -> bool {
        self.media == media
    }

    pub(crate) fn is_spoken(&self) -> bool {
        self.is_json() || self.media == YAML
    }

    fn weight(&self) -> f32 {
        self.parameter("q").parse().unwrap_or(1.0)
    }
}

/// The forms in `accept`, what the client likes best first.
pub(crate) fn choices(accept: &str) -> Vec<Choice<'_>> {
    let mut choices: Vec<Choice<'_>> = accept
        .split(',')
        .map(|choice| {
            let mut parts = choice.split(';').map(str::trim);
            Choice {
                media: parts.next().unwrap_or_default(),
                parameters: parts.filter_map(|part| part.split_once('=')).collect(),
            }
        })
        .collect();
    choices.sort_by(|one, other| other.weight().total_cmp(&one.weight()));
    choices
}

impl Response {
    /// The answer as the client wants it spelled: JSON, or YAML where it likes that best.
    pub fn spelled(self, accept: &str) -> Response {
        if !accept.contains(YAML) || self.content_type != JSON {
            return self;
        }
        let mut spoken = choices(accept).into_iter().filter(Choice::is_spoken);
        if spoken.next().is_none_or(|choice| choice.is_json()) {
            return self;
        }
        let value: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match serde_saphyr::to_string(&value) {
            Ok(text) => Response {
                content_type: YAML.to_owned(),
                body: text.into_bytes(),
                ..self
            },
            // Nothing that JSON can say is unsayable; if it were, JSON is better than nothing.
            Err(_) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_client_likes_best_is_taken_first() {
        let shape = |accept: &str| View::parse(accept).map(|view| view.shape);
        assert_eq!(shape(""), Ok(Shape::Whole));
        assert_eq!(shape("application/xml;q=0.9, */*;q=0.1"), Ok(Shape::Whole));
        let table = "application/json;q=0.5, application/json;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(shape(table), Ok(Shape::Table));
        assert_eq!(shape("application/xml"), Err(Unfit::Media));
        assert_eq!(shape("application/json;as=Chair"), Err(Unfit::Shape));
    }

    #[test]
    fn yaml_says_what_json_says() {
        let value = json!({"a": "true", "b": ["1", 1, null, "~", "x: y\nz\n", ""], "c": {}});
        let spelled = |accept: &str| Response::json(200, &value).spelled(accept);
        for accept in ["", "*/*", "application/json, application/yaml"] {
            assert_eq!(spelled(accept), Response::json(200, &value));
        }
        let yaml = spelled("application/yaml, application/json;q=0.9");
        assert_eq!(yaml.content_type, "application/yaml");
        let read: Value = serde_saphyr::from_slice(&yaml.body).unwrap();
        assert_eq!(read, value);
    }
}
