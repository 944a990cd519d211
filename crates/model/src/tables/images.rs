//! How many nodes have an image.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Shape, Tables};
use crate::node::Images;

/// By name, of those images that some node has.
#[derive(Clone, Debug, Default)]
pub(super) struct ImageCensus(BTreeMap<Arc<str>, Row>);

#[derive(Clone, Copy, Debug)]
struct Row {
    nodes: u32,
    /// When that changed.
    tick: u64,
}

/// Something that differs whenever the number of nodes that have one of a shape's images does, for those
/// who keep judgements; the same while no node has any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageMark {
    tick: u64,
    nodes: u32,
}

impl ImageCensus {
    /// A node had these images and has those now.
    pub(super) fn change(&mut self, before: &Images, after: &Images, tick: u64) {
        if before == after {
            return;
        }
        let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let gone = old.next_if(|_| order.is_le()).filter(|_| order.is_lt());
            let came = new.next_if(|_| order.is_ge()).filter(|_| order.is_gt());
            if let Some((name, _)) = gone {
                self.leave(name, tick);
            }
            if let Some((name, _)) = came {
                let row = self.0.entry(name.clone());
                let row = row.or_insert(Row { nodes: 0, tick });
                row.nodes += 1;
                row.tick = tick;
            }
        }
    }

    fn leave(&mut self, name: &Arc<str>, tick: u64) {
        let row = self.0.get_mut(name).expect("whoever leaves was counted");
        row.nodes -= 1;
        row.tick = tick;
        if row.nodes == 0 {
            self.0.remove(name);
        }
    }
}

impl Tables {
    /// How many nodes have the image of this name.
    pub fn nodes_with_image(&self, name: &str) -> u32 {
        self.images.0.get(name).map_or(0, |row| row.nodes)
    }

    /// What is to be compared by whoever keeps what nodes are worth to the shape for their images.
    pub fn image_mark(&self, shape: &Shape) -> ImageMark {
        if self.images.0.is_empty() {
            return ImageMark::default();
        }
        let images = shape.spec.images.iter();
        let there = images.filter_map(|name| self.images.0.get(name));
        let newest = there.map(|row| row.tick).max();
        newest.map_or_else(ImageMark::default, |tick| ImageMark {
            tick,
            nodes: self.known_nodes,
        })
    }
}
