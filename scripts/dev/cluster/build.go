package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubernetes is the version that the programs say they are of; it is the one in programs/go.mod.
const kubernetes = "v1.36.3"

// The files of a build beside its programs: they are part of JobSet.
const (
	fileCRD      = "jobset-crd.yaml"
	fileWebhooks = "jobset-webhooks.yaml"
)

// Folder is where the programs are, or will be: in the user's cache, by the versions of the module that they are built from.
func Folder(module string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		h.Write(raw)
	}
	return filepath.Join(cache, "pitstop-cluster", hex.EncodeToString(h.Sum(nil))[:16]), nil
}

// Built reports whether the programs are there.
func Built(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// Build builds the programs of a module into a folder of the cache, and removes those of other versions from there. It takes minutes.
func Build(ctx context.Context, module, folder string) error {
	all := filepath.Dir(folder)
	if err := os.MkdirAll(all, 0o750); err != nil {
		return err
	}
	part, err := os.MkdirTemp(all, "part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part) //nolint:errcheck // it is a cache
	if err := run(ctx, module, "go", "build", "-trimpath", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion="+kubernetes, "-o", part+"/", "tool"); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "-C", module, "list", "-m", "-f={{.Dir}}", "sigs.k8s.io/jobset").Output() //nolint:gosec // a folder of this project
	if err != nil {
		return fmt.Errorf("go list sigs.k8s.io/jobset: %w", err)
	}
	config := filepath.Join(strings.TrimSpace(string(out)), "config", "components")
	for name, from := range map[string]string{fileCRD: "crd/bases/jobset.x-k8s.io_jobsets.yaml", fileWebhooks: "webhook/manifests.yaml"} {
		raw, err := os.ReadFile(filepath.Join(config, from))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(part, name), raw, 0o600); err != nil { //nolint:gosec // the names are those above
			return err
		}
	}
	if err := os.Rename(part, folder); err != nil {
		return err
	}
	others, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Name() != filepath.Base(folder) && !strings.HasPrefix(o.Name(), "part-") {
			if err := os.RemoveAll(filepath.Join(all, o.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs a program of Go in a folder. Its output is that of the error.
func run(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // the callers are in this file
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, tail(out))
	}
	return nil
}

// tail are the last lines of an output.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
