//! A list that is followed: what of it has changed since it was printed last, as kubectl tells it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::told::{Form, Told, written};
use crate::rest::text;

/// What was printed.
#[derive(Default)]
pub(super) struct Followed {
    heading: String,
    objects: BTreeMap<String, Printed>,
}

struct Printed {
    object: Value,
    line: String,
}

impl Followed {
    /// What is to be printed of a list after it was read again: each object that is new, has changed or has
    /// gone, as a line of the table or as a document of its own.
    ///
    /// A line counts as changed without its object where it counts others (pods of a queue), but not for its
    /// age.
    pub(super) fn news(&mut self, told: Told, form: Form) -> anyhow::Result<String> {
        let (objects, table) = match told {
            Told::Objects { objects, table } => (objects, table),
            other => return other.text(form),
        };
        let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
        let is_table = matches!(form, Form::Table | Form::Wide);
        // A list of nothing has a sentence for a table, and no heading.
        let heading = match lines.len() == objects.len() + 1 && !objects.is_empty() {
            true => lines.remove(0),
            false if objects.is_empty() && self.objects.is_empty() && is_table => return Ok(table),
            false => String::new(),
        };
        let has_age = heading
            .to_lowercase()
            .split_whitespace()
            .any(|word| word == "age");
        let mut out = Vec::new();
        let mut gone = std::mem::take(&mut self.objects);
        for (at, object) in objects.into_iter().enumerate() {
            let line = lines.get(at).cloned().unwrap_or_default();
            let before = gone.remove(&key(&object));
            let is_news = before.is_none_or(|before| {
                let counts = is_table && !has_age && before.line != line;
                before.object != object || counts
            });
            let printed = Printed { object, line };
            if is_news {
                out.push(printed.text(form)?);
            }
            self.objects.insert(key(&printed.object), printed);
        }
        for printed in gone.values() {
            out.push(printed.text(form)?);
        }
        // Columns grow with what was counted since; that alone is no news.
        let heading = heading.trim_end();
        if is_table && !out.is_empty() && !heading.is_empty() && heading != self.heading {
            out.insert(0, heading.to_owned());
            self.heading = heading.to_owned();
        }
        let between = if form == Form::Yaml { "---\n" } else { "\n" };
        Ok(out.join(between))
    }
}

impl Printed {
    fn text(&self, form: Form) -> anyhow::Result<String> {
        match form {
            Form::Table | Form::Wide => Ok(self.line.clone()),
            form => written(&self.object, form),
        }
    }
}

fn key(object: &Value) -> String {
    let part = |name: &str| text(object, &["metadata", name]).to_owned();
    format!("{}/{}/{}", part("namespace"), part("name"), part("uid"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn queue(name: &str, weight: u32) -> Value {
        json!({ "apiVersion": "v1", "kind": "Queue",
            "metadata": { "name": name }, "spec": { "weight": weight } })
    }

    fn told(lines: &[(&str, u32, &str)]) -> Told {
        let rows = lines
            .iter()
            .map(|(name, _, rest)| format!("\n{name} {rest}"));
        Told::Objects {
            objects: lines
                .iter()
                .map(|(name, weight, _)| queue(name, *weight))
                .collect(),
            table: format!("Name Rest{}", rows.collect::<String>()),
        }
    }

    #[test]
    fn lines_come_again_when_what_they_say_has_changed() {
        let mut followed = Followed::default();
        let mut news = |lines: &[(&str, u32, &str)]| {
            followed
                .news(told(lines), Form::Table)
                .expect("it is a table")
        };
        assert_eq!(news(&[("a", 1, "0"), ("b", 1, "0")]), "Name Rest\na 0\nb 0");
        assert_eq!(news(&[("a", 1, "0"), ("b", 1, "0")]), "");
        assert_eq!(
            news(&[("a", 1, "0"), ("b", 1, "3")]),
            "b 3",
            "it counts others"
        );
        assert_eq!(
            news(&[("a", 2, "0"), ("b", 1, "3")]),
            "a 0",
            "the object changed"
        );
        assert_eq!(
            news(&[("b", 1, "3")]),
            "a 0",
            "its last state, as kubectl tells it"
        );
    }

    #[test]
    fn an_age_is_no_news() {
        let mut followed = Followed::default();
        let mut news = |heading: &str, age: &str| {
            let told = Told::Objects {
                objects: vec![queue("a", 1)],
                table: format!("{heading}\na {age}"),
            };
            followed.news(told, Form::Table).expect("it is a table")
        };
        assert_eq!(news("NAME AGE", "1s"), "NAME AGE\na 1s");
        assert_eq!(news("NAME AGE", "2s"), "");
        assert_eq!(news("NAME  AGE", "10s"), "", "nor is a wider column");
    }

    #[test]
    fn documents_are_whole() {
        for (form, parts) in [(Form::Json, 2), (Form::Yaml, 2), (Form::Name, 2)] {
            let mut followed = Followed::default();
            let mut news =
                |lines: &[(&str, u32, &str)]| followed.news(told(lines), form).expect("it is told");
            let both = news(&[("a", 1, ""), ("b", 1, "")]);
            let one = news(&[("a", 1, ""), ("b", 2, "")]);
            match form {
                Form::Json => {
                    let read = |text: &str| {
                        let all = serde_json::Deserializer::from_str(text).into_iter::<Value>();
                        all.collect::<Result<Vec<_>, _>>().expect("they are JSON")
                    };
                    assert_eq!(read(&both).len(), parts);
                    assert_eq!(read(&one), [queue("b", 2)]);
                }
                Form::Yaml => {
                    let read = |text: &str| serde_saphyr::from_str::<Value>(text).expect("YAML");
                    let documents: Vec<Value> = both.split("---\n").map(read).collect();
                    assert_eq!(documents, [queue("a", 1), queue("b", 1)]);
                    assert_eq!(read(&one), queue("b", 2));
                }
                _ => assert_eq!((&*both, &*one), ("queue/a\nqueue/b", "queue/b")),
            }
        }
    }
}
