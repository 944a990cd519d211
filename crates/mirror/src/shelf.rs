//! Where the objects of a kind stand: by namespace, in the order of their names.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use api::intent::ObjectKey;
use model::{Rank, Ranked};

use crate::head::head;
use crate::object::Object;

/// The objects of a kind.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    objects: BTreeMap<Box<str>, Names>,
    /// How many there are.
    pub(crate) count: usize,
    /// Everything up to this revision has been seen.
    pub(crate) seen: u64,
    pub(crate) is_listed: bool,
    /// The list that is in progress, or was last.
    pub(crate) round: u32,
}

/// One object.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) object: Object,
    /// The list that named it last.
    pub(crate) round: u32,
    /// What its name begins with, after what all of its namespace begin with.
    head: u32,
}

/// The objects of a namespace. Their names lie elsewhere, each behind its object; but names that begin alike
/// mostly go on differently at once, and by that most are told apart without a look at them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    held: Ranked<Held>,
    /// So many bytes all names begin with. Names that go leave it as it is.
    alike: usize,
}

impl Shelf {
    /// The objects of a namespace, if there are any.
    pub(crate) fn names(&self, namespace: &str) -> Option<&Names> {
        self.objects.get(namespace)
    }

    /// All of them, by namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.objects.values().flat_map(Names::iter)
    }

    /// Lets an object have in common what it can with what is held of it, and with the one before it by
    /// name: pods of one task stand side by side.
    pub(crate) fn share(&self, object: &mut Object, place: Result<Rank, Rank>) {
        let Some(names) = self.objects.get(object.namespace()) else {
            return;
        };
        let (Ok(at) | Err(at)) = place;
        if let Some(held) = place.ok().and_then(|at| names.held.get(at)) {
            object.share(&held.object);
        }
        if let Some(neighbour) = names.held.before(at) {
            object.share(&neighbour.object);
        }
    }

    /// What is held under a name.
    pub(crate) fn held_mut(&mut self, namespace: &str, name: &str) -> Option<&mut Held> {
        let place = self.place(namespace, name).ok()?;
        self.at(namespace, place)
    }

    /// Where the object of that name is among those of its namespace, or would be.
    pub(crate) fn place(&self, namespace: &str, name: &str) -> Result<Rank, Rank> {
        match self.objects.get(namespace) {
            Some(names) => names.place(name),
            None => Names::default().place(name),
        }
    }

    /// What stands at a place.
    pub(crate) fn at(&mut self, namespace: &str, place: Rank) -> Option<&mut Held> {
        self.objects.get_mut(namespace)?.held.get_mut(place)
    }

    /// Puts an object in its place; the one of its name that was there before is handed back.
    pub(crate) fn put(
        &mut self,
        object: Object,
        place: Result<Rank, Rank>,
        round: u32,
    ) -> Option<Object> {
        let names = match self.objects.get_mut(object.namespace()) {
            Some(names) => names,
            None => self.objects.entry(object.namespace().into()).or_default(),
        };
        if let Some(held) = place.ok().and_then(|at| names.held.get_mut(at)) {
            held.round = round;
            return Some(std::mem::replace(&mut held.object, object));
        }
        let (Ok(at) | Err(at)) = place;
        names.insert(at, object, round);
        self.count += 1;
        None
    }

    /// Takes an object away.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        let names = self.objects.get_mut(&key.namespace)?;
        let place = names.place(&key.name).ok()?;
        let held = names.held.remove(place);
        if names.held.is_empty() {
            self.objects.remove(&key.namespace);
        }
        self.count -= 1;
        Some(held.object)
    }
}

impl Held {
    /// How its name stands to another one.
    fn order(&self, name: &str) -> Ordering {
        self.object.name().cmp(name)
    }
}

impl Names {
    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    /// The one of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&Held> {
        self.held.get(self.place(name).ok()?)
    }

    /// Where the one of that name is, or would be.
    fn place(&self, name: &str) -> Result<Rank, Rank> {
        match self.begin_alike(name) == self.alike {
            true => {
                let head = head_after(name, self.alike);
                let order = |held: &Held| held.head.cmp(&head).then_with(|| held.order(name));
                self.held.place(order)
            }
            false => self.held.place(|held| held.order(name)),
        }
    }

    /// How many of the bytes that all names begin with this one begins with, too.
    fn begin_alike(&self, name: &str) -> usize {
        let Some(first) = self.held.iter().next().filter(|_| self.alike > 0) else {
            return self.alike;
        };
        let all = first.object.name().bytes().take(self.alike);
        all.zip(name.bytes()).take_while(|(a, b)| a == b).count()
    }

    /// Puts an object where none of its name was found.
    fn insert(&mut self, place: Rank, object: Object, round: u32) {
        let name = object.name();
        let alike = match self.held.is_empty() {
            true => name.len(),
            false => self.begin_alike(name),
        };
        // At most as often as names have bytes.
        if alike < self.alike {
            for held in self.held.iter_mut() {
                held.head = head_after(held.object.name(), alike);
            }
        }
        self.alike = alike;
        let held = Held {
            round,
            head: head_after(name, alike),
            object,
        };
        self.held.insert(place, held);
    }
}

/// The four bytes of a name after so many, as a number.
fn head_after(name: &str, after: usize) -> u32 {
    let rest = name.as_bytes().get(after..).unwrap_or_default();
    (head(rest) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::core::ConfigMap;
    use api::kind::Kind;

    use super::*;

    fn map(name: &str) -> Object {
        let mut map = ConfigMap::default();
        map.metadata.name = name.into();
        map.into()
    }

    /// Names come and go in any order, and every one of them is found, and no other.
    #[test]
    fn every_name_is_found_however_it_begins() {
        let mut state = 7_u64;
        let mut dice = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let (mut shelf, mut names) = (Shelf::default(), BTreeSet::new());
            let begin = "job-".repeat(dice(3) as usize);
            for _ in 0..dice(60) {
                let end: String = (0..dice(7))
                    .map(|_| ["a", "b", "-", "é"][dice(4) as usize])
                    .collect();
                let name = match dice(12) {
                    0 => end,
                    _ => format!("{begin}{end}"),
                };
                let place = shelf.place("", &name);
                assert_eq!(place.is_ok(), names.contains(&name));
                if dice(3) > 0 {
                    shelf.put(map(&name), place, 0);
                    names.insert(name);
                } else {
                    let gone = shelf.remove(&ObjectKey::new(Kind::ConfigMap, "", &name));
                    assert_eq!(gone.is_some(), names.remove(&name));
                }
                let held = shelf.iter().map(|held| held.object.name());
                assert!(held.eq(names.iter()));
                let found = |name: &String| shelf.names("")?.find(name);
                assert!(names.iter().all(|name| found(name).is_some()));
                assert_eq!(shelf.count, names.len());
            }
        }
    }

    #[test]
    fn names_differ_by_what_follows_what_they_begin_with() {
        let mut shelf = Shelf::default();
        for name in ["job-7", "job-70", "job-1", "job-1234", "job-12345"] {
            let place = shelf.place("", name);
            shelf.put(map(name), place, 0);
        }
        let names = shelf.names("").expect("there are some");
        assert_eq!(names.alike, 4);
        let heads = names.iter().map(|held| held.head.to_be_bytes());
        let wanted = [*b"1\0\0\0", *b"1234", *b"1234", *b"7\0\0\0", *b"70\0\0"];
        assert!(heads.eq(wanted));
    }
}
