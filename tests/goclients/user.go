package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// user performs a series of changes that the seed alone decides. Every change can be repeated
// without harm, because a cut connection hides whether it was done.
type user struct {
	namespace string
	random    *rand.Rand
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	alive     map[string]bool
}

const names = 12

func (u *user) perform(ctx context.Context, steps int, pace time.Duration) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for step := range steps {
		if err := u.step(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

func (u *user) step(ctx context.Context, step int) error {
	name := fmt.Sprintf("w%d", u.random.IntN(names))
	choice, value := u.random.IntN(8), u.random.IntN(1000)
	if choice >= 6 {
		return u.secret(ctx, step, value)
	}
	if !u.alive[name] {
		u.alive[name] = true
		return u.create(ctx, name, value)
	}
	switch choice {
	case 0:
		u.alive[name] = false
		return u.remove(ctx, name)
	case 1, 2:
		return u.update(ctx, name, func(w *unstructured.Unstructured) error {
			return unstructured.SetNestedField(w.Object, int64(value%6), "spec", "count")
		})
	case 3:
		patch := fmt.Sprintf(`{"spec":{"text":"text %d"}}`, value)
		return u.patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "merger"})
	case 4:
		manager, force := fmt.Sprintf("applier-%d", value%3), true
		body := fmt.Sprintf(`{"apiVersion":"test.katmai.dev/v1","kind":"Widget","spec":{"notes":[{"name":"%s","value":"v%d"}]}}`, manager, value)
		return u.patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
	default:
		patch := fmt.Sprintf(`[{"op":"add","path":"/metadata/labels","value":{"round":"%d"}}]`, value)
		return u.patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "patcher"})
	}
}

func (u *user) create(ctx context.Context, name string, value int) error {
	client := u.dynamic.Resource(widgets).Namespace(u.namespace)
	mark := fmt.Sprint(value)
	return until(ctx, func() error {
		_, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "test.katmai.dev/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"made": mark}},
			"spec":     map[string]any{"text": "new"},
		}}, metav1.CreateOptions{FieldManager: "maker"})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		// Either our own create whose answer was lost, or the one before that is still going.
		found, get := client.Get(ctx, name, metav1.GetOptions{})
		if get == nil && found.GetDeletionTimestamp() == nil && found.GetAnnotations()["made"] == mark {
			return nil
		}
		return err
	})
}

func (u *user) remove(ctx context.Context, name string) error {
	client := u.dynamic.Resource(widgets).Namespace(u.namespace)
	return until(ctx, func() error {
		err := client.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (u *user) update(ctx context.Context, name string, change func(*unstructured.Unstructured) error) error {
	client := u.dynamic.Resource(widgets).Namespace(u.namespace)
	return until(ctx, func() error {
		found, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(found); err != nil {
			return err
		}
		_, err = client.Update(ctx, found, metav1.UpdateOptions{FieldManager: "updater"})
		return err
	})
}

func (u *user) patch(ctx context.Context, name string, kind types.PatchType, body string, options metav1.PatchOptions) error {
	return until(ctx, func() error {
		_, err := u.dynamic.Resource(widgets).Namespace(u.namespace).Patch(ctx, name, kind, []byte(body), options)
		return err
	})
}

// secret goes through the typed client, whose bodies are protobuf.
func (u *user) secret(ctx context.Context, step, value int) error {
	client := u.typed.CoreV1().Secrets(u.namespace)
	name := fmt.Sprintf("s%d", step%5)
	return until(ctx, func() error {
		found, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"value": fmt.Sprint(value)}}, metav1.CreateOptions{FieldManager: "updater"})
			return err
		}
		if err != nil {
			return err
		}
		found.Data = map[string][]byte{"value": []byte(fmt.Sprint(value))}
		_, err = client.Update(ctx, found, metav1.UpdateOptions{FieldManager: "updater"})
		return err
	})
}
