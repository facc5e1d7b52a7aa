package telemetry

import (
	"maps"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
)

// check compares what was collected with what the script made happen.
func (s *script) check(got points) {
	sum, decided := 0.0, map[[4]string]float64{}
	for _, p := range got["headgate.call.decisions"] {
		who := p.attrs[attrProvider]
		if p.attrs[attrReason] == string(coordinator.ReasonUnknownProvider) {
			who = "nobody"
		}
		decided[[4]string{who, p.attrs[attrEndpoint], p.attrs[attrDecision], p.attrs[attrReason]}] += p.value
		sum += p.value
	}
	assert.Equal(s.t, 1000, s.calls)
	assert.Equal(s.t, float64(s.calls), sum, "each call is decided on once")
	assert.Equal(s.t, s.decided, decided)

	outcomes := map[[2]string]float64{}
	for _, p := range got["headgate.attempt.outcomes"] {
		outcomes[[2]string{p.attrs[attrProvider], p.attrs[attrOutcome]}] += p.value
	}
	assert.Equal(s.t, s.outcomes, outcomes)

	retries := map[string]float64{}
	for _, p := range got["headgate.retries"] {
		retries[p.attrs[attrProvider]] += p.value
	}
	maps.DeleteFunc(retries, func(_ string, n float64) bool { return n == 0 })
	assert.Equal(s.t, s.retries, retries)
	s.checkTimes(got)
}

// checkTimes compares the histograms with the counters: a wait for each call that
// went, a duration for each attempt.
func (s *script) checkTimes(got points) {
	admitted := map[[2]string]float64{}
	for at, n := range s.decided {
		if at[2] == "admitted" {
			admitted[[2]string{at[0], at[1]}] += n
		}
	}
	waits := map[[2]string]float64{}
	for _, p := range got["headgate.call.wait"] {
		waits[[2]string{p.attrs[attrProvider], p.attrs[attrEndpoint]}] += float64(p.count)
	}
	assert.Equal(s.t, admitted, waits)
	attempts := map[[2]string]float64{}
	for _, p := range got["headgate.attempt.duration"] {
		attempts[[2]string{p.attrs[attrProvider], p.attrs[attrOutcome]}] += float64(p.count)
	}
	assert.Equal(s.t, s.outcomes, attempts)

	ended := map[string]float64{}
	for _, p := range got["headgate.call.duration"] {
		ended[p.attrs[attrError]] += float64(p.count)
	}
	assert.Equal(s.t, map[string]float64{
		"": 400 + 100 + 1 + 1 + 1 + 3 + 20 + 10 + 40, "failed": 3, "rejected": 10, "unauthorized": 2, "overloaded": 2,
		"canceled": 3 + 10, "unknown": 10, "quota_spent": 1, "banned": 1,
	}, ended)
	assert.InDelta(s.t, 1+2+3, got.of(s.t, "headgate.call.wait", attrProvider, "queue"), 0.01)
}
