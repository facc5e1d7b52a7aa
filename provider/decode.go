package provider

import (
	"bytes"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The library's own decoder is not strict enough for numbers on which a ban
// hangs: it reads 2.7 into an integer as 2, 0100 as 64, "5" as a number, and
// gives no line for a duration that it cannot read. So its parser makes the tree
// and this file fills the values.

// decode fills v, a pointer to one of the declaration's structs, from text.
func decode(text []byte, v any) (places, faults) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	body, fault := document(text)
	if fault != nil {
		return nil, faults{fault}
	}
	return decodeNode(body, v)
}

// decodeNode is decode for a tree that is there already.
func decodeNode(body ast.Node, v any) (places, faults) {
	d := decoder{places: places{}}
	fresh := reflect.New(reflect.TypeOf(v).Elem())
	d.value("", fresh.Elem(), body)
	if len(d.faults) == 0 {
		reflect.ValueOf(v).Elem().Set(fresh.Elem())
	}
	return d.places, d.faults
}

type decoder struct {
	places places
	faults faults
}

func (d *decoder) fault(n ast.Node, path, format string, args ...any) {
	d.faults.add(path, format, args...)
	e := d.faults[len(d.faults)-1]
	e.Line, e.Column = place(n)
}

// place is where a node begins.
func place(n ast.Node) (line, column int) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // the token of such a mapping is its first colon
	}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			return t.Position.Line, t.Position.Column
		}
	}
	return 1, 1
}

var durationType = reflect.TypeFor[time.Duration]()

func (d *decoder) value(path string, v reflect.Value, n ast.Node) {
	line, column := place(n)
	d.places[path] = [2]int{line, column}
	switch n.(type) {
	case nil, *ast.NullNode:
		d.fault(n, path, "has no value: write one, or leave the key out")
		return
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fault(n, path, "anchors, aliases and tags are not read: write the value out")
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(path, v, n)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, v.Elem(), n)
	case v.Kind() == reflect.Struct:
		d.structure(path, v, n)
	case v.Kind() == reflect.Slice:
		d.list(path, v, n)
	case v.Kind() == reflect.Map:
		d.mapping(path, v, n)
	case v.Kind() == reflect.String:
		if text, ok := d.text(path, n, "text"); ok {
			v.SetString(text)
		}
	case v.Kind() == reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
		} else {
			d.fault(n, path, "must be true or false")
		}
	case v.CanInt():
		d.integer(path, v, n)
	case v.CanFloat():
		d.float(path, v, n)
	}
}

// pairs calls each for every key of a mapping, in the order of the text.
func (d *decoder) pairs(path string, n ast.Node, each func(key string, at, value ast.Node)) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fault(n, path, "must be a mapping of keys to values")
		return
	}
	seen := map[string]bool{}
	for _, pair := range m.Values {
		key, ok := pair.Key.(*ast.StringNode)
		switch {
		case !ok:
			d.fault(pair.Key, path, "%s is no key: keys are plain text", quoteShort(pair.Key.GetToken().Value))
		case seen[key.Value]:
			d.fault(key, path, "key %s is there twice", quoteShort(key.Value))
		default:
			seen[key.Value] = true
			each(key.Value, key, pair.Value)
		}
	}
}

func (d *decoder) structure(path string, v reflect.Value, n ast.Node) {
	fields := fieldsOf(v.Type())
	d.pairs(path, n, func(key string, keyNode, value ast.Node) {
		var known []string
		for _, f := range fields {
			if f.key == key {
				d.value(at(path, key), v.Field(f.index), value)
				return
			}
			known = append(known, f.key)
		}
		d.fault(keyNode, path, "unknown key %s: it must be %s", quoteShort(key), oneOf(known))
	})
}

func (d *decoder) mapping(path string, v reflect.Value, n ast.Node) {
	d.pairs(path, n, func(key string, _, value ast.Node) {
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(at(path, key), element, value)
		v.SetMapIndex(reflect.ValueOf(key), element)
	})
}

func (d *decoder) list(path string, v reflect.Value, n ast.Node) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, "must be a list: [a, b], or one line each that begins with a dash")
		return
	}
	for i, value := range sequence.Values {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(item(path, i), element, value)
		v.Set(reflect.Append(v, element))
	}
}

// text reads a scalar that is text; what names it for the message.
func (d *decoder) text(path string, n ast.Node, what string) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		d.fault(n, path, `must be %s: write "%s" in quotes`, what, n.GetToken().Value)
	default:
		d.fault(n, path, "must be %s", what)
	}
	return "", false
}

func (d *decoder) duration(path string, v reflect.Value, n ast.Node) {
	if number, ok := number(n); ok {
		d.fault(n, path, `%s has no unit: write "%ss" for seconds`, number, number)
		return
	}
	text, ok := d.text(path, n, `a duration such as "30s"`)
	if !ok {
		return
	}
	length := Forever
	if text != "forever" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			d.fault(n, path, `%s is no duration: write it as "30s", "500ms" or "1h30m"`, quoteShort(text))
			return
		}
	}
	v.SetInt(int64(length))
}

var (
	wholeNumber   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	decimalNumber = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
)

// number returns the text of an unquoted decimal number. The parser takes some
// for text (1e3, or more digits than an integer has).
func number(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.StringNode:
		if s.Token.Type != token.StringType {
			return "", false
		}
	default:
		return "", false
	}
	text := n.GetToken().Value
	return text, decimalNumber.MatchString(text)
}

func (d *decoder) integer(path string, v reflect.Value, n ast.Node) {
	text, ok := number(n)
	if !ok || !wholeNumber.MatchString(text) {
		d.fault(n, path, "must be a whole number such as 10, in decimal digits and without quotes")
		return
	}
	i, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if err != nil {
		d.fault(n, path, "%s is too large: at most %d", text, uint64(1)<<(v.Type().Bits()-1)-1)
		return
	}
	v.SetInt(i)
}

func (d *decoder) float(path string, v reflect.Value, n ast.Node) {
	text, ok := number(n)
	if !ok {
		d.fault(n, path, "must be a number such as 2.5, in decimal digits and without quotes")
		return
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		d.fault(n, path, "%s is out of range", text)
		return
	}
	v.SetFloat(f)
}
