//! Serves an API with no nodes behind it, for trying it by hand: `serve KUBECONFIG [DATA-DIR [power]]`.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use server::{Api, DataLock, DiskJournal, Durability, Identity, Journal, Socket, Start};

/// The binary's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let kubeconfig = arguments
        .next()
        .ok_or("usage: serve KUBECONFIG [DATA-DIR [power]]")?;
    let directory = arguments.next().map(std::path::PathBuf::from);
    let durability = match arguments.next().as_deref() {
        Some("power") => Durability::Power,
        _ => Durability::Process,
    };
    let mut lock = None;
    let (identity, journal): (_, Option<Box<dyn Journal>>) = match &directory {
        None => (Identity::make()?, None),
        Some(directory) => {
            lock = Some(DataLock::take(directory)?);
            (
                Identity::keep(directory)?,
                Some(Box::new(DiskJournal::open(directory, durability)?)),
            )
        }
    };
    let start = Start {
        journal,
        reviewer: Arc::new(review::review),
        ..Start::default()
    };
    let api = Api::start(start, identity.token_keys()?)?;
    let listening = server::listen(api.clone(), &identity, Socket::default()).await?;
    // Whole or not at all: whoever waits for the file may read it as soon as it is there.
    let draft = format!("{kubeconfig}.new");
    std::fs::write(&draft, identity.kubeconfig(&listening.url()))?;
    std::fs::rename(&draft, &kubeconfig)?;
    eprintln!(
        "{} with {} objects after {:?}",
        listening.url(),
        api.object_count(),
        began.elapsed()
    );
    tokio::signal::ctrl_c().await?;
    drop(lock);
    Ok(())
}
