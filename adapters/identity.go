package adapters

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate/provider"
)

// defaultAgent names us where the declaration does not say how.
const defaultAgent = "headgate (+https://github.com/headgate/headgate)"

// agent names us as the provider wants it.
func (h *HTTP) agent(contact string) string {
	agent := cmp.Or(h.p.Identity.UserAgent, defaultAgent)
	if names(agent, contactName) {
		return strings.ReplaceAll(agent, "{"+contactName+"}", contact)
	}
	if h.p.Identity.Contact {
		agent += " (" + contact + ")"
	}
	return agent
}

// reachable returns the contact where the provider asks for one, else "".
func (h *HTTP) reachable() (string, error) {
	if !h.asksContact {
		return "", nil
	}
	contact := cmp.Or(strings.TrimSpace(h.contact), strings.TrimSpace(h.getenv(ContactVariable)))
	switch {
	case contact == "":
		return "", fmt.Errorf("the provider asks for a contact: set Options.Contact or the environment variable %s", ContactVariable)
	case hasControl(contact):
		return "", errors.New("the contact holds a control character")
	}
	return contact, nil
}

// asksContact says whether p wants to know whom it deals with, wherever it is told.
func asksContact(p provider.Provider) bool {
	if p.Identity.Contact || names(p.Identity.UserAgent, contactName) {
		return true
	}
	for _, e := range p.Endpoints {
		for _, t := range parts(e) {
			if names(t.template, contactName) {
				return true
			}
		}
	}
	return false
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
