package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"millstream.invalid/grpc/judge"
)

// One message each way: none, small, and longer than a frame.
func unary(asking *asking, arguments []string) {
	asking.parse("unary", arguments, nil)
	connection := asking.connect()
	servers := map[string]int{}
	for number, size := range []int{0, 1, 5, 16_384, 65_535, 300_000} {
		asked := octets(size, number)
		var first metadata.MD
		answer, err := call(asking.context, connection, judge.Unary, asked, grpc.Header(&first))
		if err != nil {
			asking.fault("%d octets: %v", size, err)
		} else if !bytes.Equal(answer, asked) {
			asking.fault("%d octets came back as %d others", size, len(answer))
		}
		servers[strings.Join(first.Get("served-by"), ",")]++
	}
	asking.tell("servers", servers)
}

// All three kinds of streams.
func streams(asking *asking, arguments []string) {
	asking.parse("streams", arguments, nil)
	connection := asking.connect()
	for _, plan := range [][2]int{{0, 8}, {1, 8}, {500, 100}, {20, 100_000}} {
		if err := serverStream(asking.context, connection, plan[0], plan[1]); err != nil {
			asking.fault("ServerStream of %v: %v", plan, err)
		}
		if err := clientStream(asking.context, connection, plan[0], plan[1]); err != nil {
			asking.fault("ClientStream of %v: %v", plan, err)
		}
		if err := pingPong(asking.context, connection, plan[0], plan[1]); err != nil {
			asking.fault("Bidi of %v: %v", plan, err)
		}
	}
}

func serverStream(ctx context.Context, connection *grpc.ClientConn, count, size int) error {
	stream, err := open(ctx, connection, judge.ServerStream)
	if err != nil {
		return err
	}
	if err := errors.Join(send(stream, fmt.Appendf(nil, "%d %d", count, size)), stream.CloseSend()); err != nil {
		return err
	}
	return receiveCounted(stream, count, size)
}

// Reads what ServerStream sends, to its end.
func receiveCounted(stream grpc.ClientStream, count, size int) error {
	for number := range count {
		got, err := receive(stream)
		if err != nil {
			return fmt.Errorf("message %d: %w", number, err)
		}
		if len(got) != size || binary.BigEndian.Uint64(got) != uint64(number) {
			return fmt.Errorf("message %d has %d octets, or is another one", number, len(got))
		}
	}
	return ended(stream)
}

// Whether a stream ends here, and well.
func ended(stream grpc.ClientStream) error {
	if _, err := receive(stream); !errors.Is(err, io.EOF) {
		return fmt.Errorf("in place of the end: %w", err)
	}
	return nil
}

func clientStream(ctx context.Context, connection *grpc.ClientConn, count, size int) error {
	stream, err := open(ctx, connection, judge.ClientStream)
	if err != nil {
		return err
	}
	for number := range count {
		if err := send(stream, octets(size, number)); err != nil {
			return fmt.Errorf("message %d: %w", number, err)
		}
	}
	return counted(stream, count, size)
}

// Ends a ClientStream, and looks whether all came.
func counted(stream grpc.ClientStream, count, size int) error {
	if err := stream.CloseSend(); err != nil {
		return err
	}
	got, err := receive(stream)
	if expected := fmt.Sprintf("%d %d", count, count*size); err == nil && string(got) != expected {
		return fmt.Errorf("the server got %q, not %q", got, expected)
	}
	return err
}

// Sends each message only after the answer to the one before has come.
func pingPong(ctx context.Context, connection *grpc.ClientConn, count, size int) error {
	stream, err := open(ctx, connection, judge.Bidi)
	if err != nil {
		return err
	}
	for number := range count {
		if err := exchange(stream, octets(size, number)); err != nil {
			return fmt.Errorf("message %d: %w", number, err)
		}
	}
	return errors.Join(stream.CloseSend(), ended(stream))
}

// One message of a Bidi there and back.
func exchange(stream grpc.ClientStream, message []byte) error {
	if err := send(stream, message); err != nil {
		return err
	}
	got, err := receive(stream)
	if err == nil && !bytes.Equal(got, message) {
		return fmt.Errorf("%d octets came back as %d others", len(message), len(got))
	}
	return err
}

// Codes and messages arrive as they were sent; a code that has no name is as good as any.
func failures(asking *asking, arguments []string) {
	asking.parse("errors", arguments, nil)
	connection := asking.connect()
	messages := []string{"plain", "", "Größe 100 % überschritten: 東京 🚂", "a\nb\tc%41\x7f"}
	for code := 1; code <= 17; code++ {
		for _, message := range messages {
			_, err := call(asking.context, connection, judge.Fail, fmt.Appendf(nil, "%d %s", code, message))
			got := status.Convert(err)
			asking.same("code", int(got.Code()), code)
			asking.same(fmt.Sprintf("message with code %d", code), got.Message(), message)
		}
	}
	// The end of a stream that had messages says the same.
	stream, err := open(asking.context, connection, judge.ServerStream)
	if err == nil {
		err = errors.Join(send(stream, []byte("no number")), stream.CloseSend())
	}
	if err == nil {
		_, err = receive(stream)
	}
	asking.same("code of a stream", status.Code(err), codes.InvalidArgument)
	_, err = call(asking.context, connection, "NoSuchMethod", nil)
	asking.same("code of a method that is not there", status.Code(err), codes.Unimplemented)
}

// Metadata arrives at the server as it was sent, and so does the server's, before the answer and after it.
func metadataBothWays(asking *asking, arguments []string) {
	odd := false
	asking.parse("metadata", arguments, func(flags *flag.FlagSet) {
		flags.BoolVar(&odd, "odd", odd, "with names that nginx passes on only where it is told to")
	})
	connection := asking.connect()
	sent := metadata.Pairs("plain", "a value", "twice", "one", "twice", "two", "octets-bin", "\x00\x01\xfe\xff")
	if odd {
		sent = metadata.Join(sent, metadata.Pairs("under_score", "u", "with.dot", "d"))
	}
	var first, last metadata.MD
	answer, err := call(metadata.NewOutgoingContext(asking.context, sent), connection, judge.Metadata, nil,
		grpc.Header(&first), grpc.Trailer(&last))
	if err != nil {
		asking.fault("Metadata: %v", err)
		return
	}
	got := map[string][][]byte{}
	if err := json.Unmarshal(answer, &got); err != nil {
		asking.fault("%q: %v", answer, err)
	}
	for name, values := range sent {
		asking.same("the server's "+name, fmt.Sprintf("%q", got[name]), fmt.Sprintf("%q", values))
	}
	for _, sight := range []struct {
		of       metadata.MD
		name     string
		expected []string
	}{
		{first, "first", []string{"sent before"}},
		{first, "first-bin", []string{"\x00\xff before"}},
		{last, "last", []string{"one", "two"}},
		{last, "last-bin", []string{"\x00\xfe after"}},
	} {
		asking.same(sight.name, fmt.Sprintf("%q", sight.of.Get(sight.name)), fmt.Sprintf("%q", sight.expected))
	}
	names := []string{}
	for name := range got {
		names = append(names, name)
	}
	asking.tell("seen", names)
}

// A MiB each way in one message, and several in turns.
func large(asking *asking, arguments []string) {
	asking.parse("large", arguments, nil)
	connection := asking.connect()
	for number := range 5 {
		asked := octets(1<<20, number)
		answer, err := call(asking.context, connection, judge.Unary, asked)
		if err != nil {
			asking.fault("a MiB: %v", err)
		} else if !bytes.Equal(answer, asked) {
			asking.fault("a MiB came back as %d other octets", len(answer))
		}
	}
	if err := pingPong(asking.context, connection, 8, 1<<20); err != nil {
		asking.fault("Bidi of MiBs: %v", err)
	}
	if err := serverStream(asking.context, connection, 16, 1<<20); err != nil {
		asking.fault("ServerStream of MiBs: %v", err)
	}
	if err := clientStream(asking.context, connection, 16, 1<<20); err != nil {
		asking.fault("ClientStream of MiBs: %v", err)
	}
}

// Calls that are given up are given up at the server.
func cancel(asking *asking, arguments []string) {
	asking.parse("cancel", arguments, nil)
	connection := asking.connect()
	ctx, giveUp := context.WithCancel(asking.context)
	over := make(chan error, 5)
	for range cap(over) {
		go func() {
			_, err := call(ctx, connection, judge.Sleep, []byte("600000"))
			over <- err
		}()
	}
	asking.until(connection, cap(over))
	giveUp()
	for range cap(over) {
		asking.same("code", status.Code(<-over), codes.Canceled)
	}
	asking.until(connection, 0)
}

// Asks until so many calls of Sleep run.
func (asking *asking) until(connection *grpc.ClientConn, expected int) {
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for {
		answer, err := call(asking.context, connection, judge.Sleeping, nil)
		if err != nil {
			asking.fault("waiting for %d calls that sleep: %v, then %q", expected, err, answer)
			return
		}
		if now, _ := strconv.Atoi(string(answer)); now == expected {
			return
		}
		<-ticks.C
	}
}

// Where nobody serves: what is said of that. The judgement is the scenario's.
func down(asking *asking, arguments []string) {
	asking.parse("down", arguments, nil)
	connection := asking.connect()
	_, err := call(asking.context, connection, judge.Unary, []byte("anybody?"))
	got := status.Convert(err)
	asking.tell("code", int(got.Code()))
	asking.tell("name", got.Code().String())
	asking.tell("message", got.Message())
	stream, err := open(asking.context, connection, judge.Bidi)
	if err == nil {
		err = exchange(stream, []byte("anybody?"))
	}
	// A send to a stream that has ended says EOF; why is told to who reads.
	if errors.Is(err, io.EOF) {
		_, err = receive(stream)
	}
	asking.tell("stream", int(status.Code(err)))
}
