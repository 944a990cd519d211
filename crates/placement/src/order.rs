//! A heap whose order is a function of things outside it, so the comparison is an argument.
//!
//! It is right only while the items inside keep their order: callers change what is compared only of
//! an item that they have taken out.

/// The heap; the first in order is on top.
#[derive(Clone, Debug)]
pub(crate) struct Heap<T> {
    items: Vec<T>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Heap { items: Vec::new() }
    }
}

impl<T: Copy> Heap<T> {
    pub(crate) fn new() -> Heap<T> {
        Heap { items: Vec::new() }
    }

    pub(crate) fn push(&mut self, item: T, before: impl Fn(T, T) -> bool) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let up = (at - 1) / 2;
            if !before(self.items[at], self.items[up]) {
                break;
            }
            self.items.swap(at, up);
            at = up;
        }
    }

    pub(crate) fn pop(&mut self, before: impl Fn(T, T) -> bool) -> Option<T> {
        if self.items.is_empty() {
            return None;
        }
        let top = self.items.swap_remove(0);
        self.settle(before);
        Some(top)
    }

    /// Puts the one on top where it belongs, which may be another place now.
    pub(crate) fn settle(&mut self, before: impl Fn(T, T) -> bool) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut first = at;
            for child in [left, right] {
                if child < self.items.len() && before(self.items[child], self.items[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.items.swap(at, first);
            at = first;
        }
    }

    /// Puts the first on top, where their order has changed since.
    pub(crate) fn sort(&mut self, before: impl Fn(T, T) -> bool) {
        let items = std::mem::take(&mut self.items);
        for item in items {
            self.push(item, &before);
        }
    }

    /// The one on top.
    pub(crate) fn first(&self) -> Option<T> {
        self.items.first().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
