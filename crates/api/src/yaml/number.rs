//! Numbers as Go's YAML reader sees them.

use super::Meaning;

/// What a word means that is no flag and not nothing.
pub(super) fn meaning(plain: &str) -> Meaning {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let negative = plain.starts_with('-');
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            let infinite = f64::INFINITY;
            return Meaning::Decimal(if negative { -infinite } else { infinite });
        }
        ".nan" | ".NaN" | ".NAN" => return Meaning::Decimal(f64::NAN),
        _ => {}
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Meaning::Text;
    }
    let digits = unsigned.replace('_', "");
    if let Some(whole) = whole(&digits) {
        return Meaning::Whole(if negative { -whole } else { whole });
    }
    let float_like = digits
        .chars()
        .all(|one| one.is_ascii_digit() || matches!(one, '.' | 'e' | 'E' | '+' | '-'))
        && digits.chars().any(|one| one.is_ascii_digit());
    let float = digits.parse::<f64>().ok();
    match float.filter(|float| float_like && float.is_finite()) {
        Some(float) => Meaning::Decimal(if negative { -float } else { float }),
        None => Meaning::Text,
    }
}

fn whole(digits: &str) -> Option<i128> {
    let of = |at: usize, radix| {
        // A second sign would be taken for the number's.
        let digits = digits.get(at..)?;
        let is_plain = digits.starts_with(|first: char| first.is_ascii_alphanumeric());
        is_plain.then(|| i128::from_str_radix(digits, radix).ok())?
    };
    match digits.get(..2) {
        Some("0x" | "0X") => of(2, 16),
        Some("0b" | "0B") => of(2, 2),
        Some("0o" | "0O") => of(2, 8),
        Some(two) if two.starts_with('0') && two.as_bytes()[1].is_ascii_digit() => of(0, 8),
        _ => of(0, 10),
    }
}
