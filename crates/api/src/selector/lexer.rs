//! Words and signs of a label selector text.

/// What a piece of the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word,
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// The signs; a sign that begins with another comes first.
const SIGNS: &[(&str, Token)] = &[
    ("==", Token::DoubleEquals),
    ("=", Token::Equals),
    ("!=", Token::NotEquals),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
    (">", Token::Greater),
    ("<", Token::Less),
];

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Walks over a text.
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        // Kubernetes' scanner takes a zero byte for the end of the text.
        let end = text.find('\0').unwrap_or(text.len());
        Lexer { rest: &text[..end] }
    }

    /// The next piece, consumed; `in` and `notin` are operators.
    pub(super) fn next(&mut self) -> (Token, &'a str) {
        let (token, literal, rest) = self.scan();
        self.rest = rest;
        (token, literal)
    }

    /// The next piece, consumed; `in` and `notin` are words.
    pub(super) fn next_value(&mut self) -> (Token, &'a str) {
        let (token, literal) = self.next();
        (as_value(token), literal)
    }

    /// The kind of the next piece; `in` and `notin` are words.
    pub(super) fn peek_value(&self) -> Token {
        as_value(self.scan().0)
    }

    /// The text of the next piece.
    pub(super) fn literal(&self) -> &'a str {
        self.scan().1
    }

    fn scan(&self) -> (Token, &'a str, &'a str) {
        let text = self.rest.trim_start_matches(SPACES);
        if text.is_empty() {
            return (Token::End, "", "");
        }
        for (sign, token) in SIGNS {
            if let Some(rest) = text.strip_prefix(sign) {
                return (*token, sign, rest);
            }
        }
        let end = text
            .find(|c| SPACES.contains(&c) || "=!(),><".contains(c))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let token = match word {
            "in" => Token::In,
            "notin" => Token::NotIn,
            _ => Token::Word,
        };
        (token, word, rest)
    }
}

fn as_value(token: Token) -> Token {
    match token {
        Token::In | Token::NotIn => Token::Word,
        token => token,
    }
}
