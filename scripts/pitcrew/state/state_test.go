package state_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pitstop.internal/scripts/pitcrew/state"
)

type value struct{ A, B int }

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var v value
	if err := state.Read(path, &v); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, want := range []value{{1, 2}, {3, 4}} {
		if err := errors.Join(state.Write(path, want), state.Sync(path), state.Read(path, &v)); err != nil || v != want {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestWhatCannotBeReadIsPutAside(t *testing.T) {
	for _, text := range []string{"", "{", `{"A":1`, `{"A":1,"B":"x"}`, "\x00\x00\x00"} {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		v := value{7, 8}
		if err := state.Read(path, &v); !errors.Is(err, state.ErrUnreadable) || v != (value{7, 8}) {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
		if raw, err := os.ReadFile(path + ".unreadable"); err != nil || string(raw) != text {
			t.Errorf("%q: %q, %v", text, raw, err)
		}
		if err := state.Read(path, &v); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: met again: %v", text, err)
		}
	}
}

// TestNoLinkIsFollowed: where others may write into the folder, a link there leads to a file of their choice.
func TestNoLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "state.json"), filepath.Join(t.TempDir(), "victim")
	secret := []byte(`{"A":7}`)
	if err := errors.Join(os.WriteFile(victim, secret, 0o600), os.Symlink(victim, path), os.Symlink(victim, fmt.Sprint(path, ".", os.Getpid()))); err != nil {
		t.Fatal(err)
	}
	var v value
	link := state.LinkError{}
	if err := state.Read(path, &v); !errors.As(err, &link) || link.Path != path || v != (value{}) {
		t.Errorf("%+v, %v", v, err)
	}
	if err := state.Sync(path); !errors.As(err, &link) {
		t.Error(err)
	}
	// A write replaces the links.
	if err := state.Write(path, value{1, 2}); err != nil {
		t.Error(err)
	}
	if err := state.Read(path, &v); err != nil || v != (value{1, 2}) {
		t.Errorf("%+v, %v", v, err)
	}
	if raw, err := os.ReadFile(victim); err != nil || string(raw) != string(secret) {
		t.Errorf("%q, %v: a link was followed", raw, err)
	}
}
