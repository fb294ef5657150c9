package events

// CanaryLog is the log ID of the canary: one entry a day that Pitstop writes itself and that must come back through the log
// sinks. It only proves that they work.
const CanaryLog = "pitstop-canary"
