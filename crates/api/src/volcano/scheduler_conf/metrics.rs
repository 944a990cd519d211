//! The section `metrics`: where measured use of nodes is asked for.

use super::Reading;
use crate::address::Address;
use crate::duration::Duration;
use crate::yaml::Entry;

const KEYS: &[&str] = &[
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.hostnameFieldName",
    "elasticsearch.username",
    "elasticsearch.password",
];
const INTERVAL: Duration = Duration::from_seconds(30);

/// Where measured use of nodes is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsConf {
    /// Whom; `None` where nobody is asked.
    pub source: Option<MetricsSource>,
    /// Where.
    pub address: String,
    /// How often.
    pub interval: Duration,
    /// Whether any certificate of it is taken.
    pub insecure_skip_verify: bool,
    /// What only Elasticsearch needs.
    pub elasticsearch: Elasticsearch,
}

/// Who measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsSource {
    /// `elasticsearch`.
    Elasticsearch,
    /// `metrics_server`: the API of resource metrics, beyond upstream.
    MetricsServer,
    /// `prometheus`.
    Prometheus,
    /// `prometheus_adaptor`: the API of custom metrics.
    PrometheusAdaptor,
}

impl MetricsSource {
    /// Every source, by name.
    pub const ALL: &[MetricsSource] = &[
        MetricsSource::Elasticsearch,
        MetricsSource::MetricsServer,
        MetricsSource::Prometheus,
        MetricsSource::PrometheusAdaptor,
    ];

    /// How it is called in the file.
    pub fn name(self) -> &'static str {
        match self {
            MetricsSource::Elasticsearch => "elasticsearch",
            MetricsSource::MetricsServer => "metrics_server",
            MetricsSource::Prometheus => "prometheus",
            MetricsSource::PrometheusAdaptor => "prometheus_adaptor",
        }
    }

    /// Whether it has an address of its own; any other is asked through the cluster's API.
    pub fn needs_address(self) -> bool {
        matches!(
            self,
            MetricsSource::Elasticsearch | MetricsSource::Prometheus
        )
    }
}

/// What only Elasticsearch needs.
#[derive(Clone, PartialEq, Eq)]
pub struct Elasticsearch {
    /// Where it looks.
    pub index: String,
    /// Which field has the node's name.
    pub hostname_field_name: String,
    /// Who asks.
    pub username: String,
    /// And proves it.
    pub password: String,
}

impl std::fmt::Debug for Elasticsearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the password: this may end in a log.
        f.debug_struct("Elasticsearch")
            .field("index", &self.index)
            .field("hostname_field_name", &self.hostname_field_name)
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl Default for MetricsConf {
    fn default() -> MetricsConf {
        MetricsConf {
            source: None,
            address: String::new(),
            interval: INTERVAL,
            insecure_skip_verify: false,
            elasticsearch: Elasticsearch {
                index: "metricbeat-*".to_owned(),
                hostname_field_name: "host.hostname".to_owned(),
                username: String::new(),
                password: String::new(),
            },
        }
    }
}

pub(super) fn read(section: &Entry, reading: &mut Reading<'_>) -> MetricsConf {
    let mut metrics = MetricsConf::default();
    let Some(fields) = reading.fields(&section.node, "metrics") else {
        return metrics;
    };
    reading.unknown(&fields, "metrics", KEYS);
    for (key, entry) in fields {
        let field = format!("metrics.{key}");
        let Some(text) = reading.text(&entry.node, &field) else {
            continue;
        };
        let mut warn = |message: &str, advice: &str| {
            let (message, advice) = (message.to_owned(), advice.to_owned());
            let place = entry.node.place;
            reading.remarks.warning(place, &field, message, advice);
        };
        let beats = &mut metrics.elasticsearch;
        match key {
            "type" => {
                let mut all = MetricsSource::ALL.iter().copied();
                metrics.source = all.find(|source| source.name() == text);
                if metrics.source.is_none() {
                    warn(
                        "nothing of this name measures: nobody is asked",
                        "prometheus, prometheus_adaptor, metrics_server and elasticsearch do",
                    );
                }
            }
            "address" => {
                if !text.is_empty() && Address::read(&text).is_err() {
                    warn(
                        "this is no address: nobody can be asked there",
                        "write http://… or https://… with a host, and no query",
                    );
                }
                metrics.address = text;
            }
            "interval" => match Duration::parse(&text) {
                Ok(interval) if interval.0 > 0 => metrics.interval = interval,
                _ => warn("this is no time above zero: 30s counts", "write 30s or 1m"),
            },
            "tls.insecureSkipVerify" => match text.as_str() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => metrics.insecure_skip_verify = true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" | "" => {}
                _ => warn("true or false is wanted: false counts", ""),
            },
            "elasticsearch.index" if !text.is_empty() => beats.index = text,
            "elasticsearch.hostnameFieldName" if !text.is_empty() => {
                beats.hostname_field_name = text;
            }
            "elasticsearch.username" => beats.username = text,
            "elasticsearch.password" => beats.password = text,
            _ => {}
        }
    }
    let needs_address = metrics.source.is_some_and(MetricsSource::needs_address);
    if needs_address && metrics.address.is_empty() {
        let message = "a type without an address: nobody can be asked".to_owned();
        let advice = "write address: http://…".to_owned();
        let remarks = &mut reading.remarks;
        remarks.warning(section.place, "metrics", message, advice);
    }
    metrics
}
