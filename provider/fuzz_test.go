package provider

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// FuzzParse: Parse never panics; what it reads is valid, expands, and comes back
// from JSON as it was; what it refuses it refuses by field.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		complete, "", "slug: x", `{"slug":"x","throttle":{"rps":0.5}}`, "slug: x\n---\nslug: y", "slug: &a [*a]", "? slug\n: x",
		"slug: x\nthrottle: {limits: [{name: a, max: 1, per: month, anchor: '31 23:59'}]}", "slug: !!binary x", "- - - x", "{{{[", "slug: \"\\ud83d\"", "slug: |\n x",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			var fault *FieldError
			if !errors.As(err, &fault) || err.Error() == "" || !reflect.ValueOf(p).IsZero() {
				t.Fatalf("%q: %v, %+v", text, err, p)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("%q is read, but not valid: %v", text, err)
		}
		if _, err := p.Throttle.Expand(); err != nil {
			t.Fatalf("%q is valid, but does not expand: %v", text, err)
		}
		inJSON, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		back, err := Parse(inJSON)
		if err != nil || !reflect.DeepEqual(p, back) {
			t.Fatalf("%q → %s → %+v, %v", text, inJSON, back, err)
		}
	})
}
