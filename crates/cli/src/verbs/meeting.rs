//! Arguments that say how sure it is that pods of a job find each other.

use std::time::Duration;

use clap::Args;

use crate::start::{Meeting, ServiceGate};

// Not a doc comment: clap would take it for the help of the verb.
// How pods of a job find each other.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "How pods of a job find each other")]
pub(super) struct MeetingArguments {
    /// Pods of a job with the svc plugin wait until its Service was read back (accepted is the same), an EndpointSlice of it, or an answer of DNS about it [default: observed]
    #[arg(long, value_name = "LEVEL", value_parser = ServiceGate::WORDS)]
    service_gate: Option<String>,
    /// For so long; then they start without, and the job says what is missing [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    service_gate_deadline: Option<Duration>,
    /// Each of them has an init container of this image (a shell with getent or nslookup) that waits as long until DNS knows the others [default: only where the job says wait-for-peers]
    #[arg(long, value_name = "IMAGE")]
    peers_image: Option<String>,
}

impl MeetingArguments {
    /// Whether any of these was typed. Taken apart field by field, so that a new one is not forgotten.
    pub(super) fn is_given(&self) -> bool {
        let MeetingArguments {
            service_gate,
            service_gate_deadline,
            peers_image,
        } = self;
        service_gate.is_some() || service_gate_deadline.is_some() || peers_image.is_some()
    }

    /// What they mean.
    pub(super) fn meeting(self) -> Meeting {
        let MeetingArguments {
            service_gate,
            service_gate_deadline,
            peers_image,
        } = self;
        let usual = Meeting::default();
        Meeting {
            gate: service_gate.map_or(usual.gate, |word| ServiceGate::of_word(&word)),
            deadline: service_gate_deadline.unwrap_or(usual.deadline),
            peers_image: peers_image.filter(|it| !it.is_empty()).map(Into::into),
        }
    }
}

/// A duration in Go's notation.
fn duration(text: &str) -> Result<Duration, String> {
    let read = api::duration::Duration::parse(text)?;
    u64::try_from(read.milliseconds())
        .map(Duration::from_millis)
        .map_err(|_| "it may not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    fn meeting(typed: &[&str]) -> Option<Meeting> {
        let command = MeetingArguments::augment_args(Command::new("up"));
        let typed = ["up"].iter().chain(typed);
        let matches = command.try_get_matches_from(typed).ok()?;
        let arguments = MeetingArguments::from_arg_matches(&matches).ok()?;
        Some(arguments.meeting())
    }

    #[test]
    fn gates_are_as_typed_and_open_with_the_service_by_default() {
        assert_eq!(meeting(&[]), Some(Meeting::default()));
        for (word, gate) in [
            ("accepted", ServiceGate::Observed),
            ("observed", ServiceGate::Observed),
            ("endpoint-slice", ServiceGate::EndpointSlice),
            ("dns-answer", ServiceGate::DnsAnswer),
        ] {
            let typed = [
                "--service-gate",
                word,
                "--service-gate-deadline=1m30s",
                "--peers-image=sh",
            ];
            let wanted = Meeting {
                gate,
                deadline: Duration::from_secs(90),
                peers_image: Some("sh".into()),
            };
            assert_eq!(meeting(&typed), Some(wanted), "{word}");
        }
        assert_eq!(meeting(&["--service-gate=dns"]), None);
        assert_eq!(meeting(&["--service-gate-deadline=-1s"]), None);
    }
}
