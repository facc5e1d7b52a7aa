package main

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate/provider"
)

// allKinds are the kinds that there are, those that are recognised first.
var allKinds = []provider.Kind{
	provider.IP, provider.Domain, provider.URL, provider.Hash, provider.Email,
	provider.Phone, provider.Company, provider.Text,
}

// longestText bounds what is asked as it was given.
const longestText = 500

func kindNames() string {
	names := make([]string, len(allKinds))
	for i, k := range allKinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// kindOf is the kind of that name.
func kindOf(name string) (provider.Kind, error) {
	k := provider.Kind(name)
	if !slices.Contains(allKinds, k) {
		return "", fmt.Errorf("no kind: want one of %s", kindNames())
	}
	return k, nil
}

// recogniseAs takes text for the kind, "": for what it looks like.
func recogniseAs(kind provider.Kind, text string) ([]found, error) {
	switch kind {
	case "":
		return recognise(text)
	case provider.URL:
		return one(anyURL(fangs.Replace(text)))
	case provider.Phone:
		return one(phone(text))
	case provider.Company, provider.Text:
		return one(plain(kind, text))
	}
	all, err := recognise(text)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(f found) bool { return f.kind != kind })
	if len(all) == 0 {
		return nil, fmt.Errorf("is not of the kind %s", kind)
	}
	return all, nil
}

// anyURL takes a URL even where it says no more than a host.
func anyURL(text string) (provider.Kind, string, error) {
	if u, ok := full(text); ok {
		return provider.URL, u, nil
	}
	host, err := hostOf(text)
	if err == nil {
		_, host, err = place(text, host)
	}
	if err != nil {
		return "", "", err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme := "http"
	if strings.HasPrefix(strings.ToLower(text), "h") && strings.Contains(text, "s://") {
		scheme = "https"
	}
	return provider.URL, (&url.URL{Scheme: scheme, Host: host, Path: "/"}).String(), nil
}

// email takes an address without a name. Only the domain has one spelling.
func email(text string) (provider.Kind, string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name != "" || a.Address != strings.Trim(text, "<>") {
		return "", "", errors.New("an @, and no e-mail address")
	}
	at := strings.LastIndex(a.Address, "@")
	host, err := domain(a.Address[at+1:])
	if err != nil {
		return "", "", fmt.Errorf("an e-mail address whose domain is none: %w", err)
	}
	return provider.Email, a.Address[:at+1] + host, nil
}

var (
	phonePunctuation = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", "/", "", ".", "")
	phoneNumber      = regexp.MustCompile(`^\+?[0-9]{4,15}$`) // E.164: at most 15 digits
)

func phone(text string) (provider.Kind, string, error) {
	number := phonePunctuation.Replace(text)
	if !phoneNumber.MatchString(number) {
		return "", "", errors.New("no phone number: want 4 to 15 digits, a + before a country's code")
	}
	return provider.Phone, number, nil
}

// plain takes a text as it is.
func plain(kind provider.Kind, text string) (provider.Kind, string, error) {
	switch {
	case utf8.RuneCountInString(text) > longestText:
		return "", "", fmt.Errorf("longer than %d characters", longestText)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", "", errors.New("holds a control character")
	}
	return kind, text, nil
}
