//! Selectors of devices (`resource.k8s.io`): expressions that speak of one device and answer yes or no.
//!
//! Source: Kubernetes' dynamic resource allocation, the selectors of classes and claims. `device` has
//! the fields `driver`, `attributes` and `capacity`; the latter two are maps from a domain to a map of
//! names, and a domain of which a device says nothing is an empty map, not a mistake.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use kube_cel::cel::objects::Key;
use kube_cel::cel::parser::Expression as Tree;
use kube_cel::cel::{Program, Value as Cel};
use serde_json::json;

use super::check::check;
use super::declared::{Declared, Whole};
use super::kinds::Type;
use super::literals;
use super::parse::{parse, told};
use super::run::{Halt, Run};
use super::value::{Converter, map_of};

/// What a selector may cost for one device. Upstream allows 1,000,000 and estimates beforehand; what
/// people write costs less than a hundred, and here thousands of devices are asked in one step.
const COST_MAX: u64 = 10_000;
/// Longest expression, in bytes, as upstream bounds it.
const BYTES_MAX: usize = 10 * 1024;

/// One attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Yes or no.
    Truth(bool),
    /// A whole number.
    Number(i64),
    /// A text.
    Text(Box<str>),
    /// A semantic version.
    Version(Box<str>),
}

/// A device as a selector may ask about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Whose it is. Also the domain of names that have none.
    pub driver: Box<str>,
    /// Its attributes by `domain/name` or `name`.
    pub attributes: BTreeMap<Box<str>, Trait>,
    /// Its capacities, as quantities, by the same sort of names.
    pub capacity: BTreeMap<Box<str>, Box<str>>,
    /// Whether it is given in parts.
    pub is_parted: bool,
}

/// A compiled selector.
#[derive(Clone, Debug)]
pub struct Selector {
    tree: Tree,
}

impl Selector {
    /// Compiles one.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the real server.
    pub fn compile(text: &str) -> Result<Selector, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("longer than {BYTES_MAX} bytes"));
        }
        let failed = |why: String| format!("compilation failed: {why}");
        let tree = parse(text).map_err(failed)?;
        let told = |mistakes: &[_], more| failed(told(text, mistakes, more));
        let names = [("device", kind())];
        let checked = check(&tree, &names).map_err(|(mistakes, more)| told(&mistakes, more))?;
        let mistakes = literals::look(&tree, &checked);
        if !mistakes.is_empty() {
            return Err(told(&mistakes, 0));
        }
        match checked.kind(&tree) {
            Type::Bool | Type::Dyn => Ok(Selector { tree }),
            other => Err(format!(
                "must evaluate to bool or the unknown type, not {}",
                other.full_name()
            )),
        }
    }
}

/// The type of `device`.
fn kind() -> Type {
    let text = json!({"type": "string"});
    let maps = json!({"type": "object", "additionalProperties": {
        "type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true},
    }});
    let schema = json!({"type": "object", "properties": {
        "driver": text, "attributes": maps, "capacity": maps,
        "allowMultipleAllocations": {"type": "boolean"},
    }});
    Declared::named(&schema, Whole::No, "kubernetes.DRADevice")
        .map_or(Type::Dyn, |declared: Rc<Declared>| declared.kind.clone())
}

/// Asks selectors about devices. To make one costs as much as a hundred answers.
pub struct Lens {
    converter: Converter,
    version: Option<Program>,
    quantity: Option<Program>,
}

impl std::fmt::Debug for Lens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lens").finish_non_exhaustive()
    }
}

impl Default for Lens {
    fn default() -> Lens {
        Lens::new()
    }
}

/// A device, seen through a lens.
#[derive(Clone, Debug)]
pub struct Seen {
    device: Cel,
    attributes: Cel,
    capacity: Cel,
}

impl Lens {
    /// A lens.
    pub fn new() -> Lens {
        Lens {
            converter: Converter::new(),
            version: Program::compile("semver(x)").ok(),
            quantity: Program::compile("quantity(x)").ok(),
        }
    }

    /// A device as selectors see it.
    ///
    /// # Errors
    /// Which of its attributes or capacities cannot be read.
    pub fn see(&self, device: &Device) -> Result<Seen, String> {
        let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
        let mut attributes = Vec::new();
        for (name, value) in &device.attributes {
            let value = match value {
                Trait::Truth(truth) => Ok(Cel::Bool(*truth)),
                Trait::Number(number) => Ok(Cel::Int(*number)),
                Trait::Text(value) => Ok(text(value)),
                Trait::Version(value) => self.made(self.version.as_ref(), value),
            };
            let value = value.map_err(|why| format!("attribute {name}: {why}"))?;
            attributes.push((&**name, value));
        }
        let mut capacity = Vec::new();
        for (name, value) in &device.capacity {
            let value = self.made(self.quantity.as_ref(), value);
            capacity.push((
                &**name,
                value.map_err(|why| format!("capacity {name}: {why}"))?,
            ));
        }
        let attributes = by_domain(attributes, &device.driver);
        let capacity = by_domain(capacity, &device.driver);
        let fields = [
            ("driver", text(&device.driver)),
            ("attributes", attributes.clone()),
            ("capacity", capacity.clone()),
            ("allowMultipleAllocations", Cel::Bool(device.is_parted)),
        ];
        let fields = fields.map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value));
        Ok(Seen {
            device: map_of(fields.into_iter()),
            attributes,
            capacity,
        })
    }

    /// Whether a selector takes the device.
    ///
    /// # Errors
    /// Why it does not say.
    pub fn selects(&self, selector: &Selector, seen: &Seen) -> Result<bool, String> {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut run = Run::new(self.converter.context(), COST_MAX);
            run.name("device", seen.device.clone());
            run.endless(&seen.attributes);
            run.endless(&seen.capacity);
            run.value(&selector.tree)
        }));
        match ran {
            Ok(Ok(Cel::Bool(truth))) => Ok(truth),
            Ok(Ok(_)) => Err("must evaluate to bool".to_owned()),
            Ok(Err(Halt::Error(why))) => Err(why),
            Ok(Err(Halt::Limit)) => Err("actual cost limit exceeded".to_owned()),
            Err(_) => Err("the expression failed to run".to_owned()),
        }
    }

    /// A thing that a function of the library makes of a text.
    fn made(&self, program: Option<&Program>, text: &str) -> Result<Cel, String> {
        let program = program.ok_or("the library lacks it")?;
        let mut scope = self.converter.context().new_inner_scope();
        scope.add_variable_from_value("x", Cel::String(Arc::new(text.to_owned())));
        let ran = catch_unwind(AssertUnwindSafe(|| program.execute(&scope)));
        match ran {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => Err(why.to_string()),
            Err(_) => Err("cannot be read".to_owned()),
        }
    }
}

/// A map of maps: names without a domain stand in the driver's.
fn by_domain(entries: Vec<(&str, Cel)>, driver: &str) -> Cel {
    let mut domains: BTreeMap<&str, Vec<(Key, Cel)>> = BTreeMap::new();
    for (name, value) in entries {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        let key = Key::String(Arc::new(name.to_owned()));
        domains.entry(domain).or_default().push((key, value));
    }
    let domains = domains.into_iter().map(|(domain, entries)| {
        let key = Key::String(Arc::new(domain.to_owned()));
        (key, map_of(entries.into_iter()))
    });
    map_of(domains)
}

#[cfg(test)]
mod tests;
