package match

import "slices"

// A trie has all patterns, for a search from each place where one may begin. Nodes are joined by characters and by
// gaps. The lists of all nodes are joined, in the order of the nodes, because most nodes have one edge and nothing else.
type trie struct {
	nodes   []node // and one more, at which the lists of the last one end
	edges   []edge
	gaps    []gap
	ends    []int32         // searched names that end at a node
	ascii   [128][]edge     // of the root
	seconds [128]uint32     // by the first character: the bits r&31 of what may follow
	roots   map[rune][]edge // of the root, beyond ASCII
}

// A node has the indexes of the first of its edges, gaps and ends. The next node has the indexes after the last.
type node struct {
	edges, gaps, ends int32
	next              uint32 // the bits r&31 of what may follow
}

// mayFollow reports whether a name that leads to n may go on before chars[i], or end.
func (n *node) mayFollow(chars []char, i int) bool {
	return i == len(chars) || n.next>>(chars[i].r&31)&1 != 0
}

// An edge leads to the node after the character r, if its case is as the rule says.
type edge struct {
	r    rune
	rule caseRule
	to   int32
}

// A gapKind says what may stand between two tokens.
type gapKind uint8

const (
	betweenRuns gapKind = iota
	betweenHumps
	besideAmpersand
	acrossAmpersand // the & and both gaps, or a word for it
)

// A gap leads from the last character of a token to before the first of the next.
type gap struct {
	kind     gapKind
	own      string // what the name has there, if that is not allowed anyway
	second   string // of acrossAmpersand: what the name has after the &
	dotSpace bool   // a dot and a space are allowed
	to       int32
}

// A trieBuilder collects patterns for a trie. The first node is the root.
type trieBuilder struct{ nodes []openNode }

// An openNode is a node whose lists may still grow.
type openNode struct {
	edges []edge
	gaps  []gap
	ends  []int32
}

// newTrieBuilder returns a builder whose only node is the root.
func newTrieBuilder() *trieBuilder { return &trieBuilder{make([]openNode, 1)} }

// add adds a pattern that ends with name.
func (t *trieBuilder) add(p *pattern, matchCase bool, name int32) {
	if len(p.tokens) == 0 {
		return
	}
	// The rule of case is part of an edge, so names whose rules differ at a character share no nodes after it.
	rules := p.caseRules(matchCase)
	n := int32(0)
	// A host-shaped name has no gaps: its characters are searched exactly.
	if p.hostShaped {
		n = t.addChars(n, p.chars, rules)
	} else {
		n = t.addTokens(p, rules)
	}
	t.nodes[n].ends = append(t.nodes[n].ends, name)
}

// addTokens adds the tokens of a pattern with the gaps between them, and returns the node at which it ends.
func (t *trieBuilder) addTokens(p *pattern, rules []caseRule) int32 {
	n := int32(0)
	if p.dot {
		n = t.child(n, '.', anyCase)
	}
	for i := 0; i < len(p.tokens); i++ {
		token := p.tokens[i]
		if i > 0 {
			if p.wordsForAmpersand(i) {
				n = t.gap(n, gap{kind: acrossAmpersand, own: p.ampersandGap(i - 1), second: p.ampersandGap(i)})
				// The & is in the gap, so the token after it is next.
				i++
				token = p.tokens[i]
			} else {
				n = t.gap(n, p.gapBefore(i))
			}
		}
		n = t.addChars(n, p.chars[token.start:token.end], rules[token.start:token.end])
	}
	return n
}

// isAmpersand reports whether token i is an &, which is always a separate token.
func (p *pattern) isAmpersand(i int) bool { return p.chars[p.tokens[i].start].r == '&' }

// wordsForAmpersand reports whether token i is an & between two runs of three letters or more.
func (p *pattern) wordsForAmpersand(i int) bool {
	return p.isAmpersand(i) && i+1 < len(p.tokens) && p.runLetters(i-1, -1) >= 3 && p.runLetters(i+1, 1) >= 3
}

// runLetters returns how many letters the run has that begins (step 1) or ends (step -1) with token i.
func (p *pattern) runLetters(i, step int) int {
	letters := p.letters(p.tokens[i])
	for {
		if step < 0 && !p.tokens[i].hump {
			return letters
		}
		i += step
		if i == len(p.tokens) || step > 0 && !p.tokens[i].hump {
			return letters
		}
		letters += p.letters(p.tokens[i])
	}
}

// gapBefore returns the gap between token i and the one before.
func (p *pattern) gapBefore(i int) gap {
	own := p.between(i - 1)
	switch {
	case p.tokens[i].hump:
		return gap{kind: betweenHumps}
	case p.isAmpersand(i) || p.isAmpersand(i-1):
		return gap{kind: besideAmpersand, own: p.ampersandGap(i - 1)}
	}
	g := gap{kind: betweenRuns, dotSpace: slices.Contains([]rune(own), '.')}
	// A space or a separator is allowed between any two runs, and a dot and a space where the name has a dot. So own
	// has only what is special.
	if runes := []rune(own); !(len(runes) == 1 && (runes[0] == ' ' || isSeparator(runes[0]))) && own != ". " {
		g.own = own
	}
	return g
}

// ampersandGap returns what the name has after token i, beside an &, if that is not allowed anyway.
func (p *pattern) ampersandGap(i int) string {
	if own := p.between(i); own != " " {
		return own
	}
	return ""
}

// between returns what the name has between token i and the next.
func (p *pattern) between(i int) string { return plain(p.chars[p.tokens[i].end:p.tokens[i+1].start]) }

// isSeparator reports whether r may stand between tokens in place of a space.
func isSeparator(r rune) bool {
	switch r {
	case '-', '_', '.', '\'', middleDot, '/':
		return true
	}
	return false
}

// addChars adds characters after node n, and returns the node at which they end.
func (t *trieBuilder) addChars(n int32, chars []char, rules []caseRule) int32 {
	for i, c := range chars {
		n = t.child(n, c.r, rules[i])
	}
	return n
}

// child returns the node that r leads to, and makes it if necessary.
func (t *trieBuilder) child(n int32, r rune, rule caseRule) int32 {
	for _, e := range t.nodes[n].edges {
		if e.r == r && e.rule == rule {
			return e.to
		}
	}
	to := t.newNode()
	t.nodes[n].edges = append(t.nodes[n].edges, edge{r, rule, to})
	return to
}

// gap returns the node that g leads to, and makes it if necessary.
func (t *trieBuilder) gap(n int32, g gap) int32 {
	for _, known := range t.nodes[n].gaps {
		// With the same target, gaps are equal if all else is.
		if g.to = known.to; g == known {
			return known.to
		}
	}
	g.to = t.newNode()
	t.nodes[n].gaps = append(t.nodes[n].gaps, g)
	return g.to
}

func (t *trieBuilder) newNode() int32 {
	t.nodes = append(t.nodes, openNode{})
	return int32(len(t.nodes) - 1)
}

// build returns the trie of the patterns.
func (t *trieBuilder) build() *trie {
	built := &trie{nodes: make([]node, 0, len(t.nodes)+1), edges: make([]edge, 0, len(t.nodes)), roots: make(map[rune][]edge)}
	// The empty node at the end closes the lists of the last node.
	for _, open := range append(t.nodes, openNode{}) {
		n := node{int32(len(built.edges)), int32(len(built.gaps)), int32(len(built.ends)), 0}
		for _, e := range open.edges {
			n.next |= 1 << (e.r & 31)
		}
		// After a gap, or after the end of a name, any character may follow.
		if len(open.gaps) > 0 || len(open.ends) > 0 {
			n.next = 1<<32 - 1
		}
		built.nodes = append(built.nodes, n)
		built.edges = append(built.edges, open.edges...)
		built.gaps = append(built.gaps, open.gaps...)
		built.ends = append(built.ends, open.ends...)
	}
	// The root is looked up once for each place, so its edges have tables.
	for _, e := range t.nodes[0].edges {
		if e.r < 128 {
			built.ascii[e.r] = append(built.ascii[e.r], e)
			built.seconds[e.r] |= built.nodes[e.to].next
		} else {
			built.roots[e.r] = append(built.roots[e.r], e)
		}
	}
	return built
}

// mayBegin is a fast test whether chars may begin with a pattern. Few words pass it.
func (t *trie) mayBegin(chars []char) bool {
	r := chars[0].r
	return uint32(r) >= 128 || len(chars) == 1 || t.seconds[r]>>(chars[1].r&31)&1 != 0
}

// begin returns the edges by which a pattern may begin with r.
func (t *trie) begin(r rune) []edge {
	if uint32(r) < 128 {
		return t.ascii[r]
	}
	if len(t.roots) == 0 {
		return nil
	}
	return t.roots[r]
}

// allows reports whether the rule allows a letter; capital tells whether it is a capital in the text.
func (r caseRule) allows(capital bool) bool {
	return r == anyCase || capital == (r == mustBeCapital)
}
