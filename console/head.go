package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

//go:embed web
var web embed.FS

var (
	styleCSS = embedded("style.css")
	appJS    = embedded("app.js")
	// version is part of the addresses of both, so that they may be kept for good.
	version = fingerprint(styleCSS + appJS)
)

func embedded(name string) string {
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return string(text)
}

// policy allows what the page has: its own script, sheet and streams.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer a browser would send "Origin: null" with our own forms, and
	// where the page has no TLS the origin is all that tells them from foreign ones.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

func asset(text, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		if r.URL.Query().Get("v") == version {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		_, _ = io.WriteString(w, text)
	}
}

// pathAsked is the path of a request before a prefix was stripped.
func pathAsked(r *http.Request) string {
	if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
		return u.EscapedPath()
	}
	return r.URL.Path
}

// variable is how aliases look that a declaration has.
var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// aliasName is how a key is shown by default.
func aliasName(alias string) string {
	if alias == "" || variable.MatchString(alias) {
		return alias
	}
	return "#" + fingerprint(alias)
}

func fingerprint(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// oneLine is text without what would break a line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
