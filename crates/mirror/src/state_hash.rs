//! One number for the whole state, to compare two mirrors.

use api::kind::KINDS;
use api::sum::Sum;

use crate::held::Mirror;

impl Mirror {
    /// A fingerprint of every object held (kind, name, uid, version). Two mirrors that saw the same
    /// history have the same one, however often and in whichever legal order its events came.
    pub fn state_hash(&self) -> u64 {
        let mut sum = Sum::default();
        for row in KINDS {
            for object in self.objects(row.kind) {
                let meta = object.meta();
                sum.text(row.name);
                sum.text(&meta.namespace);
                sum.text(&meta.name);
                sum.text(&meta.uid);
                sum.text(&meta.resource_version);
            }
        }
        sum.value()
    }
}
