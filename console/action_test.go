package console

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// visitor is a browser at a form.
type visitor struct {
	w       *world
	cookies []*http.Cookie
	token   string
	header  http.Header
}

var tokenField = regexp.MustCompile(`name="token" value="([0-9a-f]{64})"`)

// visit opens a form.
func (w *world) visit(target string) *visitor {
	w.t.Helper()
	res := w.get(target)
	require.Equal(w.t, http.StatusOK, res.Code, res.Body)
	m := tokenField.FindStringSubmatch(res.Body.String())
	require.NotNil(w.t, m)
	return &visitor{w: w, cookies: res.Result().Cookies(), token: m[1], header: make(http.Header)}
}

// post sends a form with the visitor's token.
func (v *visitor) post(target string, fields ...string) *httptest.ResponseRecorder {
	form := make(url.Values)
	if v.token != "" {
		form.Set("token", v.token)
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header = v.header.Clone()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	res := httptest.NewRecorder()
	v.w.ServeHTTP(res, r)
	return res
}

// acting is a world that allows actions, and its log.
func acting(t *testing.T, f func(*testing.T, *world, *bytes.Buffer)) {
	t.Helper()
	var log bytes.Buffer
	opt := Options{Actions: true, Log: slog.New(slog.NewJSONHandler(&log, nil)), Authorize: func(r *http.Request) (string, bool) { return r.Header.Get("X-User"), true }}
	p := provider.Provider{Slug: "acme", Name: "Acme", Throttle: provider.Throttle{RPM: 60, Limits: []provider.Limit{{Name: "day", Max: 500, Per: "day"}}}, Auth: provider.Auth{Kind: "query", Name: "k", Env: []string{"A", "B"}}}
	bubble(t, opt, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		f(t, w, &log)
	}, p)
}

func (w *world) pauses() int {
	s, err := w.State("acme")
	require.NoError(w.t, err)
	return len(s.Pauses)
}

// An action is asked for, confirmed, done and logged: who, what, before and after.
func TestPauseAndResume(t *testing.T) {
	acting(t, func(t *testing.T, w *world, log *bytes.Buffer) {
		v := w.visit("/providers/acme/pause")
		require.Len(t, v.cookies, 1)
		c := v.cookies[0]
		assert.True(t, c.HttpOnly)
		assert.Equal(t, http.SameSiteStrictMode, c.SameSite)
		assert.Regexp(t, `^[0-9a-f]{32}$`, c.Value)
		v.header.Set("X-User", "alice")

		res := v.post("/providers/acme/pause", "for", "10m", "why", " a  deploy\n")
		require.Equal(t, http.StatusOK, res.Code, res.Body)
		assert.Contains(t, res.Body.String(), "paused until 2000-01-01 00:10:01 UTC: a deploy")
		assert.Contains(t, res.Body.String(), `<input type="hidden" name="for" value="10m">`)
		assert.Zero(t, w.pauses(), "it is to be confirmed")
		assert.Empty(t, log.String())

		res = v.post("/providers/acme/pause", "for", "10m", "why", "a deploy", "confirm", "yes")
		require.Equal(t, http.StatusSeeOther, res.Code, res.Body)
		assert.Equal(t, "../../?open=acme#p-acme", res.Header().Get("Location"))
		assert.Equal(t, 1, w.pauses())
		assert.Contains(t, w.get("/").Body.String(), "a deploy", "it is shown at once")
		line := make(map[string]any)
		require.NoError(t, json.Unmarshal(log.Bytes(), &line))
		assert.Equal(t, map[string]any{
			"time": line["time"], "level": "INFO", "msg": "headgate: console action", "action": "pause", "provider": "acme", "address": "192.0.2.1:1234", "who": "alice",
			"before": []any{"not paused"}, "after": []any{"paused until 2000-01-01 00:10:01 UTC: a deploy"},
		}, line)
		log.Reset()

		v = w.visit("/providers/acme/resume")
		res = v.post("/providers/acme/resume")
		assert.Equal(t, http.StatusOK, res.Code)
		assert.Contains(t, res.Body.String(), "provider paused until 2000-01-01 00:10:01 UTC: a deploy")
		assert.Equal(t, 1, w.pauses())
		res = v.post("/providers/acme/resume", "confirm", "yes")
		assert.Equal(t, http.StatusSeeOther, res.Code)
		assert.Zero(t, w.pauses())
		assert.Contains(t, log.String(), `"action":"resume"`)
		assert.Contains(t, log.String(), `"before":["provider paused until`)
	})
}

// What is wrong is named by its field, nothing is done, and what was typed stays.
func TestWrongPauses(t *testing.T) {
	acting(t, func(t *testing.T, w *world, log *bytes.Buffer) {
		v := w.visit("/providers/acme/pause")
		for _, c := range []struct{ length, why, want string }{
			{"", "x", "For how long: want a length of time from 1s to 744h"},
			{"10", "x", "For how long: want"},
			{"999ms", "x", "For how long: want"},
			{"-5m", "x", "For how long: want"},
			{"745h", "x", "For how long: want"},
			{"10m", " \t", "Why: want a reason"},
			{"10m", strings.Repeat("ä", 101), "Why: is too long: want at most 100 characters"},
			{"10m", "banned", "Why: is an outcome"},
			{`<b>"`, `<b>"`, "For how long: want"},
		} {
			res := v.post("/providers/acme/pause", "for", c.length, "why", c.why, "confirm", "yes")
			assert.Equal(t, http.StatusUnprocessableEntity, res.Code)
			body := res.Body.String()
			assert.Contains(t, body, c.want)
			assert.Contains(t, body, "Nothing was changed")
			assert.NotContains(t, body, "<b>\"")
			for _, typed := range []string{c.length, c.why} {
				assert.Contains(t, body, `value="`+strings.NewReplacer("<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(typed)+`"`)
			}
		}
		assert.Zero(t, w.pauses())
		assert.Empty(t, log.String())
	})
}

// Limits are changed as a file of overrides changes them, live.
func TestLimits(t *testing.T) {
	acting(t, func(t *testing.T, w *world, log *bytes.Buffer) {
		v := w.visit("/providers/acme/limits")
		page := w.get("/providers/acme/limits").Body.String()
		assert.Contains(t, page, "providers:\n  acme:\n    throttle:\n      rpm: 60\n      limits:\n")
		for _, c := range []struct{ text, want string }{
			{"", "Nothing was changed"},
			{"providers: {acme: {throttle: {rpm: x}}}", "line 1, column "},
			{"providers: {acme: {throttle: {limits: [{name: day, max: -1}]}}}", "providers.acme.throttle.limits.day.max"},
			{"providers: {acme: {throttle: {nonsense: 1}}}", "unknown key"},
			{"providers: {other: {throttle: {rpm: 1}}}", "providers: must name acme and no other"},
			{"providers: {acme: {throttle: {rpm: 1}}, other: {off: true}}", "providers: must name acme and no other"},
			{"providers: {acme: {keys: [C]}}", "keys: are read when the program begins"},
			{"providers: {acme: {drop: [hour]}}", "is no declared limit"},
			{"providers: {acme: {throttle: {rpm: 60}}}", "changes nothing"},
		} {
			res := v.post("/providers/acme/limits", "limits", c.text, "confirm", "yes")
			assert.Equal(t, http.StatusUnprocessableEntity, res.Code, c.text)
			assert.Contains(t, res.Body.String(), c.want)
			assert.Contains(t, res.Body.String(), ">"+c.text+"</textarea>")
		}
		assert.Empty(t, log.String())
		text := "providers: {acme: {throttle: {max_queue: 9, limits: [{name: day, max: 900}, {name: hour, max: 90, per: 1h}]}}}"
		res := v.post("/providers/acme/limits", "limits", text)
		require.Equal(t, http.StatusOK, res.Code, res.Body)
		for _, line := range []string{"day: 500 requests per day", "day: 900 requests per day", "hour: 90 requests per hour", "max_queue: 9"} {
			assert.Contains(t, res.Body.String(), line)
		}
		assert.NotContains(t, res.Body.String(), "rpm: 60", "what stays is not told")
		res = v.post("/providers/acme/limits", "limits", text, "confirm", "yes")
		require.Equal(t, http.StatusSeeOther, res.Code, res.Body)
		d := w.told("acme")
		assert.Equal(t, []int64{60, 900, 90}, []int64{d.Limits[0].Max, d.Limits[1].Max, d.Limits[2].Max})
		assert.Equal(t, int64(1), d.Limits[1].Used, "what has been used stays used")
		assert.Equal(t, 9, d.Queue.Capacity)
		assert.Contains(t, log.String(), `"before":["day: 500 requests per day`)
		assert.Contains(t, w.get("/providers/acme/limits").Body.String(), "max: 900", "the next form begins there")
	})
}

// What a form does not come with, or comes from elsewhere, is refused, and nothing is
// changed.
func TestForeignForms(t *testing.T) {
	acting(t, func(t *testing.T, w *world, log *bytes.Buffer) {
		const target = "/providers/acme/pause"
		fields := []string{"for", "10m", "why", "x", "confirm", "yes"}
		good := *w.visit(target)
		refused := func(why string, change func(*visitor)) {
			t.Helper()
			v := good
			v.header = make(http.Header)
			change(&v)
			res := v.post(target, fields...)
			assert.Equal(t, http.StatusForbidden, res.Code)
			assert.Contains(t, res.Body.String(), why)
			assert.Zero(t, w.pauses())
		}
		refused("the form is not of this session", func(v *visitor) { v.token = "" })
		refused("the form is not of this session", func(v *visitor) { v.token = strings.Repeat("0", 64) })
		refused("the form is not of this session", func(v *visitor) { v.token = w.visit(target).token })
		refused("the form is not of this session", func(v *visitor) { v.cookies = w.visit(target).cookies })
		refused("the browser sent no session", func(v *visitor) { v.cookies = nil })
		refused("the browser sent no session", func(v *visitor) {
			v.cookies = []*http.Cookie{{Name: session, Value: "short"}}
			v.token = w.guard.sign("short")
		})
		other := newWorld(t, Options{Actions: true}, provider.Provider{Slug: "acme"})
		refused("the form is not of this session", func(v *visitor) { v.token = other.guard.sign(v.cookies[0].Value) })
		require.NoError(t, other.Close())
		for _, h := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			refused("another origin", func(v *visitor) { v.header.Set(h[0], h[1]) })
		}
		r := httptest.NewRequest(http.MethodGet, target+"?for=10m&why=x&confirm=yes&token="+good.token, http.NoBody)
		r.AddCookie(good.cookies[0])
		w.ServeHTTP(httptest.NewRecorder(), r)
		assert.Zero(t, w.pauses(), "GET shows the form")
		res := good.post(target+"?confirm=yes&for=10m&why=x", "for", "10m", "why", "x")
		assert.Equal(t, http.StatusOK, res.Code)
		assert.Zero(t, w.pauses(), "what is in the address confirms nothing")
		tokenless := good
		tokenless.token = ""
		assert.Equal(t, http.StatusForbidden, tokenless.post(target+"?token="+good.token, fields...).Code, "nor is a token there one: addresses are logged")
		res = good.post(target, "for", "10m", "why", strings.Repeat("x", longestForm), "confirm", "yes")
		assert.Equal(t, http.StatusBadRequest, res.Code)
		assert.Zero(t, w.pauses())
		assert.Empty(t, log.String())

		good.header.Set("Sec-Fetch-Site", "same-origin")
		assert.Equal(t, http.StatusSeeOther, good.post(target, fields...).Code)
		assert.Equal(t, 1, w.pauses())
	})
}

// Without the option there is no button, no form and no action.
func TestReadOnly(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		assert.NotContains(t, w.get("/?open=acme").Body.String(), "providers/acme/")
		for name := range actions {
			assert.Equal(t, http.StatusForbidden, w.get("/providers/acme/"+name).Code)
			v := &visitor{w: w, token: w.guard.sign(strings.Repeat("0", 32)), cookies: []*http.Cookie{{Name: session, Value: strings.Repeat("0", 32)}}, header: make(http.Header)}
			res := v.post("/providers/acme/"+name, "for", "10m", "why", "x", "limits", "providers: {acme: {throttle: {rpm: 1}}}", "confirm", "yes")
			assert.Equal(t, http.StatusForbidden, res.Code)
			assert.Contains(t, res.Body.String(), "read-only")
		}
		assert.Zero(t, w.pauses())
	}, provider.Provider{Slug: "acme"})
}

func TestActionsThatAreNone(t *testing.T) {
	acting(t, func(t *testing.T, w *world, _ *bytes.Buffer) {
		assert.Equal(t, http.StatusNotFound, w.get("/providers/acme/delete").Code)
		assert.Equal(t, http.StatusNotFound, w.get("/providers/nobody/pause").Code)
		res := httptest.NewRecorder()
		w.ServeHTTP(res, httptest.NewRequest(http.MethodDelete, "/providers/acme/pause", http.NoBody))
		assert.Equal(t, http.StatusMethodNotAllowed, res.Code)
	})
}

// An action that the coordinator refuses is told and logged as such. A pause whose end
// came while the form was read is one.
func TestActionThatFails(t *testing.T) {
	acting(t, func(t *testing.T, w *world, log *bytes.Buffer) {
		actions["broken"] = &action{"broken", "Break", "Break now", func(*formView) *change {
			return &change{Before: []string{"a"}, After: []string{"b"}, do: func(c *coordinator.Coordinator) error { return c.Pause("acme", time.Now(), "x") }}
		}}
		defer delete(actions, "broken")
		v := w.visit("/providers/acme/broken")
		res := v.post("/providers/acme/broken", "confirm", "yes")
		assert.Equal(t, http.StatusUnprocessableEntity, res.Code)
		assert.Contains(t, res.Body.String(), "is not in the future")
		assert.Contains(t, log.String(), `"level":"WARN"`)
		assert.Contains(t, log.String(), "is not in the future")
	})
}
