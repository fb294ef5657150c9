package terminal

import (
	"io"
	"testing"
)

// TestAVerbWithoutALineEndIsPrintedWhole: what a verb printed last needs no end of line.
func TestAVerbWithoutALineEndIsPrintedWhole(t *testing.T) {
	s := NewScreen(io.Discard)
	if _, err := s.Write([]byte("half")); err != nil || string(s.line) != "half" {
		t.Errorf("%q waits, %v", s.line, err)
	}
	if err := s.Flush(); err != nil || s.line != nil {
		t.Errorf("%q waits, %v", s.line, err)
	}
}
