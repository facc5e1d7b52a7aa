package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/internal/referee"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		played, err := referee.New(1, referee.Play{Provider: geo})
		require.NoError(t, err)
		defer played.Close()
		played.Serve(referee.Listen())
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, played.Client(), played.URL(geo.Slug)))
		assert.Regexp(t, `^1\.1\.1\.1  after 0s: {"ok":true}
8\.8\.8\.8  refused: coordinator: ip-api: rate limited.*
         asked 0 times; it can go from \d\d:\d\d:01\.\d+ on
9\.9\.9\.9  after 1s: {"ok":true}
$`, out.String())
		report := played.Report(geo.Slug)
		assert.EqualValues(t, 2, report.Arrivals, "a refused call is not sent")
		assert.Zero(t, report.Violated)
	})
}
