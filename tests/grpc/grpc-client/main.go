// Command grpc-client asks the service of package judge at a server or through a proxy, judges what comes, and prints one line of
// JSON: {"ok":true} with figures, or {"ok":false,"wrong":[…]}.
//
//	grpc-client [-tls] [-wait DURATION] SUBCOMMAND [FLAGS] HOST:PORT
//
// It ends with 1 where something was wrong. Certificates are not checked.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"millstream.invalid/grpc/judge"
)

// The largest message that is taken.
const largest = 16 << 20

// What each subcommand asks and judges.
var subcommands = map[string]func(*asking, []string){
	"unary":    unary,
	"streams":  streams,
	"many":     many,
	"errors":   failures,
	"deadline": deadline,
	"cancel":   cancel,
	"metadata": metadataBothWays,
	"large":    large,
	"slow":     slow,
	"hold":     hold,
	"load":     load,
	"bidi":     bidi,
	"down":     down,
}

// A run: where it asks, and what came of it.
type asking struct {
	target  string
	secured bool
	context context.Context

	lock  sync.Mutex
	told  map[string]any
	wrong []string
}

func main() {
	asking := &asking{told: map[string]any{}}
	flag.BoolVar(&asking.secured, "tls", false, "speak TLS")
	limit := flag.Duration("wait", time.Minute, "how long all may take")
	flag.Parse()
	run := subcommands[flag.Arg(0)]
	if run == nil {
		fmt.Fprintln(os.Stderr, "grpc-client [-tls] [-wait DURATION] SUBCOMMAND [FLAGS] HOST:PORT")
		os.Exit(2)
	}
	ctx, end := context.WithTimeout(context.Background(), *limit)
	defer end()
	asking.context = ctx
	run(asking, flag.Args()[1:])
	asking.told["ok"] = len(asking.wrong) == 0
	if len(asking.wrong) > 0 {
		asking.told["wrong"] = asking.wrong
	}
	if err := json.NewEncoder(os.Stdout).Encode(asking.told); err != nil || len(asking.wrong) > 0 {
		os.Exit(1)
	}
}

// Reads the flags of a subcommand, and the target behind them.
func (asking *asking) parse(name string, arguments []string, define func(*flag.FlagSet)) {
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	if define != nil {
		define(flags)
	}
	_ = flags.Parse(arguments)
	if flags.NArg() != 1 {
		fmt.Fprintf(os.Stderr, "grpc-client %s [FLAGS] HOST:PORT\n", name)
		os.Exit(2)
	}
	asking.target = flags.Arg(0)
}

// The most faults that are kept: a dead server makes as many as there are calls.
const mostFaults = 20

// Notes a fault.
func (asking *asking) fault(format string, values ...any) {
	asking.lock.Lock()
	defer asking.lock.Unlock()
	if len(asking.wrong) < mostFaults {
		asking.wrong = append(asking.wrong, fmt.Sprintf(format, values...))
	}
}

// Notes a figure.
func (asking *asking) tell(name string, value any) {
	asking.lock.Lock()
	defer asking.lock.Unlock()
	asking.told[name] = value
}

// Notes a fault where two things differ.
func (asking *asking) same(about string, is, expected any) {
	if is != expected {
		asking.fault("%s: %v, expected %v", about, is, expected)
	}
}

// A connection; it lasts as long as the program.
func (asking *asking) connect() *grpc.ClientConn {
	secured := insecure.NewCredentials()
	if asking.secured {
		secured = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	connection, err := grpc.NewClient("passthrough:///"+asking.target,
		grpc.WithTransportCredentials(secured),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "grpc-client:", err)
		os.Exit(2)
	}
	return connection
}

// One call with a message each way.
func call(ctx context.Context, connection *grpc.ClientConn, method string, asked []byte, options ...grpc.CallOption) ([]byte, error) {
	answer := &wrapperspb.BytesValue{}
	err := connection.Invoke(ctx, judge.Path(method), wrapperspb.Bytes(asked), answer, options...)
	return answer.GetValue(), err
}

// A stream that was opened.
func open(ctx context.Context, connection *grpc.ClientConn, method string) (grpc.ClientStream, error) {
	return connection.NewStream(ctx, judge.Streams[method], judge.Path(method))
}

// The next message of a stream.
func receive(stream grpc.ClientStream) ([]byte, error) {
	got := &wrapperspb.BytesValue{}
	err := stream.RecvMsg(got)
	return got.GetValue(), err
}

func send(stream grpc.ClientStream, message []byte) error {
	return stream.SendMsg(wrapperspb.Bytes(message))
}

// Octets that differ from place to place, so that none can be lost or moved unseen.
func octets(size int, seed int) []byte {
	made := make([]byte, size)
	state := uint32(seed)*2654435761 + 1
	for at := range made {
		state = state*1664525 + 1013904223
		made[at] = byte(state >> 24)
	}
	return made
}

// The value of the sorted durations that so many of a hundred are not above, in milliseconds.
func percentile(sorted []time.Duration, percent float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(int(float64(len(sorted))*percent/100), len(sorted)-1)
	return float64(sorted[at].Microseconds()) / 1000
}

func percentiles(taken []time.Duration) map[string]float64 {
	slices.Sort(taken)
	return map[string]float64{
		"p50": percentile(taken, 50), "p90": percentile(taken, 90),
		"p99": percentile(taken, 99), "max": percentile(taken, 100),
	}
}
