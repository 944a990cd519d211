//! A story that fails is made smaller, as long as it still fails: fewer drivers, faults and parts.

use crate::fault::Fault;
use crate::story::Story;

/// The smallest story found that still fails. `fails` may also say no because it is out of patience.
pub fn shrink(story: &Story, fails: &mut dyn FnMut(&Story) -> bool) -> Story {
    let mut least = story.clone();
    if least.settings().replicas > 1 {
        let alone = least.with_replicas(1);
        if fails(&alone) {
            least = alone;
        }
    }
    least = fewer_parts(least, fails);
    least = fewer_faults(least, fails);
    fewer_parts(least, fails)
}

fn fewer_faults(mut least: Story, fails: &mut dyn FnMut(&Story) -> bool) -> Story {
    let faults: Vec<Fault> = least
        .settings()
        .faults
        .all()
        .map(|(fault, _)| fault)
        .collect();
    let mut size = faults.len().div_ceil(2);
    let mut kept = faults;
    while size > 0 {
        let mut from = 0;
        while from < kept.len() {
            let fewer = without(&kept, from, size);
            let smaller = least.with_faults(&fewer);
            if fails(&smaller) {
                least = smaller;
                kept = fewer;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    least
}

fn fewer_parts(mut least: Story, fails: &mut dyn FnMut(&Story) -> bool) -> Story {
    let mut kept = least.parts();
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < kept.len() {
            let fewer = without(&kept, from, size);
            let smaller = least.with_parts(&fewer);
            if fails(&smaller) {
                least = smaller;
                kept = fewer;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    least
}

/// A list without `size` of it from a place on.
fn without<T: Copy>(all: &[T], from: usize, size: usize) -> Vec<T> {
    let end = (from + size).min(all.len());
    all[..from].iter().chain(&all[end..]).copied().collect()
}
