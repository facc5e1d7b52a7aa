package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func nothing(context.Context) error { return nil }

// Every answer has the headers that keep a browser from doing what the page does not
// mean, and nothing but the script and the sheet may be kept.
func TestHeaders(t *testing.T) {
	bubble(t, Options{Actions: true}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		for _, target := range []string{"/", "/rows", "/api/state", "/api/providers/acme", "/api/providers/none", "/none", "/style.css", "/app.js", "/app.js?v=old", "/providers/acme/pause"} {
			h := w.get(target).Header()
			assert.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
				h.Get("Content-Security-Policy"), target)
			assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), target)
			assert.Equal(t, "same-origin", h.Get("Referrer-Policy"), target)
			assert.Equal(t, "DENY", h.Get("X-Frame-Options"), target)
			assert.Equal(t, "no-store", h.Get("Cache-Control"), target)
		}
		for _, target := range []string{"/style.css", "/app.js"} {
			assert.Contains(t, w.get(target+"?v="+version).Header().Get("Cache-Control"), "immutable")
		}
		assert.Equal(t, "text/javascript; charset=utf-8", w.get("/app.js").Header().Get("Content-Type"))
		assert.Equal(t, "text/css; charset=utf-8", w.get("/style.css").Header().Get("Content-Type"))
	}, provider.Provider{Slug: "acme"})
}

// Nothing in a page needs what the policy forbids, and all its addresses are relative.
func TestPageKeepsItsPolicy(t *testing.T) {
	bubble(t, Options{Actions: true}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme", Key: "KEY"}, ok))
		time.Sleep(time.Minute)
		for _, target := range []string{"/", "/?open=acme&q=a&state=busy", "/?q=none", "/providers/acme/pause", "/providers/acme/limits", "/providers/acme/resume"} {
			page := w.get(target).Body.String()
			assert.NotRegexp(t, `(?i)\sstyle=|<style|\son[a-z]+=|javascript:`, page, target)
			assert.NotRegexp(t, `<script[^>]*>[^<]`, page, target)
			for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				assert.NotRegexp(t, `^(/|[a-z]+:[^i])`, m[1], target) // but the icon, which is data:image
			}
		}
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPM: 60}})
}

// Below a prefix, with and without the last slash.
func TestPrefix(t *testing.T) {
	w := newWorld(t, Options{Actions: true}, provider.Provider{Slug: "acme"})
	defer w.Close()
	require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme"}, nothing))
	w.renew()
	server := httptest.NewServer(http.StripPrefix("/ops/gate", w))
	defer server.Close()
	for _, from := range []string{"/ops/gate", "/ops/gate/"} {
		res, err := http.Get(server.URL + from)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		assert.Equal(t, "/ops/gate/", res.Request.URL.Path)
		assert.Contains(t, string(body), "acme")
		sheet, err := res.Request.URL.Parse("style.css")
		require.NoError(t, err)
		res, err = http.Get(sheet.String())
		require.NoError(t, err)
		res.Body.Close()
		assert.Equal(t, http.StatusOK, res.StatusCode)
	}
}

// Pages, filters and search leave nothing out and show nothing twice.
func TestPaging(t *testing.T) {
	var ps []provider.Provider
	for i := range 130 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprintf("p%03d", i), Name: fmt.Sprintf("Name %d", i), Category: []string{"odd", "even"}[i%2]})
	}
	bubble(t, Options{}, func(t *testing.T, w *world) {
		for _, p := range ps[:120] {
			require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: p.Slug}, nothing))
		}
		time.Sleep(time.Second)
		slugs := func(target string) (all []string, s Status) {
			w.read(target, &s)
			for _, p := range s.Providers {
				all = append(all, p.Slug)
			}
			return all, s
		}
		seen := make(map[string]bool)
		for page := 1; page <= 3; page++ {
			got, s := slugs(fmt.Sprint("/api/state?per=50&page=", page))
			assert.Equal(t, []int{120, page, 3}, []int{s.Total, s.Page, s.Pages})
			for _, slug := range got {
				assert.False(t, seen[slug], slug)
				seen[slug] = true
			}
		}
		assert.Len(t, seen, 120, "those that were never used are left out")
		got, s := slugs("/api/state?state=unused")
		assert.Len(t, got, 10)
		assert.Equal(t, map[Condition]int{Busy: 120, Unused: 10}, s.Conditions)
		got, _ = slugs("/api/state?q=NAME+12&per=1000")
		assert.Equal(t, []string{"p012", "p120", "p121", "p122", "p123", "p124", "p125", "p126", "p127", "p128", "p129"}, got, "but not if they are searched for")
		got, _ = slugs("/api/state?q=even&state=busy")
		assert.Len(t, got, 60)
		_, s = slugs("/api/state?q=nobody")
		assert.Equal(t, []int{0, 1, 1}, []int{s.Total, s.Page, s.Pages})
		assert.NotNil(t, s.Providers, "an empty list, not null")
		_, s = slugs("/api/state?page=99&per=50")
		assert.Equal(t, 3, s.Page, "a page behind the last is the last")
		for _, bad := range []string{"0", "-1", "1001", "x", "1e3"} {
			res := w.get("/api/state?per=" + bad)
			assert.Equal(t, http.StatusBadRequest, res.Code)
			assert.JSONEq(t, `{"error":"console: per is not a number from 1 to 1000"}`, res.Body.String())
		}
		page := w.get("/?page=2").Body.String()
		assert.Equal(t, perPage, strings.Count(page, "<article"))
		assert.Contains(t, page, `51–100 of 120`)
		assert.Contains(t, page, `<a href="?" rel="prev">`)
		assert.Contains(t, page, `<a href="?page=3" rel="next">`)
		assert.Equal(t, 0, strings.Count(w.get("/?q=nobody").Body.String(), "<article"))
		assert.Contains(t, w.get("/?q=nobody").Body.String(), "No provider matches “nobody”")
		assert.Equal(t, http.StatusNotFound, w.get("/api/providers/nobody").Code)
	}, ps...)
}

// A row's link opens or closes its panel and leaves all else as it was asked for.
func TestPanelsOpenAndClose(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		require.NoError(t, w.call(coordinator.Call{Provider: "beta"}, ok))
		page := w.get("/?q=a&state=busy&open=acme").Body.String()
		assert.Contains(t, page, `href="?q=a&amp;state=busy#p-acme" data-open="acme" aria-expanded="true"`)
		assert.Contains(t, page, `href="?open=acme%2Cbeta&amp;q=a&amp;state=busy#p-beta" data-open="beta" aria-expanded="false"`)
		assert.Contains(t, page, `id="d-acme"`)
		assert.NotContains(t, page, `id="d-beta"`)
		assert.NotContains(t, page, toggle)
	}, provider.Provider{Slug: "acme"}, provider.Provider{Slug: "beta"})
}

// An address says what it was made of, whatever that is, and nonsense is left out.
func TestAddressesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := query{
			text: strings.TrimSpace(rapid.StringN(0, 20, -1).Draw(t, "text")), state: rapid.SampledFrom(append(Conditions(), "")).Draw(t, "state"),
			page: rapid.IntRange(1, 99).Draw(t, "page"), open: rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,8}`), 0, mostOpen, rapid.ID).Draw(t, "open"), per: perPage,
		}
		r := httptest.NewRequest(http.MethodGet, "/"+q.address(), http.NoBody)
		got := asked(r)
		if len(q.open) == 0 {
			q.open = nil
		}
		assert.Equal(t, q, got)
		slug := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "slug")
		twice := got.toggled(slug)
		assert.LessOrEqual(t, len(twice.open), mostOpen)
		if len(got.open) < mostOpen {
			assert.ElementsMatch(t, got.open, twice.toggled(slug).open)
		}
	})
	q := asked(httptest.NewRequest(http.MethodGet, "/?page=-3&state=none&open=,a,,a,b,c,d,e,f,g,h,i,j&q="+url.QueryEscape(strings.Repeat("ä", 500)), http.NoBody))
	assert.Equal(t, 1, q.page)
	assert.Empty(t, q.state)
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h"}, q.open)
	assert.Equal(t, strings.Repeat("ä", longestText), q.text)
}

func TestAuthorize(t *testing.T) {
	bubble(t, Options{Authorize: func(r *http.Request) (string, bool) { return "", r.Header.Get("X-User") == "ops" }}, func(t *testing.T, w *world) {
		for _, target := range []string{"/", "", "/rows", "/events", "/api/state", "/app.js", "/none"} {
			res := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.URL.Path = target
			w.ServeHTTP(res, r)
			assert.Equal(t, http.StatusForbidden, res.Code, target)
			assert.NotContains(t, res.Body.String(), "acme")
		}
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-User", "ops")
		res := httptest.NewRecorder()
		w.ServeHTTP(res, r)
		assert.Equal(t, http.StatusOK, res.Code)
	}, provider.Provider{Slug: "acme"})
}

// Many who ask at once are served by one look.
func TestLooksAreShared(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		time.Sleep(2 * freshFor)
		w.get("/")
		first := w.latest.Load()
		for range 100 {
			w.get("/")
			w.get("/rows")
			w.get("/api/state")
		}
		assert.Same(t, first, w.latest.Load())
		time.Sleep(freshFor)
		w.get("/api/state")
		assert.NotSame(t, first, w.latest.Load())
	}, provider.Provider{Slug: "acme"})
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 15500: "15,500", -1234567: "-1,234,567"} {
		assert.Equal(t, want, count(n))
	}
	for n, want := range map[int64]string{0: "0", 99_999: "99,999", 100_000: "100k", 123_456: "123k", 1_500_000: "1.5M", 2_000_000_000: "2G"} {
		assert.Equal(t, want, short(n))
	}
	for secs, want := range map[float64]string{
		0: "0 s", 0.0001: "0 s", 0.34: "340 ms", 1: "1 s", 1.5: "1.5 s", 12.3: "12 s", 59.6: "1 min", 60: "1 min", 250: "4 min 10 s", 1671: "27 min",
		3600: "1 h", 7500: "2 h 5 min", 86400: "1 d", 273600: "3 d 4 h", -5: "0 s",
	} {
		assert.Equal(t, want, span(secs), secs)
	}
	for rate, want := range map[float64]string{0: "0", 0.05: "3/min", 0.99: "59.4/min", 4.25: "4.2/s", 10: "10/s", 1234.4: "1,234/s"} {
		assert.Equal(t, want, perSecond(rate), rate)
	}
	for share, want := range map[float64]string{0: "0 %", 0.004: "< 1 %", 0.5: "50 %", 1: "100 %"} {
		assert.Equal(t, want, percent(share))
	}
	for period, want := range map[string]string{"": "at once", "1s": "per second", "60s": "per minute", "1m0s": "per minute", "1h0m0s": "per hour", "24h0m0s": "per day", "90s": "per 1 min 30 s", "1m": "per minute", "day": "per day", "month": "per month", "800ms": "per 800 ms", "168h": "per 7 d"} {
		assert.Equal(t, want, per(period), period)
	}
	assert.Equal(t, []string{"1 call", "0 calls", "1,000 calls"}, []string{plural(1, "call"), plural(0, "call"), plural(1000, "call")})
	assert.Equal(t, "VT_KEY_A", aliasName("VT_KEY_A"))
	assert.Regexp(t, `^#[0-9a-f]{8}$`, aliasName("sk-live-123"))
	assert.Empty(t, aliasName(""))
}

// A bar is never longer than its track, and shows that nothing is left where that is so.
func TestBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.Int64Range(0, 1_000_000).Draw(t, name) }
		l := Limit{Max: n("max"), Room: n("room"), Used: n("used"), Held: n("held"), Left: n("left"), Per: rapid.SampledFrom([]string{"", "1s", "1h"}).Draw(t, "per")}
		b := barOf(l)
		assert.GreaterOrEqual(t, b.UsedShare, 0.0)
		assert.GreaterOrEqual(t, b.HeldShare, 0.0)
		assert.LessOrEqual(t, b.UsedShare+b.HeldShare, 100.11)
		if l.Left == 0 {
			assert.InDelta(t, 100, b.UsedShare+b.HeldShare, 0.11)
		}
	})
	assert.Equal(t, "full", barOf(Limit{Room: 10, Left: 0, Per: "1h"}).Tone)
	assert.Equal(t, "full", barOf(Limit{Room: 10, Left: 0}).Tone, "in flight")
	assert.Equal(t, "near", barOf(Limit{Room: 10, Left: 2, Per: "1h"}).Tone)
	assert.Equal(t, "ok", barOf(Limit{Room: 10, Left: 3, Per: "1h"}).Tone)
	assert.Equal(t, "ok", barOf(Limit{Room: 10, Left: 0, Per: "1s"}).Tone, "a matter of pace")
	bars, more := tightest([]Limit{{Name: "a", Room: 10, Left: 9}, {Name: "b", Room: 10, Left: 1}, {Name: "c", Room: 10, Left: 5}}, &Key{Name: "K", Limits: []Limit{{Name: "d", Room: 10}}}, 3)
	assert.Equal(t, 1, more)
	assert.Equal(t, []string{"b", "c", "d"}, []string{bars[0].Name, bars[1].Name, bars[2].Name})
	assert.Equal(t, "K", bars[2].Of)
}

func BenchmarkThousandProviders(b *testing.B) {
	var ps []provider.Provider
	for i := range 1000 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprintf("p%04d", i), Throttle: provider.Throttle{RPS: 10, Limits: []provider.Limit{
			{Name: "hour", Max: 10_000, Per: "1h"}, {Name: "key", Max: 100, Per: "1m", Scope: provider.ScopeKey},
		}}})
	}
	w := newWorld(&testing.T{}, Options{}, ps...)
	defer w.Close()
	for i := range ps {
		for k := range 10 {
			_ = w.Do(b.Context(), coordinator.Call{Provider: ps[i].Slug, Key: fmt.Sprintf("KEY_%d", k)}, nothing)
		}
	}
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"look", func() { w.take(0) }},
		{"page after a look", func() {
			w.take(0)
			w.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		}},
		{"page", func() { w.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody)) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				part.do()
			}
		})
	}
}
