//go:build !heart

package main

// tags are the build tags of the command: those of this program.
const tags = ""
