//! The three kinds of patch on built-in and custom objects; the first byte chooses.
#![no_main]

use katmai_fuzz::{choose, send};

const ROWS: &[(&str, &str)] = &[
    ("/api/v1/namespaces/default/configmaps/it", "application/json-patch+json"),
    ("/api/v1/namespaces/default/configmaps/it", "application/merge-patch+json"),
    ("/api/v1/namespaces/default/pods/it", "application/json-patch+json"),
    ("/api/v1/namespaces/default/pods/it", "application/merge-patch+json"),
    ("/api/v1/namespaces/default/pods/it", "application/strategic-merge-patch+json"),
    ("/api/v1/namespaces/default/pods/it/status", "application/strategic-merge-patch+json"),
    ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/it", "application/json-patch+json"),
    ("/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/it", "application/merge-patch+json"),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(((path, content), body)) = choose(ROWS, bytes) else { return };
    send("PATCH", path, "", content, body);
});
