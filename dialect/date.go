package dialect

import (
	"strings"
	"time"
)

// zoned and local are the forms of a day and a time that providers have been
// seen to write. time.Parse takes a fraction after the seconds of any of them,
// of any length.
var (
	days  = []string{"2006-01-02", "2006/01/02"}
	times = []string{"15:04:05", "15:04"}
	zones = []string{"", "Z07:00", "-0700", "-07", " Z07:00", " -0700", " MST"}

	others = []string{
		"Mon Jan _2 2006 15:04:05 GMT-0700", // JavaScript's Date.toString
		"Mon Jan _2 2006 15:04:05",
		"Mon, _2 Jan 2006 15:04:05 MST", // HTTP, mail
		"Mon, _2 Jan 2006 15:04:05 -0700",
		"Mon, _2 Jan 2006 15:04 MST",
		"_2 Jan 2006 15:04:05 MST",
		"_2 Jan 2006 15:04:05 -0700",
		"Monday, 02-Jan-06 15:04:05 MST", // RFC 850
		"Mon Jan _2 15:04:05 2006",       // asctime
		"Mon Jan _2 15:04:05 MST 2006",
		"Mon Jan _2 15:04:05 -0700 2006", // Ruby
		"20060102T150405Z0700",
	}

	layouts = append(isoLayouts(), others...)
)

func isoLayouts() []string {
	var all []string
	for _, day := range days {
		all = append(all, day)
		for _, clock := range times {
			for _, zone := range zones {
				all = append(all, day+"T"+clock+zone)
			}
		}
	}
	return all
}

// date reads anything dated; without a zone it is UTC. A zone by another name
// than UTC, GMT or Z is not read: there are three CSTs.
func date(value string) (time.Time, bool) {
	value = iso(value)
	for _, layout := range layouts {
		t, err := time.Parse(layout, value)
		if name, _ := t.Zone(); err != nil || strings.Contains(layout, "MST") && name != "UTC" && name != "GMT" {
			continue
		}
		return t, true
	}
	return time.Time{}, false
}

// iso gives a date the form of the layouts: without the zone's long name that
// JavaScript and Java put behind it, in brackets, and with a T in the middle.
func iso(value string) string {
	for _, brackets := range []string{"()", "[]"} {
		if at := strings.IndexByte(value, brackets[0]); at > 0 && value[len(value)-1] == brackets[1] {
			value = strings.TrimSpace(value[:at])
		}
	}
	if len(value) > 10 && digits(value[:4]) && (value[10] == ' ' || value[10] == 't') {
		value = value[:10] + "T" + strings.TrimLeft(value[11:], " ")
	}
	if strings.HasSuffix(value, "z") {
		value = value[:len(value)-1] + "Z"
	}
	return value
}

// rfc3339 reads only that, with the small t and z that it allows.
func rfc3339(value string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, strings.ToUpper(value))
	return t, err == nil
}
