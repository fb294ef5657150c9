package events

// CanaryLog is the log ID of the canary: one entry a day that Pitstop writes itself and that has to come back through the
// log sinks. It says nothing but that they work.
const CanaryLog = "pitstop-canary"
