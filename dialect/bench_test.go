package dialect_test

import (
	"testing"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
)

var plain = []string{"Date: Mon, 02 Mar 2026 11:00:00 GMT", "Content-Type: application/json", "Server: nginx", "Cache-Control: no-store", "Vary: Accept",
	"Etag: \"1\"", "Strict-Transport-Security: max-age=1", "X-Request-Id: 1", "Content-Length: 2", "Connection: keep-alive"}

// An answer that says nothing costs next to nothing: every call of a transport
// pays for it.
func TestAnAnswerWithoutNewsCostsOneAllocation(t *testing.T) {
	r := answered(200, plain...)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { dialect.Read(provider.Dialect{}, r, nil, now) }), 1.0)
	d := declare(t, openAI)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { dialect.Read(d, r, nil, now) }), 1.0)
}

func BenchmarkRead(b *testing.B) {
	d, lines := declare(b, openAI), append(openAILines, plain...)
	for name, c := range map[string]struct {
		d     provider.Dialect
		lines []string
	}{"plain": {provider.Dialect{}, plain}, "conventions": {provider.Dialect{}, lines}, "declared": {d, lines}} {
		r := answered(200, c.lines...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				dialect.Read(c.d, r, nil, now)
			}
		})
	}
}
