package oracle

import "time"

// Samples are those of a stage of a reaction.
func (r *Result) Samples(stage string) []time.Duration { return r.samples[stage] }

// PercentilesOf are those of samples.
func PercentilesOf(samples []time.Duration) Percentiles { return percentiles(samples) }
