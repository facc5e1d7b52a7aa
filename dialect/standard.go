package dialect

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// families are the conventional beginnings of a name, as http.Header writes
// them. Of two that tell the same the first counts.
var families = []string{"Ratelimit", "X-Ratelimit", "X-Rate-Limit"}

// family cuts a name into its family and the rest ("" or "-…").
func family(name string) (i int, rest string, ok bool) {
	for i, f := range families {
		if len(name) < len(f) || !strings.EqualFold(name[:len(f)], f) {
			continue
		}
		if rest := name[len(f):]; rest == "" || rest[0] == '-' {
			return i, rest, true
		}
	}
	return 0, "", false
}

// group is what the fields of one family say of one budget.
type group struct {
	family int
	name   string

	limit, remaining, used, reset, resetIn, resetAt, window []string

	claimed bool // the declaration reads one of these fields itself
}

// conventional reads the budgets of all families.
func (a *answer) conventional(d *provider.Dialect) []provider.Budget {
	var all []quota
	if !claims(d, "RateLimit") {
		all = structured(a.lines("Ratelimit"))
	}
	groups := a.groups(d)
	for _, g := range groups {
		if !g.claimed {
			all = a.join(all, g)
		}
	}
	if !claims(d, "RateLimit-Policy") {
		all = policies(all, a.lines("Ratelimit-Policy"))
	}
	var told []provider.Budget
	for _, q := range all {
		if q.HasLimit || q.HasRemaining || q.HasReset {
			told = append(told, q.Budget)
		}
	}
	return told
}

// groups sorts the fields, the nameless budget of each family first.
func (a *answer) groups(d *provider.Dialect) []*group {
	type key struct {
		family int
		name   string
	}
	found := map[key]*group{}
	for _, header := range slices.Sorted(maps.Keys(a.header)) {
		f, rest, ok := family(header)
		if !ok {
			continue
		}
		role, name := roleOf(f, rest)
		if role == nil {
			continue
		}
		g := found[key{f, name}]
		if g == nil {
			g = &group{family: f, name: name}
			found[key{f, name}] = g
		}
		g.claimed = g.claimed || claims(d, header)
		lines := role(g)
		*lines = append(*lines, a.header[header]...)
	}
	return slices.SortedFunc(maps.Values(found), func(x, y *group) int {
		if x.family != y.family {
			return x.family - y.family
		}
		return strings.Compare(x.name, y.name)
	})
}

// roleOf splits the rest of a name into what it tells and of which budget: the
// words that stand around ("-Limit-Minute", "-Requests-Limit"). nil: nothing.
func roleOf(family int, rest string) (role func(*group) *[]string, name string) {
	rest = strings.ToLower(rest)
	if rest == "" && family > 0 { // X-Rate-Limit: 700
		return roles[0].of, ""
	}
	for _, r := range roles {
		before, after, ok := strings.Cut(rest+"-", r.words)
		if !ok {
			continue
		}
		name = strings.Trim(before+"-"+after, "-")
		if len(name) > maxName {
			return nil, ""
		}
		return r.of, name
	}
	return nil, ""
}

// roles are the words that name a part; longer ones first.
var roles = []struct {
	words string
	of    func(*group) *[]string
}{
	{"-limit-", func(g *group) *[]string { return &g.limit }},
	{"-remaining-", func(g *group) *[]string { return &g.remaining }},
	{"-reset-after-", func(g *group) *[]string { return &g.resetIn }},
	{"-reset-in-", func(g *group) *[]string { return &g.resetIn }},
	{"-reset-time-", func(g *group) *[]string { return &g.resetAt }},
	{"-reset-date-", func(g *group) *[]string { return &g.resetAt }},
	{"-reset-at-", func(g *group) *[]string { return &g.resetAt }},
	{"-resettime-", func(g *group) *[]string { return &g.resetAt }},
	{"-reset-", func(g *group) *[]string { return &g.reset }},
	{"-used-", func(g *group) *[]string { return &g.used }},
	{"-observed-", func(g *group) *[]string { return &g.used }},
	{"-usage-", func(g *group) *[]string { return &g.used }},
	{"-interval-seconds-", func(g *group) *[]string { return &g.window }},
	{"-window-", func(g *group) *[]string { return &g.window }},
}

// join makes a budget of a group; one that an earlier family has told already
// only fills what is missing there.
func (a *answer) join(all []quota, g *group) []quota {
	var q quota
	q.Name = g.name
	q.Unit = unitOf(g.name)
	q.Window = windowOf(g.name)
	var more []string
	for _, line := range g.limit {
		list := items(line, false)
		first, _, _ := strings.Cut(list[0], ";")
		q.setLimit(strings.TrimSpace(first))
		more = append(more, list[1:]...)
	}
	for _, line := range g.remaining {
		q.setRemaining(items(line, false)[0])
	}
	for _, line := range g.used {
		q.setUsed(items(line, false)[0])
	}
	q.finish()
	for _, lines := range [][]string{g.resetIn, g.reset, g.resetAt} { // relative beats absolute
		if !q.HasReset {
			q.Reset, q.HasReset = a.latest(lines, "")
		}
	}
	for _, line := range g.window {
		if w, ok := a.windowLength(line, ""); ok && q.Window == 0 {
			q.Window = w
		}
	}
	if i := slices.IndexFunc(all, q.same); i >= 0 {
		all[i].fill(q)
	} else if q.HasLimit || q.HasRemaining || q.HasReset {
		all = append(all, q)
	}
	return policies(all, more)
}

// same says whether two families tell the same budget.
func (q quota) same(other quota) bool {
	return q.Name == other.Name && q.HasLimit && other.HasLimit && q.Limit == other.Limit &&
		(!q.HasRemaining || !other.HasRemaining || q.Remaining == other.Remaining)
}

// fill takes what q does not know.
func (q *quota) fill(from quota) {
	if !q.HasRemaining {
		q.Remaining, q.HasRemaining = from.Remaining, from.HasRemaining
	}
	if !q.hasUsed {
		q.Used, q.hasUsed = from.Used, from.hasUsed
	}
	if !q.HasReset {
		q.Reset, q.HasReset = from.Reset, from.HasReset
	}
	if q.Window == 0 {
		q.Window = from.Window
	}
}

var windowWords = map[string]time.Duration{
	"second": time.Second, "secondly": time.Second,
	"minute": time.Minute, "minutely": time.Minute,
	"hour": time.Hour, "hourly": time.Hour,
	"day": 24 * time.Hour, "daily": 24 * time.Hour,
	"month": 31 * 24 * time.Hour, "monthly": 31 * 24 * time.Hour,
}

var windowLetters = map[byte]string{'s': "s", 'm': "m", 'h': "h", 'd': "d"}

// windowOf reads a window in a name: -Minute, -Daily, -1M, -10S. There the M is
// a minute.
func windowOf(name string) time.Duration {
	for word := range strings.SplitSeq(strings.ToLower(name), "-") {
		if w := windowWords[word]; w > 0 {
			return w
		}
		if n := len(word) - 1; n > 0 && digits(word[:n]) {
			if w, ok := oneUnit(word[:n], windowLetters[word[n]]); ok {
				return w
			}
		}
	}
	return 0
}

// unitOf reads a unit in a name: requests, input-tokens.
func unitOf(name string) string {
	for _, unit := range []string{provider.Requests, provider.Tokens, provider.Credits, provider.Bytes} {
		if strings.Contains(name, unit) {
			return unit
		}
	}
	return ""
}
