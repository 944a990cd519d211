//! Sentences that no scenario of the whole shows.

use crate::topology::{Misfit, Unhung};
use crate::{NumaLack, Reason};

#[test]
fn what_is_promised_too_much_is_named_and_pods_are_slots() {
    let said = |short: &[&str]| {
        let short = short.iter().map(|name| (*name).into()).collect();
        let reason = Reason::Overcommitted {
            short,
            is_beyond_all: false,
        };
        reason.sentence()
    };
    assert_eq!(
        said(&["pods"]),
        "the cluster has fewer pod slots than the gang has tasks"
    );
    for short in [&["cpu"] as &[&str], &["cpu", "pods"], &["pods", "cpu"]] {
        let words = said(short);
        assert!(
            words.starts_with("the cluster has promised too much"),
            "{words}"
        );
        assert!(short.iter().all(|name| words.contains(name)), "{words}");
    }
}

#[test]
fn each_lack_of_numa_nodes_has_words_of_its_own() {
    let (container, wanted) = ("c1", "restricted");
    let other = |has: &str| NumaLack::OtherPolicy {
        wanted: wanted.into(),
        has: has.into(),
    };
    let lacks = [
        NumaLack::Untold,
        NumaLack::Garbled,
        NumaLack::Unpinned,
        other(""),
        other("best-effort"),
        NumaLack::Unlaid,
        NumaLack::NoCpus,
        NumaLack::Few {
            container: container.into(),
        },
        NumaLack::Taken {
            container: container.into(),
        },
    ];
    let words: std::collections::BTreeSet<String> = lacks.iter().map(NumaLack::words).collect();
    assert_eq!(words.len(), lacks.len());
    assert_eq!(
        other("").words(),
        "with NUMA policy none instead of restricted"
    );
    assert!(
        lacks[7..]
            .iter()
            .all(|lack| lack.words().contains(container))
    );
}

#[test]
fn why_a_member_does_not_hang_is_told_with_where_it_hangs() {
    let said = |child: &str, why| {
        let (child, parent) = (child.into(), "p".into());
        Misfit { child, parent, why }.sentence()
    };
    assert_eq!(said("p", Unhung::NotLower), "it names itself as its member");
    assert_eq!(
        said("c", Unhung::NotLower),
        "its member c does not hang below it: the tier of c is not lower"
    );
    assert_eq!(
        said("c", Unhung::Elsewhere("q".into())),
        "its member c does not hang below it: it hangs below q already"
    );
}
