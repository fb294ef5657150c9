package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/goodput"
)

// TestThePicturesAreOfThoseThatLostMost, not of the first by name, and the page says which are left out. What an owner stopped is not lost.
func TestThePicturesAreOfThoseThatLostMost(t *testing.T) {
	t.Parallel()
	r := goodput.Report{}
	for i := range mostRows + 2 {
		r.Workloads = append(r.Workloads, goodput.Workload{Project: "mine", Name: fmt.Sprintf("w%02d", i), Spent: map[goodput.Kind]*goodput.Amount{
			{Use: goodput.Capacity, Zone: "us-west4-a"}: {Time: time.Duration(i) * time.Minute}, {Use: goodput.Capacity, Zone: "us-west4-b"}: {Time: time.Hour},
			{Use: goodput.Stopped}: {Time: time.Duration(100-i) * time.Hour},
		}})
	}
	all := lostMost(r)
	if all[0].Name != "w21" || all[mostRows-1].Name != "w02" {
		t.Errorf("it goes from %s to %s", all[0].Name, all[mostRows-1].Name)
	}
	if out := leftOut("time lines", all[mostRows:]); len(out) != 1 || !strings.HasSuffix(out[0], " lost most. Left out: w01, w00.") {
		t.Errorf("left out: %q", out)
	}
	if out := leftOut("curves", nil); len(out) != 0 {
		t.Errorf("nothing is left out, and the page says %q", out)
	}
}
