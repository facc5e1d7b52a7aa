package book

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// Every value is read as it was written, and no part of it can be left out.
func TestValuesAsBytes(t *testing.T) {
	rule, err := limit.New(provider.Limit{Max: 5, Per: "1m"})
	require.NoError(t, err)
	now := limit.Now{Mono: time.Hour, Wall: 2 * time.Hour}
	rule.Take(now, 2)
	through(t, &Meta{Epoch: "e", Version: 1 << 63, Rev: 3, Grace: 4, Last: -5, Offset: limit.Never, Stepped: 7, By: 8}, new(Meta))
	through(t, &Holder{Until: 5, Dead: true, Seq: 1 << 63}, new(Holder))
	through(t, &Holder{}, new(Holder))
	through(t, &Record{Rule: rule, NotBefore: 4, Max: 5, MaxUntil: limit.Never, Idle: 6}, new(Record))
	through(t, &Hold{At: now, Units: []Unit{{ID: "a", N: 1 << 62}, {}, {ID: "b"}}, Trials: []string{"x"}}, new(Hold))
	through(t, &Hold{At: now, Trials: []string{"x", "y"}}, new(Hold))
	through(t, &Pause{Provider: "p", Scope: "s", Name: "n\x00", Why: "w", Detail: "d", Until: 3, Holder: "h", Hold: 1 << 63, Since: 9}, new(Pause))
}

func through[V any, P value[V]](t *testing.T, want, got P) {
	t.Helper()
	b, err := want.AppendBinary(nil)
	require.NoError(t, err)
	require.NoError(t, got.UnmarshalBinary(b))
	if _, ok := any(want).(*Record); !ok { // package limit sees to it that rules are equal
		require.Equal(t, want, got)
	}
	again, err := got.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, b, again)
	for n := range b {
		var cut V
		if err := P(&cut).UnmarshalBinary(b[:n]); err == nil {
			again, _ := P(&cut).AppendBinary(nil)
			require.Equal(t, b[:n], again, "%T, %d bytes", want, n) // a hold with fewer trials
			require.IsType(t, &Hold{}, P(&cut))
		}
	}
}

// FuzzValues: whatever the bytes, it is an error or a value.
func FuzzValues(f *testing.F) {
	b, _ := (&Hold{Units: []Unit{{ID: "a", N: 1}, {}}, Trials: []string{"x"}}).AppendBinary(nil)
	f.Add(b)
	b, _ = (&Meta{Epoch: "e", Version: 1}).AppendBinary(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		readable(t, new(Meta), data)
		readable(t, new(Holder), data)
		readable(t, new(Record), data)
		readable(t, new(Hold), data)
		readable(t, new(Pause), data)
	})
}

func readable[V any, P value[V]](t *testing.T, v P, data []byte) {
	if v.UnmarshalBinary(data) != nil {
		return
	}
	b, err := v.AppendBinary(nil)
	require.NoError(t, err)
	again := P(new(V))
	require.NoError(t, again.UnmarshalBinary(b))
	require.Equal(t, v, again)
}
