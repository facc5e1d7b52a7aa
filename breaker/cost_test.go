package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/provider"
)

func TestClosedCallAllocatesNothing(t *testing.T) {
	b := New("x", provider.Breaker{}, 0)
	now := time.Now()
	i := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = b.Look(now)
		tok := b.Take(now)
		r := Success
		if i++; i%3 == 0 { // the row is broken and begun again and again
			r = Failure
		}
		b.Done(&tok, now, r)
	}))
}

func BenchmarkClosed(b *testing.B) {
	br := New("x", provider.Breaker{}, 0)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = br.Look(now)
		tok := br.Take(now)
		br.Done(&tok, now, Success)
	}
}
