package adapters

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// numberFilter is for a string of a JSON body that is one placeholder and becomes
// a number.
const numberFilter = "number"

// filters change a value on its way into a template. Hashes are what some
// providers look things up by; they keep nothing secret.
var filters = map[string]func(string) (string, error){
	"lower":      always(strings.ToLower),
	"upper":      always(strings.ToUpper),
	"base64":     always(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64url":  always(func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }),
	"md5":        always(func(s string) string { sum := md5.Sum([]byte(s)); return hex.EncodeToString(sum[:]) }),
	"sha1":       always(func(s string) string { sum := sha1.Sum([]byte(s)); return hex.EncodeToString(sum[:]) }),
	"sha256":     always(func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }),
	"pad10":      always(func(s string) string { return strings.Repeat("0", max(10-utf8.RuneCountInString(s), 0)) + s }),
	"unescape":   unescape,
	numberFilter: jsonNumber,
}

// knownFilters lists them for a message.
func knownFilters() string { return list(slices.Sorted(maps.Keys(filters))) }

// always makes a filter of a function that takes any value.
func always(f func(string) string) func(string) (string, error) {
	return func(s string) (string, error) { return f(s), nil }
}

// unescape undoes the escaping of a URL's query: a cursor that was cut out of one
// is escaped again where it is sent.
func unescape(s string) (string, error) {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return "", errors.New("is not escaped as a URL's query is: want two hexadecimal digits after each %") // err holds the value
	}
	return plain, nil
}

// numberForm is a number of RFC 8259.
var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func jsonNumber(s string) (string, error) {
	if !numberForm.MatchString(s) {
		return "", errors.New("is no JSON number: want a value such as 10 or -2.5")
	}
	return s, nil
}
