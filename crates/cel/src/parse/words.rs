//! Words of an expression: what the grammar calls tokens.

/// A word and where it stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bytes,
    End,
    Escaped,
    Float,
    Int,
    Name,
    /// An operator or a bracket; `true`, `false`, `null` and `in` too.
    Sign(&'static str),
    Text,
    Uint,
}

/// Operators and brackets; a longer one stands before its beginning.
const SIGNS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%",
];
const WORD_SIGNS: &[&str] = &["in", "true", "false", "null"];

/// All words, with [`Kind::End`] behind them; and from where to where no word can be read.
pub(super) fn read(text: &str) -> (Vec<Word>, Vec<(usize, usize)>) {
    let (mut words, mut strange) = (Vec::new(), Vec::new());
    let mut at = skip(text, 0);
    while at < text.len() {
        let start = at;
        at = match word(&text[start..]) {
            Ok((kind, length)) => {
                let end = start + length;
                words.push(Word { kind, start, end });
                end
            }
            Err(length) => {
                strange.push((start, start + length));
                start + length
            }
        };
        at = skip(text, at);
    }
    words.push(Word {
        kind: Kind::End,
        start: text.len(),
        end: text.len(),
    });
    (words, strange)
}

/// Behind spaces and comments.
fn skip(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let spaces = rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']);
        at += rest.len() - spaces.len();
        if !spaces.starts_with("//") {
            return at;
        }
        at += spaces.find('\n').unwrap_or(spaces.len());
    }
}

/// A word and its length, or how far one goes that does not end well.
fn word(rest: &str) -> Result<(Kind, usize), usize> {
    if let Some(found) = quoted(rest) {
        return found;
    }
    let first = rest.as_bytes().first().copied().unwrap_or_default();
    Ok(match first {
        b'0'..=b'9' => number(rest),
        b'.' if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => number(rest),
        b'`' => return escaped(rest),
        _ if first.is_ascii_alphabetic() || first == b'_' => name(rest),
        _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => (Kind::Sign(sign), sign.len()),
            // Half an operator; the letter behind it is not the other half.
            None if b"=&|".contains(&first) => return Err(letters(rest, 2)),
            None => return Err(letters(rest, 1)),
        },
    })
}

/// How many bytes the first letters take.
fn letters(text: &str, count: usize) -> usize {
    text.chars().take(count).map(char::len_utf8).sum()
}

fn name(rest: &str) -> (Kind, usize) {
    let length = run(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let sign = WORD_SIGNS.iter().find(|sign| **sign == &rest[..length]);
    (sign.map_or(Kind::Name, |sign| Kind::Sign(sign)), length)
}

fn escaped(rest: &str) -> Result<(Kind, usize), usize> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(&byte);
    let length = 1 + run(&rest[1..], is_inner);
    match length > 1 && rest[length..].starts_with('`') {
        true => Ok((Kind::Escaped, length + 1)),
        false => Err(length + letters(&rest[length..], 1)),
    }
}

/// How many bytes from the beginning are of a sort.
fn run(text: &str, is_of: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_of(*byte)).count()
}

fn digits(text: &str) -> usize {
    run(text, |byte| byte.is_ascii_digit())
}

fn number(rest: &str) -> (Kind, usize) {
    let unsigned = |length: usize| match rest[length..].starts_with(['u', 'U']) {
        true => (Kind::Uint, length + 1),
        false => (Kind::Int, length),
    };
    let hexadecimal = match rest.starts_with("0x") {
        true => run(&rest[2..], |byte| byte.is_ascii_hexdigit()),
        false => 0,
    };
    if hexadecimal > 0 {
        return unsigned(2 + hexadecimal);
    }
    let mut length = digits(rest);
    let mut is_float = false;
    if rest[length..].starts_with('.') {
        let fraction = digits(&rest[length + 1..]);
        if fraction > 0 {
            length += 1 + fraction;
            is_float = true;
        }
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..]);
        if exponent > 0 {
            length += 1 + sign + exponent;
            is_float = true;
        }
    }
    match is_float {
        true => (Kind::Float, length),
        false => unsigned(length),
    }
}

/// A text or bytes in quotes, if it begins as one.
fn quoted(rest: &str) -> Option<Result<(Kind, usize), usize>> {
    let bytes = usize::from(rest.starts_with(['b', 'B']));
    let raw = usize::from(rest[bytes..].starts_with(['r', 'R']));
    let start = bytes + raw;
    let kind = match bytes {
        0 => Kind::Text,
        _ => Kind::Bytes,
    };
    let body = &rest[start..];
    let mut furthest = None;
    // What is not closed by three quotes may be an empty text and the beginning of another.
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if !body.starts_with(quote) {
            continue;
        }
        match closed(body, quote, raw == 1) {
            Ok(length) => return Some(Ok((kind, start + length))),
            Err(length) => furthest = furthest.max(Some(length)),
        }
    }
    // Without its quotes the prefix is a name.
    furthest.filter(|_| start == 0).map(Err)
}

/// The length of a text in quotes, these included, or how far it could be read.
fn closed(body: &str, quote: &str, is_raw: bool) -> Result<usize, usize> {
    let is_long = quote.len() == 3;
    let mut at = quote.len();
    loop {
        let rest = &body[at..];
        if rest.starts_with(quote) {
            return Ok(at + quote.len());
        }
        let Some(letter) = rest.chars().next() else {
            return Err(at);
        };
        at += match letter {
            '\\' if !is_raw => {
                let escape = super::literal::escape(&rest[1..]);
                let escape =
                    escape.map_err(|good| at + 1 + good + letters(&rest[1 + good..], 1))?;
                1 + escape.1
            }
            '\n' | '\r' if !is_long => return Err(at + 1),
            letter => letter.len_utf8(),
        };
    }
}
