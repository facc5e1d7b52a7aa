package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// lookup is any code that takes an http.Client.
func lookup(ctx context.Context, client *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// A client whose requests go when their provider will accept them.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "greeter", BaseURL: server.URL, Throttle: provider.Throttle{RPM: 1, MaxWait: time.Second},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: &transport.Transport{Coordinator: c}}
	for range 2 {
		text, err := lookup(context.Background(), client, server.URL)
		fmt.Println(text, errors.Is(err, coordinator.ErrThrottled))
	}
	// Output:
	// hello false
	//  true
}

// Requests for two users share a provider equally; one of them may not wait.
func ExampleWithCall() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "greeter", BaseURL: server.URL, Throttle: provider.Throttle{RPM: 1},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := transport.New(c, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: t}
	for _, user := range []string{"alice", "bob"} {
		ctx := transport.WithCall(context.Background(), coordinator.Call{Flow: user, Wait: -1})
		_, err := lookup(ctx, client, server.URL)
		var refused *coordinator.Error
		if errors.As(err, &refused) {
			fmt.Println(user, refused.Reason, refused.RetryAfter > 50*time.Second)
		} else {
			fmt.Println(user, err)
		}
	}
	// Output:
	// alice <nil>
	// bob rate_limited true
}
