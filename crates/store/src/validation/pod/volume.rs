//! Volumes of a pod, and the sources that persistent volumes share with them.

use std::collections::{BTreeMap, BTreeSet};

use api::names;
use serde_json::Value;

use super::Owner;
use super::environment::field_reference;
use super::environment::resource_reference;
use crate::validation::format;
use crate::validation::spot::{Faults, Spot};
use crate::validation::storage;

/// The volumes of a pod, by name.
pub(crate) type Volumes<'v> = BTreeMap<&'v str, &'v Value>;

/// What checks a source.
type Rule = fn(&Spot<'_, '_>, &mut Faults);

/// A kind of volume: its field, the name by which it is called where it is one too many, the name
/// by which its own fields are called, and its rule. In the order in which they are looked at.
type Source = (&'static str, &'static str, &'static str, Rule);

const SOURCES: &[Source] = &[
    ("emptyDir", "emptyDir", "emptyDir", empty_dir),
    ("hostPath", "hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", "gitRepo", git),
    (
        "gcePersistentDisk",
        "gcePersistentDisk",
        "persistentDisk",
        gce,
    ),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        aws,
    ),
    ("secret", "secret", "secret", secret),
    ("nfs", "nfs", "nfs", nfs),
    ("iscsi", "iscsi", "iscsi", iscsi),
    ("glusterfs", "glusterfs", "glusterfs", |at, faults| {
        need(at, &["endpoints", "path"], faults)
    }),
    ("flocker", "flocker", "flocker", |_, _| {}),
    (
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        |at, faults| need(at, &["claimName"], faults),
    ),
    ("rbd", "rbd", "rbd", |at, faults| {
        need(at, &["monitors", "image"], faults)
    }),
    ("cinder", "cinder", "cinder", |at, faults| {
        need(at, &["volumeID"], faults)
    }),
    ("cephfs", "cephFS", "cephfs", |at, faults| {
        need(at, &["monitors"], faults)
    }),
    ("quobyte", "quobyte", "quobyte", |_, _| {}),
    ("downwardAPI", "downwarAPI", "downwardAPI", downward),
    ("fc", "fc", "fc", fibre),
    ("flexVolume", "flexVolume", "flexVolume", |at, faults| {
        need(at, &["driver"], faults)
    }),
    ("configMap", "configMap", "configMap", config_map),
    ("azureFile", "azureFile", "azureFile", |at, faults| {
        need(at, &["secretName", "shareName"], faults);
    }),
    (
        "vsphereVolume",
        "vsphereVolume",
        "vsphereVolume",
        |at, faults| {
            need(at, &["volumePath"], faults);
        },
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
        |at, faults| {
            need(at, &["pdID"], faults);
        },
    ),
    (
        "portworxVolume",
        "portworxVolume",
        "portworxVolume",
        |at, faults| {
            need(at, &["volumeID"], faults);
        },
    ),
    ("azureDisk", "azureDisk", "azureDisk", |at, faults| {
        need(at, &["diskName", "diskURI"], faults);
    }),
    ("storageos", "storageos", "storageos", |_, _| {}),
    ("projected", "projected", "projected", projected),
    ("scaleIO", "scaleIO", "scaleIO", |at, faults| {
        need(at, &["gateway", "system", "volumeName"], faults);
    }),
    ("csi", "csi", "csi", csi),
    ("ephemeral", "ephemeral", "ephemeral", ephemeral),
    ("image", "image", "image", image),
];

/// Checks the volumes of a spec; gives those in order, which alone can be mounted.
pub(super) fn check<'v>(
    volumes: &Spot<'v, '_>,
    owner: &Owner<'_>,
    faults: &mut Faults,
) -> Volumes<'v> {
    let mut good = Volumes::new();
    let name = match owner {
        Owner::Pod(meta) => meta["name"].as_str().unwrap_or_default(),
        Owner::Template => "",
    };
    let mut made = BTreeSet::new();
    if !name.is_empty() {
        let all = volumes.items();
        made.extend(
            all.filter(|one| one.at("ephemeral").is_there())
                .map(|one| format!("{name}-{}", one.at("name").text())),
        );
    }
    for volume in volumes.items() {
        let before = faults.len();
        check_source(&volume, name, faults);
        let at = volume.at("name");
        faults.need_name(&at, names::check_label);
        if good.contains_key(at.text()) {
            faults.duplicate(&at, at.text());
        }
        if faults.len() == before {
            good.insert(at.text(), volume.value);
        }
        let claim = volume.at("persistentVolumeClaim");
        let claim = claim.at("claimName");
        if made.contains(claim.text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            faults.invalid_text(&claim, detail);
        }
    }
    good
}

fn check_source(volume: &Spot<'_, '_>, pod: &str, faults: &mut Faults) {
    let mut count = 0;
    for (field, extra, called, rule) in SOURCES {
        if volume.value[field].is_null() {
            continue;
        }
        count += 1;
        if count > 1 {
            let detail = "may not specify more than 1 volume type";
            faults.forbidden(&volume.called(field, extra), detail);
            continue;
        }
        rule(&volume.called(field, called), faults);
        let name = volume.at("name");
        if *field == "ephemeral" && !pod.is_empty() && !name.is_empty() {
            let claim = format!("{pod}-{}", name.text());
            for wrong in names::check_subdomain(&claim) {
                let detail = format!("PVC name {claim:?}: {wrong}");
                faults.invalid_as(&name, name.text(), detail);
            }
        }
    }
    if count == 0 {
        faults.required(volume, "must specify a volume type");
    }
}

fn need(at: &Spot<'_, '_>, fields: &[&str], faults: &mut Faults) {
    for field in fields {
        faults.need(&at.at(field));
    }
}

fn empty_dir(at: &Spot<'_, '_>, faults: &mut Faults) {
    let limit = at.at("sizeLimit");
    if limit.quantity().is_some_and(|limit| limit.nanos() < 0) {
        faults.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
    }
}

pub(crate) fn host_path(at: &Spot<'_, '_>, faults: &mut Faults) {
    let path = at.at("path");
    if path.is_empty() {
        return faults.required(&path, "");
    }
    no_backsteps(&path, path.text(), faults);
    let kinds = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    faults.known(&at.at("type"), &kinds);
}

fn git(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("repository"));
    let directory = at.at("directory");
    descending(&directory, directory.text(), faults);
}

pub(crate) fn gce(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("pdName"));
    partition(&at.at("partition"), faults);
}

pub(crate) fn aws(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("volumeID"));
    partition(&at.at("partition"), faults);
}

fn partition(at: &Spot<'_, '_>, faults: &mut Faults) {
    let number = at.number();
    if !(0..=255).contains(&number) {
        faults.invalid_as(at, number, "must be between 1 and 255, inclusive");
    }
}

fn secret(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("secretName"));
    mode(&at.at("defaultMode"), faults);
    for item in at.at("items").items() {
        key_to_path(&item, faults);
    }
}

fn config_map(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("name"));
    mode(&at.at("defaultMode"), faults);
    for item in at.at("items").items() {
        key_to_path(&item, faults);
    }
}

/// Most that a file's mode may be.
const MODE_MAX: i64 = 0o777;

fn mode(at: &Spot<'_, '_>, faults: &mut Faults) {
    if let Some(mode) = at.maybe().filter(|mode| !(0..=MODE_MAX).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        faults.invalid_as(at, mode, detail);
    }
}

fn key_to_path(item: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&item.at("key"));
    let path = item.at("path");
    faults.need(&path);
    local_path(&path, path.text(), faults);
    mode(&item.at("mode"), faults);
}

pub(crate) fn nfs(at: &Spot<'_, '_>, faults: &mut Faults) {
    need(at, &["server", "path"], faults);
    let path = at.at("path");
    if !path.text().starts_with('/') {
        faults.invalid_text(&path, "must be an absolute path");
    }
}

pub(crate) fn iscsi(at: &Spot<'_, '_>, faults: &mut Faults) {
    need(at, &["targetPortal", "iqn"], faults);
    let iqn = at.at("iqn");
    let is_known = |text: &str| {
        ["iqn", "eui", "naa"]
            .iter()
            .any(|kind| text.starts_with(kind))
    };
    if !iqn.is_empty() && !is_known(iqn.text()) {
        faults.invalid_text(&iqn, "must be valid format starting with iqn, eui, or naa");
    }
    faults.within(&at.at("lun"), 0, 255);
    let signs_in = at.at("chapAuthDiscovery").is_true() || at.at("chapAuthSession").is_true();
    if signs_in && !at.at("secretRef").is_there() {
        faults.required(&at.at("secretRef"), "");
    }
}

pub(crate) fn fibre(at: &Spot<'_, '_>, faults: &mut Faults) {
    let (targets, ids) = (at.at("targetWWNs"), at.at("wwids"));
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        faults.required(&targets, detail);
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        faults.invalid(&targets, detail);
    }
    if !targets.is_empty() {
        let lun = at.at("lun");
        if lun.is_there() {
            faults.within(&lun, 0, 255);
        } else {
            faults.required(&lun, "lun is required if targetWWNs is specified");
        }
    }
}

fn downward(at: &Spot<'_, '_>, faults: &mut Faults) {
    mode(&at.at("defaultMode"), faults);
    for item in at.at("items").items() {
        downward_file(&Spot::new(item.value, &at.path()), faults);
    }
}

/// Fields of a pod that may be written into a file.
const FILE_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

fn downward_file(file: &Spot<'_, '_>, faults: &mut Faults) {
    let path = file.at("path");
    faults.need(&path);
    local_path(&path, path.text(), faults);
    let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if field.is_there() {
        field_reference(&field, FILE_FIELDS, faults);
        if resource.is_there() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            faults.invalid_as(file, "resource", detail);
        }
    } else if resource.is_there() {
        if resource.at("containerName").is_empty() {
            faults.required(&resource.at("containerName"), "");
        } else {
            resource_reference(&resource, faults);
        }
    } else {
        faults.required(file, "one of fieldRef and resourceFieldRef is required");
    }
    mode(&file.at("mode"), faults);
}

fn projected(at: &Spot<'_, '_>, faults: &mut Faults) {
    mode(&at.at("defaultMode"), faults);
    let mut paths = BTreeSet::new();
    for source in at.at("sources").items() {
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let one = source.at(kind);
            if !one.is_there() {
                continue;
            }
            count += 1;
            faults.need(&one.at("name"));
            for item in one.at("items").items() {
                key_to_path(&item, faults);
                let path = item.at("path").text();
                claim_path(at, path, one.at("name").text(), &mut paths, faults);
            }
        }
        let one = source.at("downwardAPI");
        if one.is_there() {
            count += 1;
            for item in one.at("items").items() {
                downward_file(&Spot::new(item.value, &one.path()), faults);
                let path = item.at("path").text();
                claim_path(at, path, path, &mut paths, faults);
            }
        }
        let one = source.at("serviceAccountToken");
        if one.is_there() {
            count += 1;
            token(at, &one, faults);
        }
        for kind in ["clusterTrustBundle", "podCertificate"] {
            count += i32::from(source.at(kind).is_there());
        }
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            faults.forbidden(&source, detail);
        }
    }
}

fn claim_path<'v>(
    at: &Spot<'_, '_>,
    path: &'v str,
    shown: &str,
    paths: &mut BTreeSet<&'v str>,
    faults: &mut Faults,
) {
    if !path.is_empty() && !paths.insert(path) {
        faults.invalid_as(at, shown, "conflicting duplicate paths");
    }
}

fn token(volume: &Spot<'_, '_>, token: &Spot<'_, '_>, faults: &mut Faults) {
    let lasts = token.at("expirationSeconds");
    if lasts.number() < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        faults.invalid_as(&lasts, lasts.number(), detail);
    }
    if lasts.number() > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        faults.invalid_as(&lasts, lasts.number(), detail);
    }
    // The real server names the volume's path here, not the source's.
    let (at, path) = (volume.at("path"), token.at("path").text());
    if path.is_empty() {
        faults.required(&at, "");
    } else {
        local_path(&at, path, faults);
    }
}

fn csi(at: &Spot<'_, '_>, faults: &mut Faults) {
    storage::driver_name(&at.at("driver"), faults);
    let secret = at.at("nodePublishSecretRef");
    if secret.is_there() {
        let name = secret.at("name");
        if name.is_empty() {
            faults.required(&name, "");
        } else {
            faults.name_as(&at.at("name"), name.text(), names::check_subdomain);
        }
    }
}

fn ephemeral(at: &Spot<'_, '_>, faults: &mut Faults) {
    let template = at.at("volumeClaimTemplate");
    if !template.is_there() {
        return faults.required(&template, "");
    }
    let meta = template.at("metadata");
    crate::validation::meta::annotations(&meta.at("annotations"), faults);
    faults.labels(&meta.at("labels"));
    for field in [
        "name",
        "generateName",
        "namespace",
        "finalizers",
        "ownerReferences",
    ] {
        if !meta.at(field).is_empty() {
            faults.forbidden(&template.called("metadata", field), "cannot be set");
        }
    }
    storage::claim_spec(&template.at("spec"), faults);
}

fn image(at: &Spot<'_, '_>, faults: &mut Faults) {
    faults.need(&at.at("reference"));
    let policies = ["Always", "IfNotPresent", "Never"];
    faults.one_of(&at.at("pullPolicy"), &policies);
}

/// A path below where it is taken from.
pub(super) fn descending(at: &Spot<'_, '_>, path: &str, faults: &mut Faults) {
    if path.starts_with('/') {
        faults.invalid_as(at, path, "must be a relative path");
    }
    no_backsteps(at, path, faults);
}

pub(super) fn no_backsteps(at: &Spot<'_, '_>, path: &str, faults: &mut Faults) {
    if format::steps_back(path) {
        faults.invalid_as(at, path, "must not contain '..'");
    }
}

fn local_path(at: &Spot<'_, '_>, path: &str, faults: &mut Faults) {
    descending(at, path, faults);
    if path.starts_with("..") && !path.starts_with("../") {
        faults.invalid_as(at, path, "must not start with '..'");
    }
}
