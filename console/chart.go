package console

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// The charts are drawn in user units and stretched by the style sheet; shares are
// numbers in attributes, for the page's policy allows no style of its own to an
// element.

const chartHeight = 32

// chart is one line of a history, oldest at the left, now at the right edge.
type chart struct {
	Line, Area template.HTMLAttr // d="…"
	Bad        template.HTMLAttr // a tick for each sample in which something failed
	Label      string            // what it says, in words
	Top        string            // the highest value
	In         string            // the time it is of; "": an hour, or what there is of one
}

// callsChart draws the calls that went, with ticks for those that failed or were
// refused.
func callsChart(h *History) *chart {
	var went, bad int64
	var ticks strings.Builder
	values := make([]float64, len(h.Samples))
	for i, s := range h.Samples {
		values[i] = float64(s.Calls)
		went += int64(s.Calls)
		if n := int64(s.Failed) + int64(s.Refused); n > 0 {
			bad += n
			fmt.Fprintf(&ticks, "M%d %dv-6", mostSamples-len(h.Samples)+i, chartHeight)
		}
	}
	c := draw(values)
	c.Bad = geometry(ticks.String())
	c.Top = perSecond(highest(values) / h.StepSeconds)
	length := span(h.StepSeconds * float64(len(values)))
	if h.StepSeconds < longestStep.Seconds() {
		c.In = length
	}
	c.Label = fmt.Sprintf("%s in the last %s", plural(went, "call"), length)
	if bad > 0 {
		c.Label += fmt.Sprintf(", %s failed or refused", count(bad))
	}
	return c
}

// waitingChart draws the queue's length.
func waitingChart(h *History) *chart {
	values := make([]float64, len(h.Samples))
	for i, s := range h.Samples {
		values[i] = float64(s.Waiting)
	}
	c := draw(values)
	top := int64(highest(values))
	c.Top = count(top)
	c.Label = fmt.Sprintf("at most %s waiting in the last %s", plural(top, "call"), span(h.StepSeconds*float64(len(values))))
	if top == 0 {
		c.Label = "no call waited"
	}
	return c
}

func highest(values []float64) (top float64) {
	for _, v := range values {
		top = max(top, v)
	}
	return top
}

func draw(values []float64) *chart {
	top := max(highest(values), 1)
	var line strings.Builder
	first := mostSamples - len(values)
	for i, v := range values {
		y := chartHeight - 1 - v/top*(chartHeight-4)
		mark := byte('L')
		if i == 0 {
			mark = 'M'
		}
		fmt.Fprintf(&line, "%c%d %.4g", mark, first+i, y)
	}
	area := ""
	if line.Len() > 0 {
		area = fmt.Sprintf("%sV%dH%dZ", line.String(), chartHeight, first)
	}
	return &chart{Line: geometry(line.String()), Area: geometry(area)}
}

// geometry is made of numbers and letters of ours alone.
func geometry(d string) template.HTMLAttr {
	return template.HTMLAttr(`d="` + d + `"`) // of numbers and letters
}

// bar is a limit as a bar: what is used, by whomever, and then what is held, of 100.
type bar struct {
	Limit
	Of                   string // the endpoint or the key that it is of; "": of all calls
	UsedShare, HeldShare float64
	Tone                 string // full, near, or ok
	Text                 string // in words
}

func barOf(l Limit) bar {
	room := float64(max(l.Room, 1))
	used := math.Min(float64(max(l.Room-l.Left-l.Held, 0))/room*100, 100)
	b := bar{Limit: l, Of: l.Endpoint, UsedShare: round(used), HeldShare: round(math.Min(float64(max(l.Held, 0))/room*100, 100-used)), Tone: "ok"}
	window, _ := provider.Period(l.Per).Duration()
	switch {
	case l.Per != "" && window < nearWindow: // being without them is a matter of pace
	case l.Left <= 0:
		b.Tone = "full"
	case l.Left <= l.Room/nearShare:
		b.Tone = "near"
	}
	if l.Left <= 0 { // the provider said so, whatever we have counted
		b.UsedShare = round(100 - b.HeldShare)
	}
	b.Text = fmt.Sprintf("%s of %s %s left, %s used, %s held", count(l.Left), count(l.Room), l.Unit, count(l.Used), count(l.Held))
	if l.Shared {
		b.Text += " by this process"
	}
	return b
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

// Taken is what is not left.
func (b bar) Taken() int64 { return b.Room - b.Left }

// tightest are the bars of at most so many of some limits and of those of a key (nil: of
// none): those with the least left, in the order in which they are declared.
func tightest(limits []Limit, key *Key, most int) (bars []bar, more int) {
	var all []bar
	for _, l := range limits {
		all = append(all, barOf(l))
	}
	if key != nil {
		for _, l := range key.Limits {
			b := barOf(l)
			b.Of = key.Name
			all = append(all, b)
		}
	}
	if len(all) <= most {
		return all, 0
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(leftOf(all[i]), leftOf(all[j])) })
	for _, i := range slices.Sorted(slices.Values(order[:most])) {
		bars = append(bars, all[i])
	}
	return bars, len(all) - most
}

func leftOf(b bar) float64 { return float64(b.Left) / float64(max(b.Room, 1)) }
