package child

import (
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       int64
	}{
		{"maxtext", "completed step: 48213, seconds: 0.634, TFLOP/s/device: 101.2, loss: 2.1", 48213},
		{"maxtext", "I1112 02:14:08 train.py:1] completed step: 0, seconds: 20.1", 0},
		{"maxtext", "starting step 4", -1},
		{"pax", "[PAX STATUS] step_i: 400, training loss: 5.3988776", 400},
		{"pax", "[PAX STATUS]: train_step() took 0.634 seconds.", -1},
		{"levanter", "Progress on:train 19.0it/70.0it rate:76.8s/it remaining:1:05:15 elapsed:31:40", 19},
		{"levanter", "Progress on:train 1.23kit/10.0kit rate:2.1it/s", 1230},
		{"levanter", "Progress on:eval 12.0it/64.0it", -1},
		{"hf", " 48%|####8     | 482/1000 [01:12<01:18,  6.61it/s]", 482},
		{"hf", "100%|##########| 1000/1000 [02:31<00:00,  6.61it/s]", 1000},
		{"hf", "  0%|          | 0/1000 [00:00<?, ?it/s]", 0},
		{"hf", "Map: 100%|##########| 52002/52002 [00:04<00:00, 11003.10 examples/s]", -1},
		{"hf", "Loading checkpoint shards: 50%|#####     | 2/4 [00:09<00:09,  4.52s/it]", -1},
		{"hf", "{'loss': 2.1, 'epoch': 0.5}", -1},
		{`^step=(\d+)$`, "step=12", 12},
		{`(\d+) of many`, "99999999999999999999 of many", -1},
	} {
		expr, err := PatternOf(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := compile(expr).step([]byte(c.line)); got != c.want {
			t.Errorf("%s: %q is %d, want %d", c.name, c.line, got, c.want)
		}
	}
	for _, bad := range []string{"(", "step", `(?:\d+)`} {
		if _, err := PatternOf(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzStep(f *testing.F) {
	for _, line := range []string{"completed step: 1", "Progress on:train 1.2kit", "| 4/5 ["} {
		f.Add([]byte(line))
	}
	var all []*pattern
	for _, expr := range Patterns {
		all = append(all, compile(expr))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range all {
			if n := p.step(line); n < -1 {
				t.Errorf("%q is step %d", line, n)
			}
		}
	})
}
