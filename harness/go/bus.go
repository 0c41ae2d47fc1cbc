// Package servicebustest has Azure Service Bus for tests: an emulator that runs as long as the tests of a package do, and a
// namespace in it for each test.
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

const within = 5 * time.Second

// Bus is a namespace: what an SDK needs to reach it, its time, its faults, and what happened in it.
//
// What cannot be done fails the test at once, so that its methods are for the goroutine of the test.
type Bus struct {
	// Name is how failures call it.
	Name string
	// ConnectionString is for clients over plain TCP.
	ConnectionString string
	tlsString        string
	// Faults are operations that are to go wrong.
	Faults   *Faults
	emulator *emulator
	t        testing.TB
}

// Session is one of a queue or subscription that has messages, a state or a holder.
type Session struct {
	ID                       string
	Active, Locked, Deferred int
	Holder                   string
	LockedUntil              string `json:"locked_until"`
	State                    []byte
}

// Explanation is what a rule says of a message that is not sent.
type Explanation struct {
	Rule    string
	Matched bool
	Reason  struct {
		Expression, Truth string
		Values            []Fields
	}
	Error string
}

// New makes a namespace for as long as the test runs. It holds what the options declare, else what testdata/topology.json
// does, else one queue, queue.1.
//
// A test that fails has its log show what happened in the namespace. One that passes fails when a fault has not fired.
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
	var made struct {
		Name  string
		Plain string `json:"connection_string"`
		TLS   string `json:"tls_connection_string"`
	}
	bus.check(emulator.ask("POST", "namespaces", configuration, &made))
	bus.Name, bus.ConnectionString, bus.tlsString = made.Name, made.Plain, made.TLS
	t.Cleanup(bus.end)
	return bus
}

// TLSConnectionString is for clients over TLS, as in production, which take [Bus.TLSConfig] as their option.
func (bus *Bus) TLSConnectionString() string {
	return bus.tlsString
}

// TLSConfig trusts the emulator.
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

// HTTPAddress is where the emulator serves its control API and its page.
func (bus *Bus) HTTPAddress() string {
	return bus.emulator.ready.HTTP
}

// PID is the id of the process of the emulator.
func (bus *Bus) PID() int {
	return bus.emulator.ready.PID
}

// Now is what the clock of the namespace shows.
func (bus *Bus) Now() time.Time {
	bus.t.Helper()
	var clock struct{ Now time.Time }
	bus.ask("GET", "clock", nil, &clock)
	return clock.Now
}

// Advance moves the clock; all that falls due on the way has happened when it returns.
func (bus *Bus) Advance(duration time.Duration) {
	bus.t.Helper()
	bus.ask("POST", "clock/advance", Fields{"seconds": duration.Seconds()}, nil)
}

// Freeze stops the clock.
func (bus *Bus) Freeze() {
	bus.t.Helper()
	bus.ask("POST", "clock/freeze", nil, nil)
}

// Resume lets a stopped clock run on.
func (bus *Bus) Resume() {
	bus.t.Helper()
	bus.ask("POST", "clock/resume", nil, nil)
}

// StepByItself has the clock step to the next deadline from now on whenever the namespace is idle.
func (bus *Bus) StepByItself() {
	bus.t.Helper()
	bus.ask("POST", "clock/auto", nil, nil)
}

// IsIdle tells whether nothing is left to deliver to a receiver, and no message is locked.
func (bus *Bus) IsIdle() bool {
	bus.t.Helper()
	return bus.busy(0) == ""
}

// WaitIdle waits until the namespace is idle, up to 5 s unless it is said how long.
func (bus *Bus) WaitIdle(longest ...time.Duration) {
	bus.t.Helper()
	if busy := bus.busy(append(longest, within)[0]); busy != "" {
		bus.t.Fatal(busy)
	}
}

// WaitForReceiver waits until a client receives from a queue or subscription, up to 5 s unless it is said how long.
func (bus *Bus) WaitForReceiver(entity string, longest ...time.Duration) {
	bus.t.Helper()
	bus.Expect(entity, "attached", Fields{"within": append(longest, within)[0]})
}

// Expect waits until something is true of an entity: Expect("orders", "dead_lettered", Fields{"reason": "Rejected"}).
//
// Assertions and fields are those of the control API. The failure has what was found instead, and the timeline.
func (bus *Bus) Expect(entity, assertion string, fields ...Fields) {
	bus.t.Helper()
	asked := Fields{"kind": assertion, "entity": entity}.with(fields...)
	var told struct {
		Holds   bool
		Failure string
	}
	bus.ask("POST", "assertions", asked, &told)
	if !told.Holds {
		bus.t.Fatal(told.Failure)
	}
}

// Counts is how many messages an entity holds: active, dead_letter, locked, scheduled and others.
func (bus *Bus) Counts(entity string) map[string]int {
	bus.t.Helper()
	var counts map[string]int
	bus.ask("GET", "counts", nil, &counts, "entity", entity)
	return counts
}

// Sessions are those of a queue or subscription.
func (bus *Bus) Sessions(entity string) []Session {
	bus.t.Helper()
	var told struct{ Sessions []Session }
	bus.ask("GET", "sessions", nil, &told, "entity", entity)
	return told.Sessions
}

// LoseSessionLock ends the lock of a session as if its time had run out.
func (bus *Bus) LoseSessionLock(entity, session string) {
	bus.t.Helper()
	bus.ask("POST", "sessions/lose", Fields{"entity": entity, "session": session}, nil)
}

// Timeline is what happened in an entity, or anywhere (""), to one message, or to all ("").
func (bus *Bus) Timeline(entity, messageID string) Timeline {
	bus.t.Helper()
	var told struct{ Events Timeline }
	bus.ask("GET", "timeline", nil, &told, "entity", entity, "message_id", messageID, "lines", "true")
	return told.Events
}

// Explain is what each rule of a subscription says of a message that is not sent, with these application properties and
// properties of the broker, such as Fields{"Label": "order"}.
func (bus *Bus) Explain(subscription string, properties, system Fields) map[string]Explanation {
	bus.t.Helper()
	message := []Fields{{"Body": "", "UserProperties": properties, "BrokerProperties": system}}
	var told struct{ Rules []Explanation }
	bus.ask("POST", "explain", message, &told, "subscription", subscription)
	rules := map[string]Explanation{}
	for _, rule := range told.Rules {
		rules[rule.Rule] = rule
	}
	return rules
}

// Reset removes all messages, sessions and the record.
func (bus *Bus) Reset() {
	bus.t.Helper()
	bus.ask("POST", "reset", nil, nil)
}

// end is the cleanup of the test.
func (bus *Bus) end() {
	bus.t.Helper()
	var told struct{ Report string }
	passed := !bus.t.Failed() && !bus.t.Skipped()
	if err := bus.emulator.ask("POST", bus.path("end"), Fields{"passed": passed}, &told); err != nil {
		bus.t.Error(err)
	} else if passed && told.Report != "" {
		bus.t.Error(told.Report)
	} else if bus.t.Failed() {
		bus.t.Log(told.Report)
	}
}

// busy is what keeps the namespace from being idle, if anything does after this time.
func (bus *Bus) busy(limit time.Duration) string {
	bus.t.Helper()
	var told struct{ Failure string }
	bus.ask("POST", "settled", Fields{"within": limit.Seconds(), "refuse": false}, &told)
	return told.Failure
}

func (bus *Bus) path(what string) string {
	return "namespaces/" + bus.Name + "/" + what
}

func (bus *Bus) ask(method, what string, body, answer any, query ...string) {
	bus.t.Helper()
	bus.check(bus.emulator.ask(method, bus.path(what), body, answer, query...))
}

func (bus *Bus) check(err error) {
	bus.t.Helper()
	if err != nil {
		bus.t.Fatal(err)
	}
}
