//! String formats that a structural schema may ask for.

use std::net::{Ipv4Addr, Ipv6Addr};

use api::time::Time;

/// Formats that a real server knows, sorted.
const KNOWN: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a format means anything to a real server.
pub(crate) fn is_known(format: &str) -> bool {
    KNOWN.binary_search(&format).is_ok()
}

/// Whether the text has the format; formats that nobody checks are always right.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "byte" => base64_error(text).is_none(),
        "cidr" => is_cidr(text),
        "date" => text.len() == 10 && Time::parse(&format!("{text}T00:00:00Z")).is_some(),
        "date-time" | "datetime" => Time::parse(text).is_some_and(|_| text.contains(['T', 't'])),
        "duration" => api::duration::Duration::parse(text).is_ok(),
        "email" => text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(' ')
        }),
        "hostname" => text.len() <= 255 && !text.is_empty() && text.split('.').all(is_host_label),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "mac" => is_mac(text),
        "uri" => text
            .split_once(':')
            .is_some_and(|(scheme, _)| !scheme.is_empty() && !text.contains(' ')),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text),
        _ => true,
    }
}

/// What Go's base64 decoder would say about the text. Line ends do not count.
pub(crate) fn base64_error(text: &str) -> Option<String> {
    let wrong = |at: usize| Some(format!("illegal base64 data at input byte {at}"));
    let bytes = text.as_bytes();
    let is_end = |at: usize| matches!(bytes.get(at), Some(b'\r' | b'\n'));
    let after_ends = |mut at: usize| {
        while is_end(at) {
            at += 1;
        }
        at
    };
    let (mut at, mut place) = (0, 0);
    loop {
        at = after_ends(at);
        match bytes.get(at) {
            None if place == 0 => return None,
            None => return wrong(at - place),
            Some(letter) if letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/') => {
                place = (place + 1) % 4;
                at += 1;
            }
            Some(b'=') if place >= 2 => break,
            Some(_) => return wrong(at),
        }
    }
    at = after_ends(at + 1);
    if place == 2 {
        match bytes.get(at) {
            None => return wrong(bytes.len()),
            Some(b'=') => at = after_ends(at + 1),
            Some(_) => return wrong(at - 1),
        }
    }
    match at < bytes.len() {
        true => wrong(at),
        false => None,
    }
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| {
        let Ok(bits) = bits.parse::<u8>() else {
            return false;
        };
        (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
            || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
    })
}

fn is_host_label(label: &str) -> bool {
    let letters = label
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    letters
        && !label.is_empty()
        && label.len() <= 63
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let is_byte = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(is_byte)
}

fn is_uuid(text: &str) -> bool {
    let hex: String = text.chars().filter(|letter| *letter != '-').collect();
    hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit())
}
