package provider

import "reflect"

// Clone copies a declaration so that it shares nothing with p that anybody can
// change. It walks the type by reflection: a field that the vocabulary gains is
// copied without anybody thinking of it, and a declaration is copied seldom.
func (p Provider) Clone() Provider {
	v := reflect.ValueOf(&p).Elem()
	unshare(v)
	return p
}

// unshare replaces every pointer, slice and map below v, which is settable and
// the caller's own, by a copy. Nil stays nil.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() { // nobody outside can change what is not exported
				unshare(f)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			unshare(own.Elem())
			v.Set(own)
		}
	case reflect.Slice:
		if !v.IsNil() {
			own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(own, v)
			for i := range own.Len() {
				unshare(own.Index(i))
			}
			v.Set(own)
		}
	case reflect.Map:
		if !v.IsNil() {
			own := reflect.MakeMapWithSize(v.Type(), v.Len())
			for it := v.MapRange(); it.Next(); {
				value := reflect.New(v.Type().Elem()).Elem()
				value.Set(it.Value())
				unshare(value)
				own.SetMapIndex(it.Key(), value)
			}
			v.Set(own)
		}
	}
}
