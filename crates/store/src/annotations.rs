//! Annotations that mean something to more than one room.

/// The class of a claim or volume, before there was a field for it.
pub(crate) const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The class of an Ingress, before there was a field for it.
pub(crate) const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// Holds the pods of an account to the Secrets that it names.
pub(crate) const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
