//! Turns the wire data that is kept as YAML for readers into one JSON document.
//!
//! The YAML parser stays out of the room: it is needed here only.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads files; the crate that it builds does not"
)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Files that a reader edits, by the folder they lie in.
const CRD_FOLDERS: &[&str] = &["dataprotection", "kueue", "native", "snapshots", "volcano"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=wire");
    println!("cargo::rerun-if-changed=build.rs");
    // Cargo runs this in the package's own folder; what is compiled in may be another checkout's.
    let wire = Path::new("wire");
    let mut document = Map::new();
    for name in ["access", "columns", "resources"] {
        let path = wire.join("kubernetes").join(format!("{name}.yaml"));
        document.insert(name.into(), yaml(&path)?);
    }
    let mut crds = Vec::new();
    for folder in CRD_FOLDERS {
        for path in files(&wire.join(folder))? {
            crds.push(yaml(&path)?);
        }
    }
    document.insert("crds".into(), Value::Array(crds));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::File::create(out.join("wire.json"))
        .map(|file| serde_json::to_writer(file, &document))??;
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn yaml(path: &Path) -> Result<Value, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    serde_saphyr::from_str(&text).map_err(|cause| format!("{}: {cause}", path.display()).into())
}
