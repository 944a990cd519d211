//! A pod's volumes: directories of the host, or files that are written for the pod and kept as
//! their sources are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api::kind::Kind;
use api::time::Time;

use super::{Data, Sources};
use crate::process::pod::{Container, DownwardFile, KeyPath, ProjectedSource, TokenSource, Volume};
use crate::process::{TokenRequest, now};
use crate::volumes::{VolumeFile, show_files};

/// Life of a token whose volume names none, in seconds.
const TOKEN_SECONDS: i64 = 3_600;

/// To whom a claim has to belong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Anybodys,
    /// It was made for the pod (a generic ephemeral volume).
    ThePods,
}

/// What stands in a pod's volumes.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    files: BTreeMap<String, Vec<VolumeFile>>,
    /// By volume and path, with the time at which a new one is wanted.
    tokens: BTreeMap<(String, String), (String, Time)>,
}

impl Volume {
    /// Whether its files are written for the pod, which may not write them.
    pub(crate) fn has_files(&self) -> bool {
        self.config_map.is_some()
            || self.secret.is_some()
            || self.projected.is_some()
            || self.downward_api.is_some()
    }
}

impl Sources<'_> {
    /// A volume's directory, filled. The text of an error is kubelet's.
    pub(crate) async fn volume(
        &self,
        volume: &Volume,
        shown: &mut Shown,
    ) -> Result<PathBuf, String> {
        if let Some(host) = &volume.host_path {
            return host_path(&host.path, &host.kind);
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            return self.claim(&claim.claim_name, Whose::Anybodys).await;
        }
        if volume.ephemeral.is_some() {
            let claim = format!("{}-{}", self.pod.metadata.name, volume.name);
            return self.claim(&claim, Whose::ThePods).await;
        }
        let directory = self.directory.join("volumes").join(&volume.name);
        if volume.has_files() {
            self.show(volume, &directory, shown).await?;
        } else {
            std::fs::create_dir_all(&directory)
                .and_then(|()| self.open_to_all(&directory))
                .map_err(|error| format!("cannot make volume {}: {error}", volume.name))?;
        }
        Ok(directory)
    }

    /// Writes a volume's files, unless they stand there already.
    pub(crate) async fn show(
        &self,
        volume: &Volume,
        directory: &Path,
        shown: &mut Shown,
    ) -> Result<(), String> {
        let files = self.files(volume, shown).await?;
        if shown.files.get(&volume.name) == Some(&files) {
            return Ok(());
        }
        let target = directory.to_owned();
        let written =
            tokio::task::spawn_blocking(move || show_files(&target, &files).map(|()| files));
        let files = written
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("cannot write volume {}: {error}", volume.name))?;
        shown.files.insert(volume.name.clone(), files);
        Ok(())
    }

    /// An empty directory is everybody's, and its group the pod's.
    fn open_to_all(&self, directory: &Path) -> std::io::Result<()> {
        let mut mode = 0o777;
        if let Some(group) = self.group() {
            std::os::unix::fs::chown(directory, None, Some(group))?;
            mode = 0o2777;
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(directory, mode)
    }

    /// The group of a pod's files, where this user may give files away.
    fn group(&self) -> Option<u32> {
        let context = &self.pod.spec.security_context;
        context
            .fs_group
            .filter(|_| nix::unistd::geteuid().is_root())
    }

    async fn files(&self, volume: &Volume, shown: &mut Shown) -> Result<Vec<VolumeFile>, String> {
        let mut files = Files {
            group: self.group(),
            mode: 0o644,
            all: Vec::new(),
        };
        if let Some(source) = &volume.config_map {
            files.mode = source.default_mode.unwrap_or(files.mode);
            let wanted = (&*source.name, source.optional, &*source.items);
            self.keys(Kind::ConfigMap, wanted, &mut files).await?;
        } else if let Some(source) = &volume.secret {
            files.mode = source.default_mode.unwrap_or(files.mode);
            let wanted = (&*source.secret_name, source.optional, &*source.items);
            self.keys(Kind::Secret, wanted, &mut files).await?;
        } else if let Some(source) = &volume.downward_api {
            files.mode = source.default_mode.unwrap_or(files.mode);
            self.downward(&source.items, &mut files)?;
        } else if let Some(projected) = &volume.projected {
            files.mode = projected.default_mode.unwrap_or(files.mode);
            for source in &projected.sources {
                self.project(source, &volume.name, &mut files, shown)
                    .await?;
            }
        }
        Ok(files.all)
    }

    async fn project(
        &self,
        source: &ProjectedSource,
        volume: &str,
        files: &mut Files,
        shown: &mut Shown,
    ) -> Result<(), String> {
        for (kind, object) in [
            (Kind::ConfigMap, &source.config_map),
            (Kind::Secret, &source.secret),
        ] {
            if let Some(object) = object {
                let wanted = (&*object.name, object.optional, &*object.items);
                self.keys(kind, wanted, files).await?;
            }
        }
        if let Some(downward) = &source.downward_api {
            self.downward(&downward.items, files)?;
        }
        if let Some(token) = &source.service_account_token
            && let Some(text) = self.token(token, volume, shown).await?
        {
            files.put(&token.path, text.into_bytes(), None);
        }
        Ok(())
    }

    /// The keys of an object that become files.
    async fn keys(
        &self,
        kind: Kind,
        (name, optional, items): (&str, bool, &[KeyPath]),
        files: &mut Files,
    ) -> Result<(), String> {
        let data: Data = self.data(kind, name, optional).await?;
        if items.is_empty() {
            for (key, value) in data {
                files.put(&key, value, None);
            }
            return Ok(());
        }
        for item in items {
            match data.get(&item.key) {
                Some(value) => files.put(&item.path, value.clone(), item.mode),
                None if optional => {}
                None => {
                    let what = match kind {
                        Kind::Secret => "secret",
                        _ => "config",
                    };
                    return Err(format!("references non-existent {what} key: {}", item.key));
                }
            }
        }
        Ok(())
    }

    /// A token of the pod's account: the one it has, until most of its life is over.
    async fn token(
        &self,
        wanted: &TokenSource,
        volume: &str,
        shown: &mut Shown,
    ) -> Result<Option<String>, String> {
        let key = (volume.to_owned(), wanted.path.clone());
        if let Some((text, until)) = shown.tokens.get(&key)
            && now() < *until
        {
            return Ok(Some(text.clone()));
        }
        let request = self.token_request(wanted);
        let life = request.expiration_seconds;
        let token = self.api.token(request).await;
        let token = token.map_err(|error| format!("failed to fetch token: {}", error.message))?;
        if let Some(text) = &token {
            let until = now().plus_ms(life.saturating_mul(800));
            shown.tokens.insert(key, (text.clone(), until));
        }
        Ok(token)
    }

    fn token_request(&self, token: &TokenSource) -> TokenRequest {
        let account = &self.pod.spec.service_account_name;
        TokenRequest {
            namespace: self.pod.metadata.namespace.to_string(),
            account: if account.is_empty() {
                "default".to_owned()
            } else {
                account.clone()
            },
            audience: token.audience.clone(),
            expiration_seconds: token.expiration_seconds.unwrap_or(TOKEN_SECONDS),
            pod: (
                self.pod.metadata.name.to_string(),
                self.pod.metadata.uid.to_string(),
            ),
        }
    }

    fn downward(&self, items: &[DownwardFile], files: &mut Files) -> Result<(), String> {
        for item in items {
            let text = match (&item.field_ref, &item.resource_field_ref) {
                (Some(field), _) => self.field(field)?,
                (None, Some(resource)) => self.resource(resource, &Container::default())?,
                (None, None) => continue,
            };
            files.put(&item.path, text.into_bytes(), item.mode);
        }
        Ok(())
    }

    async fn claim(&self, name: &str, whose: Whose) -> Result<PathBuf, String> {
        let of = &self.pod.metadata;
        let namespace = &of.namespace;
        let claim = self
            .object(Kind::PersistentVolumeClaim, namespace, name)
            .await?
            .ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
        let owners = claim["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        let is_made = owners.any(|owner| owner["controller"] == true && owner["uid"] == *of.uid);
        if whose == Whose::ThePods && !is_made {
            return Err(format!(
                "PVC {namespace}/{name} was not created for pod {namespace}/{} (pod is not owner)",
                of.name
            ));
        }
        if claim["status"]["phase"] != "Bound" {
            return Err(format!("persistentvolumeclaim {name:?} is not bound yet"));
        }
        let volume = claim["spec"]["volumeName"].as_str().unwrap_or_default();
        let volume = self
            .object(Kind::PersistentVolume, "", volume)
            .await?
            .ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
        let spec = &volume["spec"];
        let path = [
            &spec["hostPath"]["path"],
            &spec["local"]["path"],
            &spec["csi"]["volumeAttributes"]["path"],
        ];
        let path = path.iter().find_map(|path| path.as_str());
        let path = path.ok_or("the persistent volume is not a directory of this node")?;
        host_path(path, "DirectoryOrCreate")
    }
}

/// Files in the making, and what all of them share.
struct Files {
    group: Option<u32>,
    mode: u32,
    all: Vec<VolumeFile>,
}

impl Files {
    /// A later file of a path takes the place of an earlier one.
    fn put(&mut self, path: &str, content: Vec<u8>, mode: Option<u32>) {
        let mode = mode.unwrap_or(self.mode);
        // Whoever is in the pod's group may read what is the pod's.
        let mode = if self.group.is_some() {
            mode | 0o440
        } else {
            mode
        };
        self.all.retain(|file| file.path != path);
        self.all.push(VolumeFile {
            path: path.to_owned(),
            content,
            mode,
            group: self.group,
        });
    }
}

fn host_path(path: &str, kind: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    if !path.is_absolute() {
        return Err(format!("hostPath {} is not absolute", path.display()));
    }
    let failed = |what: &str| {
        Err(format!(
            "hostPath type check failed: {} is not a {what}",
            path.display()
        ))
    };
    match kind {
        "DirectoryOrCreate" => {
            if let Err(error) = std::fs::create_dir_all(&path) {
                return Err(format!("cannot make {}: {error}", path.display()));
            }
        }
        "FileOrCreate" if !path.exists() => {
            if let Err(error) = std::fs::File::create(&path) {
                return Err(format!("cannot make {}: {error}", path.display()));
            }
        }
        "Directory" if !path.is_dir() => return failed("directory"),
        "File" if !path.is_file() => return failed("file"),
        _ if !path.exists() => return Err(format!("hostPath {} does not exist", path.display())),
        _ => {}
    }
    Ok(path)
}
