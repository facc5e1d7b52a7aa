package tracelog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/tracelog"
)

func ExampleNew() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "took", "until": // not the same twice
			return slog.Attr{}
		}
		return a
	}}))
	c, err := coordinator.New(coordinator.Config{
		Traces: []*coordinator.Trace{tracelog.New(logger, tracelog.Options{})},
		Providers: []provider.Provider{{Slug: "example", Retry: provider.Retry{Off: true},
			Breaker: provider.Breaker{Failures: 1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := coordinator.Call{Provider: "example", Flow: "alice"}
	_ = c.Do(context.Background(), call, func(context.Context) error {
		cause := errors.New("Get https://api.example.com/?key=hunter2: bad gateway")
		return provider.Feedback{Outcome: provider.Failed, Detail: "status 502"}.Err(cause)
	})
	// Output:
	// level=ERROR msg="headgate: circuit open" provider=example from=closed to=open
	// level=WARN msg="headgate: call failed" provider=example reason=failed stage=attempt attempts=1 detail="status 502" answer=failed cause=error flow=alice
}
