package provider

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fill sets every field below v, so that a field that the vocabulary gains is
// tested too.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a %s in a declaration: teach clone and this test what to do with it", v.Type())
	}
}

// shared lists the paths at which a and b are the same memory.
func shared(a, b reflect.Value, path string) (all []string) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			all = append(all, shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)...)
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.Pointer() == b.Pointer() {
			all = append(all, path)
		}
		switch a.Kind() {
		case reflect.Pointer:
			all = append(all, shared(a.Elem(), b.Elem(), path)...)
		case reflect.Slice:
			for i := range a.Len() {
				all = append(all, shared(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
			}
		case reflect.Map:
			for _, k := range a.MapKeys() {
				all = append(all, shared(a.MapIndex(k), b.MapIndex(k), fmt.Sprintf("%s[%v]", path, k))...)
			}
		}
	}
	return all
}

func TestCloneSharesNothing(t *testing.T) {
	var p Provider
	fill(t, reflect.ValueOf(&p).Elem())
	c := p.Clone()
	assert.Equal(t, p, c)
	assert.Empty(t, shared(reflect.ValueOf(p), reflect.ValueOf(c), "Provider"))
	assert.NotEmpty(t, shared(reflect.ValueOf(p), reflect.ValueOf(p), "Provider"), "the test can fail")
}

// The vocabulary has no map of slices yet.
func TestUnshareReachesIntoMaps(t *testing.T) {
	a := map[string][]int{"x": {1}}
	b := a
	unshare(reflect.ValueOf(&b).Elem())
	b["x"][0], b["y"] = 2, nil
	assert.Equal(t, map[string][]int{"x": {1}}, a)
}

func TestCloneKeepsNilAndEmptyApart(t *testing.T) {
	p := Provider{Hosts: []string{}, Dialect: Dialect{Used: map[string]Source{}}}
	assert.Equal(t, p, p.Clone())
	assert.Equal(t, Provider{}, Provider{}.Clone())
}
