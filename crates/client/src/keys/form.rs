//! How keys are written down: blobs, lines and texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::COMMENT;

/// What is written one after the other, each with its length before it (RFC 4251, section 5).
#[derive(Default)]
pub(super) struct Blob(pub(super) Vec<u8>);

impl Blob {
    pub(super) fn number(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    /// Whatever is written here is far below four gigabytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Fills up to whole blocks of eight bytes, by 1, 2, 3 …
    pub(super) fn pad(&mut self) {
        for byte in 1..8 {
            if self.0.len().is_multiple_of(8) {
                return;
            }
            self.0.push(byte);
        }
    }
}

/// A line of `authorized_keys`.
pub(super) fn line(kind: &str, blob: &Blob) -> String {
    format!("{kind} {} {COMMENT}\n", STANDARD.encode(&blob.0))
}

/// The text form of a private key, in lines of 64 characters (RFC 7468).
pub(super) fn pem(what: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {what}-----\n");
    for bytes in bytes.chunks(48) {
        text.push_str(&STANDARD.encode(bytes));
        text.push('\n');
    }
    text.push_str(&format!("-----END {what}-----\n"));
    text
}
