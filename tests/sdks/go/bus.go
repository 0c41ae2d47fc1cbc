package main

// The parameters of a case: a client of the SDK, and the emulator's control API.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"
)

const (
	// Long enough for a busy machine, short enough to detect a hang.
	timeout = 45 * time.Second
	// A rejection arrives at once; a longer wait means that the SDK retries, or waits for a response.
	promptly = 15 * time.Second
	// The time that a receive waits for a message that must not arrive.
	nothing = 300 * time.Millisecond
)

type (
	Message  = azservicebus.Message
	Received = azservicebus.ReceivedMessage
	Counts   = map[string]int
	Values   = map[string]any
)

// Environment are the settings of a case for its emulator.
type Environment map[string]string

// Bus is a namespace as the SDK sees it.
type Bus struct {
	*azservicebus.Client
	Environment
	expiry, locksOnDetach, control string
}

func (environment Environment) connect(connectionString string, retries azservicebus.RetryOptions) *Bus {
	options := environment.transport()
	options.RetryOptions = retries
	return environment.busOf(must(azservicebus.NewClientFromConnectionString(connectionString, options)))
}

func (environment Environment) busOf(client *azservicebus.Client) *Bus {
	control := strings.TrimSuffix(environment["SERVICEBUS_CONTROL_URL"], "/")
	return &Bus{client, environment, environment["SERVICEBUS_EXPIRY"], environment["SERVICEBUS_LOCKS_ON_DETACH"], control}
}

// tryingOnce is the same namespace through a client that does not retry.
func (environment Environment) tryingOnce(connectionString string) *Bus {
	return environment.connect(connectionString, azservicebus.RetryOptions{MaxRetries: -1})
}

// transport sets how a client connects.
func (environment Environment) transport() *azservicebus.ClientOptions {
	switch environment["SERVICEBUS_TRANSPORT"] {
	case "tls":
		// The SDK would request the certificate of the namespace's name, which here contains a port.
		trusted := environment.trust()
		trusted.ServerName = must(url.Parse(environment.endpoint())).Hostname()
		return &azservicebus.ClientOptions{TLSConfig: trusted}
	case "websocket-tls":
		return &azservicebus.ClientOptions{NewWebSocketConn: environment.dialWebSocket}
	case "websocket":
		return &azservicebus.ClientOptions{NewWebSocketConn: environment.dialPlainWebSocket}
	}
	return &azservicebus.ClientOptions{}
}

func (environment Environment) dialWebSocket(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: environment.trust()}}
	options := &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"amqp"}}
	socket, _, err := websocket.Dial(ctx, args.Host, options)
	if err != nil {
		return nil, err
	}
	return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
}

// The SDK uses TLS and the port of its connection string; the program sets the dialler.
func (environment Environment) dialPlainWebSocket(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	requested := must(url.Parse(args.Host))
	args.Host = "ws://" + environment["SERVICEBUS_WEB_ADDRESS"] + requested.Path
	return environment.dialWebSocket(ctx, args)
}

func (environment Environment) trust() *tls.Config {
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(must(os.ReadFile(environment["SERVICEBUS_CA_FILE"])))
	return &tls.Config{RootCAs: authorities}
}

// administration is an administration client; it supports only TLS.
func (environment Environment) administration(connectionString string) *admin.Client {
	transport := &http.Client{Transport: &http.Transport{TLSClientConfig: environment.trust()}}
	options := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport}}
	return must(admin.NewClientFromConnectionString(connectionString, options))
}

func (environment Environment) connectionString() string {
	return environment["SERVICEBUS_CONNECTION_STRING"]
}

// endpoint is that of the connection string, with a scheme and perhaps a port.
func (environment Environment) endpoint() string {
	endpoint, _, _ := strings.Cut(strings.TrimPrefix(environment.connectionString(), "Endpoint="), ";")
	return endpoint
}

func (environment Environment) adminConnectionString() string {
	return environment["SERVICEBUS_ADMIN_CONNECTION_STRING"]
}

// Sender panics on an unexpected error; the methods of the SDK return errors.
type Sender struct{ *azservicebus.Sender }

func (bus *Bus) sender(entity string) Sender { return Sender{must(bus.NewSender(entity, nil))} }

func (sender Sender) send(messages ...*Message) {
	for _, message := range messages {
		check(sender.try(message))
	}
}

func (sender Sender) try(message *Message) error { return sender.SendMessage(soon(), message, nil) }

// batch returns a batch of all the messages.
func (sender Sender) batch(messages ...*Message) *azservicebus.MessageBatch {
	batch := must(sender.NewMessageBatch(soon(), nil))
	for _, message := range messages {
		check(batch.AddMessage(message, nil))
	}
	return batch
}

func (sender Sender) sendBatch(messages ...*Message) { check(sender.tryBatch(messages...)) }

func (sender Sender) tryBatch(messages ...*Message) error {
	return sender.SendMessageBatch(soon(), sender.batch(messages...), nil)
}

func (sender Sender) schedule(at time.Time, messages ...*Message) []int64 {
	return must(sender.ScheduleMessages(soon(), messages, at, nil))
}

func (sender Sender) cancel(numbers ...int64) error {
	return sender.CancelScheduledMessages(soon(), numbers, nil)
}

// send sends the messages one by one and closes the sender.
func (bus *Bus) send(entity string, messages ...*Message) {
	check(bus.trySend(entity, messages...))
}

func (bus *Bus) trySend(entity string, messages ...*Message) error {
	sender := bus.sender(entity)
	defer sender.Close(soon())
	for _, message := range messages {
		if err := sender.try(message); err != nil {
			return err
		}
	}
	return nil
}

// sdkReceiver has the methods of the SDK's receivers with and without a session.
type sdkReceiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*Received, error)
	ReceiveDeferredMessages(context.Context, []int64, *azservicebus.ReceiveDeferredMessagesOptions) ([]*Received, error)
	PeekMessages(context.Context, int, *azservicebus.PeekMessagesOptions) ([]*Received, error)
	CompleteMessage(context.Context, *Received, *azservicebus.CompleteMessageOptions) error
	AbandonMessage(context.Context, *Received, *azservicebus.AbandonMessageOptions) error
	DeferMessage(context.Context, *Received, *azservicebus.DeferMessageOptions) error
	DeadLetterMessage(context.Context, *Received, *azservicebus.DeadLetterOptions) error
	Close(context.Context) error
}

// Receiver panics on an unexpected error, as Sender does.
type Receiver struct{ sdkReceiver }

// Session is a receiver that has a session.
type Session struct {
	Receiver
	sdk *azservicebus.SessionReceiver
}

func destructive() *azservicebus.ReceiverOptions {
	return &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
}

// receiver opens its link at the first use, also for a peek.
func (bus *Bus) receiver(queue string) Receiver { return bus.receiverWith(queue, nil) }

func (bus *Bus) receiverWith(queue string, options *azservicebus.ReceiverOptions) Receiver {
	return Receiver{must(bus.NewReceiverForQueue(queue, options))}
}

func (bus *Bus) deadLetters(queue string) Receiver {
	return bus.receiverWith(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
}

func (bus *Bus) subscriber(topic, subscription string) Receiver {
	return bus.subscriberWith(topic, subscription, nil)
}

func (bus *Bus) subscriberWith(topic, subscription string, options *azservicebus.ReceiverOptions) Receiver {
	return Receiver{must(bus.NewReceiverForSubscription(topic, subscription, options))}
}

func sessionOf(receiver *azservicebus.SessionReceiver, err error) Session {
	check(err)
	return Session{Receiver{receiver}, receiver}
}

func (bus *Bus) session(queue, id string) Session {
	return sessionOf(bus.AcceptSessionForQueue(soon(), queue, id, nil))
}

func (bus *Bus) nextSession(queue string) Session {
	return sessionOf(bus.AcceptNextSessionForQueue(soon(), queue, nil))
}

// receive receives exactly this number of messages, or fails with the number received.
func (receiver Receiver) receive(count int) []*Received {
	var messages []*Received
	ctx := soon()
	// Otherwise a receive-and-delete receiver would wait a second for more messages.
	options := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: 20 * time.Millisecond}
	for len(messages) < count && ctx.Err() == nil {
		more, err := receiver.ReceiveMessages(ctx, count-len(messages), options)
		if ctx.Err() == nil {
			check(err)
		}
		messages = append(messages, more...)
	}
	expect("number of messages received", len(messages), count)
	return messages
}

func (receiver Receiver) one() *Received { return receiver.receive(1)[0] }

// receiveNothing asserts that a receive gets no message.
func (receiver Receiver) receiveNothing() {
	messages, err := receiver.ReceiveMessages(within(nothing), 1, nil)
	expect("messages received", bodies(messages), []string{})
	expect("whether the receive ended for want of messages", errors.Is(err, context.DeadlineExceeded), true)
}

// tryReceive returns the error of a receive.
func (receiver Receiver) tryReceive() error {
	messages, err := receiver.ReceiveMessages(within(promptly), 1, nil)
	expect("messages received", bodies(messages), []string{})
	return err
}

func (receiver Receiver) complete(messages ...*Received) {
	for _, message := range messages {
		check(receiver.CompleteMessage(soon(), message, nil))
	}
}

func (receiver Receiver) abandon(message *Received) {
	check(receiver.AbandonMessage(soon(), message, nil))
}

func (receiver Receiver) deferMessages(messages ...*Received) {
	for _, message := range messages {
		check(receiver.DeferMessage(soon(), message, nil))
	}
}

func (receiver Receiver) deadLetter(message *Received, reason, description string) {
	options := &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description}
	check(receiver.DeadLetterMessage(soon(), message, options))
}

// renew renews the lock of a message; receivers of sessions have no such method.
func (receiver Receiver) renew(message *Received) error {
	return receiver.sdkReceiver.(*azservicebus.Receiver).RenewMessageLock(soon(), message, nil)
}

// peek peeks from the last message on, or from this sequence number.
func (receiver Receiver) peek(count int, from ...int64) []*Received {
	var options azservicebus.PeekMessagesOptions
	if len(from) > 0 {
		options.FromSequenceNumber = &from[0]
	}
	return must(receiver.PeekMessages(soon(), count, &options))
}

func (receiver Receiver) deferred(numbers ...int64) []*Received {
	return must(receiver.ReceiveDeferredMessages(soon(), numbers, nil))
}

func (receiver Receiver) tryDeferred(numbers ...int64) error {
	_, err := receiver.ReceiveDeferredMessages(soon(), numbers, nil)
	return err
}

func (receiver Receiver) close() { check(receiver.Close(soon())) }

// advance advances the namespace's clock, and returns when everything that is due by then has been processed.
func (bus *Bus) advance(seconds int) {
	bus.request(http.MethodPost, "clock/advance", Values{"seconds": seconds})
}

// configure changes these properties of a queue and keeps the others.
func (bus *Bus) configure(queue string, properties Values) {
	bus.request(http.MethodPut, "queues/"+queue, properties)
}

func (bus *Bus) delete(queue string) { bus.request(http.MethodDelete, "queues/"+queue, nil) }

func (bus *Bus) request(method, path string, body Values) Values {
	request := must(http.NewRequestWithContext(soon(), method, bus.control+"/"+path, bytes.NewReader(must(json.Marshal(body)))))
	request.Header.Set("content-type", "application/json")
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))
	if response.StatusCode >= http.StatusBadRequest {
		panic(fmt.Errorf("%s: %s %s", path, response.Status, text))
	}
	answer := Values{}
	if len(text) > 0 {
		check(json.Unmarshal(text, &answer))
	}
	return answer
}

// expectCounts waits until the emulator's counts of an entity have these values, without a link to the entity.
func (bus *Bus) expectCounts(entity string, expected Counts) {
	for ctx := soon(); ; time.Sleep(20 * time.Millisecond) {
		counts, seen := bus.request(http.MethodGet, "counts?entity="+url.QueryEscape(entity), nil), Counts{}
		for name := range expected {
			seen[name] = int(counts[name].(float64))
		}
		if reflect.DeepEqual(seen, expected) {
			return
		}
		if ctx.Err() != nil {
			expect("counts of "+entity, seen, expected)
		}
	}
}

// everything is all pages of a listing.
func everything[Page any](pager *runtime.Pager[Page]) []Page {
	var pages []Page
	for pager.More() {
		pages = append(pages, must(pager.NextPage(soon())))
	}
	return pages
}

// soon is a context for operations that should end at once.
func soon() context.Context { return within(timeout) }

func within(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// started is the result of a function that runs concurrently with the case, or the problem that it ended with.
type started[T any] struct {
	value   T
	problem any
}

// start runs a function concurrently with the case.
func start[T any](work func() T) <-chan started[T] {
	done := make(chan started[T], 1)
	go func() {
		var ended started[T]
		defer func() {
			ended.problem = recover()
			done <- ended
		}()
		ended.value = work()
	}()
	return done
}

// await returns the result of a started function, or fails after a timeout.
func await[T any](what string, done <-chan started[T]) T {
	select {
	case ended := <-done:
		if ended.problem != nil {
			panic(ended.problem)
		}
		return ended.value
	case <-soon().Done():
		panic(fmt.Errorf("%s did not come in time", what))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// expect fails with both values if they differ.
func expect(what string, actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Errorf("%s: expected %#v, got %#v", what, expected, actual))
	}
}

// expectCode asserts that the SDK's own error has this code.
func expectCode(code azservicebus.Code, err error) {
	var refusal *azservicebus.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		panic(fmt.Errorf("expected the code %s, got %T %v", code, err, err))
	}
}

// expectCondition asserts an AMQP condition that the SDK passes on because it has no code for it.
func expectCondition(condition amqp.ErrCond, err error) {
	var refusal *amqp.Error
	if !errors.As(err, &refusal) || refusal.Condition != condition {
		panic(fmt.Errorf("expected the condition %s, got %T %v", condition, err, err))
	}
}

func expectErrorText(description string, err error) {
	if err == nil || !strings.Contains(err.Error(), description) {
		panic(fmt.Errorf("expected the text %q, got %T %v", description, err, err))
	}
}

// expectFreshLock asserts that a lock of one minute ends between 30 s and a minute from now.
func expectFreshLock(until time.Time) {
	if remaining := time.Until(until); remaining <= 30*time.Second || remaining > 61*time.Second {
		panic(fmt.Errorf("a fresh lock of one minute has %s left by the client's clock", remaining))
	}
}

// expectClose asserts a time, with a tolerance for the duration of the case.
func expectClose(what string, actual, expected time.Time) {
	if difference := actual.Sub(expected).Abs(); difference > 15*time.Second {
		panic(fmt.Errorf("%s: expected about %s, got %s", what, expected, actual))
	}
}

// later is a time from now, by the clock of this process.
func later(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }

func pointer[T any](value T) *T { return &value }

// text is a message with only a body.
func text(body string) *Message { return &Message{Body: []byte(body)} }

// texts are messages with only bodies.
func texts(bodies ...string) []*Message { return mapped(bodies, text) }

func mapped[T, R any](items []T, function func(T) R) []R {
	results := []R{}
	for _, item := range items {
		results = append(results, function(item))
	}
	return results
}

func body(message *Received) string        { return string(message.Body) }
func bodies(messages []*Received) []string { return mapped(messages, body) }

func number(message *Received) int64 { return *message.SequenceNumber }

func deliveries(message *Received) uint32 { return message.DeliveryCount }

func reason(message *Received) string {
	if message.DeadLetterReason == nil {
		return ""
	}
	return *message.DeadLetterReason
}

// numbered are bodies with the numbers from one to another.
func numbered(from, to int) []string {
	var bodies []string
	for index := from; index < to; index++ {
		bodies = append(bodies, fmt.Sprintf("number %d", index))
	}
	return bodies
}
