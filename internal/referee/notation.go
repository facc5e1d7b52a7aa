package referee

import (
	"net/http"
	"strconv"
	"time"
)

// dates are how an instant is written where the dialect says no more than date,
// each with what it is rounded up to.
var dates = []struct {
	layout string
	to     time.Duration
}{
	{"2006-01-02T15:04:05.000Z", time.Millisecond},
	{"2006-01-02 15:04:05", time.Second},
	{"2006-01-02T15:04Z", time.Minute},
	{"Mon Jan 02 2006 15:04:05 GMT-0700", time.Second},
	{http.TimeFormat, time.Second},
}

// waits returns how a wait of d from now on may be written in a notation: never
// so that whoever reads it comes too early. Of several the first is used that
// fits to the dialect's pattern.
func waits(d time.Duration, now time.Time, as string) []string {
	at := now.Add(d).UTC()
	millis := up(d, time.Millisecond).String()
	seconds := strconv.FormatInt(int64(up(d, time.Second)/time.Second), 10)
	switch as {
	case "seconds", "retry_after":
		return []string{seconds}
	case "milliseconds":
		return []string{strconv.FormatInt(up(d, time.Millisecond).Milliseconds(), 10)}
	case "duration":
		return []string{millis, seconds + "s", strconv.FormatInt(up(d, time.Millisecond).Milliseconds(), 10) + "ms"}
	case "epoch":
		return []string{strconv.FormatInt(upTo(at, time.Second).Unix(), 10)}
	case "epoch_ms":
		return []string{strconv.FormatInt(upTo(at, time.Millisecond).UnixMilli(), 10)}
	case "http_date":
		return []string{upTo(at, time.Second).Format(http.TimeFormat)}
	case "rfc3339":
		return []string{upTo(at, time.Second).Format(time.RFC3339)}
	case "date":
		var all []string
		for _, f := range dates {
			all = append(all, upTo(at, f.to).Format(f.layout))
		}
		return all
	}
	return append([]string{seconds, millis}, waits(d, now, "date")...)
}

// lengths returns how the length of a window may be written.
func lengths(d time.Duration, as string) []string {
	if as == "" {
		return waits(d, time.Time{}, "")[:2]
	}
	return waits(d, time.Time{}, as)
}

// up rounds d up to a multiple of unit.
func up(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// upTo rounds an instant up.
func upTo(t time.Time, unit time.Duration) time.Time {
	if r := t.Truncate(unit); r.Before(t) {
		return r.Add(unit)
	}
	return t
}
