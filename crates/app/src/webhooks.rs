//! The webhooks of an existing cluster: rules, facts, a certificate and registrations, put together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::api::kind::Kind;
use anyhow::{Context, bail};
use cli::console;
use cli::start::{Printed, WebhooksRequest};
use review::registration::{Address, Registration};
use review::{
    DeleteQueue, NewQueue, PluginKeys, PodLevel, ResourceGroup, RootQueue, Settings, WEBHOOKS,
    Webhook,
};
use runtime::follow::{Followed, Wish, follow};
use serde_json::{Value, json};
use server::{
    CertificateKeeper, Door, Endpoint, FactTable, Listening, Readiness, Registrar,
    ServedCertificate, Unasked,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How often the certificate, the registrations and the file of resource groups are looked at.
const LOOK: Duration = Duration::from_secs(30);
const NEWS_WAITING_MAX: usize = 64;
/// What rules ask for.
pub(crate) const FOLLOWED: &[Kind] = &[Kind::Namespace, Kind::Queue];
/// The Secret of the certificate, and the names by which nobody asks for a Service.
const SECRET: &str = "katmai-webhooks";
const NAMESPACE: &str = "volcano-system";

/// Serves until a signal comes; or prints what would be registered.
pub(crate) async fn run(request: WebhooksRequest) -> anyhow::Result<u8> {
    let settings = settings(&request)?;
    let webhooks = webhooks(&request.paths)?;
    if let Some(what) = request.print {
        if what == Printed::Registrations {
            for fault in wide(&webhooks, &settings) {
                console::warn(&fault);
            }
        }
        console::say(&printed(what, &request, &settings, &webhooks)?);
        return Ok(cli::EXIT_COMPLETE);
    }
    serve(request, settings, webhooks).await
}

async fn serve(
    request: WebhooksRequest,
    settings: Settings,
    webhooks: Vec<&'static Webhook>,
) -> anyhow::Result<u8> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let cluster = crate::client_of(&request.connection).await?;
    let without = "there is no certificate yet".to_owned();
    let (lack, lacks) = watch::channel(Readiness::NotReady(without));
    let health = match request.health {
        Some(address) => {
            let look = move || lacks.borrow().clone();
            Some(server::open(address, Door::Health(Box::new(look), None)).await?)
        }
        None => None,
    };
    let keeper = keeper(&request, &cluster);
    let served = ServedCertificate::default();
    let mut registrar = Registrar {
        cluster: cluster.clone(),
        settings: settings.clone(),
        webhooks: wanted(&webhooks, &settings),
        address: address(&request),
        own_namespace: request.namespace.clone().unwrap_or_default(),
    };
    // What an API does not answer, or not to us, may take for ever.
    let begun = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        begun = begin(&keeper, &served, &cluster, &lack) => Some(begun?),
    };
    let Some((mut authorities, facts)) = begun else {
        end(health).await;
        return Ok(cli::EXIT_COMPLETE);
    };
    let (rules, judged_by) = watch::channel(Arc::new(settings));
    let endpoint = Endpoint::new(judged_by, webhooks.clone(), facts);
    let listening = endpoint.listen(request.address, &served).await?;
    lack.send_replace(Readiness::Ready(Vec::new()));
    console::say(&format!("webhooks are served at {}", listening.url()));
    let looking = async {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            match keeper.keep(&served, runtime::clock::now()).await {
                Ok(renewed) => authorities = renewed,
                // The one that is shown is good for weeks.
                Err(error) => tracing::warn!("{:#}", anyhow::Error::from(error)),
            }
            if let Some(settings) = renewed(&request, &registrar.settings) {
                registrar.webhooks = wanted(&webhooks, &settings);
                registrar.settings = settings.clone();
                rules.send_replace(Arc::new(settings));
            }
            let mut lacks = faults(&registrar.register(&authorities).await);
            lacks.extend(wide(&registrar.webhooks, &registrar.settings));
            for fault in &lacks {
                tracing::warn!("{fault}");
            }
            lack.send_replace(Readiness::Ready(lacks));
        }
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = looking => {}
    }
    listening.end_within(request.farewell).await;
    end(health).await;
    Ok(cli::EXIT_COMPLETE)
}

/// What has to be there before anything is served: the authorities of the certificate, and facts. Says what
/// is still lacking.
async fn begin(
    keeper: &CertificateKeeper,
    served: &ServedCertificate,
    cluster: &client::Cluster,
    lack: &watch::Sender<Readiness>,
) -> anyhow::Result<(String, Arc<FactTable>)> {
    let authorities = keeper.keep(served, runtime::clock::now()).await?;
    Ok((authorities, facts(cluster, lack).await))
}

async fn end(health: Option<Listening>) {
    if let Some(health) = health {
        health.end().await;
    }
}

/// What is wrong with registrations, a sentence each.
fn faults(unasked: &Unasked) -> Vec<String> {
    let Unasked {
        missing,
        conditional,
        failed,
        unwanted,
    } = unasked;
    let mut faults = Vec::new();
    if !missing.is_empty() {
        faults.push(format!(
            "nobody is asked through {}: make them, or say by --webhook-service-name or --webhook-url where we are found",
            missing.join(", ")
        ));
    }
    if !conditional.is_empty() {
        faults.push(format!(
            "{} have matchConditions that do not fit our settings, and were not made here: we may not be asked about all that is ours; delete them, and they are made anew",
            conditional.join(", ")
        ));
    }
    let failed = failed.iter();
    faults
        .extend(failed.map(|(name, why)| format!("cannot see to the registration {name}: {why}")));
    if !unwanted.is_empty() {
        faults.push(format!(
            "nothing is judged that is asked through {}, and it passes: delete them, or name their paths in --enabled-admission",
            unwanted.join(", ")
        ));
    }
    faults
}

/// Webhooks that are asked about more than concerns them, a sentence each.
fn wide(webhooks: &[&Webhook], settings: &Settings) -> Vec<String> {
    let all = webhooks.iter();
    let wide = all.filter(|webhook| webhook.is_asked_about_every_pod(settings));
    wide.map(|webhook| {
        format!(
            "{} is asked about every pod of the cluster: the resource groups name too many namespaces and annotations for a condition",
            webhook.path
        )
    })
    .collect()
}

fn settings(request: &WebhooksRequest) -> anyhow::Result<Settings> {
    let resource_groups = request.admission_conf.as_deref().map(resource_groups);
    Ok(Settings {
        scheduler_names: request.scheduler_names.clone(),
        queue_gates: request.queue_gates,
        queue_depth_max: request.queue_depth_max,
        new_queue: match request.refuses_new_queues {
            true => NewQueue::RefusesWork,
            false => NewQueue::CountsAsOpen,
        },
        root_queue: match request.keeps_root {
            true => RootQueue::Protected,
            false => RootQueue::Free,
        },
        delete_queue: match request.keeps_full_queues {
            true => DeleteQueue::WhenEmpty,
            false => DeleteQueue::Always,
        },
        plugin_keys: match request.allows_plugin_keys {
            true => PluginKeys::Accepted,
            false => PluginKeys::Refused,
        },
        pod_level: pod_level(request.passes_pod_level),
        resource_groups: resource_groups.transpose()?.unwrap_or_default(),
    })
}

/// What the gate `PodLevelResources` says of templates.
pub(crate) fn pod_level(passes: bool) -> PodLevel {
    match passes {
        true => PodLevel::Passed,
        false => PodLevel::Judged,
    }
}

/// Settings that a changed file has brought about. One that cannot be understood changes nothing.
fn renewed(request: &WebhooksRequest, known: &Settings) -> Option<Settings> {
    match settings(request) {
        Ok(settings) => (settings != *known).then_some(settings),
        Err(error) => {
            tracing::warn!("the resource groups stay as they were: {error:#}");
            None
        }
    }
}

fn resource_groups(path: &Path) -> anyhow::Result<Vec<ResourceGroup>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the resource groups {}", path.display()))?;
    let file: Option<Value> = serde_saphyr::from_str(&text)
        .with_context(|| format!("cannot understand {}", path.display()))?;
    ResourceGroup::read(file.unwrap_or_else(|| json!({})))
        .map_err(|why| anyhow::anyhow!("cannot understand {}: {why}", path.display()))
}

/// The rows of these paths; all if none is named.
fn webhooks(paths: &[String]) -> anyhow::Result<Vec<&'static Webhook>> {
    if paths.is_empty() {
        return Ok(WEBHOOKS.iter().collect());
    }
    let mut webhooks: Vec<&'static Webhook> = Vec::new();
    for path in paths {
        let Some(webhook) = Webhook::at(path.trim()) else {
            bail!("--enabled-admission: there is no webhook at {path:?}");
        };
        if webhooks.iter().all(|other| other.path != webhook.path) {
            webhooks.push(webhook);
        }
    }
    Ok(webhooks)
}

/// Those that there is anything to ask.
fn wanted(webhooks: &[&'static Webhook], settings: &Settings) -> Vec<&'static Webhook> {
    let all = webhooks.iter().copied();
    all.filter(|webhook| webhook.is_wanted(settings)).collect()
}

fn namespace(request: &WebhooksRequest) -> &str {
    request.namespace.as_deref().unwrap_or(NAMESPACE)
}

/// Where the API server finds us, if anybody said so.
fn address(request: &WebhooksRequest) -> Option<Address> {
    match (&request.url, &request.service_name) {
        (Some(url), _) => Some(Address::Url(url.clone())),
        (None, Some(name)) => Some(Address::Service {
            namespace: namespace(request).to_owned(),
            name: name.clone(),
        }),
        (None, None) => None,
    }
}

fn keeper(request: &WebhooksRequest, cluster: &client::Cluster) -> CertificateKeeper {
    if let Some(files) = &request.tls {
        return CertificateKeeper::Files(crate::certificate_files(files));
    }
    CertificateKeeper::Secret {
        cluster: cluster.clone(),
        namespace: namespace(request).to_owned(),
        name: SECRET.to_owned(),
        server_names: server_names(request),
    }
}

/// Names by which an API server may call us.
fn server_names(request: &WebhooksRequest) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if let Some(service) = &request.service_name {
        let namespace = namespace(request);
        names.extend([
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
        ]);
    }
    names.extend(request.url.as_deref().and_then(host));
    names
}

/// The host of a URL.
fn host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_owned())
}

/// A table of what rules ask for, once all of it is known; it is kept up to date from then on.
async fn facts(cluster: &client::Cluster, lack: &watch::Sender<Readiness>) -> Arc<FactTable> {
    let facts = Arc::new(FactTable::default());
    lack.send_replace(unlisted(FOLLOWED));
    let mut whole = Vec::new();
    for kind in FOLLOWED {
        let (is_whole, wait) = watch::channel(false);
        whole.push(wait);
        tokio::spawn(keep_facts(*kind, cluster.clone(), facts.clone(), is_whole));
    }
    for (at, mut wait) in whole.into_iter().enumerate() {
        lack.send_replace(unlisted(&FOLLOWED[at..]));
        // It ends with the process only.
        drop(wait.wait_for(|is_whole| *is_whole).await);
    }
    facts
}

/// Why nothing is judged yet. What an API says to whoever may not list them is in the log.
fn unlisted(kinds: &[Kind]) -> Readiness {
    let plurals: Vec<&str> = kinds.iter().map(|kind| kind.row().plural).collect();
    Readiness::NotReady(format!("{} have not been listed yet", plurals.join(", ")))
}

async fn keep_facts(
    kind: Kind,
    cluster: client::Cluster,
    facts: Arc<FactTable>,
    is_whole: watch::Sender<bool>,
) {
    let (tell, mut told) = mpsc::channel(NEWS_WAITING_MAX);
    let wish = Wish {
        kind,
        field_selector: None,
    };
    tokio::spawn(follow::<Value>(cluster, wish, tell));
    while let Some(news) = told.recv().await {
        match news {
            Followed::Listed(all) => {
                facts.replace(kind, all);
                is_whole.send_replace(true);
            }
            Followed::Applied(object) => facts.apply(kind, object),
            Followed::Deleted(object) => facts.remove(kind, &object),
        }
    }
}

/// A `v1` List in JSON.
fn printed(
    what: Printed,
    request: &WebhooksRequest,
    settings: &Settings,
    webhooks: &[&'static Webhook],
) -> anyhow::Result<String> {
    let items: Vec<Value> = match what {
        Printed::Registrations => {
            let Some(address) = address(request) else {
                bail!(
                    "say by --webhook-service-name or --webhook-url where the webhooks are found"
                );
            };
            let authorities = request.tls.as_ref().map(|files| &files.authority);
            let authorities = authorities.map(std::fs::read_to_string).transpose();
            let registration = Registration {
                address,
                own_namespace: request.namespace.clone().unwrap_or_default(),
                authorities: authorities
                    .context("cannot read the authority")?
                    .unwrap_or_default(),
            };
            let wanted = wanted(webhooks, settings);
            let all = wanted.iter();
            all.map(|webhook| webhook.configuration(settings, &registration))
                .collect()
        }
        Printed::Policies => {
            let all = webhooks.iter();
            all.flat_map(|webhook| webhook.policy(settings)).collect()
        }
    };
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    Ok(serde_json::to_string_pretty(&list)?)
}

#[cfg(test)]
mod tests {
    use cli::start::{Outcome, Start};

    use super::*;

    /// By what webhooks judge that were typed so.
    fn typed(flags: &[&str]) -> Settings {
        let typed = ["katmai", "webhooks"].iter().chain(flags);
        let Outcome::Start(start) = cli::parse(typed.map(Into::into).collect()) else {
            panic!("{flags:?} is not understood");
        };
        let Start::Webhooks(request) = *start else {
            panic!("{flags:?} is about webhooks");
        };
        settings(&request).expect("they can be had")
    }

    #[test]
    fn a_flag_sets_what_it_is_about_and_nothing_else() {
        let file = json!({ "resourceGroups": [
            { "object": { "key": "namespace", "value": ["team"] }, "labels": { "pool": "b" } },
        ] });
        let path = std::env::temp_dir().join(format!("katmai-judged-{}.yaml", std::process::id()));
        std::fs::write(&path, file.to_string()).expect("it can be written");
        let groups = format!("--admission-conf={}", path.display());
        // Whole, so that another setting has to be thought of here.
        let usual = Settings {
            scheduler_names: vec!["volcano".into()],
            queue_gates: false,
            queue_depth_max: 5,
            new_queue: NewQueue::CountsAsOpen,
            root_queue: RootQueue::Protected,
            delete_queue: DeleteQueue::Always,
            plugin_keys: PluginKeys::Refused,
            pod_level: PodLevel::Judged,
            resource_groups: Vec::new(),
        };
        assert_eq!(typed(&[]), usual);
        let all = Settings {
            scheduler_names: vec!["a".into(), "b".into()],
            queue_gates: true,
            queue_depth_max: 7,
            new_queue: NewQueue::RefusesWork,
            root_queue: RootQueue::Free,
            delete_queue: DeleteQueue::WhenEmpty,
            plugin_keys: PluginKeys::Accepted,
            pod_level: PodLevel::Passed,
            resource_groups: ResourceGroup::read(file).expect("groups can be read"),
        };
        // Each flag, and what of all it sets.
        type Set = fn(&mut Settings, &Settings);
        let rows: [(&str, Set); 9] = [
            ("--scheduler-name=a,b", |it, all| {
                it.scheduler_names = all.scheduler_names.clone();
            }),
            (
                "--feature-gates=SchedulingGatesQueueAdmission=true",
                |it, all| it.queue_gates = all.queue_gates,
            ),
            ("--max-queue-depth=7", |it, all| {
                it.queue_depth_max = all.queue_depth_max;
            }),
            ("--refuse-new-queues", |it, all| {
                it.new_queue = all.new_queue
            }),
            ("--enable-root-queue-protection=false", |it, all| {
                it.root_queue = all.root_queue;
            }),
            ("--enable-queue-allocated-pods-check", |it, all| {
                it.delete_queue = all.delete_queue;
            }),
            ("--allow-plugin-keys", |it, all| {
                it.plugin_keys = all.plugin_keys;
            }),
            ("--feature-gates=PodLevelResources=false", |it, all| {
                it.pod_level = all.pod_level;
            }),
            (&groups, |it, all| {
                it.resource_groups = all.resource_groups.clone();
            }),
        ];
        let flags = rows.map(|(flag, _)| flag);
        for (flag, set) in rows {
            let mut wanted = usual.clone();
            set(&mut wanted, &all);
            assert_ne!(wanted, usual, "{flag}");
            assert_eq!(typed(&[flag]), wanted, "{flag}");
        }
        assert_eq!(typed(&flags), all);
        std::fs::remove_file(&path).expect("it can be removed");
    }
}
