package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"millstream.invalid/grpc/judge"
)

// The service of package judge.
type service struct {
	name     string
	sleeping atomic.Int64
	released chan struct{}
	release  sync.Once
}

func newJudge(name string) *service {
	return &service{name: name, released: make(chan struct{})}
}

var unaries = map[string]func(*service, context.Context, []byte) ([]byte, error){
	judge.Unary:    (*service).unary,
	judge.Fail:     (*service).fail,
	judge.Sleep:    (*service).sleep,
	judge.Sleeping: (*service).countSleeping,
	judge.Metadata: (*service).metadata,
	judge.Release:  (*service).letGo,
}

var streaming = map[string]func(*service, grpc.ServerStream) error{
	judge.ServerStream: (*service).serverStream,
	judge.ClientStream: (*service).clientStream,
	judge.Bidi:         (*service).bidi,
	judge.Hold:         (*service).hold,
}

func (service *service) unary(ctx context.Context, asked []byte) ([]byte, error) {
	return asked, grpc.SetHeader(ctx, metadata.Pairs("served-by", service.name))
}

func (*service) fail(_ context.Context, asked []byte) ([]byte, error) {
	word, message, _ := strings.Cut(string(asked), " ")
	code, err := strconv.ParseUint(word, 10, 32)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "no code: "+word)
	}
	return nil, status.Error(codes.Code(code), message)
}

func (service *service) sleep(ctx context.Context, asked []byte) ([]byte, error) {
	service.sleeping.Add(1)
	defer service.sleeping.Add(-1)
	milliseconds, err := strconv.Atoi(string(asked))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	wait, tooLong := time.Duration(milliseconds)*time.Millisecond, false
	// At the deadline itself the library resets the stream, and no status would come.
	if deadline, has := ctx.Deadline(); has && wait > time.Until(deadline) {
		wait, tooLong = time.Until(deadline)*3/4, true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if tooLong {
		return nil, status.Error(codes.DeadlineExceeded, "the server saw the deadline come")
	}
	return asked, nil
}

func (service *service) countSleeping(context.Context, []byte) ([]byte, error) {
	return []byte(strconv.FormatInt(service.sleeping.Load(), 10)), nil
}

// The metadata goes back as it came, but for names that begin with a colon: those are the request's, not the caller's.
func (service *service) metadata(ctx context.Context, _ []byte) ([]byte, error) {
	got, _ := metadata.FromIncomingContext(ctx)
	seen := map[string][][]byte{}
	for name, values := range got {
		if strings.HasPrefix(name, ":") {
			continue
		}
		for _, value := range values {
			seen[name] = append(seen[name], []byte(value))
		}
	}
	first := metadata.Pairs("first", "sent before", "served-by", service.name, "first-bin", "\x00\xff before")
	if err := grpc.SendHeader(ctx, first); err != nil {
		return nil, err
	}
	// Twice under one name: both are to come, in their order.
	last := metadata.Pairs("last", "one", "last", "two", "last-bin", "\x00\xfe after")
	if err := grpc.SetTrailer(ctx, last); err != nil {
		return nil, err
	}
	return json.Marshal(seen)
}

func (service *service) letGo(context.Context, []byte) ([]byte, error) {
	service.release.Do(func() { close(service.released) })
	return nil, nil
}

func (*service) serverStream(stream grpc.ServerStream) error {
	asked := &wrapperspb.BytesValue{}
	if err := stream.RecvMsg(asked); err != nil {
		return err
	}
	var count, size int
	if _, err := fmt.Sscanf(string(asked.GetValue()), "%d %d", &count, &size); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if size < 8 || size > largest {
		return status.Errorf(codes.InvalidArgument, "no message has %d octets", size)
	}
	for number := range count {
		message := make([]byte, size)
		binary.BigEndian.PutUint64(message, uint64(number))
		if err := stream.SendMsg(wrapperspb.Bytes(message)); err != nil {
			return err
		}
	}
	return nil
}

func (*service) clientStream(stream grpc.ServerStream) error {
	count, octets := 0, 0
	for {
		got := &wrapperspb.BytesValue{}
		err := stream.RecvMsg(got)
		if errors.Is(err, io.EOF) {
			return stream.SendMsg(wrapperspb.Bytes(fmt.Appendf(nil, "%d %d", count, octets)))
		}
		if err != nil {
			return err
		}
		count, octets = count+1, octets+len(got.GetValue())
	}
}

func (*service) bidi(stream grpc.ServerStream) error {
	for {
		got := &wrapperspb.BytesValue{}
		err := stream.RecvMsg(got)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(got); err != nil {
			return err
		}
	}
}

func (service *service) hold(stream grpc.ServerStream) error {
	select {
	case <-service.released:
		return service.clientStream(stream)
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	}
}
