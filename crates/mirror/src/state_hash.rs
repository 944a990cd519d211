//! One number for the whole state, to compare two mirrors.

use api::kind::KINDS;

use crate::held::Mirror;

impl Mirror {
    /// A fingerprint of every object held (kind, name, uid, version). Two mirrors that saw the same
    /// history have the same one, however often and in whichever legal order its events came.
    pub fn state_hash(&self) -> u64 {
        let mut hash = Fingerprint::new();
        for row in KINDS {
            for object in self.objects(row.kind) {
                let meta = object.meta();
                hash.add(row.name);
                hash.add(&meta.namespace);
                hash.add(&meta.name);
                hash.add(&meta.uid);
                hash.add(&meta.resource_version);
            }
        }
        hash.0
    }
}

/// FNV-1a with a separator after each text.
struct Fingerprint(u64);

impl Fingerprint {
    fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
