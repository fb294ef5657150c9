package events

// Act is what a call does to a slice, in the words of no API.
type Act string

// The acts. A call that does something else to a slice has none of them.
const (
	ActCreated Act = "created"
	ActDeleted Act = "deleted"
	ActStarted Act = "started"
	ActStopped Act = "stopped"
)

// deed is what a method does. Whole says that it does so to a group of slices that are created and deleted together.
type deed struct {
	act   Act
	whole bool
}

// calls are the methods of the TPU API that change a slice. The sink of audit entries selects these methods. Reads are not
// noted, because the pipeline makes them itself.
var calls = map[string]deed{
	"CreateNode": {act: ActCreated}, "DeleteNode": {act: ActDeleted}, "StartNode": {act: ActStarted}, "StopNode": {act: ActStopped},
	"CreateQueuedResource": {act: ActCreated, whole: true}, "DeleteQueuedResource": {act: ActDeleted, whole: true},
	"ReimageNode": {}, "ResetQueuedResource": {whole: true},
}

// Act is what the call does, and whether it does so to the whole group. It is empty for a call that does something else.
func (c Call) Act() (act Act, whole bool) {
	if d, ok := calls[c.Method]; ok {
		return d.act, d.whole
	}
	return kubernetesAct(c)
}
