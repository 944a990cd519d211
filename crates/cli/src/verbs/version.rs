//! `katmai version`.

use clap::{Args, Command, FromArgMatches};
use serde_json::json;

use super::Verb;
use crate::console;
use crate::start::{Format, Outcome};

/// The row.
pub const VERB: Verb = Verb {
    name: "version",
    command: || Arguments::augment_args(Command::new("version").about("Print the version")),
    begin: |matches| {
        let typed = Arguments::from_arg_matches(matches)?;
        let version = env!("CARGO_PKG_VERSION");
        console::say(&match typed.output {
            Format::Text => format!("katmai {version}"),
            Format::Json => json!({ "katmai": version }).to_string(),
        });
        Ok(Outcome::Exit(0))
    },
};

/// What was not known while building, in upstream's words.
const NOT_PROVIDED: &str = "Not provided.";

/// The six lines that Volcano's programs print, of this binary. There is no Go in it, but scripts look for its lines.
pub(crate) fn upstreams() -> String {
    lines(
        option_env!("KATMAI_GIT_SHA"),
        option_env!("KATMAI_BUILT_AT"),
    )
}

fn lines(commit: Option<&str>, built: Option<&str>) -> String {
    let told = |value: Option<&str>| match value {
        None | Some("") => NOT_PROVIDED.to_owned(),
        Some(value) => value.to_owned(),
    };
    [
        "API Version: v1alpha1".to_owned(),
        format!("Version: {}", env!("CARGO_PKG_VERSION")),
        format!("Git SHA: {}", told(commit)),
        format!("Built At: {}", told(built)),
        format!("Go Version: {NOT_PROVIDED}"),
        format!("Go OS/Arch: {}", platform()),
    ]
    .join("\n")
}

/// System and machine, by Go's names for them.
fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86" => "386",
        "x86_64" => "amd64",
        other => other,
    };
    format!("{system}/{machine}")
}

#[derive(Args)]
struct Arguments {
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_version_has_six_lines() {
        let version = env!("CARGO_PKG_VERSION");
        let platform = platform();
        assert_eq!(
            lines(Some("0123abc"), Some("2026-11-21T18:00:00Z")),
            format!(
                "API Version: v1alpha1\nVersion: {version}\nGit SHA: 0123abc\nBuilt At: 2026-11-21T18:00:00Z\n\
                 Go Version: Not provided.\nGo OS/Arch: {platform}"
            )
        );
        for unknown in [None, Some("")] {
            let told = lines(unknown, unknown);
            assert!(
                told.contains("Git SHA: Not provided.\nBuilt At: Not provided.\n"),
                "{told}"
            );
        }
        assert!(
            !platform.contains('_') && !platform.contains("macos"),
            "{platform}"
        );
    }
}
