package console

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/provider"
)

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"count": count, "short": short, "plural": plural, "span": span, "rate": perSecond, "percent": percent, "clock": clock, "per": per,
	"words":   func(s any) string { return words(fmt.Sprint(s)) },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"day":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"bar":     barOf,
	"int64":   func(n int) int64 { return int64(n) },
	"calls":   callsChart,
	"waiting": waitingChart,
	"isOff":   func(off []string) bool { return slices.Contains(off, provider.Everything) },
}).ParseFS(web, "web/*.html"))

// render runs a template. Its data are ours: what fails is a fault of the package.
func render(name string, data any) string {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("console: template %s: %v", name, err))
	}
	return b.String()
}

// toggle stands in a row for the address that opens and closes its panel: a row is
// written once for all who look at it, whatever else they ask for.
const toggle = "@toggle@"

// piece is a row as HTML, written when it is first asked for.
type piece struct {
	once sync.Once
	html string
}

// rowView is what the row's template is given.
type rowView struct {
	Provider
	Bars    []bar
	More    int // limits that are not among Bars
	Chart   *chart
	Panel   *Detail
	All     []bar // the panel's
	AllMore int   // limits that are not among All
	Actions bool
	Unused  bool // never called
}

const (
	mostBars      = 3
	mostPanelBars = 100 // of a panel: a provider that declares no endpoints has as many limits of endpoints as callers name
)

// html is the row with its panel, or without.
func (k *Console) html(s *snapshot, r *row, open bool) string {
	p := &r.pieces[0]
	if open {
		p = &r.pieces[1]
	}
	p.once.Do(func() {
		v := rowView{Provider: k.provider(r), Actions: k.opt.Actions && !s.down, Unused: r.state == nil}
		v.Bars, v.More = tightest(v.Limits, v.Busiest, mostBars)
		if h := k.history.of(v.Slug); h != nil {
			v.Chart = callsChart(h)
		}
		if open {
			d := k.detail(s.at, r)
			v.Panel = &d
			v.All, v.AllMore = tightest(d.Limits, nil, mostPanelBars)
		}
		p.html = render("row", v)
	})
	return p.html
}

// whole is a message with everything that a query shows.
func (k *Console) whole(s *snapshot, q query) message {
	f := s.find(q)
	m := message{At: instant(s.at), Order: make([]string, 0, len(f.rows)), Parts: make(map[string]string, len(f.rows)+3)}
	open := make(map[string]bool, len(q.open))
	for _, slug := range q.open {
		open[slug] = true
	}
	for _, r := range f.rows {
		slug := r.about.slug
		m.Order = append(m.Order, slug)
		text := k.html(s, r, open[slug])
		m.Parts["p-"+slug] = strings.Replace(text, toggle, html.EscapeString(q.toggled(slug).address()+"#p-"+slug), 1)
	}
	m.Parts["summary"] = render("summary", k.summary(s))
	m.Parts["filters"] = render("filters", filters(s, q))
	m.Parts["pager"] = render("pager", pagerOf(s, f, q))
	return m
}

// summary is the page's headline.
type summary struct {
	Down              bool
	Providers         int
	Words             string // what is urgent: read aloud where it changes
	Tone              string
	InFlight, Waiting int
	Rate              float64
	Budget            *Shared
}

// told is how a headline counts conditions.
var told = []struct {
	c         Condition
	one, many string
}{
	{Banned, "provider has banned us", "providers have banned us"},
	{Paused, "provider is paused", "providers are paused"},
	{CircuitOpen, "circuit is open", "circuits are open"},
	{QuotaSpent, "quota is spent", "quotas are spent"},
	{Refusing, "provider refuses calls", "providers refuse calls"},
}

func (k *Console) summary(s *snapshot) summary {
	v := summary{Down: s.down, InFlight: s.inFlight, Waiting: s.waiting, Rate: s.rate, Tone: "good", Budget: shared(s.rows)}
	v.Providers = s.used
	var parts []string
	for _, t := range told {
		n := s.counts[t.c]
		switch {
		case n == 1:
			parts = append(parts, "1\u00a0"+t.one)
		case n > 1:
			parts = append(parts, count(int64(n))+"\u00a0"+t.many)
		default:
			continue
		}
		if v.Tone == "good" || t.c.Tone() == "bad" {
			v.Tone = t.c.Tone()
		}
	}
	switch {
	case len(parts) > 0:
		v.Words = strings.Join(parts, ", ")
	case v.Providers == 0:
		v.Words, v.Tone = "No call yet", "calm"
	default:
		v.Words = "All providers take calls"
	}
	if v.Budget != nil && v.Budget.Mode != "shared" {
		v.Words = "The shared budget does not answer. " + v.Words
		v.Tone = "bad"
	}
	if s.down {
		v.Words, v.Tone = "Shut down: no call goes any more", "calm"
	}
	return v
}

// filter is one link that shows the providers of one condition.
type filter struct {
	ID, Label, Tone, Address string
	Count                    int
	Chosen                   bool
}

func filters(s *snapshot, q query) (all []filter) {
	link := func(c Condition, label, tone string, n int) {
		to := q
		to.state, to.page = c, 1
		all = append(all, filter{cmp.Or(string(c), "all"), label, tone, to.address(), n, q.state == c})
	}
	link("", "All", "", s.used)
	for _, c := range conditions {
		if s.counts[c] > 0 || q.state == c {
			link(c, c.Label(), c.Tone(), s.counts[c])
		}
	}
	return all
}

// pager leads from page to page.
type pager struct {
	Total, First, Last   int    // rows, from 1
	Number, Pages        int    // of pages
	Before, Behind       string // addresses; "": there is none
	Searched, Everything string // the text, and the address without it
	Narrowed             bool   // not all were asked for
	NotUsed              int    // providers that were never called
	All                  string // their address
}

func pagerOf(s *snapshot, f found, q query) pager {
	p := pager{
		Total: f.total, Number: f.page, Pages: f.pages, Searched: q.text, Everything: query{open: q.open, page: 1}.address(),
		Narrowed: q.text != "" || q.state != "", NotUsed: s.counts[Unused], All: query{state: Unused, page: 1}.address(),
	}
	if f.total > 0 {
		p.First = (f.page-1)*q.per + 1
		p.Last = p.First + len(f.rows) - 1
	}
	at := func(n int) string {
		q.page = n
		return q.address()
	}
	if f.page > 1 {
		p.Before = at(f.page - 1)
	}
	if f.page < f.pages {
		p.Behind = at(f.page + 1)
	}
	return p
}

// pageView is what the page's template is given.
type pageView struct {
	Title, Root, Version    string // Root leads to the page's folder
	At                      time.Time
	Text, State, Open       string // of the query
	Summary, Filters, Pager template.HTML
	Rows                    []template.HTML
	Actions                 bool
}

// page answers GET /.
func (k *Console) page(w http.ResponseWriter, r *http.Request) {
	q := asked(r)
	s := k.now()
	m := k.whole(s, q)
	trusted := func(id string) template.HTML { return template.HTML(m.Parts[id]) }
	v := pageView{
		Title: k.opt.Title, Version: version, At: m.At, Text: q.text, State: string(q.state), Open: strings.Join(q.open, ","),
		Summary: trusted("summary"), Filters: trusted("filters"), Pager: trusted("pager"), Actions: k.opt.Actions,
	}
	for _, slug := range m.Order {
		v.Rows = append(v.Rows, trusted("p-"+slug))
	}
	write(w, http.StatusOK, render("page", v))
}

func write(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
