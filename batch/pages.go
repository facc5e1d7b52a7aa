package batch

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/headgate/headgate/provider"
)

// joined is the result of pages that were asked in two tries: as of the later one,
// with the items of both. What is no array counts as one item, so that nothing is
// lost.
func joined(first, then provider.Result) provider.Result {
	then.Empty = first.Empty && then.Empty
	then.Suspicious = first.Suspicious && then.Empty
	items := slices.DeleteFunc([][]byte{inside(first.Data), inside(then.Data)}, func(x []byte) bool { return len(x) == 0 })
	then.Data = json.RawMessage(slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]")))
	return then
}

// inside is what stands between the brackets of an array.
func inside(data json.RawMessage) []byte {
	data = bytes.TrimSpace(data)
	if len(data) > 1 && data[0] == '[' {
		data = bytes.TrimSpace(data[1 : len(data)-1])
	}
	return data
}
