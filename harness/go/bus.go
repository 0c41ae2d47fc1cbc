// Package servicebustest is Azure Service Bus for tests: an emulator that runs as long as the tests of a package, with a
// namespace for each test.
//
//	bus := servicebustest.New(t, servicebustest.Queue("orders"))
//	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString, nil)
package servicebustest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"
	"time"
)

const defaultTimeout = 5 * time.Second

// Bus is a namespace: its connection strings, clock, faults and timeline.
//
// An error fails the test at once, so its methods must be called from the goroutine of the test.
type Bus struct {
	// Name is the name of the namespace, as in failures.
	Name string
	// ConnectionString is for clients over plain TCP.
	ConnectionString string
	tlsString        string
	// Faults are injected into operations of clients.
	Faults   *Faults
	emulator *emulator
	t        testing.TB
}

// Session is a session of a queue or subscription that has messages, a state or a receiver.
type Session struct {
	ID                       string
	Active, Locked, Deferred int
	Holder                   string
	LockedUntil              string `json:"locked_until"`
	State                    []byte
}

// Explanation is how a rule evaluates a message that is not sent.
type Explanation struct {
	Rule    string
	Matched bool
	Reason  struct {
		Expression, Truth string
		Values            []Fields
	}
	Error string
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
	emulator, err := shared(settings.options)
	if err != nil {
		t.Fatal(err)
	}
	bus := &Bus{emulator: emulator, t: t}
	bus.Faults = &Faults{bus: bus}
	var created struct {
		Name  string
		Plain string `json:"connection_string"`
		TLS   string `json:"tls_connection_string"`
	}
	bus.check(emulator.ask("POST", "namespaces", configuration, &created))
	bus.Name, bus.ConnectionString, bus.tlsString = created.Name, created.Plain, created.TLS
	t.Cleanup(bus.end)
	return bus
}

// TLSConnectionString is for clients over TLS, as in production, with [Bus.TLSConfig] as an option.
func (bus *Bus) TLSConnectionString() string {
	return bus.tlsString
}

// TLSConfig trusts the certificate of the emulator.
func (bus *Bus) TLSConfig() *tls.Config {
	bus.t.Helper()
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
func (bus *Bus) HTTPAddress() string {
	return bus.emulator.ready.HTTP
}

// PID is the process id of the emulator.
func (bus *Bus) PID() int {
	return bus.emulator.ready.PID
}

// Now is the time of the namespace's clock.
func (bus *Bus) Now() time.Time {
	bus.t.Helper()
	var clock struct{ Now time.Time }
	bus.ask("GET", "clock", nil, &clock)
	return clock.Now
}

// Advance advances the clock, and returns when everything that is due by then has been processed.
func (bus *Bus) Advance(duration time.Duration) {
	bus.t.Helper()
	bus.ask("POST", "clock/advance", Fields{"seconds": duration.Seconds()}, nil)
}

// Freeze stops the clock.
func (bus *Bus) Freeze() {
	bus.t.Helper()
	bus.ask("POST", "clock/freeze", nil, nil)
}

// Resume restarts a stopped clock.
func (bus *Bus) Resume() {
	bus.t.Helper()
	bus.ask("POST", "clock/resume", nil, nil)
}

// StepByItself makes the clock step to the next deadline whenever the namespace is idle.
func (bus *Bus) StepByItself() {
	bus.t.Helper()
	bus.ask("POST", "clock/auto", nil, nil)
}

// IsIdle returns whether the namespace is idle: no message is locked, or can be delivered to a receiver.
func (bus *Bus) IsIdle() bool {
	bus.t.Helper()
	return bus.busy(0) == ""
}

// WaitIdle waits until the namespace is idle, by default up to 5 s.
func (bus *Bus) WaitIdle(within ...time.Duration) {
	bus.t.Helper()
	if busy := bus.busy(append(within, defaultTimeout)[0]); busy != "" {
		bus.t.Fatal(busy)
	}
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
	request := Fields{"kind": assertion, "entity": entity}.with(fields...)
	var result struct {
		Holds   bool
		Failure string
	}
	bus.ask("POST", "assertions", request, &result)
	if !result.Holds {
		bus.t.Fatal(result.Failure)
	}
}

// Counts are the numbers of messages of an entity: active, dead_letter, locked, scheduled and others.
func (bus *Bus) Counts(entity string) map[string]int {
	bus.t.Helper()
	var counts map[string]int
	bus.ask("GET", "counts", nil, &counts, "entity", entity)
	return counts
}

// Sessions are the sessions of a queue or subscription.
func (bus *Bus) Sessions(entity string) []Session {
	bus.t.Helper()
	var result struct{ Sessions []Session }
	bus.ask("GET", "sessions", nil, &result, "entity", entity)
	return result.Sessions
}

// LoseSessionLock ends the lock of a session as if it had expired.
func (bus *Bus) LoseSessionLock(entity, session string) {
	bus.t.Helper()
	bus.ask("POST", "sessions/lose", Fields{"entity": entity, "session": session}, nil)
}

// Timeline is the recorded events of an entity, or of all (""), and of a message, or of all ("").
func (bus *Bus) Timeline(entity, messageID string) Timeline {
	bus.t.Helper()
	var result struct{ Events Timeline }
	bus.ask("GET", "timeline", nil, &result, "entity", entity, "message_id", messageID, "lines", "true")
	return result.Events
}

// Explain returns how each rule of a subscription evaluates a message, without sending it. The message has these application
// properties and broker properties, such as Fields{"Label": "order"}.
func (bus *Bus) Explain(subscription string, properties, system Fields) map[string]Explanation {
	bus.t.Helper()
	message := []Fields{{"Body": "", "UserProperties": properties, "BrokerProperties": system}}
	var result struct{ Rules []Explanation }
	bus.ask("POST", "explain", message, &result, "subscription", subscription)
	rules := map[string]Explanation{}
	for _, rule := range result.Rules {
		rules[rule.Rule] = rule
	}
	return rules
}

// Reset removes all messages, sessions and recorded events.
func (bus *Bus) Reset() {
	bus.t.Helper()
	bus.ask("POST", "reset", nil, nil)
}

// end ends the namespace, as cleanup of the test.
func (bus *Bus) end() {
	bus.t.Helper()
	var result struct{ Report string }
	passed := !bus.t.Failed() && !bus.t.Skipped()
	if err := bus.emulator.ask("POST", bus.path("end"), Fields{"passed": passed}, &result); err != nil {
		bus.t.Error(err)
	} else if passed && result.Report != "" {
		bus.t.Error(result.Report)
	} else if bus.t.Failed() {
		bus.t.Log(result.Report)
	}
}

// busy waits until the namespace is idle, and returns the reason if it is not within this time.
func (bus *Bus) busy(within time.Duration) string {
	bus.t.Helper()
	var result struct{ Failure string }
	bus.ask("POST", "settled", Fields{"within": within.Seconds(), "refuse": false}, &result)
	return result.Failure
}

func (bus *Bus) path(relative string) string {
	return "namespaces/" + bus.Name + "/" + relative
}

func (bus *Bus) ask(method, path string, body, answer any, query ...string) {
	bus.t.Helper()
	bus.check(bus.emulator.ask(method, bus.path(path), body, answer, query...))
}

func (bus *Bus) check(err error) {
	bus.t.Helper()
	if err != nil {
		bus.t.Fatal(err)
	}
}
