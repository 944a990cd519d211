//! A typed object of any kind, and how it is read from the wire.

use std::cmp::Ordering;
use std::sync::Arc;

use api::kind::Kind;
use api::meta::ObjectMeta;
use serde::{Deserialize, Serialize, Serializer};

/// A wire type that the mirror holds.
pub trait Typed: Sized + 'static {
    /// Its kind.
    const KIND: Kind;

    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;

    /// The typed object inside `object`, if it is of this kind.
    fn of(object: &Object) -> Option<&Arc<Self>>;
}

/// Why an object could not be read. The mirror keeps what it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind that was expected.
    pub kind: Kind,
    /// Namespace, as far as it could be read.
    pub namespace: Box<str>,
    /// Name, as far as it could be read.
    pub name: Box<str>,
    /// What the decoder said.
    pub message: Box<str>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot read {} {}/{}: {}",
            self.kind.row().name,
            self.namespace,
            self.name,
            self.message
        )
    }
}

macro_rules! objects {
    ($($variant:ident: $type:ty,)*) => {
        /// A typed object of any kind; cloning it copies a pointer.
        #[derive(Clone, Debug)]
        pub enum Object {
            $(
                #[doc = concat!("A [`", stringify!($type), "`].")]
                $variant(Arc<$type>),
            )*
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Object::$variant(_) => Kind::$variant,)*
                }
            }

            /// Its metadata.
            pub fn meta(&self) -> &ObjectMeta {
                match self {
                    $(Object::$variant(object) => &object.metadata,)*
                }
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                match self {
                    $(Object::$variant(object) => &mut Arc::make_mut(object).metadata,)*
                }
            }

            /// Where it lies: as long as it is held, no other object lies there.
            pub fn address(&self) -> usize {
                match self {
                    $(Object::$variant(object) => Arc::as_ptr(object).addr(),)*
                }
            }

            fn parse(kind: Kind, text: &str) -> Result<Object, serde_json::Error> {
                Ok(match kind {
                    $(Kind::$variant => Object::$variant(Arc::new(serde_json::from_str(text)?)),)*
                })
            }
        }

        /// As far as it was read: read again, it is the same.
        impl Serialize for Object {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Object::$variant(object) => object.serialize(serializer),)*
                }
            }
        }

        $(
            impl Typed for $type {
                const KIND: Kind = Kind::$variant;

                fn meta(&self) -> &ObjectMeta {
                    &self.metadata
                }

                fn of(object: &Object) -> Option<&Arc<Self>> {
                    match object {
                        Object::$variant(object) => Some(object),
                        _ => None,
                    }
                }
            }

            impl From<$type> for Object {
                fn from(object: $type) -> Object {
                    Object::$variant(Arc::new(object))
                }
            }
        )*
    };
}

objects! {
    BatchCronJob: api::batch::CronJob,
    BatchJob: api::batch::Job,
    ColocationConfiguration: api::volcano::ColocationConfiguration,
    Command: api::volcano::Command,
    ConfigMap: api::core::ConfigMap,
    ControllerRevision: api::core::ControllerRevision,
    CsiDriver: api::core::CsiDriver,
    CsiNode: api::core::CsiNode,
    CsiStorageCapacity: api::core::CsiStorageCapacity,
    DaemonSet: api::core::DaemonSet,
    Deployment: api::core::Deployment,
    DeviceClass: api::resource::DeviceClass,
    DeviceTaintRule: api::resource::DeviceTaintRule,
    EndpointSlice: api::core::EndpointSlice,
    Event: api::core::Event,
    HyperNode: api::volcano::HyperNode,
    JobFlow: api::volcano::JobFlow,
    JobTemplate: api::volcano::JobTemplate,
    Lease: api::core::Lease,
    Namespace: api::core::Namespace,
    NativeGroup: api::native::PodGroup,
    NetworkPolicy: api::core::NetworkPolicy,
    Node: api::core::Node,
    NodeShard: api::volcano::NodeShard,
    Numatopology: api::volcano::Numatopology,
    PersistentVolume: api::core::PersistentVolume,
    PersistentVolumeClaim: api::core::PersistentVolumeClaim,
    Pod: api::core::Pod,
    PodDisruptionBudget: api::core::PodDisruptionBudget,
    PodGroup: api::volcano::PodGroup,
    PriorityClass: api::core::PriorityClass,
    Queue: api::volcano::Queue,
    ReplicaSet: api::core::ReplicaSet,
    ResourceClaim: api::resource::ResourceClaim,
    ResourceClaimTemplate: api::resource::ResourceClaimTemplate,
    ResourceQuota: api::core::ResourceQuota,
    ResourceSlice: api::resource::ResourceSlice,
    Secret: api::core::Secret,
    Service: api::core::Service,
    ServiceAccount: api::core::ServiceAccount,
    StatefulSet: api::core::StatefulSet,
    StorageClass: api::core::StorageClass,
    VcCronJob: api::volcano::CronJob,
    VcJob: api::volcano::Job,
    VolumeAttributesClass: api::core::VolumeAttributesClass,
    VolumeSnapshot: api::snapshot::VolumeSnapshot,
    VolumeSnapshotClass: api::snapshot::VolumeSnapshotClass,
    VolumeSnapshotContent: api::snapshot::VolumeSnapshotContent,
}

impl Object {
    /// Reads one object of a known kind from JSON; its own `apiVersion` and `kind` are not needed.
    pub fn decode(kind: Kind, text: &str) -> Result<Object, Problem> {
        let problem = |message: String| {
            let named: Named = serde_json::from_str(text).unwrap_or_default();
            Problem {
                kind,
                namespace: named.metadata.namespace.unwrap_or_default(),
                name: named.metadata.name.unwrap_or_default(),
                message: message.into(),
            }
        };
        match Object::parse(kind, text) {
            Ok(object) if object.meta().name.is_empty() => {
                Err(problem("metadata.name is empty".to_owned()))
            }
            Ok(object) => Ok(object),
            Err(error) => Err(problem(error.to_string())),
        }
    }

    /// Shares with another object what both have alike. Nothing of it changes by that.
    pub(crate) fn share(&mut self, other: &Object) {
        match (self, other) {
            (Object::Pod(pod), Object::Pod(other)) => Arc::make_mut(pod).share(other),
            (Object::Node(node), Object::Node(other)) => Arc::make_mut(node).share(other),
            (object, other) => object.meta_mut().share(other.meta()),
        }
    }

    /// The typed object, if it is of that kind.
    pub fn typed<T: Typed>(&self) -> Option<&Arc<T>> {
        T::of(self)
    }

    /// Its namespace, empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        &self.meta().namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.meta().name
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.meta().uid
    }

    /// How its key stands to another one's.
    pub(crate) fn order(&self, other: &Object) -> Ordering {
        let kinds = self.kind().cmp(&other.kind());
        let namespaces = || self.namespace().cmp(other.namespace());
        kinds
            .then_with(namespaces)
            .then_with(|| self.name().cmp(other.name()))
    }

    /// Its key.
    pub fn key(&self) -> api::intent::ObjectKey {
        api::intent::ObjectKey::new(self.kind(), self.namespace(), self.name())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    metadata: NamedMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedMeta {
    name: Option<Box<str>>,
    namespace: Option<Box<str>>,
}
