//! What is wrong with a text that is no JSON, in the words of Go's decoder.
//!
//! Clients see these words in refusals. Asked only about texts that were refused already.

use crate::field::go_quoted;

/// Deepest nesting that is followed; deeper texts are refused for that before.
const DEPTH_MAX: usize = 1_000;
const END: &str = "unexpected end of JSON input";

/// What is wrong with `text`; `None` if nothing is.
pub(super) fn complaint(text: &[u8]) -> Option<String> {
    let mut scan = Scan { text, at: 0 };
    scan.value(0)
        .and_then(|()| match scan.peek() {
            None => Ok(()),
            Some(_) => scan.wrong("after top-level value"),
        })
        .err()
        .filter(|why| !why.is_empty())
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

type Found = Result<(), String>;

impl Scan<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// The byte here does not fit, or the text has ended.
    fn wrong(&self, context: &str) -> Found {
        let Some(byte) = self.text.get(self.at) else {
            return Err(END.to_owned());
        };
        let letter = char::from(*byte);
        let shown = match letter {
            '\'' => r"'\''".to_owned(),
            '"' => "'\"'".to_owned(),
            _ => {
                let quoted = go_quoted(&letter.to_string());
                format!("'{}'", &quoted[1..quoted.len() - 1])
            }
        };
        Err(format!("invalid character {shown} {context}"))
    }

    fn value(&mut self, depth: usize) -> Found {
        if depth > DEPTH_MAX {
            // Not for Go to say.
            return Err(String::new());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.wrong("looking for beginning of value"),
        }
    }

    fn object(&mut self, depth: usize) -> Found {
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.wrong("looking for beginning of object key string");
            }
            self.string()?;
            if self.peek() != Some(b':') {
                return self.wrong("after object key");
            }
            self.at += 1;
            self.value(depth + 1)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.wrong("after object key:value pair"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Found {
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.wrong("after array element"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Found {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                _ => return self.wrong("in string literal"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Found {
        match self.text.get(self.at) {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.text.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                        return self.wrong("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
            }
            _ => return self.wrong("in string escape code"),
        }
        Ok(())
    }

    fn number(&mut self) -> Found {
        self.at += usize::from(self.text[self.at] == b'-');
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.wrong("in numeric literal"),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                return self.wrong("after decimal point in numeric literal");
            }
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
                return self.wrong("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Found {
        for wanted in word.bytes() {
            if self.text.get(self.at) != Some(&wanted) {
                let wanted = char::from(wanted);
                return self.wrong(&format!("in literal {word} (expecting '{wanted}')"));
            }
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn each_fault_is_told_in_the_words_of_go() {
        for (text, told) in [
            ("", "unexpected end of JSON input"),
            (r#"{"a":"#, "unexpected end of JSON input"),
            (
                "{not",
                "invalid character 'n' looking for beginning of object key string",
            ),
            (
                r#"{"a":1,}"#,
                "invalid character '}' looking for beginning of object key string",
            ),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (
                r#"{"a":1 "b"}"#,
                "invalid character '\"' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            (
                "'a'",
                r"invalid character '\'' looking for beginning of value",
            ),
            (
                "\u{9e}",
                r"invalid character 'Â' looking for beginning of value",
            ),
            ("nul", "unexpected end of JSON input"),
            (
                "nulx",
                "invalid character 'x' in literal null (expecting 'l')",
            ),
            ("01", "invalid character '1' after top-level value"),
            ("-a", "invalid character 'a' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1ex",
                "invalid character 'x' in exponent of numeric literal",
            ),
            (r#""\q""#, "invalid character 'q' in string escape code"),
            (
                r#""\u00g0""#,
                r"invalid character 'g' in \u hexadecimal character escape",
            ),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
        ] {
            assert_eq!(complaint(text.as_bytes()).as_deref(), Some(told), "{text}");
        }
        let bytes = [0x9e, b'x'];
        let told = r"invalid character '\u009e' looking for beginning of value";
        assert_eq!(complaint(&bytes).as_deref(), Some(told));
        assert_eq!(complaint(br#"{"a": [1.5e3, "b\u00e9", null, true]}"#), None);
        assert_eq!(complaint("[".repeat(100_000).as_bytes()), None);
    }
}
