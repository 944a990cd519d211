//! Manifests: multi-document YAML or JSON, read strictly and with the place of every mistake.
//!
//! Duplicate keys are refused, sizes are bounded, and a field that the API refuses is found again
//! in the file: [`Document::locate`].

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use api::yaml::{self, Limits, Node};
use serde_json::Value;

/// A manifest larger than this is refused unread.
pub const MANIFEST_BYTES_MAX: u64 = 32 << 20;

/// How standard input is named.
const INPUT: &str = "-";

/// One object of a manifest.
#[derive(Clone, Debug)]
pub struct Document {
    /// The object.
    pub object: Value,
    source: std::sync::Arc<Source>,
    index: usize,
    prefix: String,
}

/// A file's name as typed, and its text.
#[derive(Debug)]
struct Source {
    name: String,
    text: String,
}

/// What is wrong with a manifest, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// File as the user named it.
    pub file: String,
    /// Line and column from 1; 0 means the whole file.
    pub line: usize,
    /// Column from 1.
    pub column: usize,
    /// Path of the field, such as `spec.tasks[0].replicas`; may be empty.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Mistake {
    fn of(file: &str, flaw: yaml::Flaw) -> Mistake {
        Mistake {
            file: file.to_owned(),
            line: flaw.place.line,
            column: flaw.place.column,
            field: flaw.field,
            message: flaw.message,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.file)?;
        if self.line > 0 {
            write!(to, ":{}:{}", self.line, self.column)?;
        }
        if !self.field.is_empty() {
            write!(to, ": {}", self.field)?;
        }
        write!(to, ": {}", self.message)
    }
}

/// Reads files, directories (their `.yaml`, `.yml` and `.json` files by name) and `-`.
/// All mistakes of all files are returned together.
pub fn read(files: &[String]) -> Result<Vec<Document>, Vec<Mistake>> {
    let mut documents = Vec::new();
    let mut mistakes: Vec<Mistake> = input_again(files).into_iter().collect();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    for file in files {
        for (name, path) in expand(file, &mut mistakes) {
            match load(&name, path.as_deref()).and_then(|text| parse(&name, text)) {
                Ok(found) => documents.extend(found),
                Err(mistake) => mistakes.push(mistake),
            }
        }
    }
    if mistakes.is_empty() && documents.is_empty() {
        mistakes.push(whole(&files.join(", "), "no object is in it".to_owned()));
    }
    if mistakes.is_empty() {
        Ok(documents)
    } else {
        Err(mistakes)
    }
}

/// What is wrong where standard input is named twice: there is nothing left to read then.
pub fn input_again<'a>(files: impl IntoIterator<Item = &'a String>) -> Option<Mistake> {
    let named = files.into_iter().filter(|file| *file == INPUT).count();
    let text = "it is named twice, and can be read once";
    (named > 1).then(|| whole("standard input", text.to_owned()))
}

/// Reads the text of one file.
pub fn parse(name: &str, text: String) -> Result<Vec<Document>, Mistake> {
    let source = std::sync::Arc::new(Source {
        name: name.to_owned(),
        text,
    });
    let values = yaml::documents(&source.text, Limits::MANIFESTS);
    let values = values.and_then(|all| all.iter().map(Node::json).collect::<Result<Vec<_>, _>>());
    let values = values.map_err(|flaw| Mistake::of(name, flaw))?;
    let mut documents = Vec::new();
    for (index, object) in values.into_iter().enumerate() {
        if object.is_null() {
            continue;
        }
        let document = Document {
            object,
            source: source.clone(),
            index,
            prefix: String::new(),
        };
        if is_list(&document.object) {
            documents.extend(document.items());
        } else {
            documents.push(document);
        }
    }
    for document in &documents {
        document.check()?;
    }
    Ok(documents)
}

impl Document {
    /// A mistake in a field of this object, with the line of the field or of its nearest parent.
    pub fn mistake(&self, field: &str, message: impl Into<String>) -> Mistake {
        let (line, column) = self.locate(field);
        Mistake {
            file: self.source.name.clone(),
            line,
            column,
            field: field.to_owned(),
            message: message.into(),
        }
    }

    /// Line and column, from 1, of a field or of its nearest parent that is there.
    pub fn locate(&self, field: &str) -> (usize, usize) {
        let path = match (self.prefix.is_empty(), field.is_empty()) {
            (true, _) => field.to_owned(),
            (false, true) => self.prefix.clone(),
            (false, false) => format!("{}.{field}", self.prefix),
        };
        // The text was read without a flaw before.
        let documents = yaml::documents(&self.source.text, Limits::MANIFESTS).unwrap_or_default();
        let place = documents.get(self.index).map(|node| node.locate(&path));
        let yaml::Place { line, column } = place.unwrap_or_default();
        (line, column)
    }

    /// Which of its file's documents it stands in, from 1.
    pub fn number(&self) -> usize {
        self.index + 1
    }

    /// `job.batch/pi` or `pod/one`, as kubectl says it.
    pub fn title(&self) -> String {
        let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = said(&self.object["metadata"]["name"]);
        let kind = said(&self.object["kind"]).to_lowercase();
        match said(&self.object["apiVersion"]).split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{name}"),
            None => format!("{kind}/{name}"),
        }
    }

    fn items(self) -> Vec<Document> {
        let Some(Value::Array(items)) = self.object.get("items").cloned() else {
            return Vec::new();
        };
        items
            .into_iter()
            .enumerate()
            .map(|(at, object)| Document {
                object,
                source: self.source.clone(),
                index: self.index,
                prefix: format!("items[{at}]"),
            })
            .collect()
    }

    fn check(&self) -> Result<(), Mistake> {
        if !self.object.is_object() {
            return Err(self.mistake("", "expected an object with apiVersion and kind"));
        }
        for field in ["apiVersion", "kind"] {
            match &self.object[field] {
                Value::String(text) if !text.is_empty() => {}
                Value::Null | Value::String(_) => {
                    return Err(self.mistake(field, "Required value"));
                }
                _ => return Err(self.mistake(field, "Invalid value: must be a string")),
            }
        }
        let metadata = &self.object["metadata"];
        for field in ["name", "generateName", "namespace"] {
            if !matches!(metadata[field], Value::Null | Value::String(_)) {
                return Err(self.mistake(
                    &format!("metadata.{field}"),
                    "Invalid value: must be a string",
                ));
            }
        }
        let is_made = !sim::Change::is_question(&self.object);
        if is_made && metadata["name"].is_null() && metadata["generateName"].is_null() {
            return Err(self.mistake(
                "metadata.name",
                "Required value: name or generateName is required",
            ));
        }
        Ok(())
    }
}

fn is_list(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "List" && object["items"].is_array()
}

fn expand(file: &str, mistakes: &mut Vec<Mistake>) -> Vec<(String, Option<PathBuf>)> {
    let path = Path::new(file);
    if file == INPUT {
        return vec![("standard input".to_owned(), None)];
    }
    if !path.is_dir() {
        return vec![(file.to_owned(), Some(path.to_owned()))];
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            mistakes.push(whole(file, format!("cannot read the directory: {error}")));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension()
                .and_then(|ending| ending.to_str())
                .is_some_and(|ending| matches!(ending, "yaml" | "yml" | "json"))
        })
        .collect();
    paths.sort();
    if paths.is_empty() {
        mistakes.push(whole(
            file,
            "no .yaml, .yml or .json file is in this directory".to_owned(),
        ));
    }
    paths
        .into_iter()
        .map(|path| (path.display().to_string(), Some(path)))
        .collect()
}

fn load(name: &str, path: Option<&Path>) -> Result<String, Mistake> {
    let mut bytes = Vec::new();
    let read = match path {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes)),
        None => std::io::stdin()
            .lock()
            .take(MANIFEST_BYTES_MAX + 1)
            .read_to_end(&mut bytes),
    };
    read.map_err(|error| whole(name, format!("cannot read: {error}")))?;
    if bytes.len() as u64 > MANIFEST_BYTES_MAX {
        return Err(whole(
            name,
            format!("larger than {} MiB", MANIFEST_BYTES_MAX >> 20),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + good.iter().rev().take_while(|byte| **byte != b'\n').count();
        Mistake {
            file: name.to_owned(),
            line,
            column,
            field: String::new(),
            message: "this is not UTF-8 text".to_owned(),
        }
    })
}

fn whole(file: &str, message: String) -> Mistake {
    Mistake {
        file: file.to_owned(),
        line: 0,
        column: 0,
        field: String::new(),
        message,
    }
}

#[cfg(test)]
mod tests;
