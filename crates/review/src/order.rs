//! Whether things that wait for one another can be put in an order.

use std::collections::BTreeMap;

/// Why there is no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault<'a> {
    /// Somebody waits for a thing of this name, which is none of them.
    Unknown(&'a str),
    /// Somebody waits for itself, perhaps by way of others.
    Ring,
}

/// Checks things, by name, and the names of those that each waits for, in time linear in both.
pub(crate) fn check<'a>(things: &BTreeMap<&'a str, Vec<&'a str>>) -> Result<(), Fault<'a>> {
    let index: BTreeMap<&str, usize> = things.keys().copied().zip(0..).collect();
    let mut waiting = vec![0_usize; things.len()];
    let mut followers = vec![Vec::new(); things.len()];
    for (follower, firsts) in things.values().enumerate() {
        for name in firsts {
            let first = *index.get(name).ok_or(Fault::Unknown(name))?;
            followers[first].push(follower);
            waiting[follower] += 1;
        }
    }
    let mut free: Vec<usize> = (0..things.len())
        .filter(|thing| waiting[*thing] == 0)
        .collect();
    let mut ordered = 0;
    while let Some(thing) = free.pop() {
        ordered += 1;
        for follower in &followers[thing] {
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                free.push(*follower);
            }
        }
    }
    match ordered == things.len() {
        true => Ok(()),
        false => Err(Fault::Ring),
    }
}
