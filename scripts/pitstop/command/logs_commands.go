package main

import "github.com/spf13/cobra"

// logCommands are the verbs that read files of log entries, or say which entries Pitstop reads.
func logCommands() []*cobra.Command { return []*cobra.Command{explainCommand(), filterCommand()} }

// deployedLogCommands are the verbs that read the log of a project.
func deployedLogCommands(d deployment) []*cobra.Command { return d.bounded(d.reportCommand()) }
