//! Whether and when a container starts again.

/// First pause after a second end; each further one is twice as long.
const PAUSE_FIRST_SECONDS: u32 = 10;
/// Longest pause.
const PAUSE_MAX_SECONDS: u32 = 300;
/// A container that ran so long starts again without a pause.
pub(crate) const CALM_SECONDS: i64 = 600;

/// `spec.restartPolicy`, or a container's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Always,
    Never,
    OnFailure,
}

impl Policy {
    /// Reads the wire form; absent means `Always`.
    pub(crate) fn parse(text: Option<&str>) -> Policy {
        match text {
            Some("Never") => Policy::Never,
            Some("OnFailure") => Policy::OnFailure,
            _ => Policy::Always,
        }
    }

    /// What an init container does: `Always` means only that it is tried until it succeeds.
    pub(crate) fn of_init(self) -> Policy {
        match self {
            Policy::Never => Policy::Never,
            Policy::Always | Policy::OnFailure => Policy::OnFailure,
        }
    }

    /// Whether a container that ended with this code starts again.
    pub(crate) fn starts_again(self, code: i32) -> bool {
        match self {
            Policy::Always => true,
            Policy::Never => false,
            Policy::OnFailure => code != 0,
        }
    }
}

/// The pause before the next start, after so many ends in a row without a calm time.
/// The first restart is immediate, as kubelet's is.
pub(crate) fn pause_seconds(ends_in_a_row: u32) -> u32 {
    match ends_in_a_row {
        0 | 1 => 0,
        more => PAUSE_FIRST_SECONDS
            .checked_shl(more - 2)
            .filter(|_| more < 12)
            .unwrap_or(PAUSE_MAX_SECONDS)
            .min(PAUSE_MAX_SECONDS),
    }
}

/// `10s`, `1m20s`, `5m0s`: a pause as kubelet prints it.
pub(crate) fn pause_text(seconds: u32) -> String {
    if seconds < 60 {
        format!("{seconds}s")
    } else {
        format!("{}m{}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_ten_seconds_to_five_minutes() {
        let pauses: Vec<_> = (0..10).map(|n| pause_text(pause_seconds(n))).collect();
        assert_eq!(
            pauses.join(" "),
            "0s 0s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s"
        );
        assert_eq!(pause_seconds(u32::MAX), 300);
    }

    #[test]
    fn policies_decide_by_the_exit_code() {
        let rows = [
            (Policy::Always, true, true),
            (Policy::OnFailure, false, true),
            (Policy::Never, false, false),
        ];
        for (policy, after_success, after_failure) in rows {
            assert_eq!(policy.starts_again(0), after_success);
            assert_eq!(policy.starts_again(1), after_failure);
        }
        assert_eq!(Policy::Always.of_init(), Policy::OnFailure);
        assert_eq!(Policy::parse(None), Policy::Always);
    }
}
