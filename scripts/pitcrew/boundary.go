//go:build unix

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/shared/checkpoint"
)

// words says who can speak as a worker of this slice.
func (d *doctor) words(ctx context.Context) {
	const what = "words"
	m := d.o.Machine
	if m.Workers == 1 {
		return // nobody speaks
	}
	dir := strings.TrimRight(firstOf(d.flags.directory, m.Directory), "/")
	key, err := d.key(m, dir)
	if err != nil {
		d.add(failing, what, "%v", err)
		return
	}
	if key != nil {
		d.add(good, what, "the workers sign them with the key in %s, which no other user of this machine may read",
			firstOf(d.peerKey, keyFile()))
		return
	}
	store, err := d.store(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return // the directory is told of
	}
	if err == nil {
		_, err = peers.Board{Store: store, Directory: dir}.ReadKey(ctx)
	}
	switch path, here := strings.CutPrefix(dir, "file://"); {
	case err != nil && !errors.Is(err, checkpoint.ErrNotExist):
		d.add(failing, what, "%v", err)
	case here:
		d.folder(path)
	default:
		d.add(good, what, "the workers sign them with a key in the bucket: everybody who can read it can speak as a worker")
		d.token(ctx)
	}
}

// folder says who can read the key of a checkpoint directory on a file system.
func (d *doctor) folder(dir string) {
	const what = "words"
	folder := filepath.Join(dir, peers.Folder)
	for _, path := range []string{dir, folder} {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o022 != 0 {
			d.add(warning, what, `other users may write into %s (mode %04o), and so put a key of their own there:
				chmod go-w it, or give each worker --peer-key`, path, info.Mode().Perm())
			return
		}
	}
	path := filepath.Join(folder, checkpoint.CrewKeyName)
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		d.add(warning, what, `the workers sign them with the key in %s, which other users may read (mode %04o):
			delete it while no crew runs, or give each worker --peer-key`, path, info.Mode().Perm())
		return
	}
	d.add(good, what, "the workers sign them with the key in %s, which one user alone may read", path)
}

// stranger is the user as whom doctor tries what another user of the machine can do: nobody.
const stranger = 65534

// token says whether another user of this machine can take the machine's token, and read the bucket with it.
func (d *doctor) token(ctx context.Context) {
	const what = "other users"
	const way = "to keep them out, block the metadata server for them and give each worker --peer-key"
	if d.o.Metadata == nil {
		return
	}
	if os.Geteuid() != 0 {
		d.add(warning, what, `any user of this machine can take its token from the metadata server, and read the key, unless
			the server is blocked for others; as root, doctor tries it; %s`, way)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// The program may lie where only root finds it.
	c := exec.CommandContext(ctx, "/proc/self/exe", reachCommand().Name(), d.server())
	c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	err := c.Run()
	switch ended := (*exec.ExitError)(nil); {
	case err == nil:
		d.add(warning, what, `user %d of this machine reaches the metadata server, and so the machine's token, the bucket, and
			the key in it; %s`, stranger, way)
	case errors.As(err, &ended) && ended.ExitCode() == unreached:
		d.add(good, what, `user %d of this machine does not reach the metadata server, and so neither the machine's token nor
			the key in the bucket`, stranger)
	default:
		d.add(warning, what, "whether they reach the metadata server could not be tried (%v): %s", err, way)
	}
}

// unreached is the code of reachCommand where there is no answer.
const unreached = 3

// reachCommand tries to reach a metadata server. Doctor calls it as another user. It asks for the account's name and no
// token.
func reachCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reach-metadata HOST", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
			defer cancel()
			if _, err := metadata.New(args[0]).Get(ctx, "instance/service-accounts/default/email"); err != nil {
				return exit{unreached, err}
			}
			return nil
		},
	}
}
