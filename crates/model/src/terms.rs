//! Node terms by what they ask for: a node meets few of thousands.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::labels::{Labels, NodeTerm, Operator, Requirement, Values};

/// So few terms are read one by one.
const FEW: usize = 16;

/// Where the terms of a required node affinity are that a node may meet. It is empty where they are few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermIndex {
    /// By the value that a label must have, one of those that a term asks for: positions of terms.
    by_label: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Vec<u32>>>,
    /// By the name that the node must have.
    by_name: BTreeMap<Arc<str>, Vec<u32>>,
    /// The others.
    rest: Vec<u32>,
}

impl TermIndex {
    /// Of these terms.
    pub fn of(terms: &[NodeTerm]) -> TermIndex {
        let mut index = TermIndex::default();
        if terms.len() <= FEW {
            return index;
        }
        for (at, term) in (0_u32..).zip(terms) {
            let listed = |one: &&Requirement| one.operator == Operator::In;
            let by_name = term.names.iter().find(listed);
            let by_label = term.labels.iter().find(listed);
            match (by_name, by_label) {
                (Some(name), _) => put(&mut index.by_name, &name.values, at),
                (None, Some(label)) => {
                    let values = index.by_label.entry(label.key.clone()).or_default();
                    put(values, &label.values, at);
                }
                (None, None) => index.rest.push(at),
            }
        }
        index
    }

    /// Whether a node of this name and these labels meets one of the terms, which are those that the index
    /// was made of.
    pub fn accepts(&self, terms: &[NodeTerm], name: &str, labels: &Labels) -> bool {
        if terms.len() <= FEW {
            return terms.iter().any(|term| term.accepts(name, labels));
        }
        let by_label = self.by_label.iter().filter_map(|(key, values)| {
            let value = labels.get(key)?;
            values.get(value)
        });
        let mut all = self
            .by_name
            .get(name)
            .into_iter()
            .chain(by_label)
            .chain([&self.rest])
            .flatten();
        all.any(|at| terms[*at as usize].accepts(name, labels))
    }
}

fn put(rows: &mut BTreeMap<Arc<str>, Vec<u32>>, values: &Values, at: u32) {
    for value in values.iter() {
        let row = rows.entry(value.clone()).or_default();
        if row.last() != Some(&at) {
            row.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    fn requirement(dice: &mut Dice) -> Requirement {
        let operators = [
            Operator::DoesNotExist,
            Operator::Exists,
            Operator::Gt,
            Operator::In,
            Operator::In,
            Operator::Lt,
            Operator::NotIn,
        ];
        let count = 1 + dice.roll(3);
        Requirement {
            key: format!("k{}", dice.roll(3)).as_str().into(),
            operator: operators[dice.roll(7) as usize],
            values: (0..count).map(|_| dice.roll(6).to_string()).collect(),
        }
    }

    fn term(dice: &mut Dice) -> NodeTerm {
        let mut some = |most| -> Vec<Requirement> {
            let count = dice.roll(most);
            (0..count).map(|_| requirement(dice)).collect()
        };
        NodeTerm {
            labels: some(3),
            names: some(2),
        }
    }

    #[test]
    fn the_index_finds_what_reading_all_terms_finds() {
        for start in 0..2_000_u64 {
            let dice = &mut Dice(start);
            let count = dice.roll(40);
            let terms: Vec<NodeTerm> = (0..count).map(|_| term(dice)).collect();
            let index = TermIndex::of(&terms);
            for _ in 0..10 {
                let name = dice.roll(6).to_string();
                let labels = (0..dice.roll(4)).map(|at| (format!("k{at}"), dice.roll(6)));
                let labels: Vec<(String, String)> = labels
                    .map(|(key, value)| (key, value.to_string()))
                    .collect();
                let labels = Labels::of(labels.iter().map(|(k, v)| (k.as_str(), v.as_str())));
                let read = terms.iter().any(|term| term.accepts(&name, &labels));
                assert_eq!(index.accepts(&terms, &name, &labels), read, "seed {start}");
            }
        }
    }
}
