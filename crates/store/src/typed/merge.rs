//! What an object becomes when a configuration is laid over it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{DEPTH_MAX, item};
use crate::fields::Element;
use crate::schema::{ListShape, Share, Spot, Way};

/// Stands for items of which a list has several: they are not merged with.
static TWINS: Value = Value::Null;

/// Lays `config` over `live`. Both have been checked against the type.
pub(crate) fn merge(live: &Value, config: &Value, spot: Spot<'_>) -> Value {
    at(Some(live), Some(config), spot, 0).unwrap_or(Value::Null)
}

fn at(live: Option<&Value>, config: Option<&Value>, spot: Spot<'_>, depth: usize) -> Option<Value> {
    // Nothing is laid over this part: most of most objects.
    if config.is_none() || depth > DEPTH_MAX {
        return live.cloned();
    }
    let (before, after) = (spot.way(live), spot.way(config));
    if live.is_some() && before != after {
        // Only what the configuration's form gives counts in the end, or what it leaves undecided.
        let kept = follow(before, live, config, spot, depth);
        return follow(after, live, config, spot, depth).or(kept);
    }
    follow(after, live, config, spot, depth)
}

fn follow(
    way: Way<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
    spot: Spot<'_>,
    depth: usize,
) -> Option<Value> {
    let leaf = || config.or(live).cloned();
    match way {
        Way::Scalar(_) | Way::Map(Share::Atomic) | Way::List(ListShape::Atomic) => leaf(),
        Way::Map(Share::Granular) => {
            let live_map = live.and_then(Value::as_object);
            let config_map = config.and_then(Value::as_object);
            if live_map.is_none_or(Map::is_empty) && config_map.is_none_or(Map::is_empty) {
                return leaf();
            }
            let mut out = live_map.cloned().unwrap_or_default();
            for (name, config) in config_map.into_iter().flatten() {
                let below = spot.field(name).unwrap_or_else(Spot::free);
                let live = live_map.and_then(|map| map.get(name));
                match at(live, Some(config), below, depth + 1) {
                    Some(merged) => out.insert(name.clone(), merged),
                    None => out.remove(name),
                };
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Way::List(shape) => {
            let live_list = live
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            let config_list = config
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            if live_list.is_empty() && config_list.is_empty() {
                return leaf();
            }
            let out = Lists::new(live_list, config_list, shape, spot.item()).merged(depth);
            (!out.is_empty()).then_some(Value::Array(out))
        }
    }
}

/// Two lists whose items are merged.
struct Lists<'a> {
    spot: Spot<'a>,
    /// The live items with their elements, and those that the configuration has.
    live: Vec<(Element<'a>, &'a Value)>,
    config: Vec<(Element<'a>, &'a Value)>,
    live_by: BTreeMap<Element<'a>, &'a Value>,
    config_by: BTreeSet<Element<'a>>,
}

impl<'a> Lists<'a> {
    fn new(
        live: &'a [Value],
        config: &'a [Value],
        shape: ListShape<'_>,
        spot: Spot<'a>,
    ) -> Lists<'a> {
        let named = |list: &'a [Value]| -> Vec<(Element<'a>, &'a Value)> {
            list.iter()
                .filter_map(|value| Some((item::element(value, shape, spot).ok()?, value)))
                .collect()
        };
        let (live, config) = (named(live), named(config));
        let mut live_by = BTreeMap::new();
        for (element, value) in &live {
            live_by
                .entry(element.clone())
                .and_modify(|known| *known = &TWINS)
                .or_insert(*value);
        }
        let config_by = config.iter().map(|(element, _)| element.clone()).collect();
        Lists {
            spot,
            live,
            config,
            live_by,
            config_by,
        }
    }

    /// Items of the configuration in its order, live ones where they stood among them.
    fn merged(&self, depth: usize) -> Vec<Value> {
        let mut out = Vec::with_capacity(self.live.len().max(self.config.len()));
        let mut shared: VecDeque<&Element<'_>> = self
            .config
            .iter()
            .map(|(element, _)| element)
            .filter(|element| self.live_by.contains_key(*element))
            .collect();
        let mut next = shared.pop_front();
        let mut done: BTreeSet<&Element<'_>> = BTreeSet::new();
        let (mut l, mut r) = (0, 0);
        while l < self.live.len() || r < self.config.len() {
            let live = self.live.get(l);
            let config = self.config.get(r);
            if let (Some((element, _)), Some((wanted, value))) = (live, config) {
                if element == wanted {
                    done.insert(wanted);
                    out.extend(self.merge_item(wanted, value, depth));
                    (l, r) = (l + 1, r + 1);
                    next = shared.pop_front();
                    continue;
                }
                let is_later = next.is_some_and(|next| next != element);
                if self.config_by.contains(element) && is_later {
                    // It is shared, but its turn comes elsewhere.
                    l += 1;
                    continue;
                }
            }
            if let Some((element, value)) = live {
                if !self.config_by.contains(element) {
                    out.push((*value).clone());
                    l += 1;
                    continue;
                }
                if done.contains(element) {
                    l += 1;
                }
            }
            if let Some((wanted, value)) = config {
                done.insert(wanted);
                out.extend(self.merge_item(wanted, value, depth));
                r += 1;
                if next == Some(wanted) {
                    next = shared.pop_front();
                }
            }
        }
        out
    }

    fn merge_item(&self, element: &Element<'_>, config: &Value, depth: usize) -> Option<Value> {
        let live = self.live_by.get(element).copied();
        at(live, Some(config), self.spot, depth + 1)
    }
}
