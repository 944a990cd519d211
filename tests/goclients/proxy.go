package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy passes bytes to the API server and now and then cuts every connection, so that each request
// may end without its answer and each watch may break between two events.
type proxy struct {
	target   string
	listener net.Listener

	mutex sync.Mutex
	open  map[net.Conn]struct{}
	cuts  int
}

func newProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &proxy{target: target, listener: listener, open: map[net.Conn]struct{}{}}, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.pass(near)
	}
}

func (p *proxy) pass(near net.Conn) {
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		near.Close()
		return
	}
	p.mutex.Lock()
	p.open[near] = struct{}{}
	p.mutex.Unlock()
	ended := make(chan struct{}, 2)
	go func() { io.Copy(far, near); ended <- struct{}{} }()
	go func() { io.Copy(near, far); ended <- struct{}{} }()
	<-ended
	near.Close()
	far.Close()
	p.mutex.Lock()
	delete(p.open, near)
	p.mutex.Unlock()
}

// cutUntil ends all connections at random moments until the context is done.
func (p *proxy) cutUntil(ctx context.Context, random *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(500+random.IntN(2000)) * time.Millisecond):
		}
		p.mutex.Lock()
		for connection := range p.open {
			connection.Close()
		}
		p.cuts++
		p.mutex.Unlock()
	}
}
