// Command http2-clients asks a server by net/http, as any program in Go does, and prints what came of it as JSON.
//
//	http2-clients URL COUNT SIZE     so many GETs at once, then a POST of so many octets without a length
//
// Certificates are not checked. What is right of all that is decided in tests/scenarios/http2/clients.rs.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// What came of all requests.
type told struct {
	Statuses  map[string]int
	Protocols map[string]int
	Octets    int64
	Failures  []string
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "http2-clients URL COUNT SIZE")
		os.Exit(2)
	}
	count, _ := strconv.Atoi(os.Args[2])
	size, _ := strconv.ParseInt(os.Args[3], 10, 64)
	asking := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}}
	all := told{Statuses: map[string]int{}, Protocols: map[string]int{}}
	var lock sync.Mutex
	take := func(answer *http.Response, err error) {
		octets := int64(0)
		if err == nil {
			defer answer.Body.Close()
			octets, err = io.Copy(io.Discard, answer.Body)
		}
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			all.Failures = append(all.Failures, err.Error())
			return
		}
		all.Statuses[strconv.Itoa(answer.StatusCode)]++
		all.Protocols[answer.Proto]++
		all.Octets += octets
	}
	var waiting sync.WaitGroup
	for range count {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			take(asking.Get(os.Args[1]))
		}()
	}
	waiting.Wait()
	take(asking.Post(os.Args[1], "application/octet-stream", io.LimitReader(zeros{}, size)))
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Octets without end.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}
