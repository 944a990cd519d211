//! The files: read, and written with the answers that they get.

use serde_json::Value;

/// A file of cases.
pub struct File {
    head: Vec<String>,
    /// Objects of the world, one a line.
    pub there: Vec<Value>,
    /// `Job`
    pub kind: String,
    /// What the cases change.
    pub base: Value,
    pub cases: Vec<Case>,
}

/// A request and its answer.
pub struct Case {
    title: String,
    /// `create`, `update` or `delete`.
    pub verb: String,
    lines: Vec<String>,
    pub answer: Vec<String>,
}

impl File {
    pub fn read(text: &str) -> File {
        let mut file = File {
            head: Vec::new(),
            there: Vec::new(),
            kind: String::new(),
            base: Value::Null,
            cases: Vec::new(),
        };
        for line in text.lines() {
            match file.cases.last_mut() {
                _ if line.starts_with("* ") => file.cases.push(Case {
                    title: line.to_owned(),
                    verb: String::new(),
                    lines: Vec::new(),
                    answer: Vec::new(),
                }),
                None => file.read_head(line),
                Some(case) => case.read(line),
            }
        }
        file
    }

    fn read_head(&mut self, line: &str) {
        self.head.push(line.to_owned());
        match line.split_once(' ') {
            Some(("there", object)) => self.there.push(yaml(object)),
            Some(("kind", kind)) => self.kind = kind.trim().to_owned(),
            Some(("base", object)) => self.base = yaml(object),
            _ => {}
        }
    }

    /// The file with the answers that it gets now.
    pub fn answered(&self, answer: impl Fn(&File, &Case) -> Vec<String>) -> String {
        let mut lines = self.head.clone();
        for (index, case) in self.cases.iter().enumerate() {
            if index > 0 {
                lines.push(String::new());
            }
            lines.extend([case.title.clone(), case.verb.clone()]);
            lines.extend(case.lines.iter().cloned());
            for line in answer(self, case) {
                lines.push(format!("> {line}").trim_end().to_owned());
            }
        }
        lines.join("\n") + "\n"
    }
}

impl Case {
    fn read(&mut self, line: &str) {
        if let Some(answer) = line.strip_prefix('>') {
            self.answer.push(answer.trim_start().to_owned());
        } else if line.starts_with("  ") {
            self.lines.push(line.to_owned());
        } else if !line.is_empty() {
            self.verb = line.to_owned();
        }
    }

    /// Settings that the case names.
    pub fn settings(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter();
        lines.filter_map(|line| line.trim().strip_prefix("with "))
    }

    /// The stored object and the one to be written, `Null` where there is none.
    pub fn objects(&self, base: &Value) -> (Value, Value) {
        let (mut old, mut new) = (base.clone(), base.clone());
        for line in self.lines.iter().map(|line| line.trim()) {
            if line.starts_with("with ") {
                continue;
            }
            let (both, line) = match line.strip_prefix("was ") {
                Some(line) => (true, line),
                None => (false, line),
            };
            change(&mut new, line);
            if both {
                change(&mut old, line);
            }
        }
        match &*self.verb {
            "create" => (Value::Null, new),
            "update" => (old, new),
            "delete" => (new, Value::Null),
            other => panic!("{other} is no request"),
        }
    }
}

/// `path: value`, `path: N x value` or `- path`.
fn change(object: &mut Value, line: &str) {
    if let Some(path) = line.strip_prefix("- ") {
        let (above, last) = path.rsplit_once('.').unwrap();
        place(object, above).as_object_mut().unwrap().remove(last);
        return;
    }
    let (path, value) = line
        .split_once(": ")
        .unwrap_or_else(|| panic!("{line} is no change"));
    let many = value
        .split_once(" x ")
        .and_then(|(count, item)| Some((count.parse::<usize>().ok()?, item)));
    *place(object, path) = match many {
        None => yaml(value),
        Some((count, item)) => {
            let item = yaml(item);
            let all = 0..count;
            all.map(|number| numbered(&item, &number.to_string()))
                .collect()
        }
    };
}

/// The value with its number for each `#` of a text.
fn numbered(value: &Value, number: &str) -> Value {
    match value {
        Value::String(text) => text.replace('#', number).into(),
        Value::Array(items) => items.iter().map(|item| numbered(item, number)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| (key.clone(), numbered(value, number)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// The place of `spec.tasks.0.name`; a part with dots stands in quotes.
fn place<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    let mut place = object;
    let mut rest = path;
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, after) = quoted.split_once('"').unwrap();
                (part, after.strip_prefix('.').unwrap_or(after))
            }
            None => rest.split_once('.').unwrap_or((rest, "")),
        };
        place = match part.parse::<usize>() {
            Ok(index) if place.is_array() => &mut place[index],
            _ => {
                if place.is_null() {
                    *place = Value::Object(serde_json::Map::new());
                }
                &mut place[part]
            }
        };
        rest = after;
    }
    place
}

pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
