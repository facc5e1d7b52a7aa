package scale

import (
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.benchtime", "100x"); err != nil { // what is measured does not matter here
		os.Exit(2)
	}
	os.Exit(m.Run())
}

func TestEachSubjectIsMeasured(t *testing.T) {
	for among, subjects := range Subjects {
		for _, s := range subjects {
			r, err := Measure(s.Name, among, 200)
			require.NoError(t, err, s.Name)
			require.Equal(t, Result{Subject: s.Name, Among: among, N: 200, Nanoseconds: r.Nanoseconds, Bytes: r.Bytes}, r)
			require.Greater(t, r.Bytes, 30.0, "%s of %s", s.Name, among)
		}
	}
	_, err := Measure("nobody", Keys, 1)
	require.EqualError(t, err, `scale: no subject has the name "nobody"`)
}

func TestALimitInTheWayIsAnError(t *testing.T) {
	require.Error(t, granted(false, nil))
	require.NoError(t, granted(true, nil))
	no := errors.New("no")
	require.Equal(t, no, granted(true, no))
}

// All of a peer's names must be asked, or few of them would be in the processor's cache.
func TestEveryNameIsAsked(t *testing.T) {
	asked := map[int]int{}
	_, err := measure(subject{"counts", func([]string) func(int) error {
		return func(i int) error { asked[i]++; return nil }
	}}, Keys, 10)
	require.NoError(t, err)
	require.Len(t, asked, 10)
	for i, n := range asked {
		require.Greater(t, n, 1, "%d: more than when they are made", i)
	}
}
