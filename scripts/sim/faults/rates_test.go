package faults

import (
	"math"
	"os"
	"strings"
	"testing"

	"pitstop.internal/scripts/sim/world"
)

func TestRatesOfAFile(t *testing.T) {
	data, err := os.ReadFile("testdata/traces/rates.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRates(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cause       string
		accelerator string
		spot        bool
		want        float64
		gaps        string
	}{
		{"preempted", "v6e-16", true, 4, "lognormal 1.2"},
		{"preempted", "v5litepod-16", true, 0.5, "lognormal 1.2"},
		{"preempted", "v5p-32", true, 1.5, "lognormal 1.2"},
		{"preempted", "v6e-16", false, 0, "lognormal 1.2"}, // it happens to Spot alone, whatever the file says
		{"host_error_repaired", "v4-8", true, 0.1, "weibull 0.7"},
		{"host_error_repaired", "v4-8", false, 0.2, "weibull 0.7"},
		{"training_crash", "v4-8", false, 0.6, "weibull 0.7"},
		{"owner_deletes", "v4-8", true, 0, "weibull 0.7"},
		{"vanished", "v4-8", true, 0.1, "weibull 0.7"}, // as built in
	} {
		often, gaps := r.of(happeningOf(c.cause), world.SliceConfig{Accelerator: c.accelerator, Spot: c.spot})
		if often != c.want || gaps.String() != c.gaps {
			t.Errorf("%s of %s, Spot %v: %v times a day, gaps %s; want %v, %s", c.cause, c.accelerator, c.spot, often, gaps, c.want, c.gaps)
		}
	}
	for _, e := range elsewheres {
		want, gaps := e.often, "weibull 0.7"
		if e.name == "stockout" {
			want, gaps = 0.5, "exponential"
		}
		if often, g := r.ofAll(e); often != want || g.String() != gaps {
			t.Errorf("%s: %v times a day, gaps %s; want %v, %s", e.name, often, g, want, gaps)
		}
	}
}

// TestRatesAreWrittenAsTheyHold: a file of the rates in force means the same, whatever is built in when it is read.
func TestRatesAreWrittenAsTheyHold(t *testing.T) {
	for name, text := range map[string]string{
		"built in": "",
		"some":     "gaps: weibull 2\ncauses:\n  preempted: {per_day: 3, generations: {v6e: 7}}\n  stockout: {gaps: lognormal 1}\n",
		"none":     "unnamed: none\n",
	} {
		r, err := ParseRates([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		file, err := r.File()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRates(file)
		if err != nil || !again.alone {
			t.Fatalf("%s: %v, alone %v:\n%s", name, err, again.alone, file)
		}
		for _, h := range happenings {
			for _, c := range []world.SliceConfig{{Accelerator: "v6e-8", Spot: true}, {Accelerator: "v4-8"}} {
				a, g := r.of(h, c)
				if b, f := again.of(h, c); a != b || a != 0 && g != f {
					t.Errorf("%s: %s of %+v is %v %s, and %v %s when it is read again", name, h.name, c, a, g, b, f)
				}
			}
		}
		for _, e := range elsewheres {
			a, g := r.ofAll(e)
			if b, f := again.ofAll(e); a != b || a != 0 && g != f {
				t.Errorf("%s: %s is %v %s, and %v %s when it is read again", name, e.name, a, g, b, f)
			}
		}
	}
}

func TestFaultyRatesAreOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"causes:\n  preemptd: 1\n":                                     `line 2: causes has no "preemptd"; did you mean preempted?`,
		"cause:\n":                                                     `line 1: a file of rates has no "cause"; did you mean causes?`,
		"causes:\n  zzzzzzzzzzzz: 1\n":                                 "there are a_function_broken_by_a_deployment, abuse_suspected, an_upgrade",
		"causes:\n  preempted: {per_day: -1}\n":                        `line 2: "-1" is no number of times per day from 0 to 1000`,
		"causes:\n  preempted: {per_day: NaN}\n":                       "is no number of times per day",
		"causes:\n  preempted: {per_day: .inf}\n":                      "is no number of times per day",
		"causes:\n  preempted: often\n":                                `"often" is no number`,
		"causes:\n  preempted: {other: 1}\n":                           "preempted does not happen to slices that are not Spot",
		"causes:\n  terminated: {spot: 1}\n":                           "terminated does not happen to Spot slices",
		"causes:\n  preempted: {spot: 1, per_day: 2}\n":                "has per_day, and spot or other as well",
		"causes:\n  preempted:\n    generations: {v5lite: 2}\n":        `line 3: generations has no "v5lite"; did you mean v5litepod?`,
		"causes:\n  stockout: {spot: 2}\n":                             `stockout has no "spot"`,
		"gaps: weibul 2\n":                                             `gaps is "weibul 2"; it can be exponential`,
		"gaps: weibull 0.01\n":                                         "it can be exponential",
		"gaps: [1]\n":                                                  "it can be exponential",
		"unnamed: all\n":                                               `unnamed is "all"; it can be none`,
		"- 1\n":                                                        "a file of rates has to be a mapping of causes, gaps, unnamed",
		"causes: {preempted: 1, preempted: 2}\n":                       "preempted is there twice",
		"a: [\n":                                                       "yaml: line",
		"gaps: exponential\n---\ngaps: exponential\n":                  "there is more than one document in it",
		"gaps: x\ncauses:\n  preemptd: 1\n  stockout: {per_day: no}\n": `line 1: gaps is "x"`,
	} {
		_, err := ParseRates([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "rates: ") {
			t.Errorf("%q: %v; want one line that says %q", text, err, want)
		}
	}
}

// TestGapsHaveTheirMean: whatever the distribution, a cause happens as often as its rate says.
func TestGapsHaveTheirMean(t *testing.T) {
	for _, g := range []Gaps{{}, {weibull, 0.7}, {weibull, 3}, {lognormal, 0.5}, {lognormal, 1.2}} {
		r := NewDice(1).Of(g.String()).Rand()
		const n = 200_000
		var sum, squares float64
		for range n {
			x := g.draw(r)
			if !(x >= 0) {
				t.Fatalf("%s draws %v", g, x)
			}
			sum += x
			squares += x * x
		}
		mean := sum / n
		spread := math.Sqrt(squares/n-mean*mean) / mean
		// The coefficient of variation is what tells the distributions apart.
		var want float64
		switch g.kind {
		case weibull:
			one := math.Gamma(1 + 1/g.shape)
			want = math.Sqrt(math.Gamma(1+2/g.shape)/(one*one) - 1)
		case lognormal:
			want = math.Sqrt(math.Expm1(g.shape * g.shape))
		default:
			want = 1
		}
		if math.Abs(mean-1) > 0.02 || math.Abs(spread/want-1) > 0.1 {
			t.Errorf("%s: mean %.3f, coefficient of variation %.3f; want 1 and %.3f", g, mean, spread, want)
		}
	}
}

func FuzzRates(f *testing.F) {
	data, err := os.ReadFile("testdata/traces/rates.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("causes:\n  preempted: {per_day: 1, generations: {v6e: 2}}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRates(data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q is more than a line", err)
			}
			return
		}
		if _, err := r.File(); err != nil {
			t.Error(err)
		}
		for _, h := range happenings {
			often, g := r.of(h, world.SliceConfig{Accelerator: "v6e-8", Spot: true})
			if x := g.draw(NewDice(1).Of("fuzz").Rand()); !(often >= 0 && often <= mostPerDay) || !(x >= 0) || math.IsInf(x, 0) {
				t.Errorf("%s: %v times a day, a gap of %v", h.name, often, x)
			}
		}
	})
}
