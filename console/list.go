package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	perPage     = 50
	mostPerPage = 1000 // of the JSON
	mostOpen    = 8    // panels at once
	longestText = 200  // that is searched for
	longestSlug = 200  // bytes of one that is open: every link of the page repeats it
)

// query says what somebody looks at.
type query struct {
	text  string
	state Condition // "": all that were used
	page  int       // from 1
	open  []string  // slugs whose panels are open
	per   int
}

// asked reads a query from an address. What makes no sense counts as left out: a link
// that somebody kept shows something.
func asked(r *http.Request) query {
	v := r.URL.Query()
	q := query{text: strings.TrimSpace(v.Get("q")), page: 1, per: perPage}
	if runes := []rune(q.text); len(runes) > longestText {
		q.text = string(runes[:longestText])
	}
	if c := Condition(v.Get("state")); slices.Contains(conditions, c) {
		q.state = c
	}
	if n, err := strconv.Atoi(v.Get("page")); err == nil && n > 0 {
		q.page = n
	}
	for _, slug := range strings.Split(v.Get("open"), ",") {
		if slug != "" && len(slug) <= longestSlug && len(q.open) < mostOpen && !slices.Contains(q.open, slug) {
			q.open = append(q.open, slug)
		}
	}
	return q
}

// address is the query as part of an address that is relative to the page; "?" where
// there is nothing to say.
func (q query) address() string {
	v := url.Values{}
	if q.text != "" {
		v.Set("q", q.text)
	}
	if q.state != "" {
		v.Set("state", string(q.state))
	}
	if q.page > 1 {
		v.Set("page", strconv.Itoa(q.page))
	}
	if len(q.open) > 0 {
		v.Set("open", strings.Join(q.open, ","))
	}
	return "?" + v.Encode()
}

// toggled is the query with a panel opened, or closed. Where too many are open the
// first makes room.
func (q query) toggled(slug string) query {
	if i := slices.Index(q.open, slug); i >= 0 {
		q.open = slices.Delete(slices.Clone(q.open), i, i+1)
		return q
	}
	q.open = append(slices.Clone(q.open[max(0, len(q.open)-mostOpen+1):]), slug)
	return q
}

// showing is the query that shows a provider, with its panel, wherever it stands in the
// list.
func (s *snapshot) showing(r *row) query {
	q := query{page: 1, per: len(s.rows)}
	if r.state == nil { // the list of all leaves it out
		q.state = r.verdict.condition
	}
	q.page += slices.Index(s.find(q).rows, r) / perPage
	q.open, q.per = []string{r.about.slug}, perPage
	return q
}

// found is one page of what a query matches.
type found struct {
	rows               []*row
	total, page, pages int
}

// find looks rows up. A page behind the last is the last.
func (s *snapshot) find(q query) found {
	text := strings.ToLower(q.text)
	var all []*row
	for _, r := range s.rows {
		switch c := r.verdict.condition; {
		case q.state == "" && r.state == nil && text == "":
		case q.state != "" && c != q.state:
		case text != "" && !strings.Contains(r.search, text):
		default:
			all = append(all, r)
		}
	}
	f := found{total: len(all), pages: max(1, (len(all)+q.per-1)/q.per)}
	f.page = min(q.page, f.pages)
	from := (f.page - 1) * q.per
	f.rows = all[from:min(from+q.per, len(all))]
	return f
}
