package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/provider"
)

// The defaults of what is a time.
const (
	defaultTTL  = 24 * time.Hour
	defaultWait = time.Hour
)

// options are what the command line says.
type options struct {
	files      []string
	indicators []string
	stdin      bool
	as         provider.Kind // what every line is; "": what it looks like

	list, plan bool
	live       bool
	speed      float64         // 0: so that the demo takes about half a minute
	providers  []string        // nil: the default ones; "all": every one
	kinds      []provider.Kind // nil: all
	config     string
	resume     string
	maxCalls   int // 0: no bound
	atOnce     int // likewise
	wait       time.Duration
	cache      string // "": the default place with -live, else off; "off": none
	ledger     string // "": the variable's, else the default place; "none": no ledger
	ttl        time.Duration

	json    bool
	output  string
	format  string // "": by the name of output
	metrics string // the address of the scrape; "": none
	serve   string // the address of the status page; "": none
	stay    bool   // the page stays when all is done
}

// errHelp says that the usage was asked for, and written.
var errHelp = errors.New("help")

// parse reads the command line. Usage goes to help when asked for.
func parse(args []string, help io.Writer) (options, error) {
	var o options
	set := o.flags()
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

// flags defines what parse takes.
func (o *options) flags() *flag.FlagSet {
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
	set.Func("as", "take every line for the `KIND`: "+kindNames(), func(s string) (err error) {
		o.as, err = kindOf(s)
		return err
	})
	set.BoolVar(&o.list, "list", false, "list the providers (-providers and -kinds choose) and what each needs, and ask none")
	set.BoolVar(&o.plan, "plan", false, "tell when the lookups would go and which limits bind, and ask none")
	set.Func("providers", "ask `A,B,…` only; all: every one of the catalogue", func(s string) error {
		o.providers = append(o.providers, words(s)...)
		return nil
	})
	set.Func("kinds", "look up indicators of the kinds `A,B,…` only", func(s string) error {
		for _, name := range words(s) {
			k, err := kindOf(name)
			if err != nil {
				return err
			}
			o.kinds = append(o.kinds, k)
		}
		return nil
	})
	set.StringVar(&o.config, "config", "", "put the limits, keys and switches of `FILE` over the declarations (headgate.yaml)")
	set.StringVar(&o.resume, "resume", "", "note in `FILE` what is done, and go on where an earlier run with it ended; -o is then continued")
	set.Func("max-calls", "make at most `N` calls to each provider; what is left is told as not asked", from1(&o.maxCalls))
	set.Func("at-once", "have at most `N` calls out at once, at all providers together", from1(&o.atOnce))
	o.wait, o.ttl = defaultWait, defaultTTL
	set.Func("wait", "refuse at once, with its time, what could go only after `DURATION` from now (default 1h)", above0(&o.wait))
	set.StringVar(&o.cache, "cache", "", "keep answers in `FILE`, off: nowhere (default, with -live only: osint.db in the user's cache folder)")
	set.Func("ttl", "take an answer from the cache if it is younger than `DURATION`, and keep new ones so long (default 24h)", above0(&o.ttl))
	set.StringVar(&o.ledger, "ledger", "", "keep what is spent in `PLACE`: "+ledgerflag.Usage+" (default: $"+ledgerflag.Variable+", else osint.db in the user's state folder)")
	set.StringVar(&o.output, "o", "", "write the results to `FILE`; it is overwritten")
	set.StringVar(&o.format, "format", "", "write them as `FORMAT`, jsonl or csv (default: csv where the name ends in .csv, else jsonl)")
	set.BoolVar(&o.json, "json", false, "write the results to the standard output, as JSON lines; the table goes to the standard error")
	set.Func("speed", "let the played time pass `N` times as fast (default: so that it takes about 30 s)", func(s string) (err error) {
		o.speed, err = strconv.ParseFloat(s, 64)
		if err != nil || !(o.speed > 0) || math.IsInf(o.speed, 0) {
			return errors.New("want a number above 0")
		}
		return nil
	})
	o.windows(set)
	set.BoolVar(&o.live, "live", false, "ask the real providers, with keys from the environment; spends your quotas")
	return set
}

func from1(n *int) func(string) error {
	return func(s string) (err error) {
		if *n, err = strconv.Atoi(s); err != nil || *n < 1 {
			return errors.New("want a whole number above 0")
		}
		return nil
	}
}

func above0(d *time.Duration) func(string) error {
	return func(s string) (err error) {
		if *d, err = time.ParseDuration(s); err != nil || *d <= 0 {
			return errors.New("want a length of time above 0, such as 90m")
		}
		return nil
	}
}

// words are the parts of a comma list.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// check finds what contradicts itself.
func (o options) check() error {
	asks := !o.list && !o.plan
	switch {
	case o.list && o.plan:
		return errors.New("-list and -plan: want one of them")
	case !asks && o.metrics != "":
		return errors.New("-metrics shows a run: -list and -plan ask nobody")
	case !asks && o.serve != "":
		return errors.New("-serve shows a run: -list and -plan ask nobody")
	case o.stay && o.serve == "":
		return errors.New("-stay keeps the page of -serve: say where, -serve 127.0.0.1:8080")
	case o.plan && o.atOnce > 0:
		return errors.New("-plan and -at-once: a plan takes each provider by itself, and would be wrong")
	case o.live && o.speed != 0:
		return errors.New("-speed is for played providers: the real ones set their own pace")
	case o.output != "" && o.json:
		return errors.New("-o and -json: want one place for the results")
	case !slices.Contains([]string{"", formatJSONL, formatCSV}, o.format):
		return fmt.Errorf("-format %q: want jsonl or csv", o.format)
	case o.json && o.format == formatCSV:
		return errors.New("-json and -format csv: want one format; CSV goes to a file, -o FILE")
	case asks && o.live && o.output == "" && !o.json:
		return errors.New("-live spends quotas: say where the answers go, -o FILE or -json")
	case asks && o.resume != "" && o.output == "" && !o.json:
		return errors.New("-resume skips what is done: say where the answers go, -o FILE or -json")
	case asks && o.resume != "" && o.output != "" && same(o.resume, o.output):
		return errors.New("-resume and -o name one file: want two")
	}
	if o.ledger != "" {
		if _, err := ledgerflag.Parse(o.ledger); err != nil { // package flag would repeat it, password and all
			return fmt.Errorf("-ledger: %w", err)
		}
	}
	if asks && o.output != "" {
		for _, name := range append([]string{o.config, o.cache}, o.files...) {
			if name != "" && name != "off" && same(name, o.output) {
				return fmt.Errorf("-o %s would overwrite what is read from there: want another file", o.output)
			}
		}
	}
	for _, a := range o.indicators {
		if strings.HasPrefix(a, "-") {
			return fmt.Errorf("%s after an indicator: want flags first", a)
		}
	}
	return nil
}

func same(a, b string) bool {
	if infoA, err := os.Stat(a); err == nil { // also by another name
		if infoB, err := os.Stat(b); err == nil && infoA.Mode().IsRegular() {
			return os.SameFile(infoA, infoB)
		}
	}
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// formatOf is how results are written.
func (o options) formatOf() string {
	switch {
	case o.format != "":
		return o.format
	case strings.EqualFold(filepath.Ext(o.output), ".csv"):
		return formatCSV
	}
	return formatJSONL
}

// read reads all indicators that the options name, the shipped ones where they
// name none. A file that cannot be read is an error.
func (o options) read(stdin io.Reader) (*reading, error) {
	r := &reading{as: o.as, only: o.kinds}
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
		if err := r.file(name); err != nil {
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
