//go:build !unix

package main

import "os"

// inForeground reports that the keys of a terminal are for this process: there are no jobs here.
func inForeground(*os.File) bool { return true }

// lock leaves it to the demo's note to say whether another demo runs.
func lock(*os.File) (free bool, err error) { return true, nil }
