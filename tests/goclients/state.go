package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// settled says what still has to happen before the world is at rest, or nil.
func settled(ctx context.Context, client dynamic.Interface, namespace string, alive map[string]bool) error {
	found, err := client.Resource(widgets).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	children := int64(0)
	for _, widget := range found.Items {
		if !alive[widget.GetName()] || widget.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is not gone", widget.GetName())
		}
		count, _, _ := unstructured.NestedInt64(widget.Object, "spec", "count")
		observed, _, _ := unstructured.NestedInt64(widget.Object, "status", "observedGeneration")
		if observed != widget.GetGeneration() {
			return fmt.Errorf("%s is at generation %d, its status at %d", widget.GetName(), widget.GetGeneration(), observed)
		}
		children += count
	}
	maps, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "widget"})
	if err != nil {
		return err
	}
	if int64(len(maps.Items)) != children {
		return fmt.Errorf("there are %d children, wanted %d", len(maps.Items), children)
	}
	return nil
}

// mirrored compares an informer's store with a fresh list.
func mirrored(ctx context.Context, c *controller) error {
	live, err := c.dynamic.Resource(widgets).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	cached := c.widgets.GetStore().List()
	if len(cached) != len(live.Items) {
		return fmt.Errorf("%s: %d widgets cached, %d live", c.name, len(cached), len(live.Items))
	}
	for i := range live.Items {
		found, exists, err := c.widgets.GetStore().Get(&live.Items[i])
		if err != nil || !exists {
			return fmt.Errorf("%s: %s is not cached: %v", c.name, live.Items[i].GetName(), err)
		}
		if !reflect.DeepEqual(found.(*unstructured.Unstructured).Object, live.Items[i].Object) {
			return fmt.Errorf("%s: %s is cached at %s, live at %s", c.name, live.Items[i].GetName(),
				found.(*unstructured.Unstructured).GetResourceVersion(), live.Items[i].GetResourceVersion())
		}
	}
	maps, err := c.typed.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if cached := len(c.maps.GetStore().ListKeys()); cached != len(maps.Items) {
		return fmt.Errorf("%s: %d maps cached, %d live", c.name, cached, len(maps.Items))
	}
	for i := range maps.Items {
		found, exists, err := c.maps.GetStore().Get(&maps.Items[i])
		if err != nil || !exists || found.(*corev1.ConfigMap).ResourceVersion != maps.Items[i].ResourceVersion {
			return fmt.Errorf("%s: %s is not cached as it is: %v", c.name, maps.Items[i].Name, err)
		}
	}
	return nil
}

// final is everything that both servers must agree on, one object a line, sorted.
func final(ctx context.Context, client dynamic.Interface, namespace string) ([]string, error) {
	var lines []string
	for _, resource := range []struct{ group, version, name string }{
		{"", "v1", "configmaps"}, {"", "v1", "secrets"}, {"test.katmai.dev", "v1", "widgets"},
	} {
		gvr := widgets
		gvr.Group, gvr.Version, gvr.Resource = resource.group, resource.version, resource.name
		found, err := client.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range found.Items {
			if found.Items[i].GetName() == "kube-root-ca.crt" {
				continue
			}
			line, err := json.Marshal(normal(&found.Items[i]))
			if err != nil {
				return nil, err
			}
			lines = append(lines, string(line))
		}
	}
	sort.Strings(lines)
	return lines, nil
}

// normal drops what only time and chance decide.
func normal(object *unstructured.Unstructured) map[string]any {
	copied := runtime.DeepCopyJSON(object.Object)
	metadata := copied["metadata"].(map[string]any)
	for _, field := range []string{"namespace", "uid", "resourceVersion", "creationTimestamp"} {
		delete(metadata, field)
	}
	if owners, ok := metadata["ownerReferences"].([]any); ok {
		for _, owner := range owners {
			owner.(map[string]any)["uid"] = "UID"
		}
	}
	if managers, ok := metadata["managedFields"].([]any); ok {
		for _, manager := range managers {
			delete(manager.(map[string]any), "time")
			renameOwner(manager.(map[string]any))
		}
		// The server sorts by time, which has whole seconds.
		sort.Slice(managers, func(i, j int) bool { return fmt.Sprint(managers[i]) < fmt.Sprint(managers[j]) })
	}
	return copied
}

// renameOwner takes the owner's uid out of the key of an ownerReferences entry.
func renameOwner(manager map[string]any) {
	owners, ok, _ := unstructured.NestedMap(manager, "fieldsV1", "f:metadata", "f:ownerReferences")
	if !ok {
		return
	}
	renamed := map[string]any{}
	for key, value := range owners {
		if key != "." {
			key = "k:{uid}"
		}
		renamed[key] = value
	}
	if err := unstructured.SetNestedMap(manager, renamed, "fieldsV1", "f:metadata", "f:ownerReferences"); err != nil {
		panic(err)
	}
}
