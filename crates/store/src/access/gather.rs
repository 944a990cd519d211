//! Aggregated cluster roles: their rules are those of the roles that their selectors choose.
//!
//! Upstream's controller writes them a moment later. Here they are part of the write that changes
//! what they gather, so whoever was answered may count on them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::GROUP;
use crate::draft::Draft;
use crate::registry::ResourceId;
use crate::store::Store;
use crate::subresource::matches_labels;

/// A role may gather one that gathers; rounds end when nothing changes, and here at the latest.
const ROUNDS_MAX: usize = 16;

impl Store {
    /// Fills what gathers the cluster role at `key`, which is about to become `after`; its own
    /// rules, too, if it gathers itself.
    pub(crate) fn gather_roles(
        &mut self,
        id: ResourceId,
        key: &str,
        after: Option<&mut Value>,
        draft: &mut Draft,
    ) {
        let row = self.registry.row(id);
        if &*row.group != GROUP || &*row.plural != "clusterroles" {
            return;
        }
        let mut roles: BTreeMap<String, Value> = self
            .shelf(id)
            .latest_range("")
            .into_iter()
            .map(|(name, entry)| (name.to_string(), entry.value()))
            .collect();
        match &after {
            Some(role) => roles.insert(key.to_owned(), (*role).clone()),
            None => roles.remove(key),
        };
        for name in fill(&mut roles) {
            let role = &roles[&name];
            if name == key {
                continue;
            }
            draft.put(self, id, &name, role.clone());
        }
        if let Some(role) = after
            && let Some(filled) = roles.remove(key)
        {
            *role = filled;
        }
    }
}

/// Gives every aggregated role its rules and tells which of them changed.
pub(super) fn fill(roles: &mut BTreeMap<String, Value>) -> Vec<String> {
    let gathering: Vec<(String, Vec<Value>)> = roles
        .iter()
        .filter_map(|(name, role)| {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
            Some((name.clone(), selectors.clone()))
        })
        .collect();
    let mut changed = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut is_still = true;
        for (name, selectors) in &gathering {
            let rules = gathered(roles, name, selectors);
            let Some(role) = roles.get_mut(name) else {
                continue;
            };
            // Absent rules are no rules: they stay as they are written.
            if role["rules"].as_array().map_or(&[][..], Vec::as_slice) == rules {
                continue;
            }
            role["rules"] = json!(rules);
            is_still = false;
            if !changed.contains(name) {
                changed.push(name.clone());
            }
        }
        if is_still {
            break;
        }
    }
    changed
}

fn gathered(roles: &BTreeMap<String, Value>, own: &str, selectors: &[Value]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        for (name, role) in roles {
            if name == own || !matches_labels(selector, &role["metadata"]["labels"]) {
                continue;
            }
            for rule in role["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
