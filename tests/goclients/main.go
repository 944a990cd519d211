// Goclients is what a Go operator does, as one program: informers over streaming lists, protobuf
// bodies, leader election, server-side apply, finalizers, conflicts, while a proxy keeps cutting its
// connections. It prints the state it ends in; the same seed must end in the same state on every server.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the server to work on")
	duration := flag.Duration("for", time.Minute, "how long the user keeps changing things")
	steps := flag.Int("steps", 600, "how many changes the user makes in that time")
	seed := flag.Uint64("seed", 1, "decides the changes")
	faults := flag.Bool("faults", true, "cut connections now and then")
	namespace := flag.String("namespace", "goclients", "made where it is missing; must hold no widgets")
	command := flag.String("controller", "", "a command that keeps the widgets instead of our own two replicas; it is killed and started again now and then")
	chatty := flag.Bool("v", false, "print what the Go client logs")
	flag.Parse()
	log.SetFlags(0)
	if !*chatty {
		klog.SetLogger(klog.Logger{})
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	if err := run(*kubeconfig, *namespace, *command, *duration, *steps, *seed, *faults); err != nil {
		log.Fatalf("goclients: %v", err)
	}
}

func run(kubeconfig, namespace, command string, duration time.Duration, steps int, seed uint64, faults bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	cutter, err := newProxy(target.Host)
	if err != nil {
		return err
	}
	go cutter.serve()
	config.Host = "https://" + cutter.address()
	config.QPS, config.Burst = 1000, 1000
	config.Timeout = 0
	typedConfig := rest.CopyConfig(config)
	typedConfig.ContentType = "application/vnd.kubernetes.protobuf"
	typedConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed, err := kubernetes.NewForConfig(typedConfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	// A machine that is busy with other things needs many times as long; nobody waits in vain for it.
	ctx, cancel := context.WithTimeout(context.Background(), duration+5*time.Minute)
	defer cancel()

	if err := prepare(ctx, typed, client, namespace); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	noise, calm := context.WithCancel(ctx)
	defer calm()
	var replicas []*controller
	ended := make(chan error, 1)
	if command == "" {
		replicas = []*controller{
			newController("replica-a", namespace, typed, client),
			newController("replica-b", namespace, typed, client),
		}
	} else {
		other, err := newForeign(command, kubeconfig, config.Host, namespace)
		if err != nil {
			return err
		}
		go func() { ended <- other.keep(ctx, noise, rand.New(rand.NewPCG(seed, 5))) }()
		defer func() { cancel(); <-ended }()
	}
	for index, replica := range replicas {
		if err := replica.start(ctx); err != nil {
			return err
		}
		go campaign(ctx, replica, rand.New(rand.NewPCG(seed, uint64(index))))
	}

	if faults {
		go cutter.cutUntil(noise, rand.New(rand.NewPCG(seed, 99)))
	}
	person := &user{namespace: namespace, random: rand.New(rand.NewPCG(seed, 7)), typed: typed, dynamic: client, alive: map[string]bool{}}
	err = person.perform(ctx, steps, duration/time.Duration(steps))
	calm()
	if err != nil {
		return err
	}
	if err := until(ctx, func() error { return settled(ctx, client, namespace, person.alive) }); err != nil {
		return fmt.Errorf("it did not settle: %w", err)
	}
	for _, replica := range replicas {
		if err := until(ctx, func() error { return mirrored(ctx, replica) }); err != nil {
			return fmt.Errorf("an informer did not follow: %w", err)
		}
	}
	if rivals.Load() > 0 {
		return fmt.Errorf("two replicas led at once, %d times", rivals.Load())
	}
	lines, err := final(ctx, client, namespace)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Println(line)
	}
	log.Printf("%d changes, %d cuts, %d elections, %d objects in the end", steps, cutter.cuts, elections.Load(), len(lines))
	return nil
}

// campaign runs for leader again and again; a term ends after some seconds, with or without giving
// the lease back.
func campaign(ctx context.Context, replica *controller, random *rand.Rand) {
	for ctx.Err() == nil {
		term, end := context.WithTimeout(ctx, time.Duration(5+random.IntN(10))*time.Second)
		replica.elect(term, random.IntN(2) == 0)
		end()
	}
}

func prepare(ctx context.Context, typed kubernetes.Interface, client dynamic.Interface, namespace string) error {
	if err := install(ctx, client); err != nil {
		return err
	}
	return until(ctx, func() error {
		_, err := typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
