package checkpoint

import (
	"path"
	"strings"
)

// Meeting says how two checkpoint directories meet.
type Meeting int

// The ways in which two directories meet.
const (
	Apart  Meeting = iota
	Same           // they are one bucket's, and one directory
	Inside         // the first is inside the second
	Around         // the second is inside the first
	Maybe          // a file system may show one directory under both names
)

// Meet compares two directories by their names.
func Meet(a, b string) Meeting {
	one, other := plain(a), plain(b)
	buckets := strings.HasPrefix(one, "gs://") && strings.HasPrefix(other, "gs://")
	switch {
	case one == "" || other == "":
		return Apart
	case buckets && one == other:
		return Same
	case buckets && strings.HasPrefix(one, other+"/"):
		return Inside
	case buckets && strings.HasPrefix(other, one+"/"):
		return Around
	case one == other, mounts(one, other), mounts(other, one):
		return Maybe
	}
	return Apart
}

// plain writes a directory in one form: without slashes at its end, and a path that Google's services give to a mounted bucket,
// /gcs/BUCKET, as that bucket.
func plain(dir string) string {
	if strings.HasPrefix(dir, "/") {
		dir = "file://" + dir
	}
	if file, ok := strings.CutPrefix(dir, "file://"); ok {
		file = path.Clean(file)
		if bucket, ok := strings.CutPrefix(file, "/gcs/"); ok {
			return "gs://" + bucket
		}
		return "file://" + file
	}
	return strings.TrimRight(dir, "/")
}

// mounts reports whether a path ends as a directory of a bucket does, so that it may be that bucket, mounted.
func mounts(file, bucket string) bool {
	in, ok := strings.CutPrefix(bucket, "gs://")
	return ok && strings.HasPrefix(file, "file://") && strings.HasSuffix(file, "/"+in)
}
