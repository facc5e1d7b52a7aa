package main

import (
	"fmt"
	"text/tabwriter"
	"time"
)

// after is told of each try.
func (t *teller) after(s *source, e entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		if last, known := t.last[s.Name]; known && e.Fetched.Sub(last) < s.Every {
			t.sooner++
		}
		t.last[s.Name] = e.Fetched
	}
	if t.speed != 1 {
		return // a week of lines in half a minute
	}
	text := fmt.Sprintf("fetched, %d bytes", e.Bytes)
	if err != nil {
		text = e.Why
	}
	fmt.Fprintf(t.stderr, "%s %s: %s; due %s\n", time.Now().Format(time.DateTime), s.Name, text, e.Due.Format(time.DateTime))
}

// long is a length of time as it would be at speed 1.
func (t *teller) long(d time.Duration) time.Duration { return time.Duration(float64(d) * t.speed) }

// at tells an instant: played ones as the day and the hour since the begin.
func (t *teller) at(x time.Time) string {
	switch {
	case x.IsZero():
		return "–"
	case t.speed == 1:
		return x.Format("Jan 2 15:04:05")
	}
	d := t.long(x.Sub(t.begin))
	day := d / (24 * time.Hour)
	rest := d - day*24*time.Hour
	return fmt.Sprintf("day %d %02d:%02d", day+1, rest/time.Hour, rest%time.Hour/time.Minute)
}

// table tells how each source stands.
func (t *teller) table(s *schedule) error {
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nsource\tprovider\tevery\tfetched\tfailed\tmissed\tlast\tdue\t")
	for _, x := range s.sources {
		e, err := s.book.get(x)
		if err != nil {
			return err
		}
		due := t.at(e.Due)
		if !e.Due.After(time.Now()) {
			due = "now"
		}
		if e.Why != "" {
			due += " (" + e.Why + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t\n", x.Name, x.Provider, t.long(x.Every).Round(time.Minute), e.Times, e.Failed, e.Skipped, t.at(e.Fetched), due)
	}
	fmt.Fprintln(w)
	return w.Flush()
}
