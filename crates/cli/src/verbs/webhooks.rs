//! `katmai webhooks`, also by the name `vc-webhook-manager`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use api::volcano::SCHEDULER_NAME;
use clap::{ArgAction, Args, Command, FromArgMatches};

use super::Verb;
use crate::console;
use crate::start::{Connection, Outcome, Printed, Start, TlsFiles, WebhooksRequest};

/// The row.
pub const VERB: Verb = Verb {
    name: "webhooks",
    command: || {
        Arguments::augment_args(
            Command::new("webhooks").about("Review what is written to an existing cluster"),
        )
        .after_help(AFTER)
    },
    begin: |matches| {
        let arguments = Arguments::from_arg_matches(matches)?;
        for warning in arguments.accepted.warnings() {
            console::warn(&warning);
        }
        let request = arguments.request()?;
        Ok(Outcome::Start(Box::new(Start::Webhooks(request))))
    },
};

const AFTER: &str = "\
The flags of Volcano's vc-webhook-manager are understood. Registrations that are there are kept and get our
authorities; where --webhook-service-name or --webhook-url says where we are found, missing ones are made.
Without files for TLS a certificate is made, kept in a Secret that all replicas share, and renewed in time.";

#[derive(Args)]
struct Arguments {
    /// Kubeconfig file [default: $KUBECONFIG, the user's file, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// URL of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Print what would be registered, as JSON for kubectl apply, and end
    #[arg(long, value_enum, value_name = "WHAT")]
    print: Option<Printed>,
    #[command(flatten)]
    door: Door,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    accepted: Accepted,
}

// Not a doc comment: clap would take it for the help of the verb.
// Where it serves and is found.
#[derive(Args)]
#[command(next_help_heading = "Where it serves")]
struct Door {
    /// Port to serve at
    #[arg(long, default_value_t = 8443, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Address to serve at [default: all]
    #[arg(long, value_name = "IP", default_value = "")]
    listen_address: String,
    /// Namespace of the Service and of the Secret of the certificate; not reviewed itself
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    webhook_namespace: String,
    /// Service by which the API server finds us
    #[arg(long, value_name = "NAME", default_value = "")]
    webhook_service_name: String,
    /// URL by which the API server finds us, instead of a Service
    #[arg(long, value_name = "URL", default_value = "")]
    webhook_url: String,
    /// Certificate chain, PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires_all = ["tls_private_key_file", "ca_cert_file"])]
    tls_cert_file: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// Who vouches for the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    ca_cert_file: Option<PathBuf>,
    /// How long requests may take to end when we do
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    graceful_shutdown_time: Duration,
    /// Serve /healthz without TLS
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    enable_healthz: bool,
    /// Where to serve it
    #[arg(long, value_name = "ADDRESS", default_value = ":11251")]
    healthz_address: String,
}

// What is judged, and how.
#[derive(Args)]
#[command(next_help_heading = "What it judges")]
struct Rules {
    /// Paths to serve, such as /jobs/mutate [default: all]
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    enabled_admission: Vec<String>,
    /// File of resource groups: what pods of some namespaces, or with some annotations, get
    #[arg(long, value_name = "FILE", default_value = "")]
    admission_conf: String,
    /// Name by which pods ask for gangs and queues; may be given several times [default: volcano]
    #[arg(long, value_name = "NAME")]
    scheduler_name: Vec<String>,
    /// Deepest place of a queue
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    max_queue_depth: usize,
    /// Keep the amounts of the root queue as they are
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    enable_root_queue_protection: bool,
    /// Keep queues whose pods run from being deleted
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    enable_queue_allocated_pods_check: bool,
    /// Let arguments of job plugins hold private keys, as upstream
    #[arg(long)]
    allow_plugin_keys: bool,
    /// Refuse jobs of a queue that no controller has opened yet, as upstream
    #[arg(long)]
    refuse_new_queues: bool,
    /// Volcano's feature gates, as NAME=true or NAME=false; SchedulingGatesQueueAdmission counts
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    feature_gates: Vec<String>,
}

// Flags of upstream that have nothing to set here.
#[derive(Args)]
#[command(next_help_heading = "Accepted, without effect")]
struct Accepted {
    /// Requests per second to the API server
    #[arg(long, value_name = "NUMBER")]
    kube_api_qps: Option<String>,
    /// Requests at once to the API server
    #[arg(long, value_name = "NUMBER")]
    kube_api_burst: Option<String>,
    /// How much is logged; here KATMAI_LOG says it
    #[arg(short = 'v', value_name = "LEVEL")]
    verbosity: Option<String>,
    /// How much is logged by file; here KATMAI_LOG says it
    #[arg(long, value_name = "PATTERN")]
    vmodule: Option<String>,
    /// Whether logs go to standard error, where ours always go
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    logtostderr: Option<String>,
    /// What of the logs goes to standard error, where ours always go
    #[arg(long, value_name = "LEVEL")]
    stderrthreshold: Option<String>,
    /// How often logs are flushed; ours are never held back
    #[arg(long, value_name = "DURATION")]
    log_flush_frequency: Option<String>,
}

impl Accepted {
    /// One line for each that was typed.
    fn warnings(&self) -> Vec<String> {
        let Accepted {
            kube_api_qps,
            kube_api_burst,
            verbosity,
            vmodule,
            logtostderr,
            stderrthreshold,
            log_flush_frequency,
        } = self;
        let few = "two kinds are watched and only registrations written";
        let logs = "KATMAI_LOG says what is logged, to standard error";
        [
            ("--kube-api-qps", kube_api_qps, few),
            ("--kube-api-burst", kube_api_burst, few),
            ("-v", verbosity, logs),
            ("--vmodule", vmodule, logs),
            ("--logtostderr", logtostderr, logs),
            ("--stderrthreshold", stderrthreshold, logs),
            ("--log-flush-frequency", log_flush_frequency, logs),
        ]
        .into_iter()
        .filter(|(_, typed, _)| typed.is_some())
        .map(|(flag, _, why)| format!("{flag} has no effect here: {why}"))
        .collect()
    }
}

impl Arguments {
    fn request(self) -> anyhow::Result<WebhooksRequest> {
        let Arguments {
            kubeconfig,
            master,
            print,
            door,
            rules,
            accepted: _,
        } = self;
        let Door {
            port,
            listen_address,
            webhook_namespace,
            webhook_service_name,
            webhook_url,
            tls_cert_file,
            tls_private_key_file,
            ca_cert_file,
            graceful_shutdown_time,
            enable_healthz,
            healthz_address,
        } = door;
        let tls = tls_cert_file.zip(tls_private_key_file).zip(ca_cert_file);
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let health = enable_healthz.then(|| socket(&healthz_address));
        let (scheduler_names, queue_gates) = (
            names(rules.scheduler_name)?,
            queue_gates(&rules.feature_gates)?,
        );
        Ok(WebhooksRequest {
            connection: Connection { kubeconfig, master },
            print,
            address: SocketAddr::new(ip(&listen_address)?, port),
            namespace: some(webhook_namespace),
            service_name: some(webhook_service_name),
            url: some(webhook_url),
            tls: tls.map(|((chain, key), authority)| TlsFiles {
                chain,
                key,
                authority,
            }),
            farewell: graceful_shutdown_time,
            health: health.transpose()?,
            paths: rules.enabled_admission,
            admission_conf: some(rules.admission_conf).map(PathBuf::from),
            scheduler_names,
            queue_depth_max: rules.max_queue_depth,
            keeps_root: rules.enable_root_queue_protection,
            keeps_full_queues: rules.enable_queue_allocated_pods_check,
            allows_plugin_keys: rules.allow_plugin_keys,
            refuses_new_queues: rules.refuse_new_queues,
            queue_gates,
        })
    }
}

fn names(given: Vec<String>) -> anyhow::Result<Vec<Box<str>>> {
    if given.iter().any(|name| name.trim().is_empty()) {
        bail!("--scheduler-name: a name may not be empty");
    }
    if given.is_empty() {
        return Ok(vec![SCHEDULER_NAME.into()]);
    }
    Ok(given.iter().map(|name| name.trim().into()).collect())
}

/// Whether queues open the gates of pods; what other gates say has no meaning here.
fn queue_gates(gates: &[String]) -> anyhow::Result<bool> {
    let mut is_on = false;
    for gate in gates {
        let Some((name, Ok(value))) = gate
            .split_once('=')
            .map(|(name, value)| (name, value.parse::<bool>()))
        else {
            bail!("--feature-gates: expected NAME=true or NAME=false, got {gate:?}");
        };
        if name == super::serving::QUEUE_ADMISSION {
            is_on = value;
        }
    }
    Ok(is_on)
}

fn ip(text: &str) -> anyhow::Result<IpAddr> {
    match text {
        "" => Ok(Ipv6Addr::UNSPECIFIED.into()),
        text => text
            .trim_matches(['[', ']'])
            .parse()
            .with_context(|| format!("{text:?} is no IP address")),
    }
}

/// `:11251` or `127.0.0.1:11251`.
fn socket(text: &str) -> anyhow::Result<SocketAddr> {
    let (host, port) = text
        .rsplit_once(':')
        .with_context(|| format!("{text:?} has no port"))?;
    let port = port
        .parse()
        .with_context(|| format!("{port:?} is no port"))?;
    Ok(SocketAddr::new(ip(host)?, port))
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = api::duration::Duration::parse(text)?;
    u64::try_from(read.milliseconds())
        .map(Duration::from_millis)
        .map_err(|_| "it may not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::EXIT_BAD_INPUT;
    use crate::verbs::parse;

    fn outcome(typed: &[&str]) -> Outcome {
        parse(typed.iter().map(OsString::from).collect())
    }

    fn request(typed: &[&str]) -> WebhooksRequest {
        match outcome(typed) {
            Outcome::Start(start) => match *start {
                Start::Webhooks(request) => request,
                other => panic!("{other:?}"),
            },
            Outcome::Exit(code) => panic!("it ended with {code}"),
        }
    }

    #[test]
    fn the_flags_of_volcanos_chart_are_understood_under_both_names() {
        let typed = [
            "vc-webhook-manager",
            "--enabled-admission=/jobs/mutate,/jobs/validate",
            "--tls-cert-file=/admission.local.config/certificates/tls.crt",
            "--tls-private-key-file=/admission.local.config/certificates/tls.key",
            "--ca-cert-file=/admission.local.config/certificates/ca.crt",
            "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
            "--webhook-namespace=volcano-system",
            "--webhook-service-name=volcano-admission-service",
            "--enable-healthz=true",
            "--logtostderr",
            "--port=8443",
            "-v=4",
        ];
        let by_name = request(&typed);
        assert_eq!(by_name.paths, ["/jobs/mutate", "/jobs/validate"]);
        assert_eq!(by_name.address.to_string(), "[::]:8443");
        assert_eq!(by_name.health.map(|at| at.port()), Some(11251));
        assert!(by_name.tls.is_some() && by_name.keeps_root);
        let mut as_verb = vec!["katmai", "webhooks"];
        as_verb.extend(&typed[1..]);
        assert_eq!(request(&as_verb), by_name);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in [
            "--port=0",
            "--port=65536",
            "--listen-address=here",
            "--tls-cert-file=alone",
            "--graceful-shutdown-time=soon",
            "--feature-gates=Some",
            "--scheduler-name=",
            "--healthz-address",
        ] {
            let ended = outcome(&["katmai", "webhooks", wrong]);
            assert!(
                matches!(ended, Outcome::Exit(1 | EXIT_BAD_INPUT)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn flags_without_effect_are_told_once_each() {
        let typed = ["webhooks", "--kube-api-qps=50", "-v=3"];
        let command = (VERB.command)();
        let matches = command.get_matches_from(typed);
        let arguments = Arguments::from_arg_matches(&matches).expect("they were understood");
        assert_eq!(arguments.accepted.warnings().len(), 2);
    }
}
