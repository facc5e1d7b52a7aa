package stage

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/internal/referee"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpenServes(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	get := func(t *testing.T, s *Stage) {
		res, err := (&http.Client{Transport: s.Base()}).Get(s.URL() + "/here")
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, "/here", string(body))
	}
	synctest.Test(t, func(t *testing.T) {
		s := Open(referee.Listen(), hello)
		defer s.Close()
		get(t, s)
	})
	l, err := Loopback()
	require.NoError(t, err)
	s := Open(l, hello)
	defer s.Close()
	get(t, s)
}

func TestNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := Network{10 * time.Millisecond, 100 * time.Millisecond}.At(10)
		for range 100 {
			begin := time.Now()
			assert.True(t, n.Pass(t.Context()))
			assert.GreaterOrEqual(t, time.Since(begin), time.Millisecond)
			assert.Less(t, time.Since(begin), 10*time.Millisecond)
		}
		begin := time.Now()
		assert.True(t, Network{}.Pass(t.Context()))
		assert.Zero(t, time.Since(begin))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, Sleep(ctx, time.Hour))
		assert.Equal(t, time.Second, time.Since(begin))
		assert.False(t, Sleep(ctx, 0), "over")
	})
}

func TestFlags(t *testing.T) {
	parse := func(args ...string) (float64, error) {
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		speed := Speed(set, 7)
		return *speed, Parse(set, args)
	}
	speed, err := parse()
	require.NoError(t, err)
	assert.Equal(t, 7.0, speed)
	for _, bad := range []string{"0", "-1", "NaN", "Inf", "", "fast"} {
		_, err := parse("-speed", bad)
		assert.ErrorContains(t, err, "want a number above 0", bad)
	}
	_, err = parse("more", "than", "flags")
	assert.EqualError(t, err, "more than flags: want flags only")

	set := flag.NewFlagSet("x", flag.ContinueOnError)
	got := Speed(set, 7)
	require.NoError(t, Parse(set, strings.Fields("-speed 0.5")))
	assert.Equal(t, 0.5, *got)
}

func TestPercent(t *testing.T) {
	assert.Equal(t, "50 %", Percent(1, 2))
	assert.Equal(t, "–", Percent(1, 0))
}
