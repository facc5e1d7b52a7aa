package provider

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestJoin(t *testing.T) {
	for _, x := range []struct{ first, then, want Result }{
		{Result{Data: json.RawMessage(`["a"]`), Next: "2"}, Result{Data: json.RawMessage(` [ "b", "c" ]`), Next: "3"},
			Result{Data: json.RawMessage(`["a","b", "c"]`), Next: "3"}},
		{Result{Data: json.RawMessage(`["a"]`)}, Result{Empty: true, Suspicious: true}, Result{Data: json.RawMessage(`["a"]`)}},
		{Result{Data: json.RawMessage(`[]`), Empty: true, Suspicious: true}, Result{Data: json.RawMessage(`[]`), Empty: true},
			Result{Data: json.RawMessage(`[]`), Empty: true, Suspicious: true}},
		{Result{Empty: true, Suspicious: true}, Result{Data: json.RawMessage(`{"a":1}`)}, Result{Data: json.RawMessage(`[{"a":1}]`)}},
	} {
		assert.Equal(t, x.want, x.first.Join(x.then))
	}
}
