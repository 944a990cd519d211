//! The certificate that is shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{DAY_MS, World, keeper, now};

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_who_comes_and_was_vouched_for_before() {
    let world = World::new().await;
    let keeper = keeper(&world.cluster);
    let shown = &world.certificate;
    // The next one is made, and only its authority told.
    let both = keeper.keep(shown, now().plus_ms(-DAY_MS)).await;
    let both = both.expect("it is renewed");
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(both.contains(&world.authorities));
    assert!(world.connect(&world.authorities).await.is_ok());
    // Then it is shown: who has heard goes on, who has not does not.
    let kept = keeper.keep(shown, now()).await.expect("it is kept");
    assert!(kept.contains(&world.authorities));
    assert!(world.connect(&both).await.is_ok());
    assert!(world.connect(&kept).await.is_ok());
    assert!(world.connect(&world.authorities).await.is_err());
}

#[tokio::test]
async fn replicas_that_start_together_agree_on_one_certificate() {
    let world = World::new().await;
    let keepers: Vec<_> = (0..4).map(|_| keeper(&world.cluster)).collect();
    let served: Vec<_> = (0..4)
        .map(|_| server::ServedCertificate::default())
        .collect();
    let begun = keepers.iter().zip(&served);
    let begun = begun.map(|(keeper, served)| keeper.keep(served, now().plus_ms(-DAY_MS)));
    let told = futures::future::join_all(begun).await;
    let told: Vec<String> = told.into_iter().map(|it| it.expect("kept")).collect();
    assert!(told.iter().all(|it| *it == told[0]));
}

/// As upstream: nobody needs a certificate, and one that is shown must be of the authority that a file names.
#[tokio::test]
async fn a_caller_that_shows_a_certificate_has_it_of_the_right_authority() {
    let world = World::new().await;
    let right = server::Identity::make().expect("credentials");
    let wrong = server::Identity::make().expect("credentials");
    let show = |identity: &server::Identity| {
        let kubeconfig = identity.kubeconfig("https://here");
        let said = |field: &str| {
            let (_, rest) = kubeconfig.split_once(field).expect("it is said");
            let text = rest.lines().next().expect("a line").trim();
            let bytes = STANDARD.decode(text).expect("base64");
            String::from_utf8(bytes).expect("PEM")
        };
        let own = (said("client-certificate-data:"), said("client-key-data:"));
        world.answered(Some(own))
    };
    assert!(show(&wrong).await.is_ok(), "nobody asked for it");
    let asked = world.certificate.ask(&right.authority);
    assert!(asked.is_ok());
    assert!(world.answered(None).await.is_ok());
    assert!(show(&right).await.is_ok());
    assert!(show(&wrong).await.is_err());
    // A file that is none changes nothing.
    assert!(world.certificate.ask("").is_err());
    assert!(show(&right).await.is_ok());
    assert!(show(&wrong).await.is_err());
}

#[tokio::test]
async fn files_are_read_again_and_a_wrong_one_changes_nothing() {
    let world = World::new().await;
    let folder = std::env::temp_dir().join(format!("katmai-webhooks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let files = server::CertificateFiles {
        chain: folder.join("chain"),
        key: folder.join("key"),
        authority: folder.join("authority"),
    };
    let identity = server::Identity::make().expect("credentials");
    let keeper = server::CertificateKeeper::Files(files.clone());
    assert!(keeper.keep(&world.certificate, now()).await.is_err());
    std::fs::write(&files.authority, &identity.authority).expect("a file");
    std::fs::write(&files.chain, &identity.authority).expect("a file");
    std::fs::write(&files.key, "no key").expect("a file");
    assert!(keeper.keep(&world.certificate, now()).await.is_err());
    assert!(world.connect(&world.authorities).await.is_ok());
    std::fs::remove_dir_all(&folder).expect("cleaned up");
}
