//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/state"
)

// The bounds of a key file: what is shorter can be guessed, and what is longer is no key.
const (
	keyShortest = 32
	keyLongest  = 4096
)

// keyFile is where the key of the workers is looked for, if no flag names another file.
func keyFile() string { return filepath.Join(home(), "key") }

// key reads the key file of several workers. Nil is none: then the key is beside the checkpoints.
func (f *flags) key(m metadata.Machine, directory string) (peers.Key, error) {
	k, err := readKeyFile(firstOf(f.peerKey, keyFile()), os.Geteuid(), 0)
	switch {
	case !errors.Is(err, fs.ErrNotExist) || f.peerKey != "":
		return k, err
	case directory == "":
		return nil, fmt.Errorf("%d workers speak under a key, and this one has neither a checkpoint directory nor %s: "+
			"give --checkpoint-dir, or make the key once, (umask 077; head -c 32 /dev/urandom | base64 > key), "+
			"and copy it to that place on every worker", m.Workers, keyFile())
	}
	return nil, nil
}

// readKeyFile reads a key file, unless other users than its possible owners may have read or made it.
func readKeyFile(path string, owners ...int) (peers.Key, error) {
	file, err := state.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	owner := ownerOf(info)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("key file %s is no file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("key file %s may be read by other users (mode %04o): "+
			"make another key, because this one may be known, and give it mode 0600", path, info.Mode().Perm())
	case !slices.Contains(owners, owner):
		return nil, fmt.Errorf("key file %s belongs to user %d, who knows it: make another that belongs to user %d",
			path, owner, owners[0])
	}
	k, err := io.ReadAll(io.LimitReader(file, keyLongest+1))
	if err != nil {
		return nil, err
	}
	if k = bytes.TrimSpace(k); len(k) < keyShortest || len(k) > keyLongest {
		return nil, fmt.Errorf("key file %s holds %d bytes, and a key has %d to %d: "+
			"make one with head -c 32 /dev/urandom | base64", path, len(k), keyShortest, keyLongest)
	}
	return k, nil
}

// ownerOf is the user to whom a file belongs; -1 is not known.
func ownerOf(info fs.FileInfo) int {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(s.Uid)
}
