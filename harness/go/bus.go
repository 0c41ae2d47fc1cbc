// Package servicebustest is Azure Service Bus for tests: an emulator that runs as long as the tests of a package, with a
// namespace for each test.
//
//	bus := servicebustest.New(t, servicebustest.Queue("orders"))
//	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString, nil)
package servicebustest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"runtime"
	"testing"
	"time"
)

const defaultTimeout = 5 * time.Second

// Bus is a namespace: its connection strings, clock, faults and timeline.
//
// An error fails the test at once, so its methods must be called from the goroutine of the test. Subtests use [Bus.In].
type Bus struct {
	// Name is the name of the namespace, as in failures.
	Name string
	// ConnectionString is for clients over plain TCP.
	ConnectionString string
	tlsString, path  string
	// Faults are injected into operations of clients.
	Faults   *Faults
	emulator *emulator
	t        testing.TB
}

// Session is a session of a queue or subscription that has messages, a state or a receiver.
type Session struct {
	ID, Holder               string
	Active, Locked, Deferred int
	LockedUntil              string `json:"locked_until"`
	State                    []byte
}

// Explanation is how a rule evaluates a message that is not sent.
type Explanation struct {
	Rule, Error string
	Matched     bool
	Reason      struct {
		Expression, Truth string
		Values            []Fields
	}
}

// New creates a namespace, which ends with the test. It has the entities that the options declare, else those of
// testdata/topology.json, else one queue, queue.1.
//
// The log of a test that fails shows the timeline of the namespace. A test that passes fails if a fault has not fired.
func New(t testing.TB, options ...Option) *Bus {
	t.Helper()
	var settings settings
	for _, option := range options {
		option(&settings)
	}
	configuration, err := settings.configuration()
	if err != nil {
		t.Fatal(err)
	}
	bus := &Bus{emulator: shared(t, settings.options), t: t, path: "namespaces"}
	created := ask[struct {
		Name  string
		Plain string `json:"connection_string"`
		TLS   string `json:"tls_connection_string"`
	}](bus, "POST", "", configuration)
	bus.Name, bus.ConnectionString, bus.tlsString = created.Name, created.Plain, created.TLS
	bus.path += "/" + bus.Name + "/"
	bus.Faults = &Faults{bus}
	t.Cleanup(bus.end)
	return bus
}

// In returns the same namespace for a subtest, which is then the test that an error fails:
//
//	t.Run("paid", func(t *testing.T) {
//		bus := bus.In(t)
//
// The namespace still ends with the test that created it.
func (bus *Bus) In(t testing.TB) *Bus {
	same := *bus
	same.t = t
	same.Faults = &Faults{&same}
	return &same
}

// TLSConnectionString is for clients over TLS, as in production, with [Bus.TLSConfig] as an option.
func (bus *Bus) TLSConnectionString() string { return bus.tlsString }

// TLSConfig trusts the certificate of the emulator.
func (bus *Bus) TLSConfig() *tls.Config {
	bus.t.Helper()
	if bus.emulator.ready.CACertificate == "" {
		bus.t.Fatal("the emulator has no directory for its certificate authority: pass `--tls-directory DIR`")
	}
	file, err := os.ReadFile(bus.emulator.ready.CACertificate)
	if err != nil {
		bus.t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(file)
	host, _, _ := net.SplitHostPort(bus.emulator.ready.AMQPS)
	return &tls.Config{RootCAs: authorities, ServerName: host}
}

// HTTPAddress is the address of the control API and the inspector page of the emulator.
func (bus *Bus) HTTPAddress() string { return bus.emulator.ready.HTTP }

// PID is the process id of the emulator.
func (bus *Bus) PID() int { return bus.emulator.ready.PID }

// Now is the time of the namespace's clock.
func (bus *Bus) Now() time.Time {
	bus.t.Helper()
	return ask[struct{ Now time.Time }](bus, "GET", "clock", nil).Now
}

// Advance advances the clock, and returns when everything that is due by then has been processed.
func (bus *Bus) Advance(duration time.Duration) {
	bus.t.Helper()
	ask[any](bus, "POST", "clock/advance", Fields{"seconds": duration})
}

// Freeze stops the clock.
func (bus *Bus) Freeze() {
	bus.t.Helper()
	ask[any](bus, "POST", "clock/freeze", nil)
}

// Resume restarts a stopped clock.
func (bus *Bus) Resume() {
	bus.t.Helper()
	ask[any](bus, "POST", "clock/resume", nil)
}

// StepByItself makes the clock step to the next deadline whenever the namespace is idle.
func (bus *Bus) StepByItself() {
	bus.t.Helper()
	ask[any](bus, "POST", "clock/auto", nil)
}

// HoldClock keeps a clock that steps by itself from stepping while work runs, for at most ten minutes.
func (bus *Bus) HoldClock(work func()) {
	bus.t.Helper()
	hold := ask[struct{ ID int }](bus, "POST", "clock/hold", Fields{"seconds": 600})
	defer ask[any](bus, "DELETE", fmt.Sprintf("clock/hold/%d", hold.ID), nil)
	work()
}

// IsIdle returns whether the namespace is idle: no message is locked, or can be delivered to a receiver.
func (bus *Bus) IsIdle() bool {
	bus.t.Helper()
	return ask[struct{ Failure string }](bus, "POST", "settled", Fields{"within": 0, "refuse": false}).Failure == ""
}

// WaitIdle waits until the namespace is idle, by default up to 5 s.
func (bus *Bus) WaitIdle(within ...time.Duration) {
	bus.t.Helper()
	bus.require("settled", Fields{"within": append(within, defaultTimeout)[0], "refuse": false})
}

// WaitForReceiver waits until a client receives from a queue or subscription, by default up to 5 s.
func (bus *Bus) WaitForReceiver(entity string, within ...time.Duration) {
	bus.t.Helper()
	bus.Expect(entity, "attached", Fields{"within": append(within, defaultTimeout)[0]})
}

// Expect waits until an assertion holds: Expect("orders", "dead_lettered", Fields{"reason": "Rejected"}).
//
// Assertions and fields are those of the control API. A failure shows what was found instead, and the timeline.
func (bus *Bus) Expect(entity, assertion string, fields ...Fields) {
	bus.t.Helper()
	bus.require("assertions", Fields{"kind": assertion, "entity": entity}.with(fields...))
}

// Counts are the numbers of messages of an entity: active, dead_letter, locked, scheduled and others.
func (bus *Bus) Counts(entity string) map[string]int {
	bus.t.Helper()
	return ask[map[string]int](bus, "GET", "counts?entity="+url.QueryEscape(entity), nil)
}

// Sessions are the sessions of a queue or subscription.
func (bus *Bus) Sessions(entity string) []Session {
	bus.t.Helper()
	return ask[struct{ Sessions []Session }](bus, "GET", "sessions?entity="+url.QueryEscape(entity), nil).Sessions
}

// LoseSessionLock ends the lock of a session as if it had expired.
func (bus *Bus) LoseSessionLock(entity, session string) {
	bus.t.Helper()
	ask[any](bus, "POST", "sessions/lose", Fields{"entity": entity, "session": session})
}

// Timeline is the recorded events of an entity, or of all (""), and of a message, or of all ("").
func (bus *Bus) Timeline(entity, messageID string) Timeline {
	bus.t.Helper()
	query := url.Values{"entity": {entity}, "message_id": {messageID}, "lines": {"true"}}
	maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
	return ask[struct{ Events Timeline }](bus, "GET", "timeline?"+query.Encode(), nil).Events
}

// Explain returns how each rule of a subscription evaluates a message, without sending it. The message has these application
// properties and broker properties, such as Fields{"Label": "order"}.
func (bus *Bus) Explain(subscription string, properties, system Fields) map[string]Explanation {
	bus.t.Helper()
	message := []Fields{{"Body": "", "UserProperties": properties, "BrokerProperties": system}}
	path := "explain?subscription=" + url.QueryEscape(subscription)
	rules := map[string]Explanation{}
	for _, rule := range ask[struct{ Rules []Explanation }](bus, "POST", path, message).Rules {
		rules[rule.Rule] = rule
	}
	return rules
}

// Reset removes all messages, sessions and recorded events.
func (bus *Bus) Reset() {
	bus.t.Helper()
	ask[any](bus, "POST", "reset", nil)
}

// end ends the namespace, as cleanup of the test.
func (bus *Bus) end() {
	bus.t.Helper()
	failed, skipped := bus.t.Failed() || panicking(), bus.t.Skipped()
	report := ask[struct{ Report string }](bus, "POST", "end", Fields{"passed": !failed && !skipped}).Report
	if report != "" && (failed || !skipped) {
		bus.t.Error(report)
	}
}

// panicking returns whether the test panics: its cleanups run before the test is marked as failed.
func panicking() bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == "runtime.gopanic" || !more {
			return frame.Function == "runtime.gopanic"
		}
	}
}

// require waits until something has happened; if it has not, the response has the failure of the test.
func (bus *Bus) require(path string, fields Fields) {
	bus.t.Helper()
	if failure := ask[struct{ Failure string }](bus, "POST", path, fields).Failure; failure != "" {
		bus.t.Fatal(failure)
	}
}

// ask sends a request to the namespace and returns the response; an error fails the test.
func ask[Answer any](bus *Bus, method, path string, body any) (answer Answer) {
	bus.t.Helper()
	if err := bus.emulator.ask(method, bus.path+path, body, &answer); err != nil {
		bus.t.Fatal(err)
	}
	return answer
}
