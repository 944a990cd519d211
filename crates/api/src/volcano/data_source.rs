//! `datadependency.volcano.sh/v1alpha1` DataSource and DataSourceClaim: shapes that clients of
//! several clusters write and read. Nothing here acts on them, and upstream ships no definition of
//! them.

use serde_json::Value;

use crate::core::TextMap;
use crate::meta::ObjectMeta;

round_trip! {
    /// Data that lies in some clusters.
    pub struct DataSource {
        /// `datadependency.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `DataSource`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: DataSourceSpec,
        /// What is.
        pub status: DataSourceStatus,
    }

    /// Which data, and where.
    pub struct DataSourceSpec {
        /// The system that has it, as `hive`.
        pub system: Box<str>,
        /// What it is there, as `table`.
        #[serde(rename = "type")]
        pub kind: Box<str>,
        /// Its name there.
        pub name: Box<str>,
        /// Where it lies.
        pub locality: Option<DataLocality>,
        /// What else is said of it.
        pub attributes: TextMap,
        /// `Retain` or `Delete`: what becomes of it when nobody claims it any more.
        pub reclaim_policy: Box<str>,
    }

    /// Where data lies.
    pub struct DataLocality {
        /// Clusters.
        pub cluster_names: Vec<Box<str>>,
    }

    /// Who uses data.
    pub struct DataSourceStatus {
        /// References to the claims.
        pub claim_refs: Vec<Value>,
        /// How many there are.
        pub bound_claims: i32,
        /// `metav1.Condition`s.
        pub conditions: Vec<Value>,
    }

    /// A workload's wish for data.
    pub struct DataSourceClaim {
        /// `datadependency.volcano.sh/v1alpha1`.
        pub api_version: Box<str>,
        /// `DataSourceClaim`.
        pub kind: Box<str>,
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: DataSourceClaimSpec,
        /// What is.
        pub status: DataSourceClaimStatus,
    }

    /// Which data, for whom.
    pub struct DataSourceClaimSpec {
        /// The system that has it.
        pub system: Box<str>,
        /// What it is there.
        pub data_source_type: Box<str>,
        /// Its name there.
        pub data_source_name: Box<str>,
        /// Who wants it.
        pub workload: Option<DataWorkload>,
        /// What else is said of it.
        pub attributes: TextMap,
    }

    /// Who wants data.
    pub struct DataWorkload {
        /// Its group and version.
        pub api_version: Box<str>,
        /// Its kind.
        pub kind: Box<str>,
        /// Its name.
        pub name: Box<str>,
        /// Its namespace.
        pub namespace: Box<str>,
    }

    /// What a claim came to.
    pub struct DataSourceClaimStatus {
        /// `Pending` or `Bound`.
        pub phase: Box<str>,
        /// The DataSource.
        pub bound_data_source: Box<str>,
        /// `metav1.Condition`s.
        pub conditions: Vec<Value>,
    }
}
