//! Which cpus a container gets of those that are free, by the kubelet's static policy: whole sockets,
//! then whole NUMA nodes, whole cores and single threads (Kubernetes: *Control CPU Management Policies
//! on the Node*).

use std::cmp::Reverse;

use model::{NumaLayout, Units};

/// So many of the free cpus; nothing where there are fewer.
pub(super) fn take(layout: &NumaLayout, free: &Units, count: u32) -> Option<Units> {
    if free.len() < count {
        return None;
    }
    let mut taking = Taking {
        layout,
        free: free.clone(),
        taken: Units::default(),
        needs: count,
    };
    let parts = layout.cpus().map_or(&[][..], |cpus| &cpus.by_node);
    taking.whole(&layout.sockets);
    taking.whole(parts);
    taking.cores();
    taking.threads();
    Some(taking.taken)
}

struct Taking<'a> {
    layout: &'a NumaLayout,
    free: Units,
    taken: Units,
    needs: u32,
}

impl Taking<'_> {
    fn take(&mut self, units: &Units) {
        self.free = self.free.without(units);
        self.taken = self.taken.or(units);
        self.needs -= units.len();
    }

    fn takes_whole(&mut self, part: &Units) {
        if !part.is_empty() && part.len() <= self.needs && self.free.holds(part) {
            self.take(part);
        }
    }

    /// Parts of which nobody has a cpu, in their order.
    fn whole(&mut self, parts: &[Units]) {
        for part in parts {
            self.takes_whole(part);
        }
    }

    /// Whole cores, first on the socket that has the fewest.
    fn cores(&mut self) {
        if self.needs == 0 {
            return;
        }
        let layout = self.layout;
        let is_whole = |core: &&(usize, Units)| self.free.holds(&core.1);
        let mut whole = vec![0_usize; layout.sockets.len()];
        for (socket, _) in layout.cores.iter().filter(is_whole) {
            whole[*socket] += 1;
        }
        let mut cores: Vec<&(usize, Units)> = layout.cores.iter().filter(is_whole).collect();
        cores.sort_by_key(|(socket, _)| (whole[*socket], *socket));
        for (_, core) in cores {
            self.takes_whole(core);
        }
    }

    /// Single threads: first beside what was taken, then on the fuller socket and of the fuller core.
    fn threads(&mut self) {
        if self.needs == 0 {
            return;
        }
        let layout = self.layout;
        let mut cores: Vec<(usize, &Units)> = layout
            .cores
            .iter()
            .filter(|(_, core)| core.shared(&self.free) > 0)
            .map(|(socket, core)| (*socket, core))
            .collect();
        let beside = |socket: usize| layout.sockets[socket].shared(&self.taken);
        let left = |socket: usize| layout.sockets[socket].shared(&self.free);
        cores.sort_by_cached_key(|(socket, core)| {
            let of_core = core.shared(&self.free);
            (Reverse(beside(*socket)), left(*socket), *socket, of_core)
        });
        for (_, core) in cores {
            for cpu in core.and(&self.free).iter() {
                if self.needs == 0 {
                    return;
                }
                self.take(&Units::from_iter([cpu]));
            }
        }
    }
}
