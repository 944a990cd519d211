//! Protobuf bodies of every kind that kubectl and Go operators send so.
#![no_main]

use katmai_fuzz::send;

const PATHS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/secrets",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // What a body claims to be decides, so the path is tried by the kind's letter alone.
    for path in PATHS {
        send("POST", path, "", "application/vnd.kubernetes.protobuf", bytes);
    }
});
