package child

import "bytes"

// SignalLine is a text that a framework prints when the training has received a signal that asks it to save and end.
type SignalLine struct {
	Text string
	// Source is the framework's repository and the file that prints it.
	Source string
}

// SignalLines are those texts, as they are printed. Google's autocheckpoint sends SIGTERM straight to the training,
// without a notice on the machine, so the output alone tells that exit 0 after it is not the end of the job.
//
// Pax prints none of its own: it uses Orbax and the notifier of XLA, and exits with 1 after such a save.
var SignalLines = []SignalLine{
	// JAX, MaxText, Pax and PyTorch/XLA install this handler; it prints on the worker that got the signal.
	{"SIGTERM caught at ", "openxla/xla: preemption_notifier.cc"},
	// The other workers hear of it from the coordination service.
	{"Received preemption notice with death_time ", "openxla/xla: preemption_sync_manager.cc"},
	{"Reached preemption sync point, step=", "google/orbax: multihost/multihost.py"},
	{"Job received termination signal (SIGTERM).", "AI-Hypercomputer/maxtext: common/checkpointing.py"},
	{"Preemption sync point reached at step ", "pytorch/xla: experimental/distributed_checkpoint/manager.py"},
}

// tellsOfSignal reports whether a piece of the output tells of a received signal. It searches the whole piece, because
// a piece may hold more lines than the tail keeps. rest is the unfinished line before the piece: a text may begin
// there, but a text that lies in rest alone was seen with an earlier piece.
func tellsOfSignal(rest, piece []byte) bool {
	for _, l := range SignalLines {
		text := []byte(l.Text)
		if bytes.Contains(piece, text) {
			return true
		}
		most := len(text) - 1 // bytes of a cut text on either side
		seam := append(make([]byte, 0, 128), rest[max(0, len(rest)-most):]...)
		seam = append(seam, piece[:min(most, len(piece))]...)
		if bytes.Contains(seam, text) {
			return true
		}
	}
	return false
}
