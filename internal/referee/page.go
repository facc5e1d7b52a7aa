package referee

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

// pages is how many pages with items a lookup has where an endpoint has pages;
// one more has none.
const pages = 2

// pager answers an endpoint that has pages.
type pager struct {
	provider.Paging
	items member // without the step to each of them
}

// cursor is the text that leads to the n-th page, counted from 1.
func cursor(n int) string { return strconv.Itoa(7_000_000 + n) }

// newPager reads where pages stand; v learns the paths and patterns.
func (v *voice) newPager(p provider.Paging) (*pager, error) {
	p = p.WithDefaults()
	path, ok := strings.CutSuffix(p.Items, "[*]")
	if !ok {
		return nil, fmt.Errorf("items: %s would have to end in [*]", p.Items)
	}
	items, err := plainPath(path)
	if err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	if p.Next.JSON != "" {
		if v.paths[p.Next.JSON], err = plainPath(p.Next.JSON); err != nil {
			return nil, fmt.Errorf("next.json: %w", err)
		}
	}
	if p.Next.Pattern != "" {
		if v.patterns[p.Next.Pattern], err = newPattern(p.Next.Pattern); err != nil {
			return nil, fmt.Errorf("next.pattern: %w", err)
		}
	}
	return &pager{Paging: p, items: items}, nil
}

// number is which page is asked for, counted from 1.
func (p *pager) number(page string) int {
	if p.Next != (provider.Source{}) {
		for n := 2; n <= pages+1; n++ {
			if page == cursor(n) {
				return n
			}
		}
		return 1
	}
	n, err := strconv.ParseInt(page, 10, 64)
	if err != nil {
		return 1
	}
	return int((n-p.Start)/p.Step) + 1
}

// page answers with the n-th page.
func (v *voice) page(p *pager, n int) (Answer, error) {
	items := []any{}
	if n <= pages {
		items = append(items, map[string]any{"item": strconv.Itoa(n)})
	}
	d := v.draft(200)
	var err error
	if d.doc, err = p.items.put(nil, items); err != nil {
		return Answer{}, err
	}
	d.isDoc = true
	if p.Next != (provider.Source{}) && n <= pages {
		if err := d.say(line{p.Next, []string{cursor(n + 1)}}); err != nil {
			return Answer{}, fmt.Errorf("next: %w", err)
		}
	}
	return d.finish("")
}
