//! Questions to a scheduler beside a cluster: its door, a certificate, and what the cluster is told of both.

use std::sync::Arc;
use std::time::Duration;

use cli::start::Questions;
use client::ask::AskDoor;
use runtime::engine_loop::Counted;
use server::{
    AskEndpoint, AskService, CertificateKeeper, FrontProxy, Listening, ServedCertificate,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often the certificate, the APIService and those who may speak for others are looked at.
const LOOK: Duration = Duration::from_secs(30);
/// The same, while there is no certificate to serve with yet.
const LOOK_SOON: Duration = Duration::from_secs(2);
/// The Secret of the certificate, and its namespace where no Service says another.
const SECRET: &str = "katmai-scheduler-questions";
const NAMESPACE: &str = "volcano-system";

/// Answers questions from now on. What is kept up beside that, the task does; a scheduler decides whether or
/// not it can be asked, so what fails there is told and tried again. Who may not decide writes nothing (S1.8):
/// it shows the certificate that the one keeps who may.
pub(crate) async fn open(
    wish: &Questions,
    door: impl AskDoor + 'static,
    cluster: client::Cluster,
    counted: watch::Receiver<Counted>,
) -> anyhow::Result<(Listening, JoinHandle<()>)> {
    let (front, known) = watch::channel(None);
    let endpoint = AskEndpoint::new(Arc::new(door), cluster.clone(), known);
    let served = ServedCertificate::default();
    let listening = endpoint.listen(wish.address, &served).await?;
    let kept = Kept {
        keeper: keeper(wish, &cluster),
        service: service(wish),
        served,
        front,
        cluster,
        counted,
    };
    Ok((listening, tokio::spawn(kept.keep())))
}

/// What is kept up.
struct Kept {
    keeper: CertificateKeeper,
    service: Option<AskService>,
    served: ServedCertificate,
    front: watch::Sender<Option<Arc<FrontProxy>>>,
    cluster: client::Cluster,
    counted: watch::Receiver<Counted>,
}

impl Kept {
    async fn keep(mut self) {
        loop {
            let leads = self.counted.borrow().metrics.is_leading;
            let next = match self.look(leads).await {
                Ok(true) => LOOK,
                Ok(false) => LOOK_SOON,
                Err(error) => {
                    tracing::warn!("questions: {error:#}");
                    LOOK_SOON
                }
            };
            let turn = self.counted.wait_for(|it| it.metrics.is_leading != leads);
            // Time has passed, or who leads has changed; where nobody counts any more the process ends.
            if let Ok(Err(_)) = tokio::time::timeout(next, turn).await {
                return;
            }
        }
    }

    /// Whether there is a certificate to serve with.
    async fn look(&self, leads: bool) -> anyhow::Result<bool> {
        let now = runtime::clock::now();
        let authorities = match leads {
            true => Some(self.keeper.keep(&self.served, now).await?),
            false if self.keeper.look(&self.served).await? => None,
            false => return Ok(false),
        };
        match FrontProxy::read(&self.cluster).await {
            Ok(front) => {
                self.front.send_replace(front.map(Arc::new));
            }
            // Who asks by token is answered all the same.
            Err(error) => tracing::warn!("cannot ask who may speak for others: {error}"),
        }
        if let (Some(service), Some(authorities)) = (&self.service, &authorities)
            && let Err(error) = service.register(&self.cluster, authorities).await
        {
            tracing::warn!("cannot tell the API server where questions are answered: {error}");
        }
        Ok(true)
    }
}

fn service(wish: &Questions) -> Option<AskService> {
    let service = wish.service.as_ref()?;
    Some(AskService {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
        port: service.port,
    })
}

fn keeper(wish: &Questions, cluster: &client::Cluster) -> CertificateKeeper {
    if let Some(files) = &wish.tls {
        return CertificateKeeper::Files(crate::certificate_files(files));
    }
    let service = service(wish);
    let mut server_names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    server_names.extend(service.iter().flat_map(AskService::host_names));
    CertificateKeeper::Secret {
        cluster: cluster.clone(),
        namespace: service.map_or_else(|| NAMESPACE.to_owned(), |service| service.namespace),
        name: SECRET.to_owned(),
        server_names,
    }
}

#[cfg(test)]
mod tests;
