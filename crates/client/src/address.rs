//! Where an API server is, as people write it.

use api::address::Address;
use http::Uri;

/// A URL, or `HOST:PORT`, as client-go takes them: what has no scheme is asked with TLS where there is
/// something to do so with.
///
/// # Errors
/// It is neither; what to say about it.
pub(crate) fn address(text: &str, config: &kube::Config) -> Result<Uri, String> {
    let wrong = || format!("{text:?} is neither a URL nor HOST:PORT");
    let is_url = text.contains("://");
    let whole = match (is_url, has_tls(config)) {
        (true, _) => text.to_owned(),
        (false, true) => format!("https://{text}"),
        (false, false) => format!("http://{text}"),
    };
    let read: Uri = whole.parse().map_err(|_| wrong())?;
    // A path without a scheme is more likely the name of a file.
    let is_plain = is_url || read.path() == "/";
    (is_plain && Address::read(&whole).is_ok())
        .then_some(read)
        .ok_or_else(wrong)
}

/// Whether a configuration says how to speak TLS.
fn has_tls(config: &kube::Config) -> bool {
    let who = &config.auth_info;
    config.root_cert.is_some()
        || config.accept_invalid_certs
        || who.client_certificate.is_some()
        || who.client_certificate_data.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address as it is understood.
    fn check(text: &str, is_secure: bool, expected: &str) {
        let mut config = kube::Config::new(Uri::default());
        config.accept_invalid_certs = is_secure;
        let read = address(text, &config).map_or_else(|why| why, |read| read.to_string());
        assert_eq!(read, expected);
    }

    #[test]
    fn a_host_with_a_port_is_an_address() {
        check("localhost:8080", false, "http://localhost:8080/");
        check("localhost:8080/", false, "http://localhost:8080/");
        check("10.0.0.1:6443", true, "https://10.0.0.1:6443/");
        check("[fd00::1]:6443", true, "https://[fd00::1]:6443/");
        check("server", false, "http://server/");
        check("http://server:1", true, "http://server:1/");
        check("https://server/k8s/a", false, "https://server/k8s/a");
    }

    #[test]
    fn what_is_no_address_is_told() {
        for wrong in [
            "",
            "/root/config",
            "server/path",
            "a b:1",
            "ftp://server",
            "http://",
            "http:///x",
            ":6443",
            "server:0",
            "server:65536",
            "https://server:port",
        ] {
            let why = format!("{wrong:?} is neither a URL nor HOST:PORT");
            check(wrong, false, &why);
        }
    }
}
