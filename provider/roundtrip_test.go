package provider

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// draw fills a value of any of the declaration's types at random: every field,
// those that are added later too. Lists and maps are nil where empty, since text
// cannot tell the two apart.
func draw(t *rapid.T, name string, v reflect.Value) {
	if rapid.IntRange(0, 3).Draw(t, name+"?") == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, name, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 2).Draw(t, name+" length") {
			element := reflect.New(v.Type().Elem()).Elem()
			draw(t, name+"[]", element)
			v.Set(reflect.Append(v, element))
		}
	case reflect.Map:
		for range rapid.IntRange(0, 2).Draw(t, name+" length") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			element := reflect.New(v.Type().Elem()).Elem()
			draw(t, name+"[]", element)
			v.SetMapIndex(reflect.ValueOf(text().Draw(t, name+" key")), element)
		}
	case reflect.String:
		v.SetString(text().Draw(t, name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, name))
	case reflect.Int, reflect.Int64:
		n := rapid.Int64().Draw(t, name)
		if v.Type() == durationType {
			n = rapid.SampledFrom([]int64{n, n % 1e12, int64(Forever), 30e9, 3600e9}).Draw(t, name+" length")
		}
		v.SetInt(n)
	default:
		t.Fatalf("%s: no text for a %s", name, v.Type())
	}
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"true", "null", "~", "5", "1e3", "0x10", "- a", "a: b", "# c", "{a}", "[", "'", `"`, `\d+\x`, "\n", "a\n  b\n\n", "\r\n", "\t", " a ", "é😀",
		"\x00\x1b\x7f", "\u0085\u2028\u2029\ufeff", "17:30", "2026-11-30", "&a", "*a", "!!str", "%", "@", "`", "|", ">", "---", "...", "<<", "?", "a#b", "a #b", "30s", "y", "No", ".inf",
	}))
}

// both checks that a value comes back from JSON, compact and indented, and from
// YAML as it was.
func both(t require.TestingT, v any, zero func() any) {
	compact, err := json.Marshal(v)
	require.NoError(t, err)
	back := zero()
	require.NoError(t, json.Unmarshal(compact, back), string(compact))
	require.Equal(t, v, reflect.ValueOf(back).Elem().Interface(), string(compact))
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, compact, "", "\t"))
	back = zero()
	require.NoError(t, json.Unmarshal(indented.Bytes(), back), indented.String())
	require.Equal(t, v, reflect.ValueOf(back).Elem().Interface(), indented.String())

	y, err := toYAML(v)
	require.NoError(t, err)
	back = zero()
	_, f := decode(y, back)
	require.NoError(t, f.join(), string(y))
	require.Equal(t, v, reflect.ValueOf(back).Elem().Interface(), string(y))
}

func TestRoundTripOfAnyValue(t *testing.T) {
	types := declarationTypes()
	rapid.Check(t, func(t *rapid.T) {
		typ := types[rapid.IntRange(0, len(types)-1).Draw(t, "type")]
		v := reflect.New(typ).Elem()
		draw(t, typ.Name(), v)
		both(t, v.Interface(), func() any { return reflect.New(typ).Interface() })
	})
}

// declarationTypes are Provider and every struct below it.
func declarationTypes() []reflect.Type {
	var types []reflect.Type
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch {
		case slices.Contains(types, typ):
		case typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map:
			walk(typ.Elem())
		case typ.Kind() == reflect.Struct:
			types = append(types, typ)
			for i := range typ.NumField() {
				walk(typ.Field(i).Type)
			}
		}
	}
	walk(reflect.TypeFor[Provider]())
	return types
}

func TestRoundTripThroughTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Provider
		draw(t, "p", reflect.ValueOf(&p).Elem())
		text, err := yaml.Marshal(map[string]Provider{"mine": p})
		require.NoError(t, err)
		var back map[string]Provider
		require.NoError(t, yaml.Unmarshal(text, &back), string(text))
		require.Equal(t, p, back["mine"], string(text))
	})
}

// YAML → value → YAML and JSON → value, through Parse, for a declaration that is
// valid.
func TestRoundTripThroughParse(t *testing.T) {
	p, err := Parse([]byte(complete))
	require.NoError(t, err)
	inYAML, err := yaml.Marshal(p)
	require.NoError(t, err)
	inJSON, err := json.Marshal(p)
	require.NoError(t, err)
	for _, text := range [][]byte{inYAML, inJSON} {
		back, err := Parse(text)
		require.NoError(t, err, string(text))
		assert.Equal(t, p, back, string(text))
	}
}

func TestMarshalWritesOnlyWhatIsSet(t *testing.T) {
	inYAML, err := yaml.Marshal(Provider{Slug: "x", Throttle: Throttle{RPS: 1, MaxWait: Forever, Limits: []Limit{
		{Name: "a b", Max: 5, Per: "1s", Endpoints: []string{"e", "5"}}, {Name: "true", Max: 1, Per: Day}}}, Hosts: []string{}, Timeout: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, `slug: x
throttle:
  rps: 1
  max_wait: forever
  limits:
    - name: "a b"
      max: 5
      per: 1s
      endpoints:
        - e
        - "5"
    - name: "true"
      max: 1
      per: day
timeout: 1m
`, string(inYAML))

	inYAML, err = yaml.Marshal(Throttle{Learn: "\x7f\u0085\ufeff<é>"})
	require.NoError(t, err)
	assert.Equal(t, "learn: \"\\x7f\\u0085\\ufeff<é>\"\n", string(inYAML), "what YAML does not print is escaped")
	own, err := toYAML(Throttle{Learn: "\x7f\u0085\ufeff<é>"})
	require.NoError(t, err)
	assert.Equal(t, "learn: \"\\u007f\\u0085\\ufeff<é>\"\n", string(own))

	inJSON, err := json.Marshal(Throttle{RPS: 0.1, MaxWait: Forever, Penalty: 90 * time.Second, BadAnswers: &Limit{Max: 1, Per: "1s"}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"rps":0.1,"max_wait":"forever","penalty":"1m30s","bad_answers":{"name":"","max":1,"per":"1s"}}`, string(inJSON))
}

func TestEveryFieldHasALowerSnakeCaseKey(t *testing.T) {
	for _, typ := range declarationTypes() {
		for i, f := range fieldsOf(typ) {
			assert.Regexp(t, `^[a-z]+(_[a-z]+)*$`, f.key, typ.Field(i).Name)
			assert.Equal(t, strings.ReplaceAll(f.key, "_", ""), strings.ToLower(typ.Field(i).Name))
		}
	}
}

func TestMarshalRefusesWhatTextCannotHold(t *testing.T) {
	_, err := json.Marshal(Provider{Slug: "x", Throttle: Throttle{RPM: math.NaN()}})
	assert.ErrorContains(t, err, "throttle.rpm: must be a number")
	_, err = yaml.Marshal(Throttle{Limits: []Limit{{Name: "\xff"}}})
	assert.ErrorContains(t, err, "limits[0].name: is not in UTF-8")
	_, err = json.Marshal(Endpoint{Params: map[string]string{"a": "\xff"}})
	assert.ErrorContains(t, err, "params.a: is not in UTF-8")
}
