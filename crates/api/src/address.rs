//! Where a server is that is not the cluster's API, as configurations write it.

/// An address with its scheme, `http://` or `https://` (RFC 3986, section 3): a host, perhaps a port and a path.
/// A name and password before the host, and a fragment, are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Whether it is asked with TLS.
    pub is_secure: bool,
    /// A name or an IP address, without the brackets of IPv6.
    pub host: &'a str,
    /// The scheme's own (80, 443) where none is written.
    pub port: u16,
    /// What stands behind them: nothing, or a slash and more.
    pub path: &'a str,
}

impl Address<'_> {
    /// Takes an address apart.
    ///
    /// # Errors
    /// Nobody can be asked there; why not, without the address.
    pub fn read(text: &str) -> Result<Address<'_>, &'static str> {
        let after = |scheme: &str| {
            let (begins, rest) = text.split_at_checked(scheme.len())?;
            begins.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        let (is_secure, rest) = match (after("http://"), after("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err("it begins with neither http:// nor https://"),
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it has a blank, or a letter beyond ASCII");
        }
        if rest.contains('?') {
            return Err("it has a query");
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let door = authority.rsplit('@').next().unwrap_or_default();
        let (host, port) = match door.strip_prefix('[') {
            Some(open) => open.split_once(']').ok_or("its bracket stays open")?,
            None => door.split_at(door.find(':').unwrap_or(door.len())),
        };
        if host.is_empty() {
            return Err("it has no host");
        }
        let own = if is_secure { 443 } else { 80 };
        Ok(Address {
            is_secure,
            host,
            port: self::port(port, own)?,
            path,
        })
    }
}

/// The port of what stands behind a host: nothing, or a colon and digits, of which there may be none.
fn port(text: &str, own: u16) -> Result<u16, &'static str> {
    let Some(digits) = text.strip_prefix(':') else {
        return match text {
            "" => Ok(own),
            _ => Err("its host is followed by more than a port"),
        };
    };
    if digits.is_empty() {
        return Ok(own);
    }
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits.parse().ok().filter(|port| is_number && *port > 0);
    port.ok_or("its port is no number from 1 to 65535")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_perhaps_more() {
        for (text, is_secure, host, port, path) in [
            ("http://prometheus.svc", false, "prometheus.svc", 80, ""),
            ("https://host/", true, "host", 443, "/"),
            ("HTTPS://host:", true, "host", 443, ""),
            ("http://[::1]:9090/a/b", false, "::1", 9090, "/a/b"),
            ("http://[::1]", false, "::1", 80, ""),
            (
                "https://me:word@10.0.0.1:65535/a#b",
                true,
                "10.0.0.1",
                65_535,
                "/a",
            ),
            ("http://host/a:b@c", false, "host", 80, "/a:b@c"),
        ] {
            let wanted = Address {
                is_secure,
                host,
                port,
                path,
            };
            assert_eq!(Address::read(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_nobody_can_be_asked_at_is_told() {
        for (text, why) in [
            ("", "scheme"),
            ("prometheus:9090", "scheme"),
            ("ftp://host", "scheme"),
            ("http:/\u{e9}", "scheme"),
            ("http://", "no host"),
            ("http://:9090", "no host"),
            ("http://me@:9090/a", "no host"),
            ("http://host:many", "port"),
            ("http://host:65536", "port"),
            ("http://host:0", "port"),
            ("http://host:+80", "port"),
            ("http://host:80:80", "port"),
            ("http://2001:db8::1", "port"),
            ("http://[::1", "bracket"),
            ("http://[::1]9090", "more than a port"),
            ("http://two words", "blank"),
            ("http://h\u{f6}st", "ASCII"),
            ("http://host/?query", "query"),
        ] {
            let told = Address::read(text).expect_err(text);
            let why = why.replace("scheme", "neither http:// nor https://");
            assert!(told.contains(&why), "{text}: {told}");
        }
    }
}
