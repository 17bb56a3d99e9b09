// Command plus asks an API as NGINX Plus has it, through NGINX's own client of it, and prints what came of it as JSON.
//
//	plus URL read UPSTREAM               every Get… that the client has
//	plus URL add|update|delete UPSTREAM SERVER
//	plus URL replace UPSTREAM SERVERS    UpdateHTTPServers
//
// SERVER is a server as the client has it, in JSON. A token in TOKEN is shown. What is right of all that is decided in
// tests/scenarios/nginx_clients.rs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/nginx/nginx-plus-go-client/v3/client"
)

// A refusal of the API, or what else went wrong.
type failure struct {
	Text   string
	Status int
	Code   string
}

type shown struct{ token string }

func (s shown) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.token != "" {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	return http.DefaultTransport.RoundTrip(request)
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "plus URL read|add|update|delete|replace UPSTREAM [JSON]")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	asking := &http.Client{Transport: shown{os.Getenv("TOKEN")}, Timeout: 10 * time.Second}
	// It asks which versions there are before anything else.
	plus, err := client.NewNginxClient(os.Args[1], client.WithHTTPClient(asking), client.WithCheckAPI())
	var told any
	if err == nil {
		told, err = done(ctx, plus, os.Args[2], os.Args[3], strings.Join(os.Args[4:], " "))
	}
	if err != nil {
		told = failed(err)
	}
	if encoded := json.NewEncoder(os.Stdout).Encode(told); encoded != nil {
		fmt.Fprintln(os.Stderr, encoded)
		os.Exit(2)
	}
	if err != nil {
		os.Exit(1)
	}
}

func done(ctx context.Context, plus *client.NginxClient, verb, upstream, text string) (any, error) {
	if verb == "read" {
		return everything(ctx, plus, upstream), nil
	}
	if verb == "replace" {
		var servers []client.UpstreamServer
		if err := json.Unmarshal([]byte(text), &servers); err != nil {
			return nil, err
		}
		added, deleted, updated, err := plus.UpdateHTTPServers(ctx, upstream, servers)
		names := func(servers []client.UpstreamServer) []string {
			names := []string{}
			for _, server := range servers {
				names = append(names, server.Server)
			}
			return names
		}
		return map[string][]string{"added": names(added), "deleted": names(deleted), "updated": names(updated)}, err
	}
	var server client.UpstreamServer
	if err := json.Unmarshal([]byte(text), &server); err != nil {
		return nil, err
	}
	switch verb {
	case "add":
		return nil, plus.AddHTTPServer(ctx, upstream, server)
	case "update":
		return nil, plus.UpdateHTTPServer(ctx, upstream, server)
	case "delete":
		return nil, plus.DeleteHTTPServer(ctx, upstream, server.Server)
	}
	return nil, fmt.Errorf("%s: no such verb", verb)
}

// everything that the client can read, by the names of its methods; each that wants a name gets that of the upstream.
func everything(ctx context.Context, plus *client.NginxClient, upstream string) map[string]any {
	told := map[string]any{}
	all := reflect.ValueOf(plus)
	for index := range all.NumMethod() {
		name, method := all.Type().Method(index).Name, all.Method(index)
		if !strings.HasPrefix(name, "Get") {
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(ctx)}
		for range method.Type().NumIn() - 1 {
			arguments = append(arguments, reflect.ValueOf(upstream))
		}
		results := method.Call(arguments)
		if err, _ := results[len(results)-1].Interface().(error); err != nil {
			told[name] = failed(err)
		} else {
			told[name] = results[0].Interface()
		}
	}
	return told
}

func failed(err error) any {
	what := failure{Text: err.Error()}
	var refused client.StatusError
	if errors.As(err, &refused) {
		what.Status, what.Code = refused.Status(), refused.Code()
	}
	return map[string]failure{"error": what}
}
