//! What faults have done is undone: calm comes back piece by piece.

use api::call::Call;

use super::{Event, World};

/// How long to wait before mending is tried again.
const AGAIN_MS: i64 = 1_000;

/// One thing to be undone.
#[derive(Debug)]
pub(super) enum Mend {
    /// All clocks show the server's time again.
    Clocks,
    /// A node is as it was.
    Node(String, Call),
    /// An object is as it was.
    Write(Call),
}

impl Mend {
    /// For whoever asks why a world does not come to rest.
    pub(super) fn told(&self) -> String {
        match self {
            Mend::Clocks => "right clocks".to_owned(),
            Mend::Node(_, call) | Mend::Write(call) => {
                format!("the end of a fault: {} {}", call.method, call.target)
            }
        }
    }
}

impl World {
    pub(super) fn mend(&mut self, mend: Mend) {
        let again = self.now.plus_ms(AGAIN_MS);
        match mend {
            Mend::Clocks => {
                for replica in &mut self.replicas {
                    replica.leap(0);
                }
                self.note("all clocks are right");
            }
            Mend::Node(name, call) => match self.is_over(&call) {
                true => {
                    self.troubled.remove(&name);
                    self.dark.remove(&name);
                }
                false => {
                    // A node that is still too small holds too much for as long.
                    if self.witness.is_excused(&name, self.now) {
                        self.excuse(&name, AGAIN_MS);
                    }
                    self.push(again, Event::Mend(Mend::Node(name, call)));
                }
            },
            Mend::Write(call) => {
                if !self.is_over(&call) {
                    self.push(again, Event::Mend(Mend::Write(call)));
                }
            }
        }
    }

    /// Whether an attempt is all that is needed: it was made, or what it was about has gone or is over,
    /// as a pod is whose sidecar would come back.
    fn is_over(&mut self, call: &Call) -> bool {
        matches!(
            self.written("somebody", call).code,
            200..300 | 404 | 409 | 422
        )
    }
}
