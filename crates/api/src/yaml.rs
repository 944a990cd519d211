//! YAML as a tree in which everything knows its place, read the way Go's tools for Kubernetes read it:
//! YAML 1.1 booleans and octal numbers, merge keys, and a bound on everything that a text can multiply.
//!
//! A key that is given twice stands twice in the tree: who reads it decides what that means.
//! Nothing recurses deeper than [`Limits::depth`], and aliases count as often as they are used.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

mod json;
mod number;
#[cfg(test)]
mod tests;

/// What a text may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deeper nesting is a mistake or an attack.
    pub depth: usize,
    /// Scalars, lists and maps, counting what aliases repeat.
    pub nodes: usize,
}

impl Limits {
    /// Bounds of a file of manifests.
    pub const MANIFESTS: Limits = Limits {
        depth: 100,
        nodes: 2_000_000,
    };
}

/// Where something stands, both counted from 1; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character of the line.
    pub column: usize,
}

impl Place {
    fn of(span: Span) -> Place {
        Place {
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where.
    pub place: Place,
    /// In which field, such as `spec.tasks[0].name`; empty for the whole.
    pub field: String,
    /// What.
    pub message: String,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One word.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map in the order of the text; what is merged into it comes last.
    Map(Vec<Entry>),
}

/// A key of a map and what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// What stands behind it.
    pub node: Node,
}

/// A word of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// As it is written, without quotes.
    pub text: Box<str>,
    /// What it means.
    pub meaning: Meaning,
}

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// `null`, or nothing at all.
    Nothing,
    /// `true`, `yes`, `off` …
    Flag(bool),
    /// A whole number.
    Whole(i128),
    /// A decimal number; it may be infinite or not a number.
    Decimal(f64),
    /// A text.
    Text,
}

impl Node {
    /// What it is, in a word for people.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Scalar(scalar) => match scalar.meaning {
                Meaning::Nothing => "nothing",
                Meaning::Flag(_) => "a flag",
                Meaning::Whole(_) => "a whole number",
                Meaning::Decimal(_) => "a decimal number",
                Meaning::Text => "a text",
            },
        }
    }

    /// Whether nothing stands there.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.meaning == Meaning::Nothing)
    }

    /// Place of a field path below it, such as `spec.tasks[0]`, or of the nearest parent that is
    /// there. Of a field of a map it is the place of its key.
    pub fn locate(&self, path: &str) -> Place {
        let mut found = self.place;
        let (mut node, mut rest) = (self, path);
        'deeper: while !rest.is_empty() {
            match &node.value {
                Value::Map(entries) => {
                    let rest_here = rest.strip_prefix('.').unwrap_or(rest);
                    for entry in entries {
                        let behind = rest_here.strip_prefix(&*entry.key);
                        let behind =
                            behind.filter(|it| it.is_empty() || it.starts_with(['.', '[']));
                        if let Some(behind) = behind {
                            (node, rest, found) = (&entry.node, behind, entry.place);
                            continue 'deeper;
                        }
                    }
                }
                Value::List(items) => {
                    let index = rest.strip_prefix('[').and_then(|it| it.split_once(']'));
                    let item = index.and_then(|(index, behind)| {
                        Some((items.get(index.parse::<usize>().ok()?)?, behind))
                    });
                    if let Some((item, behind)) = item {
                        (node, rest, found) = (item, behind, item.place);
                        continue 'deeper;
                    }
                }
                Value::Scalar(_) => {}
            }
            break;
        }
        found
    }
}

/// All documents of a text; an empty one is nothing.
pub fn documents(text: &str, limits: Limits) -> Result<Vec<Node>, Flaw> {
    let mut reader = Reader::new(text, limits);
    let mut documents = Vec::new();
    while let Some(node) = reader.document()? {
        documents.push(node);
    }
    Ok(documents)
}

/// The first document of a text, and where the next one begins, which nobody looks at.
pub fn first(text: &str, limits: Limits) -> Result<(Option<Node>, Option<Place>), Flaw> {
    let mut reader = Reader::new(text, limits);
    let Some(node) = reader.document()? else {
        return Ok((None, None));
    };
    Ok((Some(node), reader.begin()?.map(|(_, span)| Place::of(span))))
}

struct Reader<'text> {
    parser: Parser<'text, StrInput<'text>>,
    limits: Limits,
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
    path: Vec<Segment>,
}

enum Segment {
    Field(String),
    Index(usize),
}

impl<'text> Reader<'text> {
    fn new(text: &'text str, limits: Limits) -> Reader<'text> {
        Reader {
            parser: Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text)),
            limits,
            anchors: BTreeMap::new(),
            nodes: 0,
            path: Vec::new(),
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Flaw> {
        match self.begin()? {
            Some((event, span)) => self.node(event, span).map(Some),
            None => Ok(None),
        }
    }

    /// Where the next document begins.
    fn begin(&mut self) -> Result<Option<(Event<'text>, Span)>, Flaw> {
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) => self.anchors.clear(),
                event => return Ok(Some((event, span))),
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> Result<Option<(Event<'text>, Span)>, Flaw> {
        loop {
            match self.parser.next_event() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(pair)) => return Ok(Some(pair)),
                Some(Err(error)) => {
                    return Err(Flaw {
                        place: Place {
                            line: error.marker().line(),
                            column: error.marker().col() + 1,
                        },
                        field: field(&self.path),
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
                place: Place::default(),
                field: field(&self.path),
                message: "the text ends too early".to_owned(),
            }),
        }
    }

    fn node(&mut self, event: Event<'text>, span: Span) -> Result<Node, Flaw> {
        self.spend(1, span)?;
        if self.path.len() > self.limits.depth {
            let text = format!("nested deeper than {} levels", self.limits.depth);
            return Err(self.flaw(span, text));
        }
        let before = self.nodes;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().and_then(granit_parser::Tag::core_suffix);
                (Value::Scalar(scalar(text, style, tag)), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (Value::List(self.sequence()?), anchor),
            Event::MappingStart(_, anchor, _) => (Value::Map(self.mapping()?), anchor),
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id) else {
                    return Err(self.flaw(span, "an alias inside its own anchor".to_owned()));
                };
                // Paid for before it is made.
                let size = *size;
                self.nodes = self.nodes.saturating_add(size);
                if self.nodes > self.limits.nodes {
                    return Err(self.too_many(span));
                }
                return Ok(node.clone());
            }
            _ => return Err(self.flaw(span, "expected a value here".to_owned())),
        };
        let node = Node {
            place: Place::of(span),
            value,
        };
        if anchor != 0 {
            let size = self.nodes - before + 1;
            self.spend(size, span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(node)
    }

    fn sequence(&mut self) -> Result<Vec<Node>, Flaw> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.expect()?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            self.path.push(Segment::Index(items.len()));
            items.push(self.node(event, span)?);
            self.path.pop();
        }
    }

    fn mapping(&mut self) -> Result<Vec<Entry>, Flaw> {
        let mut entries = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.expect()?;
            let (key, style) = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, style, ..) => (key.into_owned(), style),
                _ => return Err(self.flaw(span, "a key must be a plain value".to_owned())),
            };
            self.path.push(Segment::Field(key.clone()));
            let (event, value_span) = self.expect()?;
            let node = self.node(event, value_span)?;
            if key == "<<" && style == ScalarStyle::Plain {
                merged.push(node);
            } else {
                entries.push(Entry {
                    key,
                    place: Place::of(span),
                    node,
                });
            }
            self.path.pop();
        }
        if !merged.is_empty() {
            let mut keys = entries.iter().map(|entry| entry.key.clone()).collect();
            for node in merged {
                merge(&mut entries, &mut keys, node);
            }
        }
        Ok(entries)
    }

    fn spend(&mut self, nodes: usize, span: Span) -> Result<(), Flaw> {
        self.nodes = self.nodes.saturating_add(nodes);
        match self.nodes > self.limits.nodes {
            true => Err(self.too_many(span)),
            false => Ok(()),
        }
    }

    fn too_many(&self, span: Span) -> Flaw {
        let text = format!("more than {} values in one file", self.limits.nodes);
        self.flaw(span, text)
    }

    fn flaw(&self, span: Span, message: String) -> Flaw {
        Flaw {
            place: Place::of(span),
            field: field(&self.path),
            message,
        }
    }
}

fn field(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
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

/// Keys that are there win over merged ones.
fn merge(entries: &mut Vec<Entry>, keys: &mut std::collections::BTreeSet<String>, node: Node) {
    match node.value {
        Value::Map(others) => {
            for entry in others {
                if keys.insert(entry.key.clone()) {
                    entries.push(entry);
                }
            }
        }
        Value::List(items) => {
            for item in items {
                merge(entries, keys, item);
            }
        }
        Value::Scalar(_) => {}
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&str>) -> Scalar {
    let meaning = match style != ScalarStyle::Plain || tag == Some("str") {
        true => Meaning::Text,
        false => meaning(&text),
    };
    Scalar {
        text: text.into(),
        meaning,
    }
}

fn meaning(plain: &str) -> Meaning {
    match plain {
        "" | "~" | "null" | "Null" | "NULL" => Meaning::Nothing,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Meaning::Flag(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Meaning::Flag(false)
        }
        plain => number::meaning(plain),
    }
}
