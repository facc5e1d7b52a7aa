package dialect_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/dialect"
)

func TestDateIsTheProvidersClock(t *testing.T) {
	at := time.Date(2015, 10, 21, 7, 28, 0, 0, time.UTC)
	told := http.Header{"Date": {"Wed, 21 Oct 2015 07:28:00 GMT"}}
	assert.True(t, dialect.Date(told).Equal(at))
	assert.Zero(t, dialect.Date(http.Header{"Date": {"yesterday"}}))
	assert.Zero(t, dialect.Date(nil))
	told.Set("Age", "30")
	assert.Zero(t, dialect.Date(told), "a cache's answer tells of an earlier moment")
}
