package adapters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

// page is the part of a long answer that is asked for. Its zero value is the whole
// answer of an endpoint without pages.
type page struct {
	paging *provider.Paging // with its defaults; nil: no pages
	text   string           // what fills {page}; "": there is none, and what has {page} is left out
	number int64            // where pages are counted
	later  bool             // not the first one
}

// pageOf reads Query.Page.
func pageOf(e provider.Endpoint, asked string) (page, error) {
	switch {
	case e.Paging == nil && asked != "":
		return page{}, errors.New("has no pages: leave the query's page out")
	case e.Paging == nil:
		return page{}, nil
	}
	paging := e.Paging.WithDefaults()
	p := page{paging: &paging, text: asked, later: asked != ""}
	if p.told() {
		return p, nil
	}
	p.number = paging.Start
	if asked != "" {
		n, err := strconv.ParseInt(asked, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != asked {
			return page{}, fmt.Errorf("counts its pages: the query's page is no number such as %d", paging.Start)
		}
		p.number, p.later = n, n != paging.Start
	}
	p.text = strconv.FormatInt(p.number, 10)
	return p, nil
}

// told says whether the answers tell the next page.
func (p page) told() bool { return p.paging.Next != (provider.Source{}) }

// none is the Data of an answer without data: that of a page is an array always.
func (p page) none() json.RawMessage {
	if p.paging == nil {
		return nil
	}
	return json.RawMessage("[]")
}

// read takes the items out of an answer, and what comes after them, into r. It is
// false where the answer is no page: neither an array nor an object nor null.
func (p page) read(r *provider.Result, header http.Header, body []byte) bool {
	text := trim(body)
	items, ok := dialect.Items(p.paging.Items, text)
	if !ok || text[0] != '[' && text[0] != '{' && string(text) != "null" {
		return false
	}
	r.Data, r.Empty = array(items), len(items) == 0
	switch {
	case p.told():
		next, _ := dialect.Value(p.paging.Next, header, text)
		if next != p.text { // else it repeats itself, and would do so for ever
			r.Next = next
		}
	case !r.Empty && p.number+p.paging.Step > p.number: // no overflow
		r.Next = strconv.FormatInt(p.number+p.paging.Step, 10)
	}
	return true
}

// array writes items as they were written, but for the order of members.
func array(items []any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(append([]any{}, items...)); err != nil {
		return nil // what was decoded is encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
