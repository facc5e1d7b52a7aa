package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

const usage = `usage: osint [flags] [indicator ...]

Looks indicators up (IP addresses, domains, hashes) at every provider that takes
their kind, each provider at the pace that it allows. Offline, unless -live is
given: the providers are played on this machine.

  osint                          the list that it ships: 60 public indicators
  osint 1.1.1[.]1 example.com    these
  osint -f a.txt -f b.txt        lists, one indicator a line
  cat list.txt | osint -         the standard input

flags:
`

const exits = `
exit code: 0 something was answered, 1 nothing was or the results could not be
written, 2 wrong usage or nothing to look up, 130 stopped by Ctrl-C.
`

// options are what the command line says.
type options struct {
	files      []string
	indicators []string
	stdin      bool
	live       bool
	json       bool
	output     string
	speed      float64 // 0: so that the demo takes about half a minute
}

// errHelp says that the usage was asked for, and written.
var errHelp = errors.New("help")

// parse reads the command line. Usage goes to help when asked for.
func parse(args []string, help io.Writer) (options, error) {
	var o options
	set := flag.NewFlagSet("osint", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are ours to write
	set.Func("f", "read indicators from `FILE` (- is the standard input); may be given again", func(s string) error {
		if s == "-" {
			o.stdin = true
			return nil
		}
		o.files = append(o.files, s)
		return nil
	})
	set.StringVar(&o.output, "o", "", "write the results to `FILE`, as JSON lines; it is overwritten")
	set.BoolVar(&o.json, "json", false, "write the results to the standard output, as JSON lines; the table goes to the standard error")
	set.Func("speed", "let the played time pass `N` times as fast (default: so that it takes about 30 s)", func(s string) (err error) {
		o.speed, err = strconv.ParseFloat(s, 64)
		if err != nil || !(o.speed > 0) || math.IsInf(o.speed, 0) {
			return errors.New("want a number above 0")
		}
		return nil
	})
	set.BoolVar(&o.live, "live", false, "ask the real providers, with keys from the environment; spends your quotas")
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, usage)
		set.SetOutput(help)
		set.PrintDefaults()
		fmt.Fprint(help, exits)
		return o, errHelp
	}
	if err != nil {
		return o, err
	}
	for _, a := range set.Args() {
		if a == "-" {
			o.stdin = true
			continue
		}
		o.indicators = append(o.indicators, a)
	}
	return o, o.check()
}

// check finds what contradicts itself.
func (o options) check() error {
	switch {
	case o.live && o.speed != 0:
		return errors.New("-speed is for played providers: the real ones set their own pace")
	case o.live && o.output == "" && !o.json:
		return errors.New("-live spends quotas: say where the answers go, -o FILE or -json")
	case o.output != "" && o.json:
		return errors.New("-o and -json: want one place for the results")
	}
	for _, a := range o.indicators {
		if strings.HasPrefix(a, "-") {
			return fmt.Errorf("%s after an indicator: want flags first", a)
		}
	}
	return nil
}

// read reads all indicators that the options name, the shipped ones where they
// name none. A file that cannot be read is an error.
func (o options) read(stdin io.Reader) (*reading, error) {
	r := new(reading)
	for n, a := range o.indicators {
		before := len(r.junk)
		r.add("arguments", n+1, a)
		if _, err := os.Stat(a); err == nil && len(r.junk) > before {
			r.junk[before].why = "a file: want -f before its name"
		}
	}
	if len(o.indicators) > 0 {
		r.lists++
	}
	for _, name := range o.files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = r.read(name, f)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	if o.stdin {
		if err := r.read("stdin", stdin); err != nil {
			return nil, err
		}
	}
	if r.lists == 0 {
		return r, r.read("indicators.txt", strings.NewReader(shipped))
	}
	return r, nil
}
