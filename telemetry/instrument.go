package telemetry

// The attributes. None is a flow, a key, or anything else that nobody declared.
const (
	attrProvider = "headgate.provider"
	attrEndpoint = "headgate.endpoint"
	attrDecision = "headgate.decision"
	attrReason   = "headgate.reason"
	attrOutcome  = "headgate.outcome"
	attrLimit    = "headgate.limit"
	attrUnit     = "headgate.unit"
	attrScope    = "headgate.scope"
	attrOrigin   = "headgate.origin"
	attrBreaker  = "headgate.breaker.state"
	attrPool     = "headgate.pool"
	attrMode     = "headgate.ledger.mode"
	attrError    = "error.type"
)

// kind is what an instrument is to OpenTelemetry.
type kind string

// The kinds. All but histograms are observable.
const (
	counter   kind = "counter"
	sum       kind = "up-down counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// instrument is one line of docs/telemetry.md.
type instrument struct {
	name   string
	kind   kind
	unit   string
	text   string
	attrs  []string // of which an empty one is left out
	bounds []float64
}

// number is an instrument's place in the table.
type number int

const (
	decisions number = iota
	outcomes
	retries
	retryBudget
	callWait
	attemptDuration
	callDuration
	queueLength
	queueCapacity
	queuePressure
	queueWait
	queueOldest
	inFlight
	inFlightOldest
	lingering
	ignored
	limitMax
	limitDeclared
	limitRemaining
	limitUtilization
	limitWindow
	limitReset
	limitOrigin
	breakerState
	pauses
	pauseRemaining
	keys
	poolInFlight
	poolSize
	poolWaiting
	ledgerMode
	ledgerReplicas
)

var (
	ofProvider = []string{attrProvider}
	ofLimit    = []string{attrProvider, attrEndpoint, attrLimit, attrUnit, attrScope}
	ofPause    = []string{attrProvider, attrScope, attrReason}
	ofPool     = []string{attrPool}

	// A wait is anything from nothing to an hour; an attempt ends sooner.
	waits     = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	durations = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
)

// instruments is the table of all.
var instruments = [...]instrument{
	decisions: {name: "headgate.call.decisions", kind: counter, unit: "{call}",
		text:  "Calls that were decided on, each once: admitted when it first went, or refused before it ever went, and why. A provider that nobody declared has no name here.",
		attrs: []string{attrProvider, attrEndpoint, attrDecision, attrReason}},
	outcomes: {name: "headgate.attempt.outcomes", kind: counter, unit: "{attempt}",
		text: "Attempts that have ended, by what the provider answered. One that was never sent (Forget) counts only where it failed; headgate.attempt.duration has it, too.", attrs: []string{attrProvider, attrOutcome}},
	retries: {name: "headgate.retries", kind: counter, unit: "{retry}",
		text: "Attempts that were decided to be made again.", attrs: ofProvider},
	retryBudget: {name: "headgate.retry.budget", kind: gauge, unit: "1",
		text: "Share of the retry budget that is left, 0 to 1.", attrs: ofProvider},
	callWait: {name: "headgate.call.wait", kind: histogram, unit: "s", bounds: waits,
		text: "Wait of a call until it first went.", attrs: []string{attrProvider, attrEndpoint}},
	attemptDuration: {name: "headgate.attempt.duration", kind: histogram, unit: "s", bounds: durations,
		text: "Duration of one attempt, from going to its end.", attrs: []string{attrProvider, attrEndpoint, attrOutcome}},
	callDuration: {name: "headgate.call.duration", kind: histogram, unit: "s", bounds: waits,
		text:  "Duration of a call in all, from coming to the end of its last attempt; error.type where it failed. Calls that we refused, first or before a retry, are not in it.",
		attrs: []string{attrProvider, attrEndpoint, attrError}},
	queueLength: {name: "headgate.queue.length", kind: sum, unit: "{call}", text: "Calls that wait.", attrs: ofProvider},
	queueCapacity: {name: "headgate.queue.capacity", kind: sum, unit: "{call}",
		text: "Places in the queue; absent where it has no bound.", attrs: ofProvider},
	queuePressure: {name: "headgate.queue.pressure", kind: sum, unit: "{queue}",
		text: "1 while the queue is over its mark: filled to 80 % of its places and not yet down to 50 %; else 0.", attrs: ofProvider},
	queueWait: {name: "headgate.queue.estimated_wait", kind: gauge, unit: "s",
		text: "Estimated wait of a call that came now: a lower bound.", attrs: ofProvider},
	queueOldest: {name: "headgate.queue.oldest", kind: gauge, unit: "s",
		text: "Wait so far of the call that came first.", attrs: ofProvider},
	inFlight: {name: "headgate.calls.in_flight", kind: sum, unit: "{call}", text: "Calls that are out.", attrs: ofProvider},
	inFlightOldest: {name: "headgate.calls.oldest", kind: gauge, unit: "s",
		text: "Time since the oldest call went that is out still. One that only grows is a lease or a body that nobody closes.", attrs: ofProvider},
	lingering: {name: "headgate.calls.lingering", kind: sum, unit: "{call}",
		text: "Calls that ended without an answer and whose units are held still, as they may arrive.", attrs: ofProvider},
	ignored: {name: "headgate.units.ignored", kind: counter, unit: "{unit}",
		text: "Units named by calls that no limit counts.", attrs: ofProvider},
	limitMax: {name: "headgate.limit.max", kind: gauge, unit: "{unit}",
		text:  "The limit in force, learned numbers included. Limits of scope key are added up, here and below, over the 100 busiest keys and all of a pool; limits of scope key+endpoint are not shown.",
		attrs: ofLimit},
	limitDeclared: {name: "headgate.limit.declared", kind: gauge, unit: "{unit}",
		text: "The limit as declared, with the program's overrides and updates.", attrs: ofLimit},
	limitRemaining: {name: "headgate.limit.remaining", kind: gauge, unit: "{unit}",
		text: "What neither counts nor is held, of a token bucket out of its burst; 0 while the provider has said that it is spent. The spacing of a leaky bucket is not in it.", attrs: ofLimit},
	limitUtilization: {name: "headgate.limit.utilization", kind: gauge, unit: "1",
		text: "Share of the limit (of a token bucket its burst) that does not remain, 0 to 1; of scope key, that of the busiest key.", attrs: ofLimit},
	limitWindow: {name: "headgate.limit.window", kind: gauge, unit: "s",
		text: "Length of the limit's window; a month is 31 days. Absent where it has none.", attrs: ofLimit},
	limitReset: {name: "headgate.limit.reset", kind: gauge, unit: "s",
		text: "Time until units come back; of scope key, of the busiest key. 0 while none is out.", attrs: ofLimit},
	limitOrigin: {name: "headgate.limit.origin", kind: sum, unit: "{limit}",
		text: "1 for where the number in force comes from: declared, overridden, learned, assumed or pacing; of scope key, how many keys.", attrs: append(ofLimit[:len(ofLimit):len(ofLimit)], attrOrigin)},
	breakerState: {name: "headgate.breaker.state", kind: sum, unit: "{breaker}",
		text: "1 for the state that the breaker is in, 0 for the others: closed, open, half-open. Absent where it is off.", attrs: []string{attrProvider, attrBreaker}},
	pauses: {name: "headgate.pauses", kind: sum, unit: "{pause}",
		text: "Pauses in force, by scope and reason: an outcome, or manual. 0, without scope and reason, where there is none.", attrs: ofPause},
	pauseRemaining: {name: "headgate.pause.remaining", kind: gauge, unit: "s",
		text: "Time until the longest of them is over; 0 where there is none.", attrs: ofPause},
	keys: {name: "headgate.keys", kind: sum, unit: "{key}", text: "Keys that have state; idle ones are forgotten.", attrs: ofProvider},
	poolInFlight: {name: "headgate.pool.in_flight", kind: sum, unit: "{call}",
		text: "Calls that are out in all providers of a pool: a category, or (without a name) all.", attrs: ofPool},
	poolSize: {name: "headgate.pool.size", kind: sum, unit: "{call}", text: "Calls that may be out in a pool at once.", attrs: ofPool},
	ledgerMode: {name: "headgate.ledger.mode", kind: sum, unit: "{ledger}",
		text: "1 for how the budget is shared with other processes: shared, or, while the ledger does not answer, by share, deny or open; 0 for the others. Absent where no limit is shared.", attrs: []string{attrMode}},
	ledgerReplicas: {name: "headgate.ledger.replicas", kind: sum, unit: "{process}",
		text: "Processes that share the budget, this one included, as last seen; 0: not known."},
	poolWaiting: {name: "headgate.pool.waiting", kind: sum, unit: "{provider}", text: "Providers that wait for a slot of the pool.", attrs: ofPool},
}
