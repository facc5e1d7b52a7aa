package dialect_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

// "No data" inside a 200 is told apart from data, an empty body included.
func TestASignalSaysThatThereIsNoData(t *testing.T) {
	d := provider.Dialect{Signals: []provider.Signal{
		{JSON: &provider.Match{Path: "$.query_status", Equals: "no_results"}, Outcome: provider.OK, Empty: true},
		{Status: []int{200}, Body: "^$", Outcome: provider.OK, Empty: true},
		{Status: []int{404}, Outcome: provider.OK, Empty: true},
	}}
	for _, x := range []struct {
		status int
		body   []byte
		empty  bool
	}{
		{200, []byte(`{"query_status": "no_results"}`), true},
		{200, []byte(`{"query_status": "ok"}`), false},
		{200, []byte{}, true},
		{200, []byte(" \n"), true},
		{200, nil, false}, // a body that was not read says nothing
		{404, nil, true},
	} {
		f := dialect.Read(d, &http.Response{StatusCode: x.status, Header: http.Header{}}, x.body, time.Now())
		assert.Equal(t, provider.OK, f.Outcome)
		assert.Equal(t, x.empty, f.Empty, "%d %q", x.status, x.body)
	}
}
