package provider

// Dialect says how a provider tells its limits, as data. The zero value means
// the standard conventions.
type Dialect struct {
	Budgets    []BudgetSource    `yaml:"budgets,omitempty"`
	RetryAfter []Source          `yaml:"retry_after,omitempty"` // the first that gives advice wins
	Used       map[string]Source `yaml:"used,omitempty"`        // real cost by unit
	Signals    []Signal          `yaml:"signals,omitempty"`     // the first that matches wins; then the standard rules
	Only       bool              `yaml:"only,omitempty"`        // only what is declared: no standard conventions besides
}

// BudgetSource says where an answer tells one quota. At least one of the last
// five is given.
type BudgetSource struct {
	Name      string `yaml:"name"`
	Unit      string `yaml:"unit,omitempty"`
	Limit     Source `yaml:"limit,omitempty"`
	Remaining Source `yaml:"remaining,omitempty"`
	Reset     Source `yaml:"reset,omitempty"`
	Used      Source `yaml:"used,omitempty"`
	Window    Source `yaml:"window,omitempty"`
}

// Source is one place in an answer and how its value is written: exactly one of
// Header, JSON and Body. The zero value is no place.
//
// A wait or a reset is written as seconds, milliseconds, duration ("6m0s"),
// epoch, epoch_ms, http_date, rfc3339, date (anything dated; without a zone in
// UTC) or retry_after (seconds or an HTTP date), a window as one of the first
// three; without As the value's look decides. An amount is a number without As,
// used_of_limit ("32/40") or percent (used, of 100). A limit may be a rate (so
// many a second), and a reset too (so many come back a second). Which value
// counts where there are several is told by package dialect.
type Source struct {
	Header  string `yaml:"header,omitempty"`
	JSON    string `yaml:"json,omitempty"`    // an RFC 9535 path
	Body    bool   `yaml:"body,omitempty"`    // the text of the body
	Pattern string `yaml:"pattern,omitempty"` // RE2 with one capture
	Index   int    `yaml:"index,omitempty"`   // into a list of values, from 0
	As      string `yaml:"as,omitempty"`      // how it is written, see above
}

// Signal maps an answer to an outcome. All conditions given must hold, and
// there is at least one.
type Signal struct {
	Status  []int   `yaml:"status,omitempty"`
	Header  *Match  `yaml:"header,omitempty"`
	JSON    *Match  `yaml:"json,omitempty"`
	Body    string  `yaml:"body,omitempty"` // RE2
	Outcome Outcome `yaml:"outcome"`
	Scope   string  `yaml:"scope,omitempty"`  // what is paused: provider | endpoint | key
	Limit   string  `yaml:"limit,omitempty"`  // the declared limit that is spent
	Before  bool    `yaml:"before,omitempty"` // refused before acting: may be sent again
	Empty   bool    `yaml:"empty,omitempty"`  // of an ok: the answer says that there is no data
}

// Match is a condition on one value: of the header Name or at the JSON Path.
// Exactly one of Equals and Matches is given. Of several lines of the header, or
// several values at the path, one is enough. A JSON value that is no string is
// compared as it is written (429, true, null), an array or object only where it
// is empty ([] or {}).
type Match struct {
	Name    string `yaml:"name,omitempty"` // of a header
	Path    string `yaml:"path,omitempty"` // of a JSON value, RFC 9535
	Equals  string `yaml:"equals,omitempty"`
	Matches string `yaml:"matches,omitempty"` // RE2
}
