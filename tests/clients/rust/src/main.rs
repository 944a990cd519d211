//! Keeps one ConfigMap for each of a Widget's count, as `tests/goclients` does, with kube-rs.
//!
//! KUBECONFIG names the server, NAMESPACE where the widgets are. Runs until it is killed.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{controller::Action, controller::Controller, watcher},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const FINALIZER: &str = "test.katmai.dev/parts";

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.katmai.dev", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
struct WidgetSpec {
    #[serde(default)]
    count: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Note>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Note {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WidgetStatus {
    #[serde(default)]
    ready: i64,
    #[serde(default)]
    observed_generation: i64,
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("{0} children are still there")]
    NotEmpty(usize),
}

async fn reconcile(widget: Arc<Widget>, client: Arc<Client>) -> Result<Action, Trouble> {
    let namespace = widget.namespace().unwrap_or_default();
    let name = widget.name_any();
    let widgets = Api::<Widget>::namespaced(Client::clone(&client), &namespace);
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let leaving = widget.meta().deletion_timestamp.is_some();
    let count = if leaving { 0 } else { widget.spec.count };
    let children = ListParams::default().labels(&format!("widget={name}"));
    for child in maps.list(&children).await? {
        let index = child.labels().get("index").and_then(|index| index.parse::<i64>().ok());
        if index.is_none_or(|index| index >= count) {
            remove(&maps, &child).await?;
        }
    }
    if leaving {
        return let_go(&widgets, &maps, &children, &widget).await;
    }
    let parts = PatchParams::apply("widget-parts").force();
    if !widget.finalizers().iter().any(|held| held == FINALIZER) {
        let body = about(&widget, json!({"metadata": {"finalizers": [FINALIZER]}}));
        widgets.patch(&name, &parts, &Patch::Apply(body)).await?;
    }
    let owner = widget
        .controller_owner_ref(&())
        .map(|owner| OwnerReference { block_owner_deletion: Some(true), ..owner });
    for index in 0..count {
        let child = format!("{name}-{index}");
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": child,
                "labels": {"widget": name, "index": index.to_string()},
                "ownerReferences": [owner],
            },
            "data": {"text": widget.spec.text},
        });
        maps.patch(&child, &parts, &Patch::Apply(body)).await?;
    }
    let generation = widget.meta().generation.unwrap_or_default();
    let status = widget.status.clone().unwrap_or_default();
    if (status.ready, status.observed_generation) != (count, generation) {
        let body = about(&widget, json!({"status": {"ready": count, "observedGeneration": generation}}));
        let manager = PatchParams::apply("widget-status").force();
        widgets.patch_status(&name, &manager, &Patch::Apply(body)).await?;
    }
    Ok(Action::await_change())
}

/// Deletes this child and no later one of the same name.
async fn remove(maps: &Api<ConfigMap>, child: &ConfigMap) -> Result<(), Trouble> {
    let only = Preconditions { uid: child.uid(), resource_version: None };
    let how = DeleteParams { preconditions: Some(only), ..DeleteParams::default() };
    match maps.delete(&child.name_any(), &how).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => Ok(other.map(|_| ())?),
    }
}

/// Takes the finalizer away once no child is left.
async fn let_go(
    widgets: &Api<Widget>,
    maps: &Api<ConfigMap>,
    children: &ListParams,
    widget: &Widget,
) -> Result<Action, Trouble> {
    let left = maps.list(children).await?.items.len();
    if left > 0 {
        return Err(Trouble::NotEmpty(left));
    }
    let mut changed = widget.clone();
    changed.meta_mut().finalizers = None;
    let who = PostParams { field_manager: Some("widget-parts".into()), ..PostParams::default() };
    match widgets.replace(&widget.name_any(), &who, &changed).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        other => drop(other?),
    }
    Ok(Action::await_change())
}

/// An apply configuration of this very widget.
fn about(widget: &Widget, mut fields: Value) -> Value {
    fields["apiVersion"] = json!("test.katmai.dev/v1");
    fields["kind"] = json!("Widget");
    fields["metadata"]["name"] = json!(widget.name_any());
    fields["metadata"]["uid"] = json!(widget.uid());
    fields
}

fn retry(_: Arc<Widget>, _: &Trouble, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_millis(100))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let namespace = std::env::var("NAMESPACE")?;
    let widgets = Api::<Widget>::namespaced(client.clone(), &namespace);
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
    let streaming = watcher::Config::default().streaming_lists();
    Controller::new(widgets, streaming.clone())
        .owns(maps, streaming)
        .run(reconcile, retry, Arc::new(client))
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
