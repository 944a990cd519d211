//! The image map: what an image stands for on a node that pulls none.

use std::path::PathBuf;

use serde::Deserialize;

/// Rows of pattern → default command and optional root directory; the first match counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageMap {
    /// The rows, in order.
    #[serde(default)]
    pub images: Vec<ImageRow>,
}

/// One row of an [`ImageMap`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRow {
    /// The image's name; `*` stands for any text. Without a tag it matches every tag.
    pub pattern: String,
    /// What runs where the container names no command: the image's entry point.
    #[serde(default)]
    pub command: Vec<String>,
    /// A directory on the host that is the root file system instead of the host's.
    #[serde(default)]
    pub root: Option<PathBuf>,
}

/// A container cannot be started because nothing says what its image stands for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "image {image:?} has no command here: images are not pulled; give the container a command, or map the image to one with --image-map"
)]
pub struct ImageError {
    /// The image.
    pub image: String,
}

impl ImageMap {
    /// The row that an image matches.
    pub fn find(&self, image: &str) -> Option<&ImageRow> {
        let bare = without_tag(image);
        self.images
            .iter()
            .find(|row| matches(&row.pattern, image) || matches(&row.pattern, bare))
    }

    /// The command line of a container, as a container runtime composes it: `command` replaces
    /// the image's entry point, `args` follow.
    pub fn command_line(
        &self,
        image: &str,
        command: &[String],
        args: &[String],
    ) -> Result<Vec<String>, ImageError> {
        let entry = if command.is_empty() {
            self.find(image)
                .map(|row| row.command.as_slice())
                .unwrap_or_default()
        } else {
            command
        };
        // Images such as busybox have no entry point: what is given as arguments is the command.
        let stands_alone = args.first().is_some_and(|first| !first.starts_with('-'));
        if entry.is_empty() && !stands_alone {
            return Err(ImageError {
                image: image.to_owned(),
            });
        }
        Ok(entry.iter().chain(args).cloned().collect())
    }
}

fn without_tag(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// Whether a pattern with `*` matches a text; linear in their lengths' product.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ImageMap {
        serde_json::from_value(serde_json::json!({"images": [
            {"pattern": "nginx", "command": ["nginx", "-g", "daemon off;"]},
            {"pattern": "registry.example/*/tool:1.*", "command": ["tool"]},
            {"pattern": "bare"},
        ]}))
        .unwrap()
    }

    #[test]
    fn first_matching_row_gives_the_entry_point_and_args_follow() {
        let cases = [
            ("nginx", "nginx -g daemon off; x"),
            ("nginx:1.27", "nginx -g daemon off; x"),
            ("registry.example/a/b/tool:1.2", "tool x"),
        ];
        for (image, line) in cases {
            let found = map().command_line(image, &[], &["x".to_owned()]).unwrap();
            assert_eq!(found.join(" "), line, "{image}");
        }
    }

    #[test]
    fn an_image_without_a_command_is_refused_with_advice() {
        for image in ["other", "bare", "registry.example/a/tool:2", "nginx2"] {
            let error = map().command_line(image, &[], &[]).unwrap_err().to_string();
            assert!(error.contains("--image-map"), "{error}");
        }
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(map().command_line("nginx2", &[], &line("-g x")).is_err());
        assert_eq!(
            map().command_line("other", &line("sh"), &[]),
            Ok(line("sh"))
        );
        assert_eq!(
            map().command_line("busybox", &[], &line("sh -c true")),
            Ok(line("sh -c true")),
            "an image without an entry point runs its arguments"
        );
    }
}
