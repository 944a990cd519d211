package main

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

// controller keeps one ConfigMap for each of a Widget's count and cleans up behind a finalizer.
type controller struct {
	name      string
	namespace string
	typed     kubernetes.Interface
	dynamic   dynamic.Interface

	widgets cache.SharedIndexInformer
	maps    cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[string]
}

// leading counts the replicas that believe to lead; more than one at a time is a broken lease.
var leading, elections, rivals atomic.Int32

func newController(name, namespace string, typed kubernetes.Interface, client dynamic.Interface) *controller {
	c := &controller{name: name, namespace: namespace, typed: typed, dynamic: client}
	c.widgets = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil).ForResource(widgets).Informer()
	c.maps = informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace)).Core().V1().ConfigMaps().Informer()
	return c
}

// start opens the two informers, which stay open also while another replica leads.
func (c *controller) start(ctx context.Context) error {
	enqueue := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			log.Fatalf("key of %v: %v", object, err)
		}
		if queue := c.queue; queue != nil {
			queue.Add(key)
		}
	}
	owner := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if m, ok := object.(*corev1.ConfigMap); ok && m.Labels["widget"] != "" {
			enqueue(&metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Labels["widget"]})
		}
	}
	handlers := func(f func(any)) cache.ResourceEventHandlerFuncs {
		return cache.ResourceEventHandlerFuncs{AddFunc: f, UpdateFunc: func(_, o any) { f(o) }, DeleteFunc: f}
	}
	if _, err := c.widgets.AddEventHandler(handlers(enqueue)); err != nil {
		return err
	}
	if _, err := c.maps.AddEventHandler(handlers(owner)); err != nil {
		return err
	}
	c.queue = newQueue()
	go c.widgets.Run(ctx.Done())
	go c.maps.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), c.widgets.HasSynced, c.maps.HasSynced) {
		return fmt.Errorf("%s: the informers did not fill", c.name)
	}
	return nil
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second))
}

// elect leads until the context ends or the lease is lost.
func (c *controller) elect(ctx context.Context, release bool) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.namespace, Name: "widgets"},
		Client:     c.typed.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.name},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: release,
		LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 500 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				elections.Add(1)
				if leading.Add(1) > 1 {
					rivals.Add(1)
				}
				c.lead(ctx)
				leading.Add(-1)
			},
			OnStoppedLeading: func() {},
		},
	})
}

func (c *controller) lead(ctx context.Context) {
	for _, object := range c.widgets.GetStore().ListKeys() {
		c.queue.Add(object)
	}
	wake := context.AfterFunc(ctx, func() { c.queue.Add("") })
	defer wake()
	for {
		key, _ := c.queue.Get()
		if ctx.Err() != nil {
			c.queue.Done(key)
			return
		}
		if key != "" {
			if err := c.reconcile(ctx, key); err != nil {
				c.queue.AddRateLimited(key)
			} else {
				c.queue.Forget(key)
			}
		}
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(ctx context.Context, key string) error {
	found, exists, err := c.widgets.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	widget := found.(*unstructured.Unstructured)
	maps := cache.NewGenericLister(c.maps.GetIndexer(), corev1.Resource("configmaps"))
	children, err := maps.ByNamespace(c.namespace).List(labels.Set{"widget": widget.GetName()}.AsSelector())
	if err != nil {
		return err
	}
	count, _, _ := unstructured.NestedInt64(widget.Object, "spec", "count")
	if widget.GetDeletionTimestamp() != nil {
		count = 0
	}
	for _, child := range children {
		m := child.(*corev1.ConfigMap)
		if index, err := strconv.Atoi(m.Labels["index"]); err == nil && int64(index) < count {
			continue
		}
		uid := m.UID
		err := c.typed.CoreV1().ConfigMaps(c.namespace).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	if widget.GetDeletionTimestamp() != nil {
		return c.letGo(ctx, widget, len(children))
	}
	if err := c.hold(ctx, widget); err != nil {
		return err
	}
	text, _, _ := unstructured.NestedString(widget.Object, "spec", "text")
	for index := range count {
		if err := c.applyPart(ctx, widget, index, text); err != nil {
			return err
		}
	}
	return c.report(ctx, widget, count)
}

// letGo removes the finalizer once no child is left.
func (c *controller) letGo(ctx context.Context, widget *unstructured.Unstructured, children int) error {
	if children > 0 {
		return nil // the deletion of the last child wakes us
	}
	live, err := c.typed.CoreV1().ConfigMaps(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "widget=" + widget.GetName()})
	if err != nil {
		return err
	}
	if len(live.Items) > 0 {
		return fmt.Errorf("%d children are still there", len(live.Items))
	}
	changed := widget.DeepCopy()
	changed.SetFinalizers(nil)
	_, err = c.dynamic.Resource(widgets).Namespace(c.namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: "widget-parts"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *controller) hold(ctx context.Context, widget *unstructured.Unstructured) error {
	for _, name := range widget.GetFinalizers() {
		if name == finalizer {
			return nil
		}
	}
	wanted := bare(widget)
	wanted.SetUID(widget.GetUID())
	wanted.SetFinalizers([]string{finalizer})
	_, err := c.dynamic.Resource(widgets).Namespace(c.namespace).Apply(ctx, widget.GetName(), wanted, metav1.ApplyOptions{FieldManager: "widget-parts", Force: true})
	return err
}

func (c *controller) applyPart(ctx context.Context, widget *unstructured.Unstructured, index int64, text string) error {
	name := fmt.Sprintf("%s-%d", widget.GetName(), index)
	wanted := applycore.ConfigMap(name, c.namespace).
		WithLabels(map[string]string{"widget": widget.GetName(), "index": strconv.FormatInt(index, 10)}).
		WithOwnerReferences(applymeta.OwnerReference().WithAPIVersion("test.katmai.dev/v1").WithKind("Widget").
			WithName(widget.GetName()).WithUID(widget.GetUID()).WithController(true).WithBlockOwnerDeletion(true)).
		WithData(map[string]string{"text": text})
	_, err := c.typed.CoreV1().ConfigMaps(c.namespace).Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "widget-parts", Force: true})
	return err
}

func (c *controller) report(ctx context.Context, widget *unstructured.Unstructured, count int64) error {
	ready, _, _ := unstructured.NestedInt64(widget.Object, "status", "ready")
	observed, _, _ := unstructured.NestedInt64(widget.Object, "status", "observedGeneration")
	if ready == count && observed == widget.GetGeneration() {
		return nil
	}
	wanted := bare(widget)
	wanted.SetUID(widget.GetUID())
	wanted.Object["status"] = map[string]any{"ready": count, "observedGeneration": widget.GetGeneration()}
	_, err := c.dynamic.Resource(widgets).Namespace(c.namespace).ApplyStatus(ctx, widget.GetName(), wanted, metav1.ApplyOptions{FieldManager: "widget-status", Force: true})
	return err
}

// bare is an apply configuration that names the object and owns nothing yet.
func bare(widget *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.katmai.dev/v1", "kind": "Widget",
		"metadata": map[string]any{"name": widget.GetName(), "namespace": widget.GetNamespace()},
	}}
}
