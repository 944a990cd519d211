//! Label selectors and field selectors: as objects ([`LabelSelector`]) and as the texts of list
//! queries ([`LabelQuery`], [`FieldSelector`]).

mod fields;
mod labels;
mod lexer;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelQuery, Operator, Requirement};

use crate::core::TextMap;

round_trip! {
    /// `metav1.LabelSelector`: all parts must hold; an empty one matches everything.
    pub struct LabelSelector {
        /// Equal values.
        pub match_labels: TextMap,
        /// More requirements.
        pub match_expressions: Vec<LabelExpression>,
    }

    /// One requirement on a label.
    pub struct LabelExpression {
        /// The label.
        pub key: Box<str>,
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        pub operator: Box<str>,
        /// What it is compared with.
        pub values: Vec<Box<str>>,
    }
}

impl LabelSelector {
    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether these labels meet all requirements. An operator that does not exist matches
    /// nothing; [`LabelSelector::query`] says so in words.
    pub fn matches(&self, labels: &TextMap) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|expression| expression.matches(labels))
    }

    /// The same as a list query, checked, or what Kubernetes says is wrong with it.
    pub fn query(&self) -> Result<LabelQuery, String> {
        let equal = self
            .match_labels
            .iter()
            .map(|(key, value)| Requirement::new(key, Operator::In, vec![(&**value).into()]));
        let others = self.match_expressions.iter().map(|expression| {
            let operator = expression.operator().ok_or_else(|| {
                format!(
                    "{} is not a valid label selector operator",
                    crate::names::go_quote(&expression.operator)
                )
            })?;
            Requirement::new(&expression.key, operator, expression.values.clone())
        });
        let requirements = equal.chain(others).collect::<Result<Vec<_>, String>>()?;
        Ok(LabelQuery::of(requirements))
    }
}

impl LabelExpression {
    fn operator(&self) -> Option<Operator> {
        match &*self.operator {
            "In" => Some(Operator::In),
            "NotIn" => Some(Operator::NotIn),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            _ => None,
        }
    }

    fn matches(&self, labels: &TextMap) -> bool {
        let value = labels.get(&self.key).map(|value| &**value);
        self.operator()
            .is_some_and(|operator| operator.holds(value, &self.values))
    }
}

#[cfg(test)]
mod tests;
