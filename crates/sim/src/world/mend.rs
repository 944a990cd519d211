//! What faults have done is undone: calm comes back piece by piece.

use api::call::Call;
use api::time::Time;
use serde_json::Value;

use super::{Event, Patience, World};

/// One thing to be undone.
#[derive(Debug)]
pub(super) enum Mend {
    /// All clocks show the server's time again.
    Clocks,
    /// A node is as it was.
    Node(String, Call),
    /// Somebody's Secret goes; what he had written into it is what it must hold until then.
    Secret(Value, Call),
    /// All drivers are of the world's version again.
    Version,
    /// An object is as it was.
    Write(Call),
}

impl Mend {
    /// For whoever asks why a world does not come to rest.
    pub(super) fn told(&self) -> String {
        match self {
            Mend::Clocks => "right clocks".to_owned(),
            Mend::Version => "one version".to_owned(),
            Mend::Node(_, call) | Mend::Secret(_, call) | Mend::Write(call) => {
                format!("the end of a fault: {} {}", call.method, call.target)
            }
        }
    }
}

impl World {
    /// What a fault has done is undone from this time on.
    pub(super) fn mend_at(&mut self, at: Time, mend: Mend) {
        self.push(at, Event::Mend(mend, Patience::ENDLESS));
    }

    pub(super) fn mend(&mut self, mend: Mend, patience: Patience) {
        let is_over = match &mend {
            Mend::Clocks => {
                for replica in &mut self.replicas {
                    replica.leap(0);
                }
                self.note("all clocks are right");
                true
            }
            Mend::Version => {
                self.end_other_version();
                true
            }
            Mend::Secret(written, call) => {
                self.check_secret(written);
                self.is_over(call)
            }
            Mend::Node(_, call) | Mend::Write(call) => self.is_over(call),
        };
        let again = patience.again().filter(|_| !is_over);
        if let Mend::Node(name, _) = &mend {
            match again {
                None => {
                    self.troubled.remove(name);
                    self.dark.remove(name);
                }
                // A node that is still too small holds too much for as long.
                Some((ms, _)) if self.witness.is_excused(name, self.now) => self.excuse(name, ms),
                Some(_) => {}
            }
        }
        if let Some((ms, left)) = again {
            self.push(self.now.plus_ms(ms), Event::Mend(mend, left));
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
