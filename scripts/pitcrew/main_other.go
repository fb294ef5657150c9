//go:build !unix

// Command pitcrew keeps a training running on a Cloud TPU; it needs Linux or another Unix.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "pitcrew: it supervises on Linux and other Unix systems only")
	os.Exit(125)
}
