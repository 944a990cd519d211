//! Who asked for what, as lines of `audit.k8s.io/v1` Events at the level Metadata.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use api::time::Time;
use serde_json::{Value, json};
use store::{Asked, User};

use crate::identity::IdentityError;
use crate::plane::now;

/// A file that has grown so large is put aside, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How many files are put aside before the oldest is deleted.
const FILES_MAX: usize = 4;

/// A log of requests. Cheap to clone.
#[derive(Clone)]
pub struct AuditLog(Arc<Mutex<Open>>);

struct Open {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl AuditLog {
    /// Opens the log at `path`; a file that is there is continued.
    pub fn open(path: &Path) -> Result<AuditLog, IdentityError> {
        AuditLog::sized(path, FILE_BYTES_MAX)
    }

    fn sized(path: &Path, bytes_max: u64) -> Result<AuditLog, IdentityError> {
        let open = Open::at(path, bytes_max).map_err(|cause| IdentityError {
            action: format!("open the audit log {}", path.display()),
            cause: cause.into(),
        })?;
        Ok(AuditLog(Arc::new(Mutex::new(open))))
    }

    pub(crate) fn write(&self, event: &Value) {
        let mut line = event.to_string().into_bytes();
        line.push(b'\n');
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = open.write(&line) {
            // Requests go on: a full disk makes the plane read-only by its journal, not by this.
            tracing::error!("cannot write the audit log: {error}");
        }
    }
}

impl Open {
    fn at(path: &Path, bytes_max: u64) -> std::io::Result<Open> {
        use std::os::unix::fs::OpenOptionsExt;

        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Open {
            path: path.to_owned(),
            file,
            bytes,
            bytes_max,
        })
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        let grown = self.bytes + line.len() as u64;
        if grown > self.bytes_max && self.bytes > 0 {
            self.put_aside()?;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// `log` becomes `log.1`, that `log.2`, and so on.
    fn put_aside(&mut self) -> std::io::Result<()> {
        let aside = |number: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..FILES_MAX).rev() {
            if aside(number).exists() {
                std::fs::rename(aside(number), aside(number + 1))?;
            }
        }
        std::fs::rename(&self.path, aside(1))?;
        *self = Open::at(&self.path, self.bytes_max)?;
        Ok(())
    }
}

/// One request, as the log tells it.
pub(crate) struct Trail {
    log: AuditLog,
    event: Value,
}

/// What the log says of a request before it is answered.
pub(crate) struct Received<'a> {
    pub(crate) id: &'a str,
    pub(crate) uri: &'a str,
    pub(crate) source: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) asked: &'a Asked,
    pub(crate) user: &'a User,
    /// Whom the user speaks for, if for somebody else.
    pub(crate) impersonated: Option<&'a User>,
    pub(crate) at: Time,
}

impl Trail {
    pub(crate) fn begin(log: &AuditLog, received: &Received<'_>) -> Trail {
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": received.id,
            "requestURI": received.uri,
            "verb": received.asked.verb,
            "user": told(received.user),
            "sourceIPs": [received.source],
            "userAgent": received.agent,
            "requestReceivedTimestamp": received.at.micro(),
        });
        if let Some(user) = received.impersonated {
            event["impersonatedUser"] = told(user);
        }
        if let Some(target) = &received.asked.target {
            let mut object = json!({});
            for (key, value) in [
                ("resource", &target.plural),
                ("namespace", &target.namespace),
                ("name", &target.name),
                ("apiGroup", &target.group),
                ("apiVersion", &target.version),
                ("subresource", &target.subresource),
            ] {
                if !value.is_empty() {
                    object[key] = json!(value);
                }
            }
            event["objectRef"] = object;
        }
        Trail {
            log: log.clone(),
            event,
        }
    }

    /// What was decided about access.
    pub(crate) fn decided(&mut self, code: u16) {
        let decision = match code {
            403 => "forbid",
            _ => "allow",
        };
        self.event["annotations"] = json!({ "authorization.k8s.io/decision": decision });
    }

    /// The request has come to this stage with this code.
    pub(crate) fn write(&mut self, stage: &str, code: u16) {
        self.event["stage"] = json!(stage);
        self.event["responseStatus"] = json!({ "metadata": {}, "code": code });
        self.event["stageTimestamp"] = json!(now().micro());
        self.log.write(&self.event);
    }
}

fn told(user: &User) -> Value {
    let mut told = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        told["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        told["extra"] = json!(user.extra);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_loses_only_its_oldest_files() {
        let folder = std::env::temp_dir().join(format!("katmai-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("audit.log");
        let log = AuditLog::sized(&path, 100).expect("a log");
        for number in 0..100 {
            log.write(&json!({ "number": number, "text": "x".repeat(40) }));
        }
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .expect("the folder")
            .map(|entry| {
                let entry = entry.expect("a file");
                assert!(entry.metadata().expect("its size").len() <= 100);
                entry.file_name().to_string_lossy().into_owned()
            })
            .collect();
        names.sort();
        let all = [
            "audit.log",
            "audit.log.1",
            "audit.log.2",
            "audit.log.3",
            "audit.log.4",
        ];
        assert_eq!(names, all);
        let newest = std::fs::read_to_string(&path).expect("the newest");
        assert!(newest.contains("\"number\":99"), "{newest}");
        std::fs::remove_dir_all(&folder).expect("cleaned up");
    }
}
