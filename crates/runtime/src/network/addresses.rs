//! Addresses of pods: 10.244.0.2 and up, the next free one, reused only after a round.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const FIRST: u16 = 2;
const LAST: u16 = 0xfffe;

/// Which pod has which address.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    by_pod: BTreeMap<String, u16>,
    taken: BTreeMap<u16, ()>,
    last: u16,
}

impl Addresses {
    /// The pod's address; the same one until it is given back. `None` when none is free.
    pub(crate) fn take(&mut self, uid: &str) -> Option<Ipv4Addr> {
        if let Some(host) = self.by_pod.get(uid) {
            return Some(address(*host));
        }
        if self.taken.len() > usize::from(LAST - FIRST) {
            return None;
        }
        let mut host = self.last;
        loop {
            host = if !(FIRST..LAST).contains(&host) {
                FIRST
            } else {
                host + 1
            };
            if self.taken.insert(host, ()).is_none() {
                break;
            }
        }
        self.last = host;
        self.by_pod.insert(uid.to_owned(), host);
        Some(address(host))
    }

    /// Frees the pod's address.
    pub(crate) fn give_back(&mut self, uid: &str) {
        if let Some(host) = self.by_pod.remove(uid) {
            self.taken.remove(&host);
        }
    }
}

fn address(host: u16) -> Ipv4Addr {
    let [high, low] = host.to_be_bytes();
    Ipv4Addr::new(10, 244, high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_with_its_pod_and_is_not_reused_at_once() {
        let mut addresses = Addresses::default();
        let first = addresses.take("a").unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 244, 0, 2));
        assert_eq!(addresses.take("a"), Some(first));
        addresses.give_back("a");
        assert_ne!(addresses.take("b"), Some(first));
    }

    #[test]
    fn all_addresses_can_be_taken_and_then_none() {
        let mut addresses = Addresses::default();
        for pod in 0..65_533 {
            assert!(addresses.take(&pod.to_string()).is_some(), "{pod}");
        }
        assert_eq!(addresses.take("one more"), None);
        addresses.give_back("7");
        assert!(addresses.take("one more").is_some());
    }
}
