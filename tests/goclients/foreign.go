package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// foreign is a controller in another language: a command that finds the server in KUBECONFIG and
// its namespace in NAMESPACE.
type foreign struct {
	command []string
	folder  string
	extra   []string
}

// newForeign writes a kubeconfig that leads through the proxy.
func newForeign(command, kubeconfig, host, namespace string) (*foreign, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = host
	}
	folder, err := os.MkdirTemp("", "goclients")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return nil, err
	}
	return &foreign{strings.Fields(command), folder, []string{"KUBECONFIG=" + path, "NAMESPACE=" + namespace}}, nil
}

// keep runs the command until the context ends, and kills it now and then while there is noise.
func (f *foreign) keep(ctx, noise context.Context, random *rand.Rand) error {
	defer os.RemoveAll(f.folder)
	for ctx.Err() == nil {
		process := exec.Command(f.command[0], f.command[1:]...)
		process.Env = append(os.Environ(), f.extra...)
		process.Stdout, process.Stderr = os.Stderr, os.Stderr
		if err := process.Start(); err != nil {
			log.Fatalf("goclients: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- process.Wait() }()
		var kill <-chan time.Time
		if noise.Err() == nil {
			kill = time.After(time.Duration(6+random.IntN(10)) * time.Second)
		}
		select {
		case <-ctx.Done():
		case <-kill:
		case err := <-ended:
			log.Fatalf("goclients: the controller ended by itself: %v", err)
		}
		if err := process.Process.Kill(); err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		<-ended
	}
	return nil
}
