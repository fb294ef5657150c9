package checkpoint

import "testing"

func TestDirectoriesMeet(t *testing.T) {
	t.Parallel()
	back := map[Meeting]Meeting{Apart: Apart, Same: Same, Inside: Around, Maybe: Maybe}
	for _, tt := range []struct {
		a, b string
		want Meeting
	}{
		{"gs://ckpt/run", "gs://ckpt/run", Same},
		{"gs://ckpt/run", "gs://ckpt/run//", Same},
		{"gs://ckpt/run/1", "gs://ckpt/run/", Inside},
		{"gs://ckpt/run", "gs://ckpt", Inside},
		{"gs://ckpt/run-2", "gs://ckpt/run", Apart},
		{"gs://ckpt/run", "gs://ckpt-2/run", Apart},
		{"gs://ckpt/run", "gs://ckpt/Run", Apart},
		{"gs://ckpt/run", "", Apart},
		{"", "", Apart},
		{"/gcs/ckpt/run", "gs://ckpt/run", Same},
		{"file:///gcs/ckpt/run/", "gs://ckpt/run", Same},
		{"/gcs/ckpt/run", "gs://ckpt", Inside},
		{"file:///mnt/ckpt/run", "gs://ckpt/run", Maybe},
		{"/mnt/disks/ckpt/run/", "gs://ckpt/run", Maybe},
		{"file:///mnt/other/run", "gs://ckpt/run", Apart},
		{"file:///mnt/run", "/mnt/run/", Maybe},
		{"file:///mnt/run", "file:///mnt/run/1", Apart},
	} {
		if got := Meet(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Meet(tt.b, tt.a); got != back[tt.want] {
			t.Errorf("%q and %q: %d, want %d", tt.b, tt.a, got, back[tt.want])
		}
	}
}
