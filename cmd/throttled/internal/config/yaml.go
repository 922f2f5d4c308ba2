package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxNesting bounds lists and mappings in brackets: the parser takes time with the
// square of their depth, and the fields nest far less.
const maxNesting = 50

// parse reads YAML as far as its nodes, each of which knows its place. The root is
// nil for a file without any.
func parse(data []byte) (root ast.Node, wrong *Problem) {
	tokens := lexer.Tokenize(string(data))
	if tk := tooNested(tokens); tk != nil {
		return nil, &Problem{placeOf(tk), fmt.Sprintf("brackets are nested more than %d deep", maxNesting)}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // duplicates are reported with the rest
	if err != nil {
		var e yaml.Error
		if !errors.As(err, &e) {
			return nil, &Problem{Place{1, 1}, "the file is not YAML"}
		}
		return nil, &Problem{placeOf(e.GetToken()), "the file is not YAML here: " + e.GetMessage()}
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, &Problem{nodePlace(doc.Body), "there is a second YAML document: want one"}
		}
		root = doc.Body
	}
	return root, nil
}

func tooNested(tokens token.Tokens) *token.Token {
	depth := 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxNesting {
				return tk
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
	}
	return nil
}

func placeOf(tk *token.Token) Place {
	if tk == nil || tk.Position == nil {
		return Place{1, 1}
	}
	return Place{max(1, tk.Position.Line), max(1, tk.Position.Column)}
}

// nodePlace is where a node begins. A mapping without brackets begins with its
// first name.
func nodePlace(node ast.Node) Place {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return placeOf(m.Values[0].Key.GetToken())
	}
	return placeOf(node.GetToken())
}

// pairs are the entries of a mapping; ok is false for any other node.
func pairs(node ast.Node) (entries []*ast.MappingValueNode, ok bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// name is the name of an entry; ok is false where it is no text.
func name(entry *ast.MappingValueNode) (text string, ok bool) {
	s, ok := entry.Key.(*ast.StringNode)
	if !ok {
		return entry.Key.GetToken().Value, false
	}
	return s.Value, true
}

// scalar is the text of a value of the given kind; ok is false for any other node.
func scalar(node ast.Node, k kind) (value string, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, k == text
	case *ast.IntegerNode:
		return n.Token.Value, k == number
	case *ast.BoolNode:
		return n.Token.Value, k == truth
	}
	return "", false
}

// shown is how an error shows a value.
func shown(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return quote(n.Value)
	case *ast.LiteralNode:
		return quote(n.Value.Value)
	case *ast.MappingNode, *ast.MappingValueNode:
		return "{…}"
	case *ast.SequenceNode:
		return "[…]"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "(a YAML " + strings.ToLower(node.Type().String()) + ")"
	}
	return clip(node.GetToken().Value)
}
