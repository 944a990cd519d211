//! `batch.volcano.sh/v1alpha1` CronJob.

use crate::batch::{CronJobSpec, CronJobStatus};
use crate::meta::ObjectMeta;

read_only! {
    /// Volcano's CronJob: what it wants and is has the shape of Kubernetes' own; its jobs are
    /// Volcano's.
    pub struct CronJob {
        /// Metadata.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CronJobSpec,
        /// What is.
        pub status: CronJobStatus,
    }
}
