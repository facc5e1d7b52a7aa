// Command wrap puts Headgate around calls that a program makes already.
//
//	go run ./examples/wrap
//
// First one call by hand (call.go): it declares the provider, wraps the call in 20
// lines, and does what a refusal says. Then a whole SDK by one line (sdk.go):
// google/go-github behind a transport, against limits that GitHub tells only in its
// answers.
//
// It is offline by default: ip-api.com and api.github.com are played on loopback.
// -live asks the real ones; it reads, and spends four requests.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"

	"github.com/headgate/headgate/examples/internal/stage"
)

func main() { os.Exit(stage.Main("wrap", start)) }

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("wrap", flag.ContinueOnError)
	set.SetOutput(stderr)
	live := set.Bool("live", false, "ask the real ip-api.com and api.github.com, the latter with the token in GITHUB_TOKEN, if any")
	speed := stage.Speed(set, 60)
	if err := stage.Parse(set, args); err != nil {
		return errors.Join(stage.ErrUsage, err)
	}
	if *live {
		if err := run(ctx, stdout, http.DefaultClient, "http://ip-api.com"); err != nil {
			return err
		}
		return read(ctx, stdout, os.Getenv("GITHUB_TOKEN"))
	}
	if err := playCall(ctx, stdout); err != nil {
		return err
	}
	listener, err := stage.Loopback()
	if err != nil {
		return err
	}
	return playSDK(ctx, stdout, listener, *speed)
}
