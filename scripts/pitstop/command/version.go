package main

import (
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// A release names itself by -ldflags "-X main.version=... -X main.commit=...". Every other build is named by the checkout that Go
// found it in.
var version, commit string

// versionText names the build and the schemas that it reads.
func versionText() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		bi = &debug.BuildInfo{}
	}
	return buildText(bi, version, commit) +
		fmt.Sprintf("reads    ledger documents up to schema %d, events up to schema %d,\n", incident.Schema, events.Schema) +
		fmt.Sprintf("         policy files of schema %.6x, which pitstop policy schema prints\n", sha256.Sum256(policy.Schema()))
}

// buildText is the version, the commit and the Go release of a build.
func buildText(bi *debug.BuildInfo, version, commit string) string {
	settings := map[string]string{}
	for _, s := range bi.Settings {
		settings[s.Key] = s.Value
	}
	unclean := strings.HasSuffix(version, "-unclean")
	if version == "" {
		version, commit, unclean = bi.Main.Version, settings["vcs.revision"], settings["vcs.modified"] == "true"
	}
	if version == "" || version == "(devel)" {
		version = "unknown: Go recorded no commit in this build"
	}
	if commit == "" {
		commit = "unknown"
	}
	if unclean {
		commit += ", with changes that are not committed"
	}
	text := "pitstop  " + version + "\ncommit   " + commit + "\nbuilt    with " + bi.GoVersion
	if settings["GOOS"] != "" {
		text += " for " + settings["GOOS"] + "/" + settings["GOARCH"]
	}
	return text + "\n"
}
