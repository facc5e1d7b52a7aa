package adapters

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// place returns where a field of a declaration stands in its text, or the nearest
// thing around it.
func place(text []byte, field string) (line, column int) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil || len(tree.Docs) == 0 {
		return 1, 1
	}
	for ; field != ""; field = field[:max(strings.LastIndexAny(field, ".["), 0)] {
		path, err := yaml.PathString("$." + field)
		if err != nil {
			continue
		}
		if node, err := path.FilterFile(tree); err == nil && node != nil {
			return begin(node)
		}
	}
	return begin(tree.Docs[0].Body)
}

// begin is where a node begins: the token of a mapping in block style is its first
// colon.
func begin(n ast.Node) (line, column int) {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	at := n.GetToken().Position
	return at.Line, at.Column
}
