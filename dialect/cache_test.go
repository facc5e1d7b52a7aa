package dialect

import (
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheCacheCompilesOnceAndIsBounded(t *testing.T) {
	var c cache[*regexp.Regexp]
	compiled := 0
	compile := func(text string) (*regexp.Regexp, error) {
		compiled++
		return regexp.Compile(text)
	}
	for range 3 {
		assert.True(t, c.get("^a$", compile).MatchString("a"))
		assert.Nil(t, c.get("(", compile), "what is no pattern is not tried again")
	}
	assert.Equal(t, 2, compiled)
	for i := range 2 * maxCached {
		c.get(strconv.Itoa(i), compile)
	}
	held := 0
	c.m.Range(func(any, any) bool { held++; return true })
	assert.Equal(t, maxCached, held)
}

func TestTheCacheIsSafeForConcurrentUse(t *testing.T) {
	var c cache[*regexp.Regexp]
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 200 {
				if !c.get(strconv.Itoa(i%50), regexp.Compile).MatchString(strconv.Itoa(i % 50)) {
					t.Error(i)
				}
			}
		})
	}
	group.Wait()
}
