//! Where a webhook listens: a URL, or a service of the plane.

use serde_json::Value;

use super::Client;
use super::read::Service;
use crate::read::key_of;
use crate::store::Store;
use crate::talk::Address;

impl Store {
    /// The address of a webhook; `timeout` is the query that tells it how long it has.
    ///
    /// # Errors
    /// Why it has none, in the words of a Go client.
    pub(crate) fn address_of(&self, client: &Client, timeout: &str) -> Result<Address, String> {
        match &client.service {
            Some(service) => self.service_address(service, timeout),
            None => url_address(&client.url, timeout),
        }
    }

    fn service_address(&self, service: &Service, timeout: &str) -> Result<Address, String> {
        let name = format!("{}.{}.svc", service.name, service.namespace);
        let path = with_query(&service.path, timeout);
        let authority = format!("{name}:{}", service.port);
        let url = format!("https://{authority}{path}");
        let (host, port) = self
            .endpoint(service)
            .map_err(|why| format!("Post {url:?}: {why}"))?;
        Ok(Address {
            url,
            host,
            port,
            server_name: name,
            authority,
            path,
        })
    }

    /// A ready endpoint of the service, or else its own address.
    fn endpoint(&self, wanted: &Service) -> Result<(String, u16), String> {
        let key = key_of(&wanted.namespace, &wanted.name);
        let services = self.registry.find("", "services");
        let service = services
            .and_then(|id| self.shelf(id).get(&key))
            .ok_or_else(|| format!("service {:?} not found", wanted.name))?
            .value();
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            let host = spec["externalName"].as_str().unwrap_or_default();
            return Ok((host.to_owned(), wanted.port));
        }
        let ports = spec["ports"].as_array();
        let port = ports
            .into_iter()
            .flatten()
            .find(|port| port["port"].as_u64() == Some(u64::from(wanted.port)))
            .ok_or_else(|| {
                format!(
                    "no service port {} found for service {:?}",
                    wanted.port, wanted.name
                )
            })?;
        let none = || format!("no endpoints available for service {:?}", wanted.name);
        self.ready_endpoint(wanted, port).ok_or_else(none)
    }

    fn ready_endpoint(&self, wanted: &Service, port: &Value) -> Option<(String, u16)> {
        let id = self.registry.find("discovery.k8s.io", "endpointslices")?;
        let prefix = format!("{}/", wanted.namespace);
        let port_name = port["name"].as_str().unwrap_or_default();
        for (_, entry) in self.shelf(id).range(&prefix) {
            if entry.label("kubernetes.io/service-name") != Some(&wanted.name) {
                continue;
            }
            let slice = entry.value();
            let number = slice["ports"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|port| port["name"].as_str().unwrap_or_default() == port_name)
                .and_then(|port| port["port"].as_u64())
                .and_then(|port| u16::try_from(port).ok());
            let Some(number) = number else { continue };
            let ready = slice["endpoints"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|endpoint| endpoint["conditions"]["ready"] != false)
                .and_then(|endpoint| endpoint["addresses"][0].as_str());
            if let Some(host) = ready {
                return Some((host.to_owned(), number));
            }
        }
        None
    }
}

fn url_address(url: &str, timeout: &str) -> Result<Address, String> {
    let rest = url
        .strip_prefix("https://")
        .ok_or_else(|| format!("unsupported protocol scheme in {url:?}"))?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (host, port) = split_port(authority);
    let port = match port {
        Some(port) => port
            .parse()
            .map_err(|_| format!("invalid port {port:?} after host"))?,
        None => 443,
    };
    let path = with_query(path, timeout);
    Ok(Address {
        url: format!("https://{authority}{path}"),
        host: host.to_owned(),
        port,
        server_name: host.to_owned(),
        authority: authority.to_owned(),
        path,
    })
}

/// Host (without brackets) and port of `host:port`.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(rest) = authority.strip_prefix('[')
        && let Some((host, rest)) = rest.split_once(']')
    {
        return (host, rest.strip_prefix(':'));
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

fn with_query(path: &str, timeout: &str) -> String {
    let path = if path.is_empty() { "/" } else { path };
    if timeout.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{timeout}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_as_a_go_client_does() {
        let rows = [
            ("https://a.b/c", "a.b|443|a.b|/c?timeout=1s"),
            (
                "https://127.0.0.1:8443",
                "127.0.0.1|8443|127.0.0.1:8443|/?timeout=1s",
            ),
            ("https://[::1]:9/x/y", "::1|9|[::1]:9|/x/y?timeout=1s"),
        ];
        for (url, expected) in rows {
            let at = url_address(url, "timeout=1s").expect("an address");
            let seen = format!("{}|{}|{}|{}", at.host, at.port, at.authority, at.path);
            assert_eq!(seen, expected, "{url}");
        }
        assert!(url_address("http://a", "").is_err());
        assert!(url_address("https://a:b", "").is_err());
    }
}
