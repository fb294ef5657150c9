package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryMutantStillFits: an edit that does not stand in the code any more breaks nothing, and a rule would count as proved.
func TestEveryMutantStillFits(t *testing.T) {
	rules := map[string]int{}
	for _, m := range mutants {
		rule, _, _ := strings.Cut(m.rule, " ")
		rules[rule]++
		for _, e := range m.edits {
			data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(e.file)))
			if err != nil {
				t.Error(err)
				continue
			}
			if n := strings.Count(string(data), e.old); n != 1 {
				t.Errorf("%s: %s: %q stands there %d times, want once", m.name, e.file, e.old, n)
			}
		}
	}
	for _, rule := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		if rules[rule] < 2 {
			t.Errorf("rule %s is broken in %d ways, want two at least", rule, rules[rule])
		}
	}
}
