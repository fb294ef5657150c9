//go:build unix

package main

import "github.com/spf13/cobra"

func doctorCommand() *cobra.Command  { return &cobra.Command{Use: "doctor"} }
func installCommand() *cobra.Command { return &cobra.Command{Use: "install"} }
