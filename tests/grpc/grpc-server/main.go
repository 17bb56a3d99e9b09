// Command grpc-server offers the service of package judge on a port that the system chooses, and prints that port first of all.
//
//	grpc-server [-name NAME] [-max-streams N] [-max-age DURATION] [-max-age-grace DURATION] [-cert FILE -key FILE]
//
// TERM ends it once its calls are over; it then prints what it counted as one line of JSON.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"millstream.invalid/grpc/judge"
)

// The largest message that is taken.
const largest = 16 << 20

func main() {
	name := flag.String("name", "go", "what the field served-by says")
	listen := flag.String("listen", "127.0.0.1:0", "where it listens")
	streams := flag.Uint("max-streams", 0, "streams of a connection at a time; 0: any number")
	age := flag.Duration("max-age", 0, "how old a connection may get before it is told to go away; 0: any age")
	grace := flag.Duration("max-age-grace", 10*time.Second, "how long its calls may go on then")
	certificate := flag.String("cert", "", "a certificate: TLS is spoken")
	key := flag.String("key", "", "its key")
	flag.Parse()

	counted := &counts{}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest), grpc.StatsHandler(counted)}
	if *streams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(uint32(*streams)))
	}
	if *age > 0 {
		aged := keepalive.ServerParameters{MaxConnectionAge: *age, MaxConnectionAgeGrace: *grace}
		options = append(options, grpc.KeepaliveParams(aged))
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		stopOn(err)
		secured := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		options = append(options, grpc.Creds(credentials.NewTLS(secured)))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(description(), newJudge(*name))
	listener, err := net.Listen("tcp", *listen)
	stopOn(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)

	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-asked
		server.GracefulStop()
	}()
	stopOn(server.Serve(listener))
	// Serve comes back before the last call is over; a second stop waits for that.
	server.GracefulStop()
	stopOn(json.NewEncoder(os.Stdout).Encode(counted.told()))
}

func stopOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc-server:", err)
		os.Exit(1)
	}
}

// What is counted of connections and calls.
type counts struct {
	connections, calls, goingOn, most atomic.Int64
}

func (counts *counts) told() map[string]int64 {
	return map[string]int64{
		"connections": counts.connections.Load(),
		"calls":       counts.calls.Load(),
		"most":        counts.most.Load(),
	}
}

// TagRPC has nothing to tag.
func (*counts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn has nothing to tag.
func (*counts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleRPC counts calls as they begin and end.
func (counts *counts) HandleRPC(_ context.Context, happened stats.RPCStats) {
	switch happened.(type) {
	case *stats.Begin:
		counts.calls.Add(1)
		now := counts.goingOn.Add(1)
		for most := counts.most.Load(); now > most && !counts.most.CompareAndSwap(most, now); {
			most = counts.most.Load()
		}
	case *stats.End:
		counts.goingOn.Add(-1)
	}
}

// HandleConn counts connections as they begin.
func (counts *counts) HandleConn(_ context.Context, happened stats.ConnStats) {
	if _, begun := happened.(*stats.ConnBegin); begun {
		counts.connections.Add(1)
	}
}

// The description of the service, as generated code would have it.
func description() *grpc.ServiceDesc {
	described := &grpc.ServiceDesc{ServiceName: judge.Service, HandlerType: (*any)(nil)}
	for name, method := range unaries {
		described.Methods = append(described.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(of any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				asked := &wrapperspb.BytesValue{}
				if err := decode(asked); err != nil {
					return nil, err
				}
				answer, err := method(of.(*service), ctx, asked.GetValue())
				if err != nil {
					return nil, err
				}
				return wrapperspb.Bytes(answer), nil
			},
		})
	}
	for name, method := range streaming {
		stream := *judge.Streams[name]
		stream.Handler = func(of any, stream grpc.ServerStream) error { return method(of.(*service), stream) }
		described.Streams = append(described.Streams, stream)
	}
	return described
}
