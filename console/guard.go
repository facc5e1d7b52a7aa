package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
)

// guard tells the forms of this page from foreign ones: a form carries a token that
// only this process can have made, for the session in the browser's cookie, and the
// request must not come from another origin.
type guard struct {
	secret []byte
	origin *http.CrossOriginProtection
}

// session is the name of the cookie. It holds a random name of the browser, nothing
// else, and ends with the browser.
const session = "headgate_session"

var sessionForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func newGuard() guard {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return guard{secret, http.NewCrossOriginProtection()}
}

// token returns the token for a form, and sees to it that the browser has a session.
// A session that another console of the same host has given is kept: cookies do not
// tell ports apart.
func (g *guard) token(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(session); err == nil && sessionForm.MatchString(c.Value) {
		return g.sign(c.Value)
	}
	name := make([]byte, 16)
	_, _ = rand.Read(name) // never fails
	value := hex.EncodeToString(name)
	// Path stays that of the form, which is where it is sent to: what is before a
	// stripped prefix is not known here.
	http.SetCookie(w, &http.Cookie{Name: session, Value: value, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	return g.sign(value)
}

func (g *guard) sign(session string) string {
	mac := hmac.New(sha256.New, g.secret)
	_, _ = mac.Write([]byte(session))
	return hex.EncodeToString(mac.Sum(nil))
}

// refuses says why a request must not change anything; "": it may.
func (g *guard) refuses(r *http.Request) string {
	if g.origin.Check(r) != nil {
		return "the request comes from another origin"
	}
	c, err := r.Cookie(session)
	if err != nil || !sessionForm.MatchString(c.Value) {
		return "the browser sent no session: open the form again, with cookies allowed"
	}
	if !hmac.Equal([]byte(g.sign(c.Value)), []byte(r.PostFormValue("token"))) {
		return "the form is not of this session, or the program was restarted: open it again"
	}
	return ""
}

type whoKey struct{}

// withWho notes who asks, as Options.Authorize says.
func withWho(r *http.Request, who string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, who))
}

func whoOf(r *http.Request) string {
	who, _ := r.Context().Value(whoKey{}).(string)
	return who
}
