package provider

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Validate returns every fault of the throttle, joined, each a *[FieldError] with
// its field relative to the throttle ("limits[2].per"); nil where there is none.
// Whether the endpoints that its limits name exist is seen by
// [Provider.Validate] alone.
func (t Throttle) Validate() error {
	var f faults
	t.check(&f, "")
	return f.join()
}

// Validate returns every fault of the limit, joined, each a *[FieldError]; nil
// where there is none. Names are compared by [Throttle.Validate].
func (l Limit) Validate() error {
	var f faults
	l.check(&f, "")
	return f.join()
}

func (t Throttle) check(f *faults, path string) {
	t.checkShort(f, path)
	checkWord(f, at(path, "excess"), t.Excess, Queue, Reject, Delay)
	checkCount(f, at(path, "max_queue"), t.MaxQueue)
	checkLength(f, at(path, "max_wait"), t.MaxWait, true)
	checkCount(f, at(path, "max_in_flight"), t.MaxInFlight)
	checkLength(f, at(path, "penalty"), t.Penalty, false)
	checkLength(f, at(path, "warmup"), t.Warmup, false)
	checkLength(f, at(path, "arrival_within"), t.ArrivalWithin, false)
	checkLength(f, at(path, "least_round_trip"), t.LeastRoundTrip, false)
	checkLength(f, at(path, "max_retry_after"), t.MaxRetryAfter, true)
	checkWord(f, at(path, "learn"), t.Learn, LearnLower, LearnRaise)
	if t.BadAnswers != nil {
		t.BadAnswers.checkBadAnswers(f, at(path, "bad_answers"))
	}
	for i, l := range t.Limits {
		l.check(f, item(at(path, "limits"), i))
	}
	t.checkLimitNames(f, path)
}

func (t Throttle) checkShort(f *faults, path string) {
	given := false
	for _, r := range t.rates() {
		given = given || r.value != 0
		if _, _, problem := r.limit(); problem != "" {
			f.add(at(path, r.key), "%s", problem)
		}
	}
	if t.Burst < 0 {
		f.add(at(path, "burst"), "%d is negative: write a number above 0, or leave it out", t.Burst)
	}
	switch {
	case t.Algorithm == InFlight:
		f.add(at(path, "algorithm"), "in_flight shapes no rate: write max_in_flight")
	case t.Algorithm != "":
		checkWord(f, at(path, "algorithm"), t.Algorithm, algorithms[:len(algorithms)-1]...)
	}
	const needed = "has no rate to shape: give rps, rpm, rph or rpd, or set it on a limit"
	if !given && t.Algorithm != "" {
		f.add(at(path, "algorithm"), needed)
	}
	if !given && t.Burst != 0 {
		f.add(at(path, "burst"), needed)
	}
}

// checkLimitNames looks for two limits of one name: Update tells the old from
// the new ones by it.
func (t Throttle) checkLimitNames(f *faults, path string) {
	seen := map[string]string{}
	for _, l := range t.short() {
		seen[l.Name] = at(path, l.Name)
	}
	if t.BadAnswers != nil {
		seen[t.WithDefaults().BadAnswers.Name] = at(path, badAnswersName)
	}
	for i, l := range t.Limits {
		where := item(at(path, "limits"), i)
		if first, taken := seen[l.Name]; taken && l.Name != "" {
			f.add(at(where, "name"), "%s is the name of %s already: each limit needs its own", quoteShort(l.Name), first)
			continue
		}
		seen[l.Name] = where
	}
}

var algorithms = []Algorithm{SlidingWindow, SlidingLog, SlidingWindowCounter, FixedWindow, TokenBucket, GCRA, LeakyBucket, InFlight}

func (l Limit) check(f *faults, path string) {
	if l.Name == "" {
		f.add(at(path, "name"), "is missing: each limit needs its own")
	}
	l.checkNumbers(f, path)
	l.checkPeriod(f, path)
	l.checkCounting(f, path)
	checkWord(f, at(path, "scope"), l.Scope, ScopeProvider, ScopeKey, ScopeEndpoint, ScopeKeyEndpoint)
	l.checkEndpoints(f, path)
	l.checkKeys(f, path)
	checkWord(f, at(path, "basis"), l.Basis, BasisProvider, BasisPacing, BasisAssumed)
}

func (l Limit) checkNumbers(f *faults, path string) {
	if l.Max < 1 {
		f.add(at(path, "max"), "%d is too small: it must be at least 1", l.Max)
	}
	checkWord(f, at(path, "algorithm"), l.Algorithm, algorithms...)
	switch {
	case l.Burst < 0:
		f.add(at(path, "burst"), "%d is negative: write a number above 0, or leave it out", l.Burst)
	case l.Burst > 0 && l.algorithm() == InFlight:
		f.add(at(path, "burst"), "in_flight has no burst: leave it out")
	case l.Burst > 0 && !l.hasBurst() && slices.Contains(algorithms, l.algorithm()):
		f.add(at(path, "burst"), "%s has no burst: write a further limit of %d per 1s, or use token_bucket or leaky_bucket", l.algorithm(), l.Burst)
	}
}

func (l Limit) checkPeriod(f *faults, path string) {
	_, calendar := l.Per.Duration()
	problem := l.Per.problem()
	switch {
	case l.Algorithm == InFlight && l.Per != "":
		f.add(at(path, "per"), "in_flight counts calls that are out, not a period: leave it out")
	case l.Algorithm != InFlight && problem != "":
		f.add(at(path, "per"), "%s", problem)
	case calendar && l.algorithm() != FixedWindow && slices.Contains(algorithms, l.Algorithm):
		f.add(at(path, "algorithm"), "%s cannot have the calendar period %s: leave it out (fixed_window), or write a duration", l.Algorithm, l.Per)
	}
	switch _, err := time.LoadLocation(l.Zone); {
	case l.Zone == "":
	case !calendar:
		f.add(at(path, "zone"), "needs a calendar period: per minute, hour, day or month")
	case err != nil || l.Zone == "Local":
		f.add(at(path, "zone"), `%s is unknown: write an IANA name such as "America/Los_Angeles" or "UTC"`, quoteShort(l.Zone))
	}
	if _, _, err := l.AnchorParts(); err != nil {
		f.add(at(path, "anchor"), "%s", err)
	}
}

func (l Limit) checkCounting(f *faults, path string) {
	checkWord(f, at(path, "counted"), l.Counted, CountedAnswered, CountedSent)
	if l.Algorithm == SlidingLog && l.Counted == CountedAnswered {
		f.add(at(path, "counted"), "sliding_log means sent: write sliding_window for answered")
	}
	if strings.ContainsFunc(l.Unit, func(r rune) bool { return isControl(r) || r == ' ' }) {
		f.add(at(path, "unit"), "%s must be one word, such as tokens", quoteShort(l.Unit))
	}
	for i, o := range l.Charges {
		if !o.Valid() {
			f.add(item(at(path, "charges"), i), "%s is unknown: it must be %s", quoteShort(string(o)), oneOf(outcomes))
		}
	}
	if l.Algorithm != InFlight {
		return
	}
	if l.Unit != "" && l.Unit != Requests {
		f.add(at(path, "unit"), "in_flight counts requests: leave it out")
	}
	if l.Counted == CountedSent {
		f.add(at(path, "counted"), "in_flight counts until the answer: leave it out")
	}
	if len(l.Charges) > 0 {
		f.add(at(path, "charges"), "in_flight charges nothing: leave it out")
	}
}

func (l Limit) checkKeys(f *faults, path string) {
	path = at(path, "keys")
	if len(l.Keys) > 0 && l.Scope != ScopeKey && l.Scope != ScopeKeyEndpoint {
		f.add(path, "needs scope: key, where each key counts apart")
	}
	for _, alias := range slices.Sorted(maps.Keys(l.Keys)) {
		if n := l.Keys[alias]; n < 1 {
			f.add(at(path, alias), "%d is too small: it must be at least 1", n)
		}
	}
}

func (l Limit) checkEndpoints(f *faults, path string) {
	for i, name := range l.Endpoints {
		switch {
		case name == "":
			f.add(item(at(path, "endpoints"), i), "is empty: it must be the name of an endpoint")
		case slices.Contains(l.Endpoints[:i], name):
			f.add(item(at(path, "endpoints"), i), "%s is there twice: name an endpoint once", quoteShort(name))
		}
	}
	if l.Instead && len(l.Endpoints) == 0 {
		f.add(at(path, "instead"), "needs endpoints: those that leave the general limits")
	}
}

// checkBadAnswers checks the budget of bad answers: a limit, of which what
// chooses calls has no meaning, since it counts answers.
func (l Limit) checkBadAnswers(f *faults, path string) {
	if l.Name == "" {
		l.Name = badAnswersName
	}
	const out = "has no meaning here, where 401, 403 and 429 answers are counted: leave it out"
	if l.Algorithm == InFlight {
		f.add(at(path, "algorithm"), "in_flight counts no answers: leave it out (sliding_window)")
	}
	if l.Unit != "" && l.Unit != Requests {
		f.add(at(path, "unit"), out)
	}
	if len(l.Endpoints) > 0 {
		f.add(at(path, "endpoints"), out)
	}
	if l.Instead {
		f.add(at(path, "instead"), out)
	}
	if len(l.Charges) > 0 {
		f.add(at(path, "charges"), out)
	}
	l.Endpoints, l.Instead, l.Charges, l.Unit = nil, false, nil, ""
	l.check(f, path)
}
