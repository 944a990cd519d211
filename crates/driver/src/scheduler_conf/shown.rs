//! Settings in the shape of the file.

use std::collections::BTreeMap;

use api::volcano::scheduler_conf::MetricsConf;
use engine::{Argument, Placement, PluginSettings};
use serde_json::{Map, Value, json};

/// The settings as JSON in the file's shape; what is as it is by default is left out. It reads back as
/// the same settings.
pub fn shown(placement: &Placement) -> Value {
    let tiers = placement.tiers.iter();
    let tiers = tiers.map(|tier| json!({ "plugins": tier.iter().map(plugin).collect::<Vec<_>>() }));
    let mut file = Map::new();
    file.insert("actions".to_owned(), json!(placement.actions.join(", ")));
    file.insert("tiers".to_owned(), tiers.collect());
    if !placement.action_arguments.is_empty() {
        let rows = placement.action_arguments.iter();
        let rows =
            rows.map(|(name, arguments)| json!({ "name": name, "arguments": map(&arguments.0) }));
        file.insert("configurations".to_owned(), rows.collect());
    }
    if !placement.as_upstream.is_empty() {
        let rows = placement.as_upstream.iter();
        let rows = rows.map(|it| (it.key().to_owned(), json!(false)));
        file.insert("compatibility".to_owned(), Value::Object(rows.collect()));
    }
    Value::Object(file)
}

/// Whom the rules ask what is used of nodes, in the file's shape; without credentials.
pub fn shown_metrics(metrics: &MetricsConf) -> Value {
    let Some(source) = metrics.source else {
        return Value::Null;
    };
    let beats = &metrics.elasticsearch;
    json!({
        "type": source.name(),
        "address": metrics.address,
        "interval": format!("{}ns", metrics.interval.0),
        "tls.insecureSkipVerify": metrics.insecure_skip_verify.to_string(),
        "elasticsearch.index": beats.index,
        "elasticsearch.hostnameFieldName": beats.hostname_field_name,
    })
}

fn plugin(settings: &PluginSettings) -> Value {
    let mut row = Map::new();
    row.insert("name".to_owned(), json!(settings.name));
    for switch in settings.off.iter().chain(&settings.on) {
        row.insert(switch.key().to_owned(), json!(settings.is_on(*switch)));
    }
    if !settings.arguments.0.is_empty() {
        row.insert("arguments".to_owned(), map(&settings.arguments.0));
    }
    Value::Object(row)
}

fn map(arguments: &BTreeMap<String, Argument>) -> Value {
    let fields = arguments.iter();
    Value::Object(
        fields
            .map(|(key, value)| (key.clone(), argument(value)))
            .collect(),
    )
}

fn argument(value: &Argument) -> Value {
    match value {
        Argument::Nothing => Value::Null,
        Argument::Flag(flag) => json!(flag),
        Argument::Whole(number) => json!(number),
        Argument::Decimal(number) => json!(number.value()),
        Argument::Text(text) => json!(text),
        Argument::List(items) => items.iter().map(argument).collect(),
        Argument::Map(fields) => map(fields),
    }
}
