//! Which nodes and pods a scheduler has, as the header of a log says it.

use api::volcano::ShardingMode;
use mirror::{Reach, Slice};
use serde_json::{Value, json};

/// In the words of the flags.
pub(super) fn shown(reach: &Reach) -> Value {
    let Reach {
        selector,
        slice,
        sharding,
        shard,
    } = reach;
    json!({
        "selector": selector,
        "slice": slice.map(|Slice { index, of }| [index, of]),
        "sharding": sharding.word(),
        "shard": shard,
    })
}

/// What [`shown`] wrote; logs of before say nothing, and mean all nodes.
pub(super) fn read(value: &Value) -> Result<Reach, String> {
    if value.is_null() {
        return Ok(Reach::default());
    }
    let wrong = |name: &str| format!("the settings' reach has no {name}");
    let selector = serde_json::from_value(value["selector"].clone());
    let slice: Result<Option<[u32; 2]>, _> = serde_json::from_value(value["slice"].clone());
    let slice = slice.map_err(|_| wrong("slice"))?;
    let sharding = value["sharding"].as_str().and_then(ShardingMode::of_word);
    Ok(Reach {
        selector: selector.map_err(|_| wrong("selector"))?,
        slice: slice.map(|[index, of]| Slice { index, of }),
        sharding: sharding.ok_or_else(|| wrong("sharding"))?,
        shard: value["shard"]
            .as_str()
            .ok_or_else(|| wrong("shard"))?
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_is_read_again() {
        let reach = Reach {
            selector: vec![("a".into(), "b".into())],
            slice: Some(Slice { index: 1, of: 3 }),
            sharding: ShardingMode::Soft,
            shard: "volcano".into(),
        };
        assert_eq!(read(&shown(&reach)), Ok(reach));
        assert_eq!(read(&Value::Null), Ok(Reach::default()));
        assert!(read(&json!({ "selector": [], "sharding": "half" })).is_err());
    }
}
