package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"millstream.invalid/grpc/judge"
)

// Many streams at once on one connection; no stream goes on before all are as far as it is.
func many(asking *asking, arguments []string) {
	count := 1000
	asking.parse("many", arguments, func(flags *flag.FlagSet) { flags.IntVar(&count, "n", count, "streams") })
	connection := asking.connect()
	opened := make([]grpc.ClientStream, count)
	asking.together(count, func(number int) error {
		stream, err := open(asking.context, connection, judge.Bidi)
		opened[number] = stream
		return err
	})
	for round := range 3 {
		if len(asking.wrong) > 0 {
			return
		}
		asking.together(count, func(number int) error {
			return exchange(opened[number], fmt.Appendf(nil, "message %d of stream %d", round, number))
		})
	}
	if len(asking.wrong) > 0 {
		return
	}
	asking.together(count, func(number int) error {
		return errors.Join(opened[number].CloseSend(), ended(opened[number]))
	})
	asking.tell("streams", count)
}

// Runs so many at once, and waits for all.
func (asking *asking) together(count int, run func(number int) error) {
	var all sync.WaitGroup
	for number := range count {
		all.Go(func() {
			if err := run(number); err != nil {
				asking.fault("stream %d: %v", number, err)
			}
		})
	}
	all.Wait()
}

// What a stream carries that waits for its reader: more than any window that is given out here.
const (
	waitingMessages = 64
	waitingOctets   = 100_000
)

// Calls that go past whatever waits on the same connection.
func (asking *asking) past(connection *grpc.ClientConn, about string) {
	for number := range 200 {
		asked := octets(100+number*500, number)
		answer, err := call(asking.context, connection, judge.Unary, asked)
		if err != nil || !bytes.Equal(answer, asked) {
			asking.fault("call %d past %s: %d octets, %v", number, about, len(answer), err)
			return
		}
	}
}

// Streams that nobody here reads yet stop no other on their connection, and lose nothing.
func slow(asking *asking, arguments []string) {
	asking.parse("slow", arguments, nil)
	connection := asking.connect()
	waiting := make([]grpc.ClientStream, 5)
	for number := range waiting {
		stream, err := open(asking.context, connection, judge.ServerStream)
		if err == nil {
			asked := fmt.Appendf(nil, "%d %d", waitingMessages, waitingOctets)
			err = errors.Join(send(stream, asked), stream.CloseSend())
		}
		if err == nil {
			_, err = stream.Header()
		}
		if err != nil {
			asking.fault("stream %d: %v", number, err)
			return
		}
		waiting[number] = stream
	}
	asking.past(connection, "streams that are not read")
	for number, stream := range waiting {
		if err := receiveCounted(stream, waitingMessages, waitingOctets); err != nil {
			asking.fault("stream %d, read late: %v", number, err)
		}
	}
}

// Streams that the server does not read yet stop no other on their connection, and lose nothing.
func hold(asking *asking, arguments []string) {
	asking.parse("hold", arguments, nil)
	connection := asking.connect()
	ctx, end := context.WithCancel(asking.context)
	defer end()
	var all sync.WaitGroup
	for number := range 5 {
		stream, err := open(ctx, connection, judge.Hold)
		if err != nil {
			asking.fault("stream %d: %v", number, err)
			return
		}
		all.Go(func() {
			for message := range waitingMessages {
				if err := send(stream, octets(waitingOctets, message)); err != nil {
					asking.fault("stream %d, message %d: %v", number, message, err)
					return
				}
			}
			if err := counted(stream, waitingMessages, waitingOctets); err != nil {
				asking.fault("stream %d, read late: %v", number, err)
			}
		})
	}
	asking.past(connection, "streams that the server does not read")
	if _, err := call(asking.context, connection, judge.Release, nil); err != nil {
		asking.fault("Release: %v", err)
		end()
	}
	all.Wait()
}
