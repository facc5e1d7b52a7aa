package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	assert.EqualValues(t, 50, percentile(hundred, 50))
	assert.EqualValues(t, 95, percentile(hundred, 95))
	assert.EqualValues(t, 2, percentile(hundred[:3], 50))
	assert.EqualValues(t, 3, percentile(hundred[:3], 95))
	assert.EqualValues(t, 1, percentile(hundred[:1], 1))
	assert.EqualValues(t, 0, percentile(nil, 95))
}

func TestPercentRoundsDown(t *testing.T) {
	assert.Equal(t, "99 %", percent(999, 1000))
	assert.Equal(t, "100 %", percent(1000, 1000))
	assert.Equal(t, "100 %", percent(1001, 1000))
	assert.Equal(t, "–", percent(1, 0))
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1234 * time.Microsecond: "1.2ms", 30303031: "30ms", time.Second: "1s",
		1500 * time.Millisecond: "1.5s", 14 * time.Minute: "14m0s", 3*time.Hour + time.Millisecond: "3h0m0s",
	} {
		assert.Equal(t, want, short(d))
	}
}
