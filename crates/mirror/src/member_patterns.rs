//! Patterns of the members of hyper-nodes, each compiled once, whoever names it.
//!
//! A pattern of a few letters may take a megabyte once compiled, so all that is held has a bound: what one
//! hyper-node may have together ([`PatternRoom`]), and [`BYTES_MAX`] for all of them. Which patterns are held follows
//! from the hyper-nodes that are there, and not from the order in which they came: they are let in by name, and
//! so a mirror that is filled anew holds the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::selector::LabelSelector;
use api::sum::Sum;
use api::volcano::{
    HyperNode, HyperNodeMember, MEMBER_PATTERN_BYTES_MAX, PatternRoom, member_pattern,
};
use regex_automata::meta::{Config, Regex};

/// All patterns of a cluster may take so much, in bytes, each counted once.
const BYTES_MAX: usize = 64 << 20;
/// What a pattern may remember of names that it was asked for, in bytes, in either direction.
const CACHE_BYTES_MAX: usize = 32 << 10;

/// A pattern that can be read.
#[derive(Debug)]
struct Known {
    /// So many hyper-nodes name it.
    users: usize,
    /// What it takes once compiled.
    bytes: usize,
    /// Not held where there is no room for it.
    compiled: Option<Arc<Regex>>,
}

/// Of a pattern: no hyper-node may have it.
struct TooLarge;

/// The patterns of all hyper-nodes.
#[derive(Debug, Default)]
pub(crate) struct MemberPatterns {
    known: BTreeMap<Arc<str>, Known>,
    /// What each hyper-node may have, in order of its members, by the hyper-node's name.
    named: BTreeMap<Box<str>, Vec<Arc<str>>>,
    /// All that may be held would take so much.
    bytes: usize,
    /// Those for which there is no room.
    left_out: BTreeSet<Arc<str>>,
}

/// The pattern of a member, if it is selected by one.
pub(crate) fn pattern(member: &HyperNodeMember) -> Option<&str> {
    let selector = member.selector.as_ref()?;
    let matched = selector.regex_match.as_ref();
    let matched = matched.filter(|_| selector.exact_match.is_none())?;
    Some(&matched.pattern)
}

/// The labels of a member, if it is selected by some.
pub(crate) fn labels(member: &HyperNodeMember) -> Option<&LabelSelector> {
    let selector = member.selector.as_ref()?;
    let labels = selector.label_match.as_ref();
    labels.filter(|_| selector.exact_match.is_none() && selector.regex_match.is_none())
}

impl MemberPatterns {
    /// The hyper-node of this name is this one now, or has gone.
    pub(crate) fn heed(&mut self, name: &str, hyper_node: Option<&HyperNode>) {
        let named = hyper_node.map(|it| self.named_by(it)).unwrap_or_default();
        let before = match named.is_empty() {
            true => self.named.remove(name),
            false => self.named.insert(name.into(), named),
        };
        for text in before.into_iter().flatten() {
            self.forget(&text);
        }
        if self.bytes > BYTES_MAX || !self.left_out.is_empty() {
            self.let_in();
        }
    }

    /// The pattern that the hyper-node names, if it is held for it.
    pub(crate) fn find(&self, hyper_node: &str, pattern: &str) -> Option<&Arc<Regex>> {
        let mut named = self.named.get(hyper_node)?.iter();
        named.find(|text| ***text == *pattern)?;
        self.known.get(pattern)?.compiled.as_ref()
    }

    /// A number for what is left out: zero for nothing.
    pub(crate) fn left_out(&self) -> u64 {
        if self.left_out.is_empty() {
            return 0;
        }
        let mut sum = Sum::default();
        self.left_out.iter().for_each(|text| sum.text(text));
        sum.value()
    }

    /// What the hyper-node may have of what it names; it is one more user of that.
    fn named_by(&mut self, hyper_node: &HyperNode) -> Vec<Arc<str>> {
        let (mut named, mut room) = (Vec::new(), PatternRoom::default());
        let mut seen = BTreeSet::new();
        let texts = hyper_node.spec.members.iter().filter_map(pattern);
        for text in texts.filter(|text| seen.insert(*text)) {
            if !room.is_left() {
                break;
            }
            match self.learn(text) {
                Some(Ok((text, bytes))) if room.takes(Some(bytes)) => named.push(text),
                Some(Ok((text, _))) => self.forget(&text),
                Some(Err(TooLarge)) => {
                    room.takes(None);
                }
                None => {}
            }
        }
        named
    }

    /// What a pattern takes, with one more user; `None` if nobody can read it.
    fn learn(&mut self, text: &str) -> Option<Result<(Arc<str>, usize), TooLarge>> {
        let known = self.known.get_key_value(text);
        if let Some(text) = known.map(|(text, _)| text.clone()) {
            let known = self.known.get_mut(&text).expect("it was found");
            known.users += 1;
            return Some(Ok((text, known.bytes)));
        }
        let compiled = match compiled(text)? {
            Ok(compiled) => Arc::new(compiled),
            Err(TooLarge) => return Some(Err(TooLarge)),
        };
        let (text, bytes) = (
            Arc::from(text),
            PatternRoom::counted(compiled.memory_usage()),
        );
        self.bytes += bytes;
        let known = Known {
            users: 1,
            bytes,
            compiled: Some(compiled),
        };
        self.known.insert(Arc::clone(&text), known);
        Some(Ok((text, bytes)))
    }

    fn forget(&mut self, text: &Arc<str>) {
        let known = self.known.get_mut(text).expect("it has a user");
        known.users -= 1;
        if known.users == 0 {
            self.bytes -= known.bytes;
            self.known.remove(text);
            self.left_out.remove(text);
        }
    }

    /// Holds what there is room for, hyper-node by hyper-node.
    fn let_in(&mut self) {
        let (mut room, mut seen) = (BYTES_MAX, BTreeSet::new());
        let MemberPatterns {
            known,
            named,
            left_out,
            ..
        } = self;
        left_out.clear();
        for text in named.values().flatten() {
            if !seen.insert(text) {
                continue;
            }
            let known = known.get_mut(text).expect("it has a user");
            match room.checked_sub(known.bytes) {
                Some(left) => {
                    room = left;
                    if known.compiled.is_none() {
                        known.compiled = compiled(text).and_then(Result::ok).map(Arc::new);
                    }
                }
                None => {
                    known.compiled = None;
                    left_out.insert(text.clone());
                }
            }
        }
    }
}

/// The pattern as it is asked for names; `None` if it cannot be read.
fn compiled(text: &str) -> Option<Result<Regex, TooLarge>> {
    let pattern = member_pattern(text).ok()?;
    let config = Config::new()
        .nfa_size_limit(Some(MEMBER_PATTERN_BYTES_MAX))
        .hybrid_cache_capacity(CACHE_BYTES_MAX)
        // It serves who wants to know what groups matched.
        .onepass(false);
    match Regex::builder().configure(config).build(&pattern) {
        Ok(built) => Some(Ok(built)),
        Err(error) => error.size_limit().map(|_| Err(TooLarge)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One of the patterns takes so much that this many hyper-nodes find no room together.
    const MANY: usize = 200;

    fn hyper_node(at: usize, pattern: &str) -> HyperNode {
        let object = json!({
            "metadata": { "name": named(at) },
            "spec": { "tier": 1, "members": [
                { "type": "Node", "selector": { "regexMatch": { "pattern": pattern } } },
            ] },
        });
        serde_json::from_value(object).expect("a hyper-node")
    }

    fn named(at: usize) -> String {
        format!("h{at:03}")
    }

    fn large(at: usize) -> String {
        // So much of nothing but literals is quickly made.
        format!("{at:03}{}", "(ab|cd|ef|gh)".repeat(1_500))
    }

    fn held(patterns: &MemberPatterns) -> Vec<usize> {
        let is_held = |at: &usize| patterns.find(&named(*at), &large(*at)).is_some();
        (0..MANY).filter(is_held).collect()
    }

    #[test]
    fn patterns_of_all_hyper_nodes_have_a_bound_whatever_their_order() {
        let mut patterns = MemberPatterns::default();
        let mut backwards = MemberPatterns::default();
        for at in 0..MANY {
            patterns.heed(&named(at), Some(&hyper_node(at, &large(at))));
            let at = MANY - 1 - at;
            backwards.heed(&named(at), Some(&hyper_node(at, &large(at))));
        }
        let first = held(&patterns);
        assert!(
            (30..MANY).contains(&first.len()),
            "{} are held",
            first.len()
        );
        assert_eq!(first, (0..first.len()).collect::<Vec<_>>());
        assert_eq!(held(&backwards), first);
        assert_ne!(patterns.left_out(), 0);
        assert_eq!(patterns.left_out(), backwards.left_out());
        let compiled = |it: &&Known| it.compiled.is_some();
        assert_eq!(
            patterns.known.values().filter(compiled).count(),
            first.len()
        );

        // Whoever goes makes room for the next one.
        patterns.heed(&named(0), None);
        assert_eq!(held(&patterns), (1..=first.len()).collect::<Vec<_>>());
        for at in 0..MANY {
            patterns.heed(&named(at), None);
        }
        assert!(patterns.known.is_empty());
        assert_eq!((patterns.bytes, patterns.left_out()), (0, 0));
    }

    #[test]
    fn a_pattern_that_many_name_is_held_once() {
        let mut patterns = MemberPatterns::default();
        for at in 0..MANY {
            patterns.heed(&named(at), Some(&hyper_node(at, &large(0))));
        }
        assert_eq!(patterns.left_out(), 0);
        let one = patterns.find(&named(0), &large(0)).expect("it is held");
        let other = patterns
            .find(&named(MANY - 1), &large(0))
            .expect("it is held");
        assert!(Arc::ptr_eq(one, other));
    }
}
