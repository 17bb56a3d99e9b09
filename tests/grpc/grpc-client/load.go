package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"millstream.invalid/grpc/judge"
)

// When a load ends: after so many calls, after a time, or when standard input does. Whichever comes first.
type until struct {
	calls    int64
	duration time.Duration
	input    bool

	begun atomic.Int64
	over  atomic.Bool
	tried sync.WaitGroup
}

func (until *until) define(flags *flag.FlagSet) {
	flags.Int64Var(&until.calls, "n", 0, "how many; 0: any number")
	flags.DurationVar(&until.duration, "duration", 0, "for how long")
	flags.BoolVar(&until.input, "until-eof", false, "until standard input ends")
}

// Begins to wait for the end. Once each of so many has tried a first time, standard error hears "begun".
func (until *until) watch(workers int) {
	if until.calls == 0 && until.duration == 0 && !until.input {
		fmt.Fprintln(os.Stderr, "one of -n, -duration and -until-eof says when it ends")
		os.Exit(2)
	}
	until.tried.Add(workers)
	go func() {
		until.tried.Wait()
		fmt.Fprintln(os.Stderr, "begun")
	}()
	if until.duration > 0 {
		time.AfterFunc(until.duration, func() { until.over.Store(true) })
	}
	if until.input {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			until.over.Store(true)
		}()
	}
}

// Whether another one may begin.
func (until *until) another() bool {
	return !until.over.Load() && (until.calls == 0 || until.begun.Add(1) <= until.calls)
}

// Calls one after the other by each of so many on each of so many connections.
func load(asking *asking, arguments []string) {
	until := &until{}
	connections, workers, size, sleep := 1, 1, 100, -1
	asking.parse("load", arguments, func(flags *flag.FlagSet) {
		until.define(flags)
		flags.IntVar(&connections, "c", connections, "connections")
		flags.IntVar(&workers, "w", workers, "calls at a time on each")
		flags.IntVar(&size, "size", size, "octets of a message")
		flags.IntVar(&sleep, "sleep", sleep, "milliseconds that each call takes at the server; -1: an echo")
	})
	method, asked := judge.Unary, octets(size, 1)
	if sleep >= 0 {
		method, asked = judge.Sleep, fmt.Append(nil, sleep)
	}
	var lock sync.Mutex
	codes, servers := map[string]int{}, map[string]int{}
	taken := []time.Duration{}
	worker := func(connection *grpc.ClientConn) {
		tried := sync.OnceFunc(until.tried.Done)
		defer tried()
		for until.another() {
			var first metadata.MD
			begun := time.Now()
			_, err := call(asking.context, connection, method, asked, grpc.Header(&first))
			took := time.Since(begun)
			tried()
			lock.Lock()
			codes[status.Code(err).String()]++
			if err == nil {
				servers[strings.Join(first.Get("served-by"), ",")]++
				taken = append(taken, took)
			}
			lock.Unlock()
			if err != nil {
				asking.fault("%v", err)
			}
			if asking.context.Err() != nil {
				return
			}
		}
	}
	until.watch(connections * workers)
	begun := time.Now()
	var all sync.WaitGroup
	for range connections {
		connection := asking.connect()
		for range workers {
			all.Go(func() { worker(connection) })
		}
	}
	all.Wait()
	seconds := time.Since(begun).Seconds()
	asking.tell("calls", len(taken))
	asking.tell("codes", codes)
	asking.tell("servers", servers)
	asking.tell("seconds", seconds)
	asking.tell("calls_per_second", float64(len(taken))/seconds)
	asking.tell("latency_ms", percentiles(taken))
}

// Streams with messages both ways until the end; a stream has as many turns as the flag says.
func bidi(asking *asking, arguments []string) {
	until := &until{}
	connections, workers, size, turns := 1, 1, 100, 1000
	asking.parse("bidi", arguments, func(flags *flag.FlagSet) {
		until.define(flags)
		flags.IntVar(&connections, "c", connections, "connections")
		flags.IntVar(&workers, "w", workers, "streams at a time on each")
		flags.IntVar(&size, "size", size, "octets of a message")
		flags.IntVar(&turns, "turns", turns, "messages of a stream at most")
	})
	message := octets(size, 1)
	var streams, messages atomic.Int64
	one := func(connection *grpc.ClientConn, tried func()) error {
		stream, err := open(asking.context, connection, judge.Bidi)
		if err != nil {
			return err
		}
		streams.Add(1)
		for range turns {
			if !until.another() {
				break
			}
			if err := exchange(stream, message); err != nil {
				return err
			}
			messages.Add(1)
			tried()
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return ended(stream)
	}
	until.watch(connections * workers)
	begun := time.Now()
	var all sync.WaitGroup
	for range connections {
		connection := asking.connect()
		for range workers {
			all.Go(func() {
				tried := sync.OnceFunc(until.tried.Done)
				defer tried()
				for until.another() && asking.context.Err() == nil {
					if err := one(connection, tried); err != nil {
						asking.fault("%v", err)
					}
					tried()
				}
			})
		}
	}
	all.Wait()
	asking.tell("streams", streams.Load())
	asking.tell("messages", messages.Load())
	asking.tell("messages_per_second", float64(messages.Load())/time.Since(begun).Seconds())
}
