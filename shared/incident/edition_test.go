package incident_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pitstop.internal/shared/breadth"
)

// played are the steps of scripted histories that were played, and same those of them from which the very same follows.
var played, same atomic.Int64

// TestMain runs the tests. Over the third edition, and without a choice of tests, it runs each test in a process of its own and prints for
// each file how many pass:
//
//	go test ./shared/incident -args -third
func TestMain(m *testing.M) {
	flag.Parse()
	if !*third || flag.Lookup("test.run").Value.String() != "" {
		code := m.Run()
		if *third {
			fmt.Printf("steps %d same %d\n", played.Load(), same.Load())
		}
		os.Exit(code)
	}
	if err := compare(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// tally is what the tests of one file have come to: the tests and those that pass, their cases, and their steps.
type tally struct{ tests, pass, cases, passing, steps, same int }

func (t *tally) add(o tally) {
	t.tests, t.pass, t.cases, t.passing, t.steps, t.same = t.tests+o.tests, t.pass+o.pass, t.cases+o.cases, t.passing+o.passing, t.steps+o.steps, t.same+o.same
}

func (t tally) String() string {
	s := fmt.Sprintf("tests %3d of %3d   cases %4d of %4d", t.pass, t.tests, t.passing, t.cases)
	if t.steps > 0 {
		s += fmt.Sprintf("   steps %d of %d", t.same, t.steps)
	}
	return s
}

var (
	testIn   = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	caseIn   = regexp.MustCompile(`(?m)^ +--- (PASS|FAIL)`)
	failsIn  = regexp.MustCompile(`(?m)^ +--- FAIL`)
	countsIn = regexp.MustCompile(`(?m)^steps (\d+) same (\d+)$`)
)

// compare runs every test and prints the table. The exploration is left out: it holds the table of transitions of the second edition.
func compare() error {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return err
	}
	var all tally
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var of tally
		var failed []string
		var mu sync.Mutex
		var wait sync.WaitGroup
		places := make(chan bool, 2)
		for _, found := range testIn.FindAllSubmatch(text, -1) {
			name := string(found[1])
			if name == "TestMain" || name == "TestExplore" {
				continue
			}
			wait.Go(func() {
				places <- true
				one := runs(name)
				<-places
				mu.Lock()
				defer mu.Unlock()
				of.add(one)
				if one.pass == 0 {
					failed = append(failed, name)
				}
			})
		}
		wait.Wait()
		if of.tests == 0 {
			continue
		}
		slices.Sort(failed)
		fmt.Printf("%-22s %v\n", file, of)
		for _, name := range failed {
			fmt.Println("   ", name)
		}
		all.add(of)
	}
	fmt.Printf("%-22s %v\n", "all", all)
	if all.pass < all.tests {
		return fmt.Errorf("%d tests want what the third edition does not do", all.tests-all.pass)
	}
	return nil
}

// runs is what one test comes to.
func runs(name string) tally {
	var out bytes.Buffer
	c := exec.CommandContext(context.Background(), os.Args[0], "-test.v", "-test.timeout=240s", "-test.run=^"+name+"$", "-third") //nolint:gosec // it runs itself
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), breadth.Variable+"="), &out, &out
	t := tally{tests: 1}
	if c.Run() == nil {
		t.pass = 1
	}
	t.cases = len(caseIn.FindAll(out.Bytes(), -1))
	t.passing = t.cases - len(failsIn.FindAll(out.Bytes(), -1))
	if found := countsIn.FindSubmatch(out.Bytes()); found != nil {
		fmt.Sscan(string(found[1]), &t.steps) //nolint:errcheck // it is a number
		fmt.Sscan(string(found[2]), &t.same)  //nolint:errcheck // it is a number
	}
	return t
}

// TestPathsLeadToTheirPhases: the exploration begins where they lead.
func TestPathsLeadToTheirPhases(t *testing.T) {
	for i, r := range reach {
		t.Run(fmt.Sprintf("%s/%d", r.phase, i), func(t *testing.T) {
			n := at(t, policyOf(r.policy), r.spot, r.path, r.but)
			if got := phaseOf(n.w); got != string(r.phase) && !isAccepted(r.path, string(r.phase), got) {
				t.Errorf("%s under %s leads to %s, not to %s", r.path, r.policy, got, r.phase)
			}
		})
	}
}
