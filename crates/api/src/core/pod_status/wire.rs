//! A pod's status as it is written: with times as they are, and what containers have beside what they are.

use super::super::{
    ContainerSize, PodExtendedClaim, PodPhase, PodResourceClaimStatus, PodSizes, ResourceList,
    ResourceRequirements,
};
use super::{
    ContainerState, ContainerStatus, PodCondition, PodRemarks, PodStatus, PodTime, Shared, Time,
    Word,
};

read_only! {
    /// A pod's status.
    pub struct Wire {
        pub phase: PodPhase,
        #[serde(rename = "podIP")]
        pub pod_ip: Word,
        pub start_time: Option<Time>,
        pub conditions: Vec<PodCondition>,
        pub container_statuses: Vec<SizedStatus>,
        pub message: Box<str>,
        pub reason: Box<str>,
        pub nominated_node_name: Box<str>,
        pub init_container_statuses: Vec<SizedStatus>,
        pub qos_class: Box<str>,
        pub resource_claim_statuses: Box<[PodResourceClaimStatus]>,
        pub extended_resource_claim_status: Option<Box<PodExtendedClaim>>,
        pub allocated_resources: ResourceList,
        pub resources: Option<Box<ResourceRequirements>>,
        pub resize: Box<str>,
    }

    /// A container's status, with what it has.
    pub struct SizedStatus {
        pub name: Box<str>,
        pub state: ContainerState,
        pub last_state: ContainerState,
        pub ready: bool,
        pub restart_count: i32,
        pub started: Option<bool>,
        pub allocated_resources: ResourceList,
        pub resources: Option<Box<ResourceRequirements>>,
    }
}

impl Wire {
    /// Moves all times but the start.
    fn move_times(&mut self, by: impl Fn(&mut PodTime)) {
        let conditions = self.conditions.iter_mut();
        conditions.for_each(|it| it.last_transition_time.iter_mut().for_each(&by));
        let containers = self.container_statuses.iter_mut();
        for container in containers.chain(self.init_container_statuses.iter_mut()) {
            for state in [&mut container.state, &mut container.last_state] {
                let running = state.running.iter_mut();
                running.for_each(|it| it.started_at.iter_mut().for_each(&by));
                if let Some(ended) = &mut state.terminated {
                    let times = [&mut ended.started_at, &mut ended.finished_at];
                    times.into_iter().flatten().for_each(&by);
                }
            }
        }
    }

    /// What is told of it, as it is held.
    pub fn held(mut self) -> PodStatus {
        if let Some(start) = self.start_time {
            self.move_times(|time| time.0 = time.0.wrapping_sub(start.0));
        }
        let mut sizes = PodSizes {
            containers: Vec::new(),
            allocated: self.allocated_resources,
            actual: self.resources,
            resize: self.resize,
        };
        let mut part = |list: Vec<SizedStatus>| -> Vec<ContainerStatus> {
            let parts = list.into_iter().map(|it| it.parted(&mut sizes.containers));
            parts.collect()
        };
        let containers = part(self.container_statuses);
        let init_containers = part(self.init_container_statuses);
        PodStatus {
            phase: self.phase,
            pod_ip: self.pod_ip,
            start_time: self.start_time,
            conditions: self.conditions.into(),
            container_statuses: containers.into(),
            common: Shared::new(PodRemarks {
                message: self.message,
                reason: self.reason,
                nominated_node_name: self.nominated_node_name,
                init_container_statuses: init_containers.into(),
                qos_class: self.qos_class,
                resource_claim_statuses: self.resource_claim_statuses,
                extended_resource_claim_status: self.extended_resource_claim_status,
                sizes: (sizes != PodSizes::default()).then(|| Box::new(sizes)),
            }),
        }
    }

    /// The same back.
    pub fn of(status: &PodStatus) -> Wire {
        let sizes = status.sizes.as_deref();
        let whole = |list: &[ContainerStatus]| -> Vec<SizedStatus> {
            list.iter().map(|it| SizedStatus::of(it, sizes)).collect()
        };
        let mut wire = Wire {
            phase: status.phase,
            pod_ip: status.pod_ip.clone(),
            start_time: status.start_time,
            conditions: status.conditions.to_vec(),
            container_statuses: whole(&status.container_statuses),
            message: status.message.clone(),
            reason: status.reason.clone(),
            nominated_node_name: status.nominated_node_name.clone(),
            init_container_statuses: whole(&status.init_container_statuses),
            qos_class: status.qos_class.clone(),
            resource_claim_statuses: status.resource_claim_statuses.clone(),
            extended_resource_claim_status: status.extended_resource_claim_status.clone(),
            allocated_resources: sizes.map(|it| it.allocated.clone()).unwrap_or_default(),
            resources: sizes.and_then(|it| it.actual.clone()),
            resize: sizes.map(|it| it.resize.clone()).unwrap_or_default(),
        };
        if let Some(start) = status.start_time {
            wire.move_times(|time| time.0 = time.0.wrapping_add(start.0));
        }
        wire
    }
}

impl SizedStatus {
    /// What the container is; what it has goes among the sizes.
    fn parted(self, sizes: &mut Vec<ContainerSize>) -> ContainerStatus {
        if self.resources.is_some() || !self.allocated_resources.is_empty() {
            sizes.push(ContainerSize {
                name: self.name.clone(),
                allocated: self.allocated_resources,
                actual: self.resources,
            });
        }
        ContainerStatus {
            name: self.name,
            state: self.state,
            last_state: self.last_state,
            ready: self.ready,
            restart_count: self.restart_count,
            started: self.started,
        }
    }

    fn of(status: &ContainerStatus, sizes: Option<&PodSizes>) -> SizedStatus {
        let size = sizes.and_then(|sizes| sizes.container(&status.name));
        SizedStatus {
            name: status.name.clone(),
            state: status.state.clone(),
            last_state: status.last_state.clone(),
            ready: status.ready,
            restart_count: status.restart_count,
            started: status.started,
            allocated_resources: size.map(|it| it.allocated.clone()).unwrap_or_default(),
            resources: size.and_then(|it| it.actual.clone()),
        }
    }
}
