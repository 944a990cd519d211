//! Patterns of the members of hyper-nodes: written in Go's syntax, read by the crate `regex`.
//!
//! The two dialects differ little. What only Go knows is written in the other's words here; what only
//! the other knows is refused, or means what it means to Go. Faults that both find are left to who
//! compiles the pattern.
//!
//! Source: the package `regexp/syntax` of Go.

/// The most memory that the compiled pattern of a member may take, in bytes: a larger one accepts no name.
pub const MEMBER_PATTERN_BYTES_MAX: usize = 1 << 20;

/// The most memory that the compiled patterns of one hyper-node may take together, in bytes.
pub const MEMBER_PATTERNS_BYTES_MAX: usize = 8 << 20;

/// However small a pattern is, it counts for so many bytes.
const BYTES_MIN: usize = 4 << 10;

/// The longest pattern, in bytes: with a letter a state it would take more than is compiled.
const LENGTH_MAX: usize = 64 << 10;

/// So many classes (`\w`, `\pL`) may be in a pattern. Each takes kilobytes while it is read, before anybody can
/// tell how large the whole is, and more than this would be too large then.
const CLASSES_MAX: usize = 500;

/// Go repeats nothing more often than this, counts within counts multiplied.
const COUNT_MAX: u64 = 1_000;

/// What the patterns of one hyper-node have taken so far, in order of its members.
///
/// What is refused counts, too: it had to be compiled for that. So neither what is held nor the time that it
/// takes has more than this bound, however many members there are.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatternRoom {
    taken: usize,
}

impl PatternRoom {
    /// What a pattern of so many bytes counts for.
    pub fn counted(bytes: usize) -> usize {
        bytes.max(BYTES_MIN)
    }

    /// Whether another pattern is looked at; else it is refused as it is.
    pub fn is_left(&self) -> bool {
        self.taken < MEMBER_PATTERNS_BYTES_MAX
    }

    /// Counts a pattern of so many bytes, `None` for one that is too large by itself. Whether the hyper-node may
    /// have it.
    pub fn takes(&mut self, bytes: Option<usize>) -> bool {
        self.taken += PatternRoom::counted(bytes.unwrap_or(MEMBER_PATTERN_BYTES_MAX));
        bytes.is_some() && self.taken <= MEMBER_PATTERNS_BYTES_MAX
    }
}

fn classes(pattern: &str) -> usize {
    let pairs = pattern.as_bytes().windows(2);
    pairs
        .filter(|pair| {
            matches!(
                pair,
                [b'\\', b'd' | b'D' | b'p' | b'P' | b's' | b'S' | b'w' | b'W']
            )
        })
        .count()
}

/// A pattern as the crate `regex` reads it. The error is in the words of Go's parser.
pub fn member_pattern(go: &str) -> Result<String, String> {
    if go.len() > LENGTH_MAX || classes(go) > CLASSES_MAX {
        return Err(format!("expression too large: `{go}`"));
    }
    let mut reader = Reader {
        go,
        at: 0,
        made: String::with_capacity(go.len()),
        groups: Vec::new(),
        here: Branch::default(),
    };
    while let Some(next) = reader.rest().chars().next() {
        reader.read(next)?;
    }
    Ok(reader.made)
}

struct Reader<'a> {
    go: &'a str,
    /// So many bytes of it are read.
    at: usize,
    made: String,
    /// What stands before each group that is open.
    groups: Vec<Branch>,
    /// The innermost of them, or the whole.
    here: Branch,
}

/// The things in a group, or in all, as far as they are read.
#[derive(Clone, Copy, Default)]
struct Branch {
    /// How often all but the last are repeated at most.
    others: u64,
    /// How often the last is.
    last: u64,
    /// Where the operator begins that repeats the last, if one does.
    repeated_at: Option<usize>,
}

impl Branch {
    fn most(self) -> u64 {
        self.others.max(self.last)
    }

    /// Goes on behind the last thing with one that is repeated so often.
    fn then(&mut self, last: u64) {
        *self = Branch {
            others: self.most(),
            last,
            repeated_at: None,
        };
    }
}

/// How often a thing is repeated.
struct Count {
    least: u64,
    /// `None` for any number.
    most: Option<u64>,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.go[self.at..]
    }

    fn read(&mut self, next: char) -> Result<(), String> {
        match next {
            '\\' => return self.escape(),
            '[' => self.class(),
            '(' => return self.open(),
            ')' => {
                let inner = self.here.most();
                self.here = self.groups.pop().unwrap_or_default();
                self.here.then(inner.max(1));
                self.copy(1);
            }
            '|' => {
                self.here.then(0);
                self.copy(1);
            }
            '*' | '+' | '?' => {
                let any = Count {
                    least: 0,
                    most: None,
                };
                return self.repeat(1, &any);
            }
            '{' => match count(self.rest()) {
                Some((length, count)) => return self.repeat(length, &count),
                None => {
                    self.made.push('\\');
                    self.literal(1);
                }
            },
            _ => self.literal(next.len_utf8()),
        }
        Ok(())
    }

    /// Takes so many bytes over as they are.
    fn copy(&mut self, length: usize) {
        let end = self.at + length;
        self.made.push_str(&self.go[self.at..end]);
        self.at = end;
    }

    fn literal(&mut self, length: usize) {
        self.copy(length);
        self.here.then(1);
    }

    fn escape(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let Some(escaped) = rest[1..].chars().next() else {
            self.copy(1);
            return Ok(());
        };
        let length = 1 + escaped.len_utf8();
        match escaped {
            'Q' => self.quoted(),
            // To the other these are more than they look like.
            '<' | '>' => {
                self.at += 1;
                self.literal(1);
            }
            // Go's are of ASCII alone: the other's would take a hundred times the memory.
            _ if ascii(escaped).is_some() => {
                self.made.push_str(ascii(escaped).unwrap_or_default());
                self.at += length;
                self.here.then(1);
            }
            'u' | 'U' => return Err(format!("invalid escape sequence: `{}`", &rest[..length])),
            'p' | 'P' | 'x' if rest[length..].starts_with('{') => {
                let end = rest.find('}').map_or(rest.len(), |end| end + 1);
                self.literal(end);
            }
            _ => self.literal(length),
        }
        Ok(())
    }

    /// `\Q…\E`, or to the end: nothing in it has a meaning.
    fn quoted(&mut self) {
        let text = &self.go[self.at + 2..];
        let (text, behind) = text.split_once(r"\E").unwrap_or((text, ""));
        for letter in text.chars() {
            if letter.is_ascii_punctuation() && !matches!(letter, '<' | '>') {
                self.made.push('\\');
            }
            self.made.push(letter);
        }
        self.at = self.go.len() - behind.len();
        match text.is_empty() {
            true => self.here.repeated_at = None,
            false => self.here.then(1),
        }
    }

    /// `[…]`, in which Go knows neither sets within sets nor operators between them.
    fn class(&mut self) {
        self.copy(1);
        if self.rest().starts_with('^') {
            self.copy(1);
        }
        let mut before = '[';
        while let Some(next) = self.class_item() {
            let rest = self.rest();
            let named = rest.starts_with("[:").then(|| rest.find(":]")).flatten();
            let length = match next {
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                '[' if named.is_some() => named.map_or(1, |end| end + 2),
                _ => next.len_utf8(),
            };
            let perl = rest.strip_prefix('\\').and_then(|it| it.chars().next());
            if let Some(class) = perl.and_then(ascii) {
                self.made.push_str(class);
                self.at += length;
                before = next;
                continue;
            }
            let is_end = next == ']' && before != '[';
            let is_odd = matches!(next, '&' | '~') || next == '[' && length == 1;
            if is_odd || next == '-' && before == '-' {
                self.made.push('\\');
            }
            self.copy(length);
            if is_end {
                break;
            }
            // Only the first of all can be `[`.
            before = if next == '[' { ']' } else { next };
        }
        self.here.then(1);
    }

    /// What the next item of a class begins with; `\<` is `<`.
    fn class_item(&mut self) -> Option<char> {
        let rest = self.rest();
        if rest.starts_with(r"\<") || rest.starts_with(r"\>") {
            self.at += 1;
        }
        self.rest().chars().next()
    }

    fn open(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let flags = rest.strip_prefix("(?");
        let length = flags.map_or(0, |flags| {
            flags.len() - flags.trim_start_matches(['i', 'm', 's', 'U', '-']).len()
        });
        let begun = if flags.is_some() { 2 + length } else { 1 };
        match rest[begun..].chars().next() {
            Some('x' | 'u' | 'R') if flags.is_some() => {
                let told = &rest[..=begun];
                return Err(format!("invalid or unsupported Perl syntax: `{told}`"));
            }
            // Flags alone are no group.
            Some(')') if length > 0 => {
                self.copy(begun + 1);
                self.here.repeated_at = None;
            }
            _ => {
                self.copy(begun);
                self.groups.push(std::mem::take(&mut self.here));
            }
        }
        Ok(())
    }

    /// An operator of this length, and the `?` behind it that makes it modest.
    fn repeat(&mut self, length: usize, count: &Count) -> Result<(), String> {
        let start = self.at;
        let highest = count.most.unwrap_or(count.least);
        if count.least.max(highest) > COUNT_MAX || count.least > highest {
            let told = &self.go[start..start + length];
            return Err(format!("invalid repeat count: `{told}`"));
        }
        self.copy(length);
        if self.rest().starts_with('?') {
            self.copy(1);
        }
        if let Some(before) = self.here.repeated_at {
            let told = &self.go[before..self.at];
            return Err(format!("invalid nested repetition operator: `{told}`"));
        }
        if self.here.last == 0 {
            let told = &self.go[start..self.at];
            return Err(format!("missing argument to repetition operator: `{told}`"));
        }
        let all = match count.most {
            // What is never there is not repeated, whatever is in it.
            Some(0) => 0,
            _ => self.here.last * highest.max(1),
        };
        if all > COUNT_MAX {
            let told = &self.go[start..self.at];
            return Err(format!("invalid repeat count: `{told}`"));
        }
        self.here.last = all;
        self.here.repeated_at = Some(start);
        Ok(())
    }
}

/// What a letter behind a backslash stands for, if it is a class of letters.
fn ascii(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// The length of a count (`{2}`, `{2,}`, `{2,3}`), and what it says; `None` where Go sees a brace only.
fn count(text: &str) -> Option<(usize, Count)> {
    let inner = text.strip_prefix('{')?;
    let (inner, _) = inner.split_once('}')?;
    let (least, most) = match inner.split_once(',') {
        None => (inner, Some(inner)),
        Some((least, "")) => (least, None),
        Some((least, most)) => (least, Some(most)),
    };
    let most = match most {
        None => None,
        Some(most) => Some(whole(most)?),
    };
    let least = whole(least)?;
    Some((inner.len() + 2, Count { least, most }))
}

/// A number of Go's counts: without zeros before it. A very long one is too large in any case.
fn whole(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_padded = digits.len() > 1 && digits.starts_with('0');
    (is_number && !is_padded).then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(go: &str, told: &str) {
        let made = member_pattern(go).unwrap_or_else(|fault| fault);
        assert_eq!(made, told, "{go}");
    }

    #[test]
    fn what_both_read_alike_stays_as_it_is() {
        for pattern in [
            "",
            "^rack-1-node-[0-9]+$",
            "a|b|",
            "((a{1000}|b{2,}){0}){2}c*?",
            "(?i:a)(?P<n>b)(?s-m)",
            r"[]a][^]a][a\]b]\p{Greek}\x{41}{2}",
            "[[:alpha:][:digit:]]",
            "ä{3}",
            "(a",
            "a)*",
            r"a\",
            "[a",
        ] {
            check(pattern, pattern);
        }
    }

    #[test]
    fn what_only_go_knows_is_written_in_other_words() {
        check(r"\Qnode.1\E$", r"node\.1$");
        check(r"\Qa+\E+", r"a\++");
        check(r"\Q(", r"\(");
        check(r"\Qa<b\E", "a<b");
        check("a{b", r"a\{b");
        check("a{,5}", r"a\{,5}");
        check("a{01}", r"a\{01}");
        check(r"\<a[\>]", "<a[>]");
        check("[a[b]", r"[a\[b]");
        check("[a&&b~~c]", r"[a\&\&b\~\~c]");
        check("[+--]", r"[+-\-]");
        check(r"^\w{1,63}\D$", "^[0-9A-Za-z_]{1,63}[^0-9]$");
        check(r"[\w-.][^\s\d]", r"[[0-9A-Za-z_]-.][^[\t\n\f\r ][0-9]]");
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        check("a**", "invalid nested repetition operator: `**`");
        check("a|{2}", "missing argument to repetition operator: `{2}`");
        check("(?i)*", "missing argument to repetition operator: `*`");
        check("a+?{2}?", "invalid nested repetition operator: `+?{2}?`");
        check("a{1001}", "invalid repeat count: `{1001}`");
        check("a{2,1}", "invalid repeat count: `{2,1}`");
        check(
            "a{99999999999999999999}",
            "invalid repeat count: `{99999999999999999999}`",
        );
        check("((a{10}b){10}){11}", "invalid repeat count: `{11}`");
        check("(?ix)a", "invalid or unsupported Perl syntax: `(?ix`");
        check(r"\u0041", r"invalid escape sequence: `\u`");
    }
}
