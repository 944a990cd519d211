//! Apply configurations on built-in and custom objects, there or not; the first byte chooses.
#![no_main]

use katmai_fuzz::{choose, send};

const PATHS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps/it",
    "/api/v1/namespaces/default/pods/it",
    "/api/v1/namespaces/default/pods/it/status",
    "/api/v1/namespaces/default/services/new",
    "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/it",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((path, body)) = choose(PATHS, bytes) else { return };
    send("PATCH", path, "fieldManager=fuzz&force=true", "application/apply-patch+yaml", body);
    send("PATCH", path, "fieldManager=other", "application/apply-patch+yaml", body);
});
