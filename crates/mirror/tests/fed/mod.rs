//! Tables that objects were fed to, as a scheduler named `volcano` reads them.

use api::kind::Kind;
use mirror::{Mirror, Rows};
use model::Tables;
use serde_json::Value;

/// The tables after the objects have come, in this order.
pub fn tables(objects: &[(Kind, Value)]) -> Tables {
    let names = || vec!["volcano".into()];
    let mut rows = Rows::new(names()).with_lone(names());
    let (mut mirror, mut tables) = (Mirror::new(), Tables::new());
    for (kind, object) in objects {
        let change = mirror.apply(*kind, &object.to_string());
        let change = change.expect("the object is read").expect("it is news");
        rows.feed(&mirror, &change, &mut tables);
    }
    tables
}
