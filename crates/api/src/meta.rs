//! Object metadata, as much of it as rooms read.

use serde::{Deserialize, Serialize};

use crate::core::TextMap;
use crate::shared::{List, Name, Word};
use crate::time::Time;

/// The finalizer of an object whose dependants go first.
pub const FOREGROUND_DELETION: &str = "foregroundDeletion";
/// The finalizer of an object whose dependants stay.
pub const ORPHAN_DEPENDANTS: &str = "orphan";

parted! {
    /// `metav1.ObjectMeta` without `managedFields`, which no room below `store` reads.
    pub struct ObjectMeta {
        /// Empty only while `generate_name` is still to be resolved.
        pub name: Name,
        /// Identity over time: the same name with another uid is another object.
        pub uid: Box<str>,
        /// Opaque to others; our own server's are increasing decimal integers.
        pub resource_version: Word,
        /// Sorted by key.
        pub labels: TextMap,
        /// Sorted by key.
        pub annotations: TextMap,
    }

    /// What objects that were made together mostly have alike.
    pub struct CommonMeta {
        /// Prefix for a server-made name.
        pub generate_name: Box<str>,
        /// Empty for cluster-scoped kinds.
        pub namespace: Box<str>,
        /// Counts changes of the wanted state; 0 where the server gave none.
        pub generation: i64,
        /// Absent before the server has seen the object.
        pub creation_timestamp: Option<Time>,
        /// Set once deletion was asked for and something still holds the object.
        pub deletion_timestamp: Option<Time>,
        /// Grace in seconds that goes with `deletion_timestamp`.
        pub deletion_grace_period_seconds: Option<i64>,
        /// Owners, in wire order; at most one has `controller: true`.
        pub owner_references: List<OwnerReference>,
        /// Who must let go before the object may vanish.
        pub finalizers: List<Box<str>>,
    }
}

impl ObjectMeta {
    /// The owner that manages this object, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
    }

    /// Whether the object with this uid is its managing owner.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| &*owner.uid == uid)
    }

    /// The finalizer of a deletion that waits for what is to become of the dependants.
    pub fn cascade(&self) -> Option<&'static str> {
        self.deletion_timestamp?;
        [FOREGROUND_DELETION, ORPHAN_DEPENDANTS]
            .into_iter()
            .find(|name| self.finalizers.iter().any(|it| **it == **name))
    }

    /// Shares with another object's what both have alike.
    pub fn share(&mut self, other: &ObjectMeta) {
        self.labels.share(&other.labels);
        self.annotations.share(&other.annotations);
        // One that was made a second later differs, but not in who owns it.
        if let Some(common) = self.common.own() {
            common.owner_references.share(&other.owner_references);
        }
        self.common.share(&other.common, CommonMeta::eq);
    }

    /// The resource version as our own server counts it; 0 where it is not a number.
    pub fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

/// `metav1.OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version, `batch.volcano.sh/v1alpha1`.
    pub api_version: Box<str>,
    /// Kind, `Job`.
    pub kind: Box<str>,
    /// Name in the dependant's namespace, or of a cluster-scoped object.
    pub name: Box<str>,
    /// Must equal the owner's uid: a recreated owner is a stranger.
    pub uid: Box<str>,
    /// True for the one managing owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Foreground deletion of the owner waits for this dependant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// Reads `null` as the empty value, as Go's decoder does for maps and lists.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is its type's default, which Go's `omitempty` leaves out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// See [`is_default`], for a value that lies elsewhere.
pub(crate) fn is_default_there<T: Default + PartialEq>(value: &&T) -> bool {
    is_default(*value)
}
