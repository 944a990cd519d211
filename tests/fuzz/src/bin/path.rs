//! Methods, paths and queries: `GET /api/v1/pods?limit=1`, and a body after the first line.
#![no_main]

use katmai_fuzz::send;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (line, body) = text.split_once('\n').unwrap_or((&text, ""));
    let Some((method, target)) = line.split_once(' ') else { return };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    send(method, path, query, "application/json", body.as_bytes());
});
