package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

var (
	widgets     = schema.GroupVersionResource{Group: "test.katmai.dev", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const finalizer = "test.katmai.dev/parts"

const definition = `{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.test.katmai.dev"},
  "spec": {
    "group": "test.katmai.dev", "scope": "Namespaced",
    "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
    "versions": [{
      "name": "v1", "served": true, "storage": true,
      "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.ready"}},
      "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
          "count": {"type": "integer", "minimum": 0, "maximum": 5, "default": 1},
          "text": {"type": "string"},
          "notes": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
              "name": {"type": "string"}, "value": {"type": "string"}}}}}},
        "status": {"type": "object", "properties": {
          "ready": {"type": "integer"}, "observedGeneration": {"type": "integer", "format": "int64"}}}}}}
    }]
  }
}`

// install makes the definition and waits until it is established.
func install(ctx context.Context, client dynamic.Interface) error {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(definition), object); err != nil {
		return err
	}
	if err := until(ctx, func() error {
		_, err := client.Resource(definitions).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	return until(ctx, func() error {
		found, err := client.Resource(definitions).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, condition := range conditions {
			if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("the definition is not established: %v", conditions)
	})
}

// until repeats a step that may meet a cut connection or a conflict; what the server refuses for
// good is returned at once.
func until(ctx context.Context, step func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		err := step()
		// At the end of all patience every call fails; what kept us before that is the reason.
		if last == nil || err == nil || ctx.Err() == nil {
			last = err
		}
		switch {
		case last == nil:
			return true, nil
		case apierrors.IsInvalid(last), apierrors.IsBadRequest(last), apierrors.IsForbidden(last),
			apierrors.IsUnauthorized(last), apierrors.IsMethodNotSupported(last), apierrors.IsUnsupportedMediaType(last):
			return false, last
		default:
			return false, nil
		}
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
