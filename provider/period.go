package provider

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Period is the length of a limit's window: a duration above 0 up to 744h
// ("1s", "24h"), or a calendar word. The zero value is no period.
type Period string

// The calendar periods. They start where the calendar of a limit's zone says,
// shifted by its anchor.
const (
	Minute Period = "minute"
	Hour   Period = "hour"
	Day    Period = "day"
	Month  Period = "month"
)

const maxPeriod = 31 * 24 * time.Hour

// Duration returns the length of p, and whether p is a calendar word. A word has
// its nominal length: 1m, 1h, 24h, and 31 days for a month. The length is 0
// where p is empty or no valid period.
func (p Period) Duration() (d time.Duration, calendar bool) {
	switch p {
	case Minute:
		return time.Minute, true
	case Hour:
		return time.Hour, true
	case Day:
		return 24 * time.Hour, true
	case Month:
		return maxPeriod, true
	}
	d, err := time.ParseDuration(string(p))
	if err != nil || d <= 0 || d > maxPeriod {
		return 0, false
	}
	return d, false
}

// problem says what is wrong with p, or nothing.
func (p Period) problem() string {
	if d, _ := p.Duration(); d > 0 {
		return ""
	}
	const right = `a period is a duration above 0 up to 744h, such as "1s" or "24h", or one of minute, hour, day, month`
	d, err := time.ParseDuration(string(p))
	switch {
	case p == "":
		return "is missing: " + right
	case err != nil:
		return fmt.Sprintf("%s is unknown: %s", quoteShort(string(p)), right)
	case d > maxPeriod:
		return fmt.Sprintf("%q is too long: at most 744h; for more write month", p)
	}
	return fmt.Sprintf("%q is not above 0: %s", p, right)
}

var (
	clockTime = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?$`)
	monthDay  = regexp.MustCompile(`^(0?[1-9]|[12][0-9]|3[01])(?: (.*))?$`)
)

// AnchorParts returns where the limit's calendar periods start. What Anchor
// holds depends on Per:
//
//	minute   a duration into the minute     "30s"
//	hour     a duration into the hour       "15m"
//	day      a time of day in the zone      "17:30", "17:30:00"
//	month    a day, and a time of day       "15", "15 17:30", "15 17:30:00"
//
// Offset is the duration into the period, or the time of day as the hands of a
// clock show it (17h30m), which is not the time since midnight on the two days
// at which the clock changes. Day is 0 but for month: 1 to 31, and a month that
// is shorter starts on its last day. Without an anchor a period starts at its
// natural begin: 0 and 0, for month 1 and 0. An error tells what an anchor of
// this period looks like; so does an anchor at a period that is no word.
func (l Limit) AnchorParts() (day int, offset time.Duration, err error) {
	if l.Per == Month {
		day = 1
	}
	if l.Anchor == "" {
		return day, 0, nil
	}
	switch l.Per {
	case Minute:
		offset, err = within(l.Anchor, time.Minute, `"30s"`)
	case Hour:
		offset, err = within(l.Anchor, time.Hour, `"15m"`)
	case Day:
		offset, err = timeOfDay(l.Anchor, `"17:30" or "17:30:00"`)
	case Month:
		return dayAndTime(l.Anchor)
	default:
		err = errors.New("needs a calendar period: per minute, hour, day or month")
	}
	return 0, offset, err
}

func within(anchor string, period time.Duration, example string) (time.Duration, error) {
	d, err := time.ParseDuration(anchor)
	if err != nil || d < 0 || d >= period {
		return 0, fmt.Errorf("%s is no duration from 0 to below %s: write it as %s", quoteShort(anchor), durationText(period), example)
	}
	return d, nil
}

func timeOfDay(anchor, example string) (time.Duration, error) {
	m := clockTime.FindStringSubmatch(anchor)
	if m == nil {
		return 0, fmt.Errorf("%s is no time of day: write it as %s", quoteShort(anchor), example)
	}
	var seconds int
	for i, unit := range []int{3600, 60, 1} {
		n, _ := strconv.Atoi(m[i+1]) // the seconds may be absent: 0
		seconds += n * unit
	}
	return time.Duration(seconds) * time.Second, nil
}

func dayAndTime(anchor string) (int, time.Duration, error) {
	const example = `"15" or "15 17:30"`
	m := monthDay.FindStringSubmatch(anchor)
	if m == nil {
		return 0, 0, fmt.Errorf("%s is no day of a month from 1 to 31: write it as %s", quoteShort(anchor), example)
	}
	day, _ := strconv.Atoi(m[1])
	if !strings.Contains(anchor, " ") {
		return day, 0, nil
	}
	offset, err := timeOfDay(m[2], example)
	if err != nil {
		return 0, 0, err
	}
	return day, offset, nil
}

// durationText writes d as a person would: "1h" for Go's "1h0m0s". Reading it
// back gives d exactly.
func durationText(d time.Duration) string {
	if d == Forever {
		return "forever"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
