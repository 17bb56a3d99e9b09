package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"millstream.invalid/grpc/judge"
)

// Deadlines are kept by who asked, and reach the server, which keeps them too.
func deadline(asking *asking, arguments []string) {
	asking.parse("deadline", arguments, nil)
	connection := asking.connect()
	begun := time.Now()
	ctx, end := context.WithTimeout(asking.context, 300*time.Millisecond)
	defer end()
	_, err := call(ctx, connection, judge.Sleep, []byte("30000"))
	asking.same("code", status.Code(err), codes.DeadlineExceeded)
	asking.tell("milliseconds", time.Since(begun).Milliseconds())
	asking.until(connection, 0)
	in, stop := context.WithTimeout(asking.context, 20*time.Second)
	defer stop()
	if _, err := call(in, connection, judge.Sleep, []byte("20")); err != nil {
		asking.fault("a call that ends in time: %v", err)
	}
	// The library keeps a deadline itself, whatever the server does, and lets nobody write grpc-timeout. So this call is made by hand,
	// without a clock here: only a server that was told of the deadline answers before half a minute is over.
	for _, timeout := range []string{"300m", "1S", "700000u"} {
		code, message, err := asking.byHand(timeout)
		if err != nil {
			asking.fault("grpc-timeout: %s: %v", timeout, err)
			continue
		}
		asking.same("grpc-status after "+timeout, code, "4")
		asking.same("grpc-message after "+timeout, message, "the server saw the deadline come")
	}
}

// A call of Sleep for half a minute, with frames of our own making.
func (asking *asking) byHand(timeout string) (code, message string, err error) {
	transport := &http2.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	scheme := "https"
	if !asking.secured {
		scheme, transport.AllowHTTP = "http", true
		transport.DialTLSContext = func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	}
	defer transport.CloseIdleConnections()
	encoded, err := proto.Marshal(wrapperspb.Bytes([]byte("30000")))
	if err != nil {
		return "", "", err
	}
	body := append([]byte{0, 0, 0, 0, byte(len(encoded))}, encoded...)
	url := scheme + "://" + asking.target + judge.Path(judge.Sleep)
	request, err := http.NewRequestWithContext(asking.context, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	request.Header.Set("Grpc-Timeout", timeout)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return "", "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", "", fmt.Errorf("status %d", answer.StatusCode)
	}
	// An answer without a message has its status in the one header block that there is.
	from := answer.Trailer
	if answer.Header.Get("Grpc-Status") != "" {
		from = answer.Header
	}
	return from.Get("Grpc-Status"), from.Get("Grpc-Message"), nil
}
