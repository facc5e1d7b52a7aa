package docs_test

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/architecture.svg is drawn from the packages that there are.
func TestPictureIsOfThePackages(t *testing.T) {
	drawn := draw(boxes(t))
	file := filepath.Join(root, "docs", "architecture.svg")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(drawn), 0o600))
	}
	stored, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, drawn, string(stored), "the packages have changed: go test ./internal/docs -update")
	var any struct{ XMLName xml.Name }
	require.NoError(t, xml.Unmarshal(stored, &any))
}

// docs/architecture.md names every package of the picture, and every file that it names
// is there.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	page := read(t, "docs", "architecture.md")
	for name := range boxes(t) {
		assert.Contains(t, page, "`"+name+"`", "no word on package %s", name)
	}
	for _, word := range strings.FieldsFunc(page, func(r rune) bool { return strings.ContainsRune(" `,;:()|\n", r) }) {
		if strings.HasSuffix(word, ".go") {
			_, err := os.Stat(filepath.Join(root, word))
			assert.NoError(t, err)
		}
	}
}

// The sizes of the picture, in its own units.
const (
	wide, high = 208, 76
	right      = 18 // between boxes
	down       = 52 // between rows
	margin     = 12
)

// node is a box in its row, or (without one) a place through which an arrow passes.
type node struct {
	box  *box
	row  int
	x    float64
	into []*node // below
	from []*node // above
}

// layout puts who uses somebody above him, and arrows that pass a row between its
// boxes.
func layout(all map[string]*box) (rows [][]*node) {
	nodes := map[string]*node{}
	for name, b := range all {
		nodes[name] = &node{box: b, row: depth(all, name)}
	}
	add := func(n *node) {
		for len(rows) <= n.row {
			rows = append(rows, nil)
		}
		rows[n.row] = append(rows[n.row], n)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		add(nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		for _, to := range nodes[name].box.uses {
			at := nodes[name]
			for row := at.row - 1; row > nodes[to].row; row-- {
				between := &node{row: row}
				add(between)
				at.into, between.from = append(at.into, between), append(between.from, at)
				at = between
			}
			at.into, nodes[to].from = append(at.into, nodes[to]), append(nodes[to].from, at)
		}
	}
	order(rows)
	return rows
}

// depth is the longest way down from a box.
func depth(all map[string]*box, name string) (d int) {
	for _, to := range all[name].uses {
		d = max(d, depth(all, to)+1)
	}
	return d
}

// order moves the nodes of each row towards those that they are tied to.
func order(rows [][]*node) {
	place(rows)
	for sweep := range 24 {
		for i := range rows {
			row := rows[i]
			if sweep%2 == 1 {
				row = rows[len(rows)-1-i]
			}
			slices.SortStableFunc(row, func(a, b *node) int {
				return int(1000 * (pull(a, sweep%2 == 0) - pull(b, sweep%2 == 0)))
			})
			place(rows)
		}
	}
}

// pull is where the neighbours below (or above) are, on average.
func pull(n *node, below bool) float64 {
	ties := n.from
	if below {
		ties = n.into
	}
	if len(ties) == 0 {
		return n.x
	}
	var sum float64
	for _, x := range ties {
		sum += x.x
	}
	return sum / float64(len(ties))
}

// place spreads each row over the picture's middle.
func place(rows [][]*node) {
	for _, row := range rows {
		x := -span(row) / 2
		for _, n := range row {
			n.x = x + n.width()/2
			x += n.width() + right
		}
	}
}

func span(row []*node) float64 {
	x := -float64(right)
	for _, n := range row {
		x += n.width() + right
	}
	return x
}

func (n *node) width() float64 {
	if n.box == nil {
		return 2
	}
	return wide
}

const style = `<style>
svg { color: #1f2328; font: 12px system-ui, sans-serif }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }
rect, path { fill: none; stroke: currentColor }
rect { stroke-width: 1.2 }
path { opacity: .55 }
text { fill: currentColor; text-anchor: middle }
.name { font-weight: 600; font-size: 13px }
.own { stroke-dasharray: 5 4 }
#tip path { fill: currentColor; stroke: none; opacity: 1 }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
`

// draw is the picture.
func draw(all map[string]*box) string {
	rows := layout(all)
	var width float64
	for _, row := range rows {
		width = max(width, span(row))
	}
	width += 2 * margin
	height := float64(len(rows)*(high+down) - down + 2*margin)
	top := func(n *node) float64 { return float64(margin + (len(rows)-1-n.row)*(high+down)) }
	middle := func(n *node) float64 { return n.x + width/2 }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="The packages of Headgate and which uses which">`+"\n", width, height)
	b.WriteString("<!-- Drawn by: go test ./internal/docs -update -->\n" + style)
	for _, row := range rows {
		for _, n := range row {
			if n.box != nil {
				for _, to := range n.into {
					arrow(&b, n, to, top, middle)
				}
			}
		}
	}
	for _, row := range rows {
		for _, n := range row {
			if n.box != nil {
				n.draw(&b, middle(n), top(n))
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// arrow goes from a box down to a next one, through the places between.
func arrow(b *strings.Builder, from, to *node, top, middle func(*node) float64) {
	x, y := middle(from), top(from)+high
	fmt.Fprintf(b, `<path d="M%.0f %.0f`, x, y)
	for {
		nx, ny := middle(to), top(to)
		fmt.Fprintf(b, "C%.0f %.0f %.0f %.0f %.0f %.0f", x, y+down/2, nx, ny-down/2, nx, ny)
		if to.box != nil {
			break
		}
		fmt.Fprintf(b, "V%.0f", ny+high)
		x, y, to = nx, ny+high, to.into[0]
	}
	b.WriteString("\" marker-end=\"url(#tip)\"/>\n")
}

func (n *node) draw(b *strings.Builder, x, y float64) {
	class := ""
	if n.box.dashed {
		class = ` class="own"`
	}
	fmt.Fprintf(b, `<rect x="%.0f" y="%.0f" width="%d" height="%d" rx="6"%s/>`+"\n", x-wide/2, y, wide, high, class)
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" class="name">%s</text>`+"\n", x, y+20, n.box.name)
	for i, line := range wrap(n.box.says, 28) {
		fmt.Fprintf(b, `<text x="%.0f" y="%.0f">`, x, y+37+15*float64(i))
		_ = xml.EscapeText(b, []byte(line)) // a strings.Builder takes everything
		b.WriteString("</text>\n")
	}
}

// wrap breaks text into at most three lines.
func wrap(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		switch {
		case last < 0 || len(lines) < 3 && len(lines[last])+1+len(word) > width:
			lines = append(lines, word)
		case len(lines[last])+1+len(word) > width+6:
			lines[last] += " …"
			return lines
		default:
			lines[last] += " " + word
		}
	}
	return lines
}
