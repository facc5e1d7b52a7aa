package provider

import (
	"bytes"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// JSON and YAML of a declaration have the same keys (lower_snake_case) and the
// same values (durations as "30s"); both are read by one strict decoder, and
// written from one tree. Reading replaces the whole value, or changes nothing
// where there is a fault, and does not validate: [Parse] and Validate do.

func toJSON(v any) ([]byte, error) {
	t, err := tree("", reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	writeJSON(&b, t)
	return b.Bytes(), nil
}

// fromJSON leaves v alone for null, as encoding/json wants it.
func fromJSON(text []byte, v any) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return nil
	}
	_, f := decode(text, v)
	return f.join()
}

func toYAML(v any) ([]byte, error) {
	t, err := tree("", reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	lines, _ := yamlLines(t)
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

func fromYAML(n ast.Node, v any) error {
	_, f := decodeNode(n, v)
	return f.join()
}

// MarshalYAML writes the declaration for github.com/goccy/go-yaml: only what is
// set, in the order of the fields.
func (p Provider) MarshalYAML() ([]byte, error) { return toYAML(p) }

// UnmarshalYAML reads as strictly as Parse, but does not validate.
func (p *Provider) UnmarshalYAML(n ast.Node) error { return fromYAML(n, p) }

// MarshalYAML writes the throttle for github.com/goccy/go-yaml.
func (t Throttle) MarshalYAML() ([]byte, error) { return toYAML(t) }

// UnmarshalYAML reads as strictly as Parse, but does not validate.
func (t *Throttle) UnmarshalYAML(n ast.Node) error { return fromYAML(n, t) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (p Provider) MarshalJSON() ([]byte, error) { return toJSON(p) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (p *Provider) UnmarshalJSON(b []byte) error { return fromJSON(b, p) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (t Throttle) MarshalJSON() ([]byte, error) { return toJSON(t) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (t *Throttle) UnmarshalJSON(b []byte) error { return fromJSON(b, t) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (l Limit) MarshalJSON() ([]byte, error) { return toJSON(l) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (l *Limit) UnmarshalJSON(b []byte) error { return fromJSON(b, l) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (b Breaker) MarshalJSON() ([]byte, error) { return toJSON(b) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (b *Breaker) UnmarshalJSON(text []byte) error { return fromJSON(text, b) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (r Retry) MarshalJSON() ([]byte, error) { return toJSON(r) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (r *Retry) UnmarshalJSON(b []byte) error { return fromJSON(b, r) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (e Endpoint) MarshalJSON() ([]byte, error) { return toJSON(e) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (e *Endpoint) UnmarshalJSON(b []byte) error { return fromJSON(b, e) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (p Paging) MarshalJSON() ([]byte, error) { return toJSON(p) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (p *Paging) UnmarshalJSON(b []byte) error { return fromJSON(b, p) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (a Auth) MarshalJSON() ([]byte, error) { return toJSON(a) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (a *Auth) UnmarshalJSON(b []byte) error { return fromJSON(b, a) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (i Identity) MarshalJSON() ([]byte, error) { return toJSON(i) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (i *Identity) UnmarshalJSON(b []byte) error { return fromJSON(b, i) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (d Dialect) MarshalJSON() ([]byte, error) { return toJSON(d) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (d *Dialect) UnmarshalJSON(b []byte) error { return fromJSON(b, d) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (s Signal) MarshalJSON() ([]byte, error) { return toJSON(s) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (s *Signal) UnmarshalJSON(b []byte) error { return fromJSON(b, s) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (b BudgetSource) MarshalJSON() ([]byte, error) { return toJSON(b) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (b *BudgetSource) UnmarshalJSON(text []byte) error { return fromJSON(text, b) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (s Source) MarshalJSON() ([]byte, error) { return toJSON(s) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (s *Source) UnmarshalJSON(b []byte) error { return fromJSON(b, s) }

// MarshalJSON writes the keys of the YAML form; only what is set.
func (m Match) MarshalJSON() ([]byte, error) { return toJSON(m) }

// UnmarshalJSON reads as strictly as Parse, but does not validate.
func (m *Match) UnmarshalJSON(b []byte) error { return fromJSON(b, m) }
