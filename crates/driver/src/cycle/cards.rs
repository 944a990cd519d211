//! What ConfigMaps say of cards: whatever tells of them is read again.

use std::collections::BTreeSet;

use api::core::Node;
use api::intent::ObjectKey;
use api::kind::Kind;
use api::time::Time;
use api::volcano::chip_devices::ChipDevices;
use api::volcano::device_config::DeviceConfig;
use mirror::{Change, Mirror, Object};

use super::Cycles;
use crate::writes::Writes;

impl Cycles {
    /// What ConfigMaps said counts for whatever is read from now on; nothing is here yet.
    pub(crate) fn know_cards(&mut self, config: Option<DeviceConfig>, chips: Option<ChipDevices>) {
        if let Some(config) = config {
            self.rows.put_device_config(config);
        }
        if let Some(chips) = chips {
            self.rows.put_chips(chips);
        }
    }

    /// What a ConfigMap says of cards counts from now on, for whatever is here as well.
    pub(crate) fn put_device_config(
        &mut self,
        config: DeviceConfig,
        mirror: &Mirror,
        writes: &mut Writes,
        now: Time,
    ) {
        self.rows.put_device_config(config);
        for kind in [Kind::PodGroup, Kind::Node, Kind::Pod] {
            for change in mirror.stock(kind) {
                self.changed(mirror, &change, writes, now);
            }
        }
    }

    /// This is known of nodes' chips from now on, and another thing than before of these nodes.
    pub(crate) fn put_chips(
        &mut self,
        chips: ChipDevices,
        nodes: &BTreeSet<String>,
        mirror: &Mirror,
        now: Time,
    ) {
        self.rows.put_chips(chips);
        for name in nodes {
            let Some(node) = mirror.get::<Node>("", name) else {
                continue;
            };
            let change = Change {
                key: ObjectKey::new(Kind::Node, "", name).into(),
                before: None,
                after: Some(Object::Node(node.clone())),
            };
            self.feed(mirror, &change, now);
        }
    }
}
