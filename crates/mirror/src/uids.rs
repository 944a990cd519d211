//! Which object has a uid.

use std::collections::BTreeMap;

use model::Uid;

use crate::object::Object;

/// Objects by uid.
#[derive(Debug, Default)]
pub(crate) struct Uids(BTreeMap<Uid, Object>);

impl Uids {
    pub(crate) fn get(&self, uid: &str) -> Option<&Object> {
        self.0.get(&uid.into())
    }

    /// This object has its uid from now on; an empty one is nobody's.
    pub(crate) fn insert(&mut self, object: &Object) {
        if !object.uid().is_empty() {
            self.0.insert(object.uid().into(), object.clone());
        }
    }

    /// What was held under a key, if anything, has become this, if anything.
    pub(crate) fn change(&mut self, before: Option<&Object>, after: Option<&Object>) {
        let uid = after.map_or("", Object::uid);
        if let Some(before) = before.filter(|before| before.uid() != uid) {
            self.remove(before);
        }
        let Some(after) = after else {
            return;
        };
        if before.is_some_and(|before| before.uid() == uid)
            && let Some(held) = self.0.get_mut(&uid.into())
        {
            held.clone_from(after);
        } else {
            self.insert(after);
        }
    }

    /// This object has it no more, if the one of its key had it.
    fn remove(&mut self, object: &Object) {
        let uid = object.uid();
        if self.get(uid).is_some_and(|held| held.order(object).is_eq()) {
            self.0.remove(&uid.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use api::core::Pod;

    use super::*;

    fn pod(name: &str, uid: &str) -> Object {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.uid = uid.into();
        pod.into()
    }

    #[test]
    fn every_uid_finds_its_object_however_it_is_written() {
        let mut uids = Uids::default();
        let texts = [
            "0000002a-5a1c-4d2e-9f00-000000000001",
            "0000002A-5a1c-4d2e-9f00-000000000001",
            "u",
        ];
        for text in texts {
            uids.insert(&pod(text, text));
        }
        for text in texts {
            assert_eq!(uids.get(text).map(Object::name), Some(text));
            uids.remove(&pod("another", text));
            assert!(uids.get(text).is_some());
            uids.remove(&pod(text, text));
            assert!(uids.get(text).is_none());
        }
        uids.insert(&pod("nobody", ""));
        assert!(uids.get("").is_none());
    }
}
