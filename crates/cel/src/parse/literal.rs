//! What stands between quotes.

/// What an escape in a text stands for, a byte or a character by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// `\x41` and `\101`: a character of a text, a byte of bytes.
    Byte(u8),
    Letter(u32),
}

/// Reads an escape behind its backslash; how many bytes it takes, too.
///
/// # Errors
/// How many of its bytes are good.
pub(super) fn escape(rest: &str) -> Result<(Escape, usize), usize> {
    let letter = rest.as_bytes().first().copied().ok_or(0usize)?;
    let plain = |letter: u8| Ok((Escape::Byte(letter), 1));
    match letter {
        b'a' => plain(7),
        b'b' => plain(8),
        b'f' => plain(12),
        b'n' => plain(b'\n'),
        b'r' => plain(b'\r'),
        b't' => plain(b'\t'),
        b'v' => plain(11),
        b'"' | b'\'' | b'\\' | b'?' | b'`' => plain(letter),
        b'x' | b'X' => number(rest, 1, 2, 16),
        b'u' => number(rest, 1, 4, 16),
        b'U' => number(rest, 1, 8, 16),
        b'0'..=b'3' => number(rest, 0, 3, 8),
        _ => Err(0),
    }
}

fn number(rest: &str, from: usize, count: usize, radix: u32) -> Result<(Escape, usize), usize> {
    let digits = rest[from..].chars().take(count);
    let good = from + digits.take_while(|digit| digit.is_digit(radix)).count();
    if good < from + count {
        return Err(good);
    }
    let number = u32::from_str_radix(&rest[from..good], radix).map_err(|_| good)?;
    let escape = match u8::try_from(number) {
        Ok(byte) if count < 4 => Escape::Byte(byte),
        _ => Escape::Letter(number),
    };
    Ok((escape, good))
}

/// The text of a literal, quotes and all.
///
/// # Errors
/// What is wrong with it.
pub(super) fn text(literal: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(literal.len());
    each(literal, |escape| {
        out.push(match escape {
            Ok(letter) => letter,
            Err(Escape::Byte(byte)) => char::from(byte),
            Err(Escape::Letter(number)) => {
                char::from_u32(number).ok_or("invalid unicode code point")?
            }
        });
        Ok(())
    })?;
    Ok(out)
}

/// The bytes of a literal, its `b` and quotes and all.
///
/// # Errors
/// What is wrong with it.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(literal.len());
    each(&literal[1..], |escape| {
        match escape {
            Ok(letter) => out.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
            Err(Escape::Byte(byte)) => out.push(byte),
            Err(Escape::Letter(_)) => return Err("unable to unescape string"),
        }
        Ok(())
    })?;
    Ok(out)
}

/// Goes through what is between the quotes, with line ends as they are elsewhere.
fn each(
    literal: &str,
    mut take: impl FnMut(Result<char, Escape>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let is_raw = literal.starts_with(['r', 'R']);
    let body = &literal[usize::from(is_raw)..];
    let is_long = body.len() >= 6 && (body.starts_with("\"\"\"") || body.starts_with("'''"));
    let quote = if is_long { 3 } else { 1 };
    let mut rest = &body[quote..body.len() - quote];
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\\' if !is_raw => {
                let (escape, length) = escape(rest).map_err(|_| "unable to unescape string")?;
                rest = &rest[length..];
                take(Err(escape))?;
            }
            '\r' => {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                take(Ok('\n'))?;
            }
            letter => take(Ok(letter))?,
        }
    }
    Ok(())
}
