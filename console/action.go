package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const (
	longestForm = 64 << 10
	yes         = "yes"
	root        = "../../" // from a form
)

// action is something that the page can do to a provider.
type action struct {
	Name, Title, Do string // Do is what the last button says
	// check reads the form. It returns what is wrong, by field, or the change.
	check func(f *formView) *change
}

// change is what an action would do.
type change struct {
	Before, After []string // in words, a line each
	Note          string   // what else it means
	do            func(c *coordinator.Coordinator) error
}

var actions = map[string]*action{
	"pause":  {"pause", "Pause", "Pause now", checkPause},
	"resume": {"resume", "Resume", "Resume now", checkResume},
	"limits": {"limits", "Set the limits of", "Set these limits", checkLimits},
}

// formView is a form on its way: what was typed, what is wrong with it, what it would
// do.
type formView struct {
	Title, Root, Version string
	Back                 string // to the provider, on its page of the list
	Action               *action
	Provider             Provider
	Token                string
	Values               url.Values
	Faults               map[string]string // by field; "": of the whole
	Change               *change           // all is well: to be confirmed

	about   *about
	now     time.Time
	keyName func(alias string) string
}

// Value is what was typed into a field.
func (f *formView) Value(field string) string { return f.Values.Get(field) }

// Fault is what is wrong with a field.
func (f *formView) Fault(field string) string { return f.Faults[field] }

func (f *formView) fault(field, text string) {
	if f.Faults == nil {
		f.Faults = make(map[string]string)
	}
	f.Faults[field] = text
}

// asks finds the action of a request; nil: it has been answered.
func (k *Console) asks(w http.ResponseWriter, r *http.Request) *action {
	a := actions[r.PathValue("action")]
	switch {
	case a == nil:
		http.Error(w, "console: no such action: it must be one of pause, resume, limits", http.StatusNotFound)
	case !k.opt.Actions:
		http.Error(w, "console: this page is read-only: Options.Actions is not set", http.StatusForbidden)
		return nil
	}
	return a
}

// prepare finds the provider of a request for an action; nil: it has been answered.
func (k *Console) prepare(w http.ResponseWriter, r *http.Request, a *action, s *snapshot) *formView {
	row := s.bySlug[r.PathValue("slug")]
	if row == nil {
		http.Error(w, "console: no such provider", http.StatusNotFound)
		return nil
	}
	if s.down {
		http.Error(w, "console: the coordinator is shut down: nothing is left to change", http.StatusConflict)
		return nil
	}
	return &formView{
		Title: k.opt.Title, Root: root, Back: back(s, row), Version: version, Action: a, Provider: k.provider(row),
		Values: make(url.Values), about: row.about, now: time.Now(),
		keyName: func(alias string) string { return k.keyName(row.about.slug, alias) },
	}
}

// back is the address of a provider on the page, from one of its forms.
func back(s *snapshot, r *row) string { return root + s.showing(r).address() + "#p-" + r.about.slug }

// form answers GET /providers/{slug}/{action}.
func (k *Console) form(w http.ResponseWriter, r *http.Request) {
	a := k.asks(w, r)
	if a == nil {
		return
	}
	f := k.prepare(w, r, a, k.now()) // a look that others share: anybody can have a browser ask for a form
	if f == nil {
		return
	}
	f.Token = k.guard.token(w, r)
	switch f.Action.Name {
	case "pause":
		f.Values.Set("for", "10m")
		f.Values.Set("why", "")
	case "limits":
		f.Values.Set("limits", overrideText(f))
	case "resume": // nothing is to be typed
		f.Change = f.Action.check(f)
	}
	write(w, http.StatusOK, render("action", f))
}

// act answers POST /providers/{slug}/{action}: without confirm=yes it tells what would
// be done. What is refused costs no look.
func (k *Console) act(w http.ResponseWriter, r *http.Request) {
	a := k.asks(w, r)
	if a == nil {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "console: the form cannot be read: want one of at most 64 KiB", http.StatusBadRequest)
		return
	}
	if why := k.guard.refuses(r); why != "" {
		http.Error(w, "console: refused: "+why, http.StatusForbidden)
		return
	}
	k.renew() // what is changed is what is in force now
	f := k.prepare(w, r, a, k.latest.Load())
	if f == nil {
		return
	}
	f.Token, f.Values = k.guard.token(w, r), r.PostForm
	f.Change = f.Action.check(f)
	switch {
	case f.Change == nil:
		write(w, http.StatusUnprocessableEntity, render("action", f))
		return
	case f.Value("confirm") != yes:
		write(w, http.StatusOK, render("action", f))
		return
	}
	err := f.Change.do(k.c)
	k.log(r, f, err)
	if err != nil {
		f.fault("", err.Error())
		f.Change = nil
		write(w, http.StatusUnprocessableEntity, render("action", f))
		return
	}
	k.renew()
	s := k.latest.Load()
	w.Header().Set("Location", back(s, s.bySlug[f.Provider.Slug]))
	w.WriteHeader(http.StatusSeeOther)
}

// log leaves the trace of an action.
func (k *Console) log(r *http.Request, f *formView, err error) {
	to := k.opt.Log
	if to == nil {
		to = slog.Default()
	}
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.String("action", f.Action.Name), slog.String("provider", f.Provider.Slug), slog.String("address", r.RemoteAddr),
		slog.Any("before", f.Change.Before), slog.Any("after", f.Change.After),
	}
	if who := whoOf(r); who != "" {
		attrs = append(attrs, slog.String("who", who))
	}
	if err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	to.LogAttrs(r.Context(), level, "headgate: console action", attrs...)
}

const (
	longestPause = 31 * 24 * time.Hour
	longestWhy   = 100
)

func checkPause(f *formView) *change {
	d, err := time.ParseDuration(f.Value("for"))
	if err != nil || d < time.Second || d > longestPause {
		f.fault("for", "want a length of time from 1s to 744h, such as 10m or 1h30m")
	}
	why := oneLine(f.Value("why"))
	switch {
	case why == "":
		f.fault("why", "want a reason: whoever sees the pause is shown it")
	case len([]rune(why)) > longestWhy:
		f.fault("why", "is too long: want at most 100 characters")
	case provider.Outcome(why).Valid():
		f.fault("why", "is an outcome, which would look as if the provider had said it: want other words")
	}
	if f.Faults != nil {
		return nil
	}
	until := f.now.Add(d)
	for _, p := range f.Provider.Pauses {
		if p.Scope == provider.ScopeProvider && p.Until.After(until) {
			f.fault("for", "is shorter than the pause in force, which ends "+p.Until.Format("2006-01-02 15:04:05 UTC")+" and would stay: resume it first")
			return nil
		}
	}
	return &change{
		Before: pausesOf(f),
		After:  []string{"paused until " + until.UTC().Format("2006-01-02 15:04:05 UTC") + ": " + why},
		Note:   "Nothing goes before. Who waits and cannot wait so long is refused now.",
		do:     func(c *coordinator.Coordinator) error { return c.Pause(f.Provider.Slug, time.Now().Add(d), why) },
	}
}

func checkResume(f *formView) *change {
	return &change{
		Before: pausesOf(f),
		After:  []string{"not paused"},
		Note:   "Every pause ends, of keys and endpoints too, and what answers said of limits is forgotten: a spent quota, what is left, a smaller size. The breaker stays as it is.",
		do:     func(c *coordinator.Coordinator) error { return c.Resume(f.Provider.Slug) },
	}
}

// pausesOf are the pauses of a provider in words.
func pausesOf(f *formView) (lines []string) {
	for _, p := range f.Provider.Pauses {
		line := p.Scope
		if p.Name != "" {
			line += " " + p.Name
		}
		lines = append(lines, line+" paused until "+p.Until.Format("2006-01-02 15:04:05 UTC")+": "+words(p.Why))
	}
	if lines == nil {
		lines = []string{"not paused"}
	}
	return lines
}
