package tracelog_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/tracelog"
)

// A hook of one's own that panics breaks no call; that it did is written once, without
// what it threw.
func ExamplePanicked() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	own := &coordinator.Trace{
		Begin:    func(context.Context, coordinator.CallInfo) context.Context { panic("a key, maybe") },
		Panicked: tracelog.Panicked(logger),
	}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "example"}}, Traces: []*coordinator.Trace{own}})
	if err != nil {
		logger.Error(err.Error())
		return
	}
	for range 2 {
		_ = c.Do(context.Background(), coordinator.Call{Provider: "example"}, func(context.Context) error { return nil })
	}
	// Output: level=ERROR msg="headgate: hook panicked" hook=Begin type=string
}
