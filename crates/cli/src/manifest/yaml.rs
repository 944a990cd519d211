//! YAML text to JSON values, the way Kubernetes tools read it: YAML 1.1 booleans and octal numbers,
//! merge keys, no duplicate keys, and a bound on everything that aliases can multiply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Number, Value};

use super::Mistake;

/// Deeper nesting is a mistake or an attack.
const DEPTH_MAX: usize = 100;
/// Scalars, lists and maps of one file, counting what aliases repeat.
const NODES_MAX: usize = 2_000_000;

/// A mistake before its file is known.
#[derive(Debug)]
pub(super) struct Flaw {
    line: usize,
    column: usize,
    field: String,
    message: String,
}

impl Flaw {
    pub(super) fn at(self, file: &str) -> Mistake {
        Mistake {
            file: file.to_owned(),
            line: self.line,
            column: self.column,
            field: self.field,
            message: self.message,
        }
    }
}

/// All documents of a text; an empty document is null.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, Flaw> {
    Reader::new(text, None).documents()
}

/// Line and column of a field path in the document with this index, or of the nearest parent.
pub(super) fn locate(text: &str, document: usize, path: &str) -> (usize, usize) {
    let mut reader = Reader::new(text, Some(Search { document, path }));
    // The text was read without a flaw before; where a search stops early, what was found counts.
    drop(reader.documents());
    reader.found
}

struct Search<'text> {
    document: usize,
    path: &'text str,
}

struct Reader<'text> {
    parser: Parser<'text, StrInput<'text>>,
    anchors: BTreeMap<usize, (Value, usize)>,
    nodes: usize,
    document: usize,
    path: Vec<Segment>,
    search: Option<Search<'text>>,
    found: (usize, usize),
    noted_last: Option<String>,
}

enum Segment {
    Field(String),
    Index(usize),
}

impl<'text> Reader<'text> {
    fn new(text: &'text str, search: Option<Search<'text>>) -> Reader<'text> {
        Reader {
            parser: Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text)),
            anchors: BTreeMap::new(),
            nodes: 0,
            document: 0,
            path: Vec::new(),
            search,
            found: (0, 0),
            noted_last: None,
        }
    }

    fn documents(&mut self) -> Result<Vec<Value>, Flaw> {
        let mut documents = Vec::new();
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) => {
                    self.anchors.clear();
                    self.document = documents.len();
                }
                event => documents.push(self.node(event, span)?),
            }
        }
        Ok(documents)
    }

    fn next(&mut self) -> Result<Option<(Event<'text>, Span)>, Flaw> {
        loop {
            match self.parser.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(pair)) => return Ok(Some(pair)),
                Some(Err(error)) => {
                    return Err(Flaw {
                        line: error.marker().line(),
                        column: error.marker().col() + 1,
                        field: self.field(),
                        message: error.info(),
                    });
                }
            }
        }
    }

    fn expect(&mut self) -> Result<(Event<'text>, Span), Flaw> {
        match self.next()? {
            Some(pair) => Ok(pair),
            None => Err(Flaw {
                line: 0,
                column: 0,
                field: self.field(),
                message: "the text ends too early".to_owned(),
            }),
        }
    }

    fn node(&mut self, event: Event<'text>, span: Span) -> Result<Value, Flaw> {
        self.note(span);
        self.spend(1, span)?;
        if self.path.len() > DEPTH_MAX {
            return Err(self.flaw(span, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        let before = self.nodes;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().and_then(granit_parser::Tag::core_suffix);
                let value = scalar(text, style, tag)
                    .map_err(|message| self.flaw(span, message.to_owned()))?;
                (value, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence()?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping()?, anchor),
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id) else {
                    return Err(self.flaw(span, "an alias inside its own anchor".to_owned()));
                };
                let (value, size) = (value.clone(), *size);
                self.spend(size, span)?;
                return Ok(value);
            }
            _ => return Err(self.flaw(span, "expected a value here".to_owned())),
        };
        if anchor != 0 {
            let size = self.nodes - before + 1;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    fn sequence(&mut self) -> Result<Value, Flaw> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.expect()?;
            if event == Event::SequenceEnd {
                return Ok(Value::Array(items));
            }
            self.path.push(Segment::Index(items.len()));
            items.push(self.node(event, span)?);
            self.path.pop();
        }
    }

    fn mapping(&mut self) -> Result<Value, Flaw> {
        let mut map = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.expect()?;
            let (key, style) = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, style, ..) => (key.into_owned(), style),
                _ => return Err(self.flaw(span, "a key must be a plain value".to_owned())),
            };
            self.path.push(Segment::Field(key.clone()));
            self.note(span);
            let (event, value_span) = self.expect()?;
            let value = self.node(event, value_span)?;
            if key == "<<" && style == ScalarStyle::Plain {
                merged.push(value);
            } else if map.insert(key, value).is_some() {
                return Err(self.flaw(span, "this field is given twice".to_owned()));
            }
            self.path.pop();
        }
        for value in merged {
            merge(&mut map, value);
        }
        Ok(Value::Object(map))
    }

    fn spend(&mut self, nodes: usize, span: Span) -> Result<(), Flaw> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            return Err(self.flaw(span, format!("more than {NODES_MAX} values in one file")));
        }
        Ok(())
    }

    /// Remembers where the searched path, or the longest beginning of it, stands.
    fn note(&mut self, span: Span) {
        let Some(search) = &self.search else { return };
        if search.document != self.document {
            return;
        }
        let here = self.field();
        let within = search
            .path
            .strip_prefix(here.as_str())
            .is_some_and(|rest| here.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']));
        // The value of a field is noted after its key: the key's place is kept.
        let already = matches!(self.path.last(), Some(Segment::Field(_)))
            && self.noted_last.as_deref() == Some(here.as_str());
        if within && !already {
            self.found = (span.start.line(), span.start.col() + 1);
            self.noted_last = Some(here);
        }
    }

    fn flaw(&self, span: Span, message: String) -> Flaw {
        Flaw {
            line: span.start.line(),
            column: span.start.col() + 1,
            field: self.field(),
            message,
        }
    }

    fn field(&self) -> String {
        let mut text = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Segment::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}

/// Keys that are there win over merged ones.
fn merge(map: &mut Map<String, Value>, value: Value) {
    match value {
        Value::Object(other) => {
            for (key, value) in other {
                map.entry(key).or_insert(value);
            }
        }
        Value::Array(items) => items.into_iter().for_each(|item| merge(map, item)),
        _ => {}
    }
}

fn scalar(
    text: Cow<'_, str>,
    style: ScalarStyle,
    tag: Option<&str>,
) -> Result<Value, &'static str> {
    if style != ScalarStyle::Plain || tag == Some("str") {
        return Ok(Value::String(text.into_owned()));
    }
    Ok(match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        plain => match number(plain)? {
            Some(number) => Value::Number(number),
            None => Value::String(text.into_owned()),
        },
    })
}

/// A number as Go's YAML reader sees it, or `None` for a text.
fn number(plain: &str) -> Result<Option<Number>, &'static str> {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    if matches!(
        unsigned,
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN"
    ) {
        return Err("infinity and not-a-number cannot be sent as JSON");
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Ok(None);
    }
    let digits = unsigned.replace('_', "");
    let negative = plain.starts_with('-');
    let whole = match digits.get(..2) {
        Some("0x" | "0X") => i128::from_str_radix(&digits[2..], 16).ok(),
        Some("0b" | "0B") => i128::from_str_radix(&digits[2..], 2).ok(),
        Some("0o" | "0O") => i128::from_str_radix(&digits[2..], 8).ok(),
        Some(two) if two.starts_with('0') && two.as_bytes()[1].is_ascii_digit() => {
            i128::from_str_radix(&digits, 8).ok()
        }
        _ => digits.parse::<i128>().ok(),
    };
    if let Some(whole) = whole {
        let signed = if negative { -whole } else { whole };
        return Ok(i64::try_from(signed)
            .map(Number::from)
            .or_else(|_| u64::try_from(signed).map(Number::from))
            .ok()
            .or_else(|| Number::from_f64(signed as f64)));
    }
    let float_like = digits
        .chars()
        .all(|one| one.is_ascii_digit() || matches!(one, '.' | 'e' | 'E' | '+' | '-'))
        && digits.chars().any(|one| one.is_ascii_digit());
    if !float_like {
        return Ok(None);
    }
    Ok(digits
        .parse::<f64>()
        .ok()
        .map(|float| if negative { -float } else { float })
        .and_then(Number::from_f64))
}
