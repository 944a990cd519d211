//! How much at once: requests in flight, connections, and how long anything may take.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// What the socket bears. The numbers of kube-apiserver, where it has them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests in flight that change something.
    pub mutating: usize,
    /// Requests in flight that read, but for watches and other streams.
    pub reading: usize,
    /// Longest that a request may take that is no stream.
    pub request: Duration,
    /// Longest that the head of a request may take, from the end of the one before.
    pub head: Duration,
    /// Longest that a TLS handshake may take.
    pub handshake: Duration,
    /// Connections; one more closes the one that has been idle the longest.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            mutating: 200,
            reading: 400,
            request: Duration::from_secs(60),
            head: Duration::from_secs(90),
            handshake: Duration::from_secs(10),
            connections: 20_000,
        }
    }
}

/// Counts requests in flight.
pub(crate) struct InFlight {
    mutating: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

impl InFlight {
    pub(crate) fn new(limits: &Limits) -> InFlight {
        InFlight {
            mutating: Arc::new(Semaphore::new(limits.mutating)),
            reading: Arc::new(Semaphore::new(limits.reading)),
        }
    }

    /// A place among those in flight, if there is one.
    pub(crate) fn enter(&self, is_reading: bool) -> Option<OwnedSemaphorePermit> {
        let places = if is_reading {
            &self.reading
        } else {
            &self.mutating
        };
        places.clone().try_acquire_owned().ok()
    }
}

/// The open connections.
pub(crate) struct Connections {
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    most: usize,
    began: Instant,
}

/// One connection.
pub(crate) struct Connection {
    /// Requests that are being answered, streams among them.
    busy: AtomicUsize,
    /// When it was last busy, in milliseconds since the server began.
    idle_since: AtomicU64,
    /// Whether it has ever carried a request.
    pub(crate) spoke: AtomicBool,
    /// Asks it to end.
    pub(crate) end: Notify,
}

/// A connection's place, given back when this is dropped.
pub(crate) struct Place {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) connection: Arc<Connection>,
}

/// One request of a connection, answered when this is dropped.
pub(crate) struct Busy {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Connections> {
        Arc::new(Connections {
            open: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
            most,
            began: Instant::now(),
        })
    }

    /// A place for one more connection; `None` if all are busy.
    pub(crate) fn enter(self: &Arc<Connections>) -> Option<Place> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= self.most {
            let idle = open
                .iter()
                .filter(|(_, one)| one.busy.load(Ordering::Relaxed) == 0)
                .min_by_key(|(_, one)| one.idle_since.load(Ordering::Relaxed))
                .map(|(id, _)| *id)?;
            if let Some(connection) = open.remove(&idle) {
                connection.end.notify_one();
            }
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection {
            busy: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now_ms()),
            spoke: AtomicBool::new(false),
            end: Notify::new(),
        });
        open.insert(id, connection.clone());
        Some(Place {
            connections: self.clone(),
            id,
            connection,
        })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Place {
    /// Marks the connection as busy for the time of one request.
    pub(crate) fn busy(&self) -> Busy {
        self.connection.busy.fetch_add(1, Ordering::Relaxed);
        self.connection.spoke.store(true, Ordering::Relaxed);
        Busy {
            connections: self.connections.clone(),
            connection: self.connection.clone(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let open = &self.connections.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = self.connections.now_ms();
        self.connection.idle_since.store(now, Ordering::Relaxed);
        self.connection.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A Go duration such as `1m30s`, as the parameter `timeout` has it; a negative one counts as none.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let (unit, length) = [
            ("ms", 0.001),
            ("us", 0.000_001),
            ("µs", 0.000_001),
            ("ns", 0.000_000_001),
            ("h", 3_600.0),
            ("m", 60.0),
            ("s", 1.0),
        ]
        .into_iter()
        .find(|(unit, _)| rest[end..].starts_with(unit))?;
        seconds += number * length;
        rest = &rest[end + unit.len()..];
    }
    if text.is_empty() {
        None
    } else if is_negative {
        Some(Duration::ZERO)
    } else {
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_gos_durations() {
        for (text, millis) in [
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("0", 0),
            ("20ms", 20),
            ("-1s", 0),
        ] {
            assert_eq!(
                duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "1", "s", "1x", "1s1", "1..5s", "9e99h"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn one_connection_too_many_closes_the_one_idle_the_longest() {
        let connections = Connections::new(2);
        let first = connections.enter().expect("room");
        let second = connections.enter().expect("room");
        let busy = (first.busy(), second.busy());
        assert!(connections.enter().is_none());
        drop(busy);
        let third = connections.enter().expect("an idle one goes");
        let open = connections.open.lock().expect("no panic");
        assert_eq!(open.len(), 2);
        assert!(open.contains_key(&third.id));
        drop(open);
    }
}
