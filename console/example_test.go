package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// The page of a coordinator, below a path of a program's own server. A Recorder adds
// what a State does not have.
func ExampleNew() {
	var rec console.Recorder
	c, err := coordinator.New(coordinator.Config{
		Registry:  new(registry.Registry),
		Providers: []provider.Provider{{Slug: "acme", Throttle: provider.Throttle{RPM: 60}}},
		Traces:    []*coordinator.Trace{rec.Trace()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c.Do(context.Background(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil })
	_ = c.Pause("acme", time.Now().Add(time.Hour), "maintenance")

	page := console.New(c, console.Options{Recorder: &rec})
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/headgate/", http.StripPrefix("/headgate", page)) // behind what the program's other pages are behind

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/headgate/api/state", http.NoBody))
	var status console.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range status.Providers {
		fmt.Printf("%s is %s: %s; %d of %d left %s\n", p.Slug, p.Condition, p.Why, p.Limits[0].Left, p.Limits[0].Max, p.Limits[0].Per)
	}
	// Output:
	// acme is paused: maintenance; 59 of 60 left 1m
}
