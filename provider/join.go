package provider

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Join returns the result of pages up to next, r being that of those before: as of
// next, with the items of both. The Data of both are arrays; one that is none counts
// as one item, so that nothing is lost.
func (r Result) Join(next Result) Result {
	next.Empty = r.Empty && next.Empty
	next.Suspicious = r.Suspicious && next.Empty
	items := slices.DeleteFunc([][]byte{insideArray(r.Data), insideArray(next.Data)}, func(x []byte) bool { return len(x) == 0 })
	next.Data = slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
	return next
}

// insideArray is what stands between the brackets of an array.
func insideArray(data json.RawMessage) []byte {
	data = bytes.TrimSpace(data)
	if len(data) > 1 && data[0] == '[' {
		data = bytes.TrimSpace(data[1 : len(data)-1])
	}
	return data
}
