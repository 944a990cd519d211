//! Who may speak for others: the API server, when it passes on what it was asked. It shows a certificate
//! and names the user in headers; the cluster says which in the ConfigMap
//! `kube-system/extension-apiserver-authentication`.

use std::collections::BTreeMap;

use api::call;
use api::kind::Kind;
use client::{ClientError, Cluster};
use http::HeaderMap;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use store::User;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// What the cluster says about those who may speak for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// Who vouches for its certificate, PEM.
    pub authority: String,
    /// Names that the certificate may have; any where none is said.
    pub names: Vec<String>,
    /// Headers that name the user, its uid and its groups, and what begins the name of other headers about
    /// it.
    pub user_headers: Vec<String>,
    /// See `user_headers`.
    pub uid_headers: Vec<String>,
    /// See `user_headers`.
    pub group_headers: Vec<String>,
    /// See `user_headers`.
    pub extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// What the cluster says now; none where it says nothing, and then nobody speaks for others.
    ///
    /// # Errors
    /// It cannot be asked, or not by us.
    pub async fn read(cluster: &Cluster) -> Result<Option<FrontProxy>, ClientError> {
        let call = call::get(Kind::ConfigMap, NAMESPACE, NAME);
        let answer = cluster.send(&call).await?;
        if answer.code == 404 {
            return Ok(None);
        }
        let answer = answer.accepted()?;
        let map: Value =
            serde_json::from_slice(&answer.body).map_err(|cause| ClientError::Malformed {
                target: call.target.clone(),
                cause,
            })?;
        Ok(FrontProxy::of(&map["data"]))
    }

    fn of(data: &Value) -> Option<FrontProxy> {
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        // Lists of texts in JSON.
        let texts = |key: &str| serde_json::from_str(text(key)).unwrap_or_default();
        let front = FrontProxy {
            authority: text("requestheader-client-ca-file").to_owned(),
            names: texts("requestheader-allowed-names"),
            user_headers: texts("requestheader-username-headers"),
            uid_headers: texts("requestheader-uid-headers"),
            group_headers: texts("requestheader-group-headers"),
            extra_prefixes: texts("requestheader-extra-headers-prefix"),
        };
        (!front.authority.is_empty()).then_some(front)
    }

    /// Those who vouch for it.
    pub(super) fn roots(&self) -> Result<RootCertStore, Box<dyn std::error::Error + Send + Sync>> {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.authority.as_bytes()) {
            roots.add(authority?)?;
        }
        Ok(roots)
    }

    /// Whether a certificate that was vouched for is one of those.
    pub(super) fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else {
            return false;
        };
        let mut common = parsed.subject().iter_common_name();
        let name = common.next().and_then(|name| name.as_str().ok());
        self.names.is_empty() || name.is_some_and(|name| self.names.iter().any(|it| it == name))
    }

    /// For whom it speaks; none where it names nobody.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let all = |names: &[String]| -> Vec<String> {
            let found = names.iter().flat_map(|name| headers.get_all(name));
            let texts = found.filter_map(|value| value.to_str().ok());
            texts.map(str::to_owned).collect()
        };
        let mut named = all(&self.user_headers).into_iter();
        let name = named.find(|name| !name.is_empty())?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers {
            let mut prefixes = self.extra_prefixes.iter();
            let key = prefixes.find_map(|prefix| {
                let prefix = prefix.to_ascii_lowercase();
                header.as_str().strip_prefix(&*prefix)
            });
            if let (Some(key), Ok(value)) = (key, value.to_str()) {
                let values = extra.entry(store::decoded(key)).or_default();
                values.push(value.to_owned());
            }
        }
        Some(User {
            name,
            groups: all(&self.group_headers),
            uid: all(&self.uid_headers)
                .into_iter()
                .next()
                .unwrap_or_default(),
            extra,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_user_is_named_by_the_headers_that_the_cluster_says() {
        let front = FrontProxy::of(&json!({
            "requestheader-client-ca-file": "pem",
            "requestheader-allowed-names": r#"["front-proxy-client"]"#,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        }))
        .expect("an authority");
        let mut headers = HeaderMap::new();
        assert_eq!(front.user(&headers), None);
        for (name, value) in [
            ("x-remote-user", "alice"),
            ("x-remote-group", "dev"),
            ("x-remote-group", "system:authenticated"),
            ("x-remote-extra-example.com%2fshift", "night"),
            ("x-remote-uid", "not asked for"),
        ] {
            headers.append(name, value.parse().expect("a value"));
        }
        let user = front.user(&headers).expect("somebody");
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["dev", "system:authenticated"]);
        assert_eq!(user.uid, "");
        assert_eq!(user.extra["example.com/shift"], ["night"]);
        assert_eq!(FrontProxy::of(&json!({})), None);
    }
}
