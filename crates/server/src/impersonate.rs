//! `Impersonate-*` headers: who is asked to be acted for, and whether the caller may.

use http::HeaderMap;
use store::{Asked, Refused, Target, User};

use crate::api::Api;

/// The user whom a request acts for; `None` where it acts for its caller.
pub(crate) fn user(api: &Api, headers: &HeaderMap, caller: &User) -> Result<Option<User>, Refused> {
    let all = |name: &str| -> Vec<String> {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect()
    };
    let (names, mut groups, uids) = (
        all("impersonate-user"),
        all("impersonate-group"),
        all("impersonate-uid"),
    );
    let mut wished = User::default();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix("impersonate-extra-")
            && let Ok(value) = value.to_str()
        {
            let values = wished.extra.entry(key.to_owned()).or_default();
            values.push(value.to_owned());
        }
    }
    let Some(name) = names.first() else {
        if groups.is_empty() && uids.is_empty() && wished.extra.is_empty() {
            return Ok(None);
        }
        return Err(Refused::internal(
            "requested groups, a uid or extra values without impersonating a user",
        ));
    };
    let may = |group: &str, plural: &str, sub: &str, namespace: &str, name: &str| {
        let target = Target {
            group: group.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: sub.to_owned(),
            ..Target::default()
        };
        let asked = Asked {
            verb: "impersonate".to_owned(),
            path: String::new(),
            target: Some(target),
        };
        api.authorise(caller, &asked)
    };
    let account = name
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'));
    match account {
        Some((namespace, account)) => may("", "serviceaccounts", "", namespace, account)?,
        None => may("", "users", "", "", name)?,
    }
    for group in &groups {
        may("", "groups", "", "", group)?;
    }
    for (key, values) in &wished.extra {
        for value in values {
            may("authentication.k8s.io", "userextras", key, "", value)?;
        }
    }
    for uid in &uids {
        may("authentication.k8s.io", "uids", "", "", uid)?;
    }
    if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let everybody = match name.as_str() {
        "system:anonymous" => "system:unauthenticated",
        _ => "system:authenticated",
    };
    if !groups.iter().any(|group| group == everybody) {
        groups.push(everybody.to_owned());
    }
    wished.name.clone_from(name);
    wished.groups = groups;
    wished.uid = uids.into_iter().next().unwrap_or_default();
    Ok(Some(wished))
}
