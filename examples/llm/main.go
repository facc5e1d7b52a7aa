// Command llm asks a language model for three users at once, within its requests
// and its tokens per minute.
//
//	go run ./examples/llm
//
// Nobody knows what an answer costs before it is there. So a call reserves an
// estimate; the answer's header tells what the prompt was, and the end of the
// stream what the whole was: what was reserved too much is given back at once, and
// what was too little is charged.
//
// It is offline: the model is played on loopback, and a referee judges each request
// by what it really uses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/headgate/headgate/examples/internal/stage"
)

func main() { os.Exit(stage.Main("llm", start)) }

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("llm", flag.ContinueOnError)
	set.SetOutput(stderr)
	speed := stage.Speed(set, 15)
	reserve := set.Float64("reserve", 0.05, "keep this `share` of the tokens back for estimates that are too low, 0 to 0.9")
	if err := stage.Parse(set, args); err != nil {
		return errors.Join(stage.ErrUsage, err)
	}
	if !(*reserve >= 0 && *reserve <= 0.9) {
		fmt.Fprintf(stderr, "-reserve %g: want a share from 0 to 0.9\n", *reserve)
		return stage.ErrUsage
	}
	listener, err := stage.Loopback()
	if err != nil {
		return err
	}
	s, err := run(ctx, listener, people, *speed, *reserve)
	if s != nil {
		s.write(stdout)
	}
	return err
}
