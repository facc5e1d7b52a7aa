package provider

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Overrides is what a user puts over declarations: the limits of his plan, the
// variables of his keys, endpoints that he has or has not. It is read by
// [ParseOverrides]; the zero value changes nothing. It does not change and is safe
// for concurrent use.
type Overrides struct {
	excess  ExcessPolicy
	changes map[string]change
}

// change is what is put over one declaration.
type change struct {
	changeFields
	throttle ast.Node // merged over the declared one; nil: none
	places   places
}

type changeFields struct {
	Off       bool            `yaml:"off"`       // the whole provider is switched off
	Keys      []string        `yaml:"keys"`      // instead of auth.env
	Endpoints map[string]bool `yaml:"endpoints"` // false: switched off; true: on, though declared off
	Drop      []string        `yaml:"drop"`      // declared limits that the plan does not have
	Throttle  struct{}        `yaml:"throttle"`  // named here for the message of an unknown key
}

// ParseOverrides reads a file such as
//
//	excess: queue                # of all providers that it does not give another
//	providers:
//	  virustotal:
//	    throttle:                # keys that are given replace the declared ones
//	      max_in_flight: 4
//	      limits:                # by name: what is given replaces, the rest stays
//	        - {name: minute, max: 30}
//	        - {name: hour, max: 1000, per: 1h}
//	    drop: [day]              # declared limits that this plan does not have
//	    keys: [VT_KEY_A, VT_KEY_B]
//	    endpoints: {file: false} # true switches one on that is declared off
//	  shodan: {off: true}
//
// as strictly as [Parse]: unknown keys, wrong types and what is written twice are
// errors of type *[FieldError], all joined, with line and column. What depends on a
// declaration (is there such a limit?) is checked by Apply.
func ParseOverrides(yaml []byte) (Overrides, error) {
	body, fault := document(yaml)
	if fault != nil {
		return Overrides{}, fault
	}
	d := decoder{places: places{}}
	o := Overrides{changes: map[string]change{}}
	d.pairs("", body, func(key string, keyNode, value ast.Node) {
		switch key {
		case "excess":
			d.value(key, reflect.ValueOf(&o.excess).Elem(), value)
			var f faults
			checkWord(&f, key, o.excess, Queue, Reject, Delay)
			for _, e := range f {
				e.Line, e.Column = place(value)
			}
			d.faults = append(d.faults, f...)
		case "providers":
			d.pairs(key, value, func(slug string, _, value ast.Node) {
				o.changes[slug] = d.change(at(key, slug), value)
			})
		default:
			d.fault(keyNode, "", "unknown key %s: it must be one of excess, providers", quoteShort(key))
		}
	})
	if len(d.faults) > 0 {
		return Overrides{}, d.faults.join()
	}
	return o, nil
}

// change reads what is under one slug.
func (d *decoder) change(path string, n ast.Node) change {
	var c change
	d.places[path] = placeOf(n)
	v := reflect.ValueOf(&c.changeFields).Elem()
	fields := fieldsOf(v.Type())
	d.pairs(path, n, func(key string, keyNode, value ast.Node) {
		if key == "throttle" {
			d.merge(at(path, key), &Throttle{}, value) // finds what is wrong whatever is declared
			c.throttle = value
			return
		}
		d.over(path, v, fields, key, keyNode, value)
		if list, ok := value.(*ast.SequenceNode); ok && key == "keys" && len(list.Values) == 0 {
			d.fault(value, at(path, key), "is empty: name at least one variable, or leave it out")
		}
	})
	c.places = d.places
	return c
}

func placeOf(n ast.Node) [2]int {
	line, column := place(n)
	return [2]int{line, column}
}

// merge decodes what n gives over t. Limits are matched by name.
func (d *decoder) merge(path string, t *Throttle, n ast.Node) {
	v := reflect.ValueOf(t).Elem()
	fields := fieldsOf(v.Type())
	d.pairs(path, n, func(key string, keyNode, value ast.Node) {
		if key == "limits" {
			d.mergeLimits(at(path, key), t, value)
			return
		}
		d.over(path, v, fields, key, keyNode, value)
	})
}

// over decodes one key over a struct's field: lists are replaced, not continued.
func (d *decoder) over(path string, v reflect.Value, fields []field, key string, keyNode, value ast.Node) {
	var known []string
	for _, f := range fields {
		if f.key == key {
			v.Field(f.index).SetZero()
			d.value(at(path, key), v.Field(f.index), value)
			return
		}
		known = append(known, f.key)
	}
	d.fault(keyNode, path, "unknown key %s: it must be %s", quoteShort(key), oneOf(known))
}

func (d *decoder) mergeLimits(path string, t *Throttle, n ast.Node) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, "must be a list: [a, b], or one line each that begins with a dash")
		return
	}
	given := map[string]bool{}
	for i, value := range sequence.Values {
		var name string
		d.pairs(item(path, i), value, func(key string, _, value ast.Node) {
			if key == "name" {
				name, _ = d.text(at(item(path, i), key), value, "text")
			}
		})
		switch {
		case name == "":
			d.fault(value, item(path, i), "has no name: it says which declared limit it changes, or that of a new one")
			continue
		case given[name]:
			d.fault(value, item(path, i), "changes %s a second time: write it once", quoteShort(name))
			continue
		}
		given[name] = true
		i := slices.IndexFunc(t.Limits, func(l Limit) bool { return l.Name == name })
		if i < 0 {
			i = len(t.Limits)
			t.Limits = append(t.Limits, Limit{})
		}
		limit := at(path, name)
		d.places[limit] = placeOf(value)
		v := reflect.ValueOf(&t.Limits[i]).Elem()
		d.pairs(limit, value, func(key string, keyNode, value ast.Node) {
			d.over(limit, v, fieldsOf(v.Type()), key, keyNode, value)
		})
	}
}

// Slugs returns the providers that the overrides name, sorted.
func (o Overrides) Slugs() []string { return slices.Sorted(maps.Keys(o.changes)) }

// Changes tells whether Apply would change the throttle of a provider.
func (o Overrides) Changes(slug string) bool {
	_, named := o.changes[slug]
	return named || o.excess != ""
}

// Apply returns a declaration with what the overrides say of it, validated. It
// shares nothing with p. Its faults are those of [ParseOverrides], and what does
// not fit to the declaration: an endpoint or a limit that it does not have, keys of
// a provider that takes none, and whatever Validate finds. p itself has to be valid.
func (o Overrides) Apply(p Provider) (Provider, error) {
	p = p.Clone()
	if p.Throttle.Excess == "" {
		p.Throttle.Excess = o.excess
	}
	c, named := o.changes[p.Slug]
	if !named {
		return p, nil
	}
	path := at("providers", p.Slug)
	d := decoder{places: maps.Clone(c.places)}
	d.drop(at(path, "drop"), &p.Throttle, c.Drop)
	if c.throttle != nil {
		d.merge(at(path, "throttle"), &p.Throttle, c.throttle)
	}
	d.endpoints(at(path, "endpoints"), &p, c)
	if len(c.Keys) > 0 {
		if p.Auth.Kind == "" || p.Auth.Kind == "none" {
			d.faults.add(at(path, "keys"), "are of no use: the provider takes no key")
		}
		p.Auth.Env = c.Keys
	}
	p = p.WithThrottle(p.Throttle)
	for _, e := range p.faults() {
		field := strings.Replace(nameLimit(p.Throttle, e.Field), "auth.env[", "keys[", 1)
		d.faults.add(path+"."+field, "%s", e.Problem)
	}
	for _, e := range d.faults {
		if e.Line == 0 {
			e.Line, e.Column = d.places.find(e.Field)
		}
	}
	if len(d.faults) > 0 {
		return Provider{}, d.faults.join()
	}
	return p, nil
}

// drop takes declared limits away.
func (d *decoder) drop(path string, t *Throttle, names []string) {
	for i, name := range names {
		at := slices.IndexFunc(t.Limits, func(l Limit) bool { return l.Name == name })
		if at < 0 {
			var known []string
			for _, l := range t.Limits {
				known = append(known, l.Name)
			}
			d.faults.add(item(path, i), "%s is no declared limit: it must be %s", quoteShort(name), oneOf(known))
			continue
		}
		t.Limits = slices.Delete(t.Limits, at, at+1)
	}
}

// endpoints switches them off and on.
func (d *decoder) endpoints(path string, p *Provider, c change) {
	for _, name := range slices.Sorted(maps.Keys(c.Endpoints)) {
		if !slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return e.Name == name }) {
			d.faults.add(at(path, name), "is not declared: it must be %s", p.endpointNames())
			continue
		}
		p.Throttle.Off = slices.DeleteFunc(p.Throttle.Off, func(off string) bool { return off == name })
		if !c.Endpoints[name] {
			p.Throttle.Off = append(p.Throttle.Off, name)
		}
	}
	if c.Off {
		p.Throttle.Off = []string{Everything}
	}
}

var limitIndex = regexp.MustCompile(`^throttle\.limits\[(\d+)\]`)

// nameLimit writes the path of a limit with its name, as the overrides name it.
func nameLimit(t Throttle, path string) string {
	m := limitIndex.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	i, _ := strconv.Atoi(m[1])
	return at("throttle.limits", t.Limits[i].Name) + path[len(m[0]):]
}
