"""Keeps one ConfigMap for each of a Widget's count, as tests/goclients does, with the Python client.

KUBECONFIG names the server, NAMESPACE where the widgets are. Runs until it is killed.
"""

import json
import os
import queue
import threading

import urllib3
from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "test.katmai.dev", "v1", "widgets"
FINALIZER = "test.katmai.dev/parts"
NAMESPACE = os.environ["NAMESPACE"]
APPLY = "application/apply-patch+yaml"

config.load_kube_config()
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
names = queue.Queue()


def follow(listing, key):
    """Lists and watches; every name that is touched goes to the queue."""
    version = None
    while True:
        try:
            if version is None:
                found = listing()
                if isinstance(found, dict):
                    items, version = found["items"], found["metadata"]["resourceVersion"]
                else:
                    items, version = found.items, found.metadata.resource_version
                for item in items:
                    names.put(key(item))
            for event in watch.Watch().stream(listing, resource_version=version, timeout_seconds=30):
                item = event["object"]
                metadata = item["metadata"] if isinstance(item, dict) else item.metadata.to_dict()
                version = metadata.get("resourceVersion") or metadata.get("resource_version")
                names.put(key(item))
        except client.ApiException as error:
            if error.status == 410:
                version = None
        except (urllib3.exceptions.HTTPError, OSError, json.JSONDecodeError):
            pass


def widget_of(item):
    return (item.metadata.labels or {}).get("widget") if not isinstance(item, dict) else item["metadata"]["name"]


def custom_apply(name, body, manager, status=False):
    call = custom.patch_namespaced_custom_object_status if status else custom.patch_namespaced_custom_object
    metadata = dict(body.get("metadata", {}), name=name, namespace=NAMESPACE)
    call(
        GROUP, VERSION, NAMESPACE, PLURAL, name,
        dict(body, apiVersion=f"{GROUP}/{VERSION}", kind="Widget", metadata=metadata),
        field_manager=manager, force=True, _content_type=APPLY,
    )


def children_of(name):
    return core.list_namespaced_config_map(NAMESPACE, label_selector=f"widget={name}").items


def reconcile(name):
    try:
        widget = custom.get_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, name)
    except client.ApiException as error:
        if error.status == 404:
            return
        raise
    metadata, spec, status = widget["metadata"], widget["spec"], widget.get("status", {})
    leaving = "deletionTimestamp" in metadata
    count = 0 if leaving else spec["count"]
    for child in children_of(name):
        if int(child.metadata.labels["index"]) >= count:
            options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=child.metadata.uid))
            try:
                core.delete_namespaced_config_map(child.metadata.name, NAMESPACE, body=options)
            except client.ApiException as error:
                if error.status not in (404, 409):
                    raise
    if leaving:
        if not children_of(name) and FINALIZER in metadata.get("finalizers", []):
            metadata["finalizers"] = []
            custom.replace_namespaced_custom_object(
                GROUP, VERSION, NAMESPACE, PLURAL, name, widget, field_manager="widget-parts")
        return
    uid = {"uid": metadata["uid"]}
    if FINALIZER not in metadata.get("finalizers", []):
        custom_apply(name, {"metadata": dict(uid, finalizers=[FINALIZER])}, "widget-parts")
    for index in range(count):
        part = {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": f"{name}-{index}", "namespace": NAMESPACE,
                "labels": {"widget": name, "index": str(index)},
                "ownerReferences": [dict(uid, apiVersion=f"{GROUP}/{VERSION}", kind="Widget", name=name,
                                         controller=True, blockOwnerDeletion=True)],
            },
            "data": {"text": spec.get("text", "")},
        }
        core.patch_namespaced_config_map(
            f"{name}-{index}", NAMESPACE, part, field_manager="widget-parts", force=True, _content_type=APPLY)
    generation = metadata["generation"]
    if status.get("ready") != count or status.get("observedGeneration") != generation:
        custom_apply(name, {"metadata": uid, "status": {"ready": count, "observedGeneration": generation}},
                     "widget-status", status=True)


def main():
    def widgets(**rest):
        return custom.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, **rest)

    def maps(**rest):
        return core.list_namespaced_config_map(NAMESPACE, **rest)

    # The watch helper reads the answer's type from the doc text of the real method.
    widgets.__doc__ = custom.list_namespaced_custom_object.__doc__
    maps.__doc__ = core.list_namespaced_config_map.__doc__
    for listing in (widgets, maps):
        threading.Thread(target=follow, args=(listing, widget_of), daemon=True).start()
    while True:
        name = names.get()
        if name is None:
            continue
        try:
            reconcile(name)
        except (client.ApiException, urllib3.exceptions.HTTPError, OSError):
            names.put(name)


main()
