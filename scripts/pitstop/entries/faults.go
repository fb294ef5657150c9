package entries

import (
	"errors"
	"io"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

// Faults tells what could not be read, and counts it.
type Faults struct {
	ErrOut io.Writer
	N      int
	// Unusable says that a whole file could not be read.
	Unusable bool
}

// mostTold is how many faults are told one by one.
const mostTold = 20

// Add tells a fault, unless there were too many, and counts it.
func (f *Faults) Add(err error) {
	f.N++
	f.Unusable = f.Unusable || errors.Is(err, logfile.ErrUnusable)
	if f.N <= mostTold {
		terminal.Print(f.ErrOut, "pitstop: "+cli.OneLine(err))
	}
}

// PrintRest says how many faults were not told.
func (f *Faults) PrintRest() {
	if more := f.N - mostTold; more > 0 {
		terminal.Print(f.ErrOut, "pitstop: "+events.Number(int64(more))+" more that could not be read; explain tells each")
	}
}

// PrintNone reports that there was no entry, and a likely reason.
func PrintNone(errOut io.Writer) {
	terminal.Print(errOut, "pitstop: 0 entries; gcloud logging read looks back one day, unless --freshness says more")
}
