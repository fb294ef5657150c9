package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"pitstop.internal/shared/fault"
)

func TestClasses(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err                      error
		permanent, ignored, busy bool
	}{
		"an unmarked error is transient": {err: cause},
		"no error is no class":           {err: nil},
		"permanent":                      {err: fault.Permanent(cause), permanent: true},
		"permanent under a wrapping":     {err: fmt.Errorf("reading: %w", fault.Permanentf("bad %s", "id")), permanent: true},
		"ignored":                        {err: fault.Ignored("nothing", "not ours: %d", 3), ignored: true},
		"busy":                           {err: fault.Busy(cause), busy: true},
		"the last mark counts, not the innermost": {err: fault.Permanent(fmt.Errorf("x: %w", fault.Busy(cause))), permanent: true},
		"a mark on nothing is nothing":            {err: errors.Join(fault.Permanent(nil), fault.Busy(nil))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.IsPermanent(c.err); got != c.permanent {
				t.Errorf("IsPermanent = %v", got)
			}
			if got := fault.IsIgnored(c.err); got != c.ignored {
				t.Errorf("IsIgnored = %v", got)
			}
			if got := fault.IsBusy(c.err); got != c.busy {
				t.Errorf("IsBusy = %v", got)
			}
		})
	}
	if got := fault.Code(fmt.Errorf("x: %w", fault.Ignored("nothing", "not ours"))); got != "nothing" {
		t.Errorf("Code = %q", got)
	}
	if got := fault.Code(fault.Busy(cause)); got != "" {
		t.Errorf("Code = %q of an error that is not ignored", got)
	}
	if !errors.Is(fault.Permanent(cause), cause) {
		t.Error("a mark hides its cause")
	}
}
