package registry

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

const (
	mostNear = 3  // names that an error can list and still be read
	longest  = 64 // a longer name is no slip of the pen
)

// Near returns the registered slugs that are [Close] to slug, nearest first, at
// most three: what an error about an unknown provider may suggest.
func (r *Registry) Near(slug string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return nearest(slug, maps.Keys(r.entries))
}

func nearest(slug string, known iter.Seq[string]) []string {
	var near []string
	for s := range known {
		if Close(slug, s) {
			near = append(near, s)
		}
	}
	slug = strings.ToLower(slug)
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(slug, a), distance(slug, b)), cmp.Compare(a, b))
	})
	return near[:min(len(near), mostNear)]
}

// Close tells whether one name may be a slip of the pen for the other: up to a
// third of the shorter's letters wrong, missing, added or swapped, or the one
// within the other. Case does not count. Names of fewer than 3 letters are close
// to nothing but themselves, nor is anything to a name of more than 64.
func Close(a, b string) bool {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if long > longest {
		return false
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	if short >= 3 && (strings.Contains(a, b) || strings.Contains(b, a)) {
		return true
	}
	return distance(a, b) <= short/3
}

// distance counts the letters to change, add, drop or swap with their neighbour
// to make b of a (optimal string alignment), by bytes: slugs are ASCII.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			wrong := 1
			if a[i] == b[j] {
				wrong = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+wrong)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
