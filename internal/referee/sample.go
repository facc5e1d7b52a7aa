package referee

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is an RE2 text, and what it is made of.
type pattern struct {
	*regexp.Regexp
	tree *syntax.Regexp
}

func newPattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("no RE2 pattern: %w", err)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("no RE2 pattern: %w", err)
	}
	return &pattern{re, tree}, nil
}

// variations bounds how many texts are tried for one pattern.
const variations = 64

// samples returns texts that match, the plainest first.
func (p *pattern) samples() []string {
	return p.made(nil, func(text string) bool { return text != "" && text == strings.TrimSpace(text) && p.MatchString(text) })
}

// around returns texts in which the pattern finds value, once, as its capture.
func (p *pattern) around(value string) []string {
	return p.made(&value, func(text string) bool {
		found := p.FindAllStringSubmatch(text, -1)
		return len(found) == 1 && len(found[0]) > 1 && found[0][1] == value
	})
}

func (p *pattern) made(value *string, good func(string) bool) []string {
	var all []string
	seen := map[string]bool{}
	for i := range variations {
		m := sampler{choice: i, value: value}
		m.write(p.tree)
		text := m.String()
		if !seen[text] && good(text) {
			all = append(all, text)
		}
		seen[text] = true
	}
	return all
}

// sampler writes one text that a pattern may match. Anchors and word boundaries are
// not looked at: whoever uses the text tries it.
type sampler struct {
	strings.Builder
	choice int     // digits of it decide, in a mixed base
	value  *string // stands for the first capture
}

func (m *sampler) pick(n int) int {
	i := m.choice % n
	m.choice /= n
	return i
}

func (m *sampler) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			text = strings.ToLower(text) // the parser keeps it in upper case
		}
		m.WriteString(text)
	case syntax.OpCharClass:
		m.WriteRune(oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.WriteByte('a')
	case syntax.OpCapture:
		if re.Cap == 1 && m.value != nil {
			m.WriteString(*m.value)
			return
		}
		m.write(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		if m.pick(2) == 1 {
			m.write(re.Sub[0])
		}
	case syntax.OpPlus:
		m.write(re.Sub[0])
	case syntax.OpRepeat:
		n := re.Min
		if n == 0 {
			n = m.pick(2)
		}
		for range n {
			m.write(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			m.write(sub)
		}
	case syntax.OpAlternate:
		m.write(re.Sub[m.pick(len(re.Sub))])
	}
}

// oneOf picks a rune of a class: one that people write, if there is any.
func oneOf(class []rune) rune {
	in := func(r rune) bool {
		for i := 0; i < len(class); i += 2 {
			if class[i] <= r && r <= class[i+1] {
				return true
			}
		}
		return false
	}
	for _, r := range "a1A x-_.:/,?<>{}[]\"'" {
		if in(r) {
			return r
		}
	}
	for r := rune('!'); r <= '~'; r++ {
		if in(r) {
			return r
		}
	}
	if len(class) == 0 {
		return 'a'
	}
	return class[0]
}
