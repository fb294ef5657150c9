package faults

import (
	"math"
	"os"
	"strings"
	"testing"
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
		cause string
		spot  bool
		want  float64
	}{
		{"preempted", true, 1.5},
		{"preempted", false, 0}, // it happens to Spot alone, whatever the file says
		{"host_error_repaired", true, 0.1},
		{"host_error_repaired", false, 0.2},
		{"training_crash", false, 0.6},
		{"owner_deletes", true, 0},
		{"vanished", true, 0.1}, // as built in
	} {
		if often := r.of(happeningOf(c.cause), c.spot); often != c.want {
			t.Errorf("%s, Spot %v: %v times a day, want %v", c.cause, c.spot, often, c.want)
		}
	}
	for _, e := range elsewheres {
		want := e.often
		if e.name == "stockout" {
			want = 0.5
		}
		if often := r.ofAll(e); often != want {
			t.Errorf("%s: %v times a day, want %v", e.name, often, want)
		}
	}
}

// TestRatesAreWrittenAsTheyHold: a file of the rates in force means the same, whatever is built in when it is read.
func TestRatesAreWrittenAsTheyHold(t *testing.T) {
	for name, text := range map[string]string{
		"built in": "",
		"some":     "causes:\n  preempted: 3\n  stockout: 7\n",
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
			for _, spot := range []bool{true, false} {
				if a, b := r.of(h, spot), again.of(h, spot); a != b {
					t.Errorf("%s: %s, Spot %v, is %v, and %v when it is read again", name, h.name, spot, a, b)
				}
			}
		}
		for _, e := range elsewheres {
			if a, b := r.ofAll(e), again.ofAll(e); a != b {
				t.Errorf("%s: %s is %v, and %v when it is read again", name, e.name, a, b)
			}
		}
	}
}

func TestFaultyRatesAreOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"causes:\n  preemptd: 1\n":               `line 2: causes has no "preemptd"; did you mean preempted?`,
		"cause:\n":                               `line 1: a file of rates has no "cause"; did you mean causes?`,
		"causes:\n  zzzzzzzzzzzz: 1\n":           "there are a_function_broken_by_a_deployment, abuse_suspected, an_upgrade",
		"causes:\n  preempted: -1\n":             `line 2: "-1" is no number of times per day from 0 to 1000`,
		"causes:\n  preempted: NaN\n":            "is no number of times per day",
		"causes:\n  preempted: .inf\n":           "is no number of times per day",
		"causes:\n  preempted: often\n":          `"often" is no number`,
		"causes:\n  preempted: {other: 1}\n":     "preempted does not happen to slices that are not Spot",
		"causes:\n  terminated: {spot: 1}\n":     "terminated does not happen to Spot slices",
		"causes:\n  stockout: {spot: 2}\n":       `is no number of times per day`,
		"unnamed: all\n":                         `unnamed is "all"; it can be none`,
		"- 1\n":                                  "a file of rates has to be a mapping of causes, unnamed",
		"causes: {preempted: 1, preempted: 2}\n": "preempted is there twice",
		"a: [\n":                                 "yaml: line",
		"unnamed: none\n---\nunnamed: none\n":    "there is more than one document in it",
		"unnamed: x\ncauses:\n  preemptd: 1\n":   `line 1: unnamed is "x"`,
	} {
		_, err := ParseRates([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "rates: ") {
			t.Errorf("%q: %v; want one line that says %q", text, err, want)
		}
	}
}

// TestGapsHaveTheirMean: a cause happens as often as its rate says.
func TestGapsHaveTheirMean(t *testing.T) {
	r := NewDice(1).Of("gaps").Rand()
	const n = 200_000
	var sum, squares float64
	for range n {
		x := gap(r)
		sum += x
		squares += x * x
	}
	mean := sum / n
	if spread := math.Sqrt(squares/n-mean*mean) / mean; math.Abs(mean-1) > 0.02 || math.Abs(spread-1) > 0.1 {
		t.Errorf("mean %.3f, coefficient of variation %.3f; want 1 and 1", mean, spread)
	}
}

func FuzzRates(f *testing.F) {
	data, err := os.ReadFile("testdata/traces/rates.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("causes:\n  preempted: {spot: 1}\n"))
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
			if often := r.of(h, true); !(often >= 0 && often <= mostPerDay) {
				t.Errorf("%s: %v times a day", h.name, often)
			}
		}
	})
}
