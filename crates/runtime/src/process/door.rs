//! What the node answers about its containers: logs, exec, connections.

use std::sync::{Arc, Mutex, PoisonError};

use client::kubelet::{
    ByteStream, Duplex, ExecRequest, ExecSession, Kubelet, KubeletError, LogRequest, PodRef,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::agent::ProcessNode;
use super::exec;
use super::frame::ExecPlan;
use super::worker::PodDoor;

impl Kubelet for ProcessNode {
    fn logs(&self, request: LogRequest) -> BoxFuture<'static, Result<ByteStream, KubeletError>> {
        let found = self.door(&request.pod).and_then(|door| {
            let door = door.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((log, before)) = door.logs.get(&request.container) else {
                return Err(KubeletError::BadRequest(format!(
                    "container {:?} in pod {:?} is waiting to start: ContainerCreating",
                    request.container, request.pod.name
                )));
            };
            if !request.previous {
                return Ok(log.read(&request));
            }
            let before = before.as_ref().ok_or_else(|| {
                KubeletError::BadRequest(format!(
                    "previous terminated container {:?} in pod {:?} not found",
                    request.container, request.pod.name
                ))
            })?;
            Ok(before.read(&request))
        });
        Box::pin(async move { found })
    }

    fn exec(&self, request: ExecRequest) -> BoxFuture<'static, Result<ExecSession, KubeletError>> {
        if request.command.is_empty() {
            let session = self.attach(&request);
            return Box::pin(async move { session });
        }
        let plan = self.exec_plan(&request);
        let executable = self.shared.settings.executable.clone();
        Box::pin(async move {
            let plan = plan?;
            if request.tty {
                exec::terminal_session(&executable, plan).await
            } else {
                exec::session(&executable, plan).await
            }
        })
    }

    fn dial(
        &self,
        pod: PodRef,
        port: u16,
    ) -> BoxFuture<'static, Result<Box<dyn Duplex>, KubeletError>> {
        let place = self.door(&pod).and_then(|door| {
            let door = door.lock().unwrap_or_else(PoisonError::into_inner);
            door.place.clone().ok_or_else(|| {
                KubeletError::BadRequest(format!("pod {:?} has no address yet", pod.name))
            })
        });
        let shared = self.shared.clone();
        Box::pin(async move {
            let dialled = shared.network.dial_inside(&pod.uid, &place?, port).await;
            dialled.map_err(|cause| KubeletError::Io {
                action: format!("dial tcp 127.0.0.1:{port}"),
                cause,
            })
        })
    }
}

impl ProcessNode {
    fn door(&self, pod: &PodRef) -> Result<Arc<Mutex<PodDoor>>, KubeletError> {
        let pods = self
            .shared
            .pods
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (pod.namespace.clone(), pod.name.clone());
        let handle = pods
            .get(&key)
            .filter(|handle| pod.uid.is_empty() || handle.uid == pod.uid);
        handle
            .map(|handle| handle.door.clone())
            .ok_or_else(|| {
                KubeletError::NotFound(format!(
                    "pod {:?} has no process on this machine: its node is an imitation, or it has only just been placed",
                    pod.name
                ))
            })
    }

    fn exec_plan(&self, request: &ExecRequest) -> Result<ExecPlan, KubeletError> {
        let door = self.door(&request.pod)?;
        let door = door.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = door.exec.get(&request.container).ok_or_else(|| {
            KubeletError::NotFound(format!("container not found ({:?})", request.container))
        })?;
        let mut plan = plan.clone();
        plan.command.clone_from(&request.command);
        if request.tty && !plan.env.iter().any(|(name, _)| name == "TERM") {
            plan.env.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        Ok(plan)
    }

    /// Follows the main command's output from now on; it takes no input.
    fn attach(&self, request: &ExecRequest) -> Result<ExecSession, KubeletError> {
        let door = self.door(&request.pod)?;
        let door = door.lock().unwrap_or_else(PoisonError::into_inner);
        let (log, _) = door.logs.get(&request.container).ok_or_else(|| {
            KubeletError::NotFound(format!("container not found ({:?})", request.container))
        })?;
        let mut lines = log.read(&LogRequest {
            pod: request.pod.clone(),
            container: request.container.clone(),
            follow: true,
            previous: false,
            timestamps: false,
            tail_lines: Some(0),
            since_micros: None,
            limit_bytes: None,
        });
        let (stdin, mut input) = mpsc::channel(1);
        let (outgoing, output) = mpsc::channel(8);
        let (resize, _sizes) = mpsc::channel(1);
        tokio::spawn(async move { while input.recv().await.is_some() {} });
        let carried = tokio::spawn(async move {
            while let Some(Ok(bytes)) = lines.next().await {
                if outgoing.send((false, bytes)).await.is_err() {
                    return;
                }
            }
        });
        Ok(ExecSession {
            stdin,
            output,
            resize,
            exit: Box::pin(async move {
                // The session ends with the container's output, or when nobody listens.
                let _ended = carried.await;
                Ok(0)
            }),
        })
    }
}
