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

fn fewer_faults(least: Story, fails: &mut dyn FnMut(&Story) -> bool) -> Story {
    let all = least.settings().faults.all();
    let faults: Vec<Fault> = all.map(|(fault, _)| fault).collect();
    fewer(least, faults, Story::with_faults, fails)
}

fn fewer_parts(least: Story, fails: &mut dyn FnMut(&Story) -> bool) -> Story {
    let parts = least.parts();
    fewer(least, parts, Story::with_parts, fails)
}

/// Leaves out what the story fails without: first halves of the list, at last one by one.
fn fewer<T: Copy>(
    mut least: Story,
    mut kept: Vec<T>,
    with: impl Fn(&Story, &[T]) -> Story,
    fails: &mut dyn FnMut(&Story) -> bool,
) -> Story {
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < kept.len() {
            let fewer = without(&kept, from, size);
            let smaller = with(&least, &fewer);
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
