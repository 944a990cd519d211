//! Formats of texts that only field rules know.

use std::net::IpAddr;

use api::names;

/// Whether a path has a step to the parent.
pub(crate) fn steps_back(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// `25%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let is_percent = text
        .strip_suffix('%')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    if is_percent {
        return Vec::new();
    }
    vec![
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            .to_owned(),
    ]
}

/// The name of an HTTP header.
pub(crate) fn header(text: &str) -> Vec<String> {
    let is_header = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !text.is_empty() && text.bytes().all(is_header) {
        return Vec::new();
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            .to_owned(),
    ]
}

/// A subdomain whose labels may begin with an underscore: a DNS search path.
pub(crate) fn search_path(text: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|b| plain(*b))
            && bytes.last().is_some_and(|b| plain(*b))
            && bytes.iter().all(|b| plain(*b) || matches!(b, b'-' | b'_'))
    };
    let mut wrong = Vec::new();
    if text.len() > names::SUBDOMAIN_BYTES_MAX {
        wrong.push(format!(
            "must be no more than {} characters",
            names::SUBDOMAIN_BYTES_MAX
        ));
    }
    if !text.split('.').all(is_label) {
        wrong.push(
            r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// An IP address.
pub(crate) fn address(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(_) => Vec::new(),
        Err(_) if has_leading_zeroes(text) => vec!["must not have leading 0s".to_owned()],
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// Four decimal parts, one of which begins with a zero.
fn has_leading_zeroes(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            part.len() <= 16
                && !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_digit())
                && part.trim_start_matches('0').len() <= 3
                && part.parse::<u64>().is_ok_and(|number| number < 256)
        })
}

/// A network: an address and how many of its bits count.
pub(crate) fn network(text: &str) -> Vec<String> {
    let wrong = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let Some((address, bits)) = text.split_once('/') else {
        return vec![wrong.to_owned()];
    };
    let (Ok(ip), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return vec![wrong.to_owned()];
    };
    let (number, width) = match ip {
        IpAddr::V4(four) => (u128::from(u32::from(four)), 32),
        IpAddr::V6(six) => (u128::from(six), 128),
    };
    if bits > width {
        return vec![wrong.to_owned()];
    }
    let rest = width - bits;
    let beyond = 1u128.checked_shl(rest).map_or(u128::MAX, |bit| bit - 1);
    if number & beyond == 0 {
        return Vec::new();
    }
    vec!["must not have bits set beyond the prefix length".to_owned()]
}

/// What may stand behind the slash of a domain-prefixed path.
pub(crate) fn http_path(text: &str) -> Vec<String> {
    let is_path = |b: u8| b.is_ascii_alphanumeric() || br"/-._~%!$&'()*+,;=:".contains(&b);
    if !text.is_empty() && text.bytes().all(is_path) {
        return Vec::new();
    }
    vec![
        r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')".to_owned(),
    ]
}
