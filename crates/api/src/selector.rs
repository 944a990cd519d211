//! Label selectors and field selectors.

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
