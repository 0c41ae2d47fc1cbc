package main

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
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
)

// Long enough for a machine that is busy with something else, short enough to be told from a hang.
const wait = 45 * time.Second

// For asserting that nothing comes.
const nothing = 300 * time.Millisecond

// Bus is a namespace as the SDK sees it, and the emulator's control API. What fails panics, and so fails the case.
type Bus struct {
	ctx    context.Context
	client *azservicebus.Client
}

func connect(ctx context.Context) *Bus {
	client, err := azservicebus.NewClientFromConnectionString(os.Getenv("SERVICEBUS_CONNECTION_STRING"), options())
	must(err)
	return &Bus{ctx, client}
}

// options say how a client comes to the address that the case was given.
func options() *azservicebus.ClientOptions {
	options := &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}}
	switch os.Getenv("SERVICEBUS_DOOR") {
	case "tls":
		// With the port in it, which the SDK would take along, it is no name that TLS knows.
		options.TLSConfig = trusting()
		options.TLSConfig.ServerName = "localhost"
	case "websocket-tls":
		options.NewWebSocketConn = func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			connection, _, err := websocket.Dial(ctx, args.Host, &websocket.DialOptions{
				Subprotocols: []string{"amqp"},
				HTTPClient:   httpsClient(),
			})
			if err != nil {
				return nil, err
			}
			connection.SetReadLimit(-1)
			return websocket.NetConn(ctx, connection, websocket.MessageBinary), nil
		}
	}
	return options
}

// trusting trusts the authority of the emulator.
func trusting() *tls.Config {
	pem, err := os.ReadFile(os.Getenv("SERVICEBUS_CA_FILE"))
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots}
}

func httpsClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trusting()}}
}

func (bus *Bus) sender(entity string) *azservicebus.Sender {
	sender, err := bus.client.NewSender(entity, nil)
	must(err)
	return sender
}

func (bus *Bus) receiver(queue string) *azservicebus.Receiver {
	return bus.receiverWith(queue, nil)
}

func (bus *Bus) receiverWith(queue string, options *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	receiver, err := bus.client.NewReceiverForQueue(queue, options)
	must(err)
	return receiver
}

func (bus *Bus) deadLetters(queue string) *azservicebus.Receiver {
	return bus.receiverWith(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
}

func (bus *Bus) subscriber(topic, subscription string) *azservicebus.Receiver {
	receiver, err := bus.client.NewReceiverForSubscription(topic, subscription, nil)
	must(err)
	return receiver
}

// send sends messages one by one and closes the sender.
func (bus *Bus) send(entity string, messages ...*azservicebus.Message) {
	sender := bus.sender(entity)
	for _, message := range messages {
		must(sender.SendMessage(bus.ctx, message, nil))
	}
	must(sender.Close(bus.ctx))
}

// Receiver is what receivers and session receivers have in common.
type Receiver interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

// receive receives exactly count messages.
func (bus *Bus) receive(receiver Receiver, count int) []*azservicebus.ReceivedMessage {
	ctx, cancel := context.WithTimeout(bus.ctx, wait)
	defer cancel()
	var all []*azservicebus.ReceivedMessage
	for len(all) < count {
		some, err := receiver.ReceiveMessages(ctx, count-len(all), nil)
		if err != nil {
			panic(fmt.Sprintf("%d of %d messages came: %v", len(all), count, err))
		}
		all = append(all, some...)
	}
	return all
}

func (bus *Bus) receiveNothing(receiver Receiver) {
	ctx, cancel := context.WithTimeout(bus.ctx, nothing)
	defer cancel()
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		panic(fmt.Sprintf("expected nothing, got %v and %v", bodies(messages), err))
	}
}

// advance moves the namespace's clock; everything due on the way has happened when it returns.
func (bus *Bus) advance(seconds float64) {
	bus.control("POST", "clock/advance", map[string]float64{"seconds": seconds})
}

// expectCounts waits until the emulator's counts of an entity are these.
func (bus *Bus) expectCounts(entity string, expected map[string]int) {
	for late := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		counts := bus.control("GET", "counts?entity="+url.QueryEscape(entity), nil)
		seen := map[string]int{}
		for name := range expected {
			seen[name] = int(counts[name].(float64))
		}
		if reflect.DeepEqual(seen, expected) {
			return
		}
		if time.Now().After(late) {
			expect("counts of "+entity, seen, expected)
		}
	}
}

func (bus *Bus) control(method, path string, body any) map[string]any {
	encoded, err := json.Marshal(body)
	must(err)
	request, err := http.NewRequestWithContext(bus.ctx, method, os.Getenv("SERVICEBUS_CONTROL_URL")+"/"+path, nil)
	must(err)
	if body != nil {
		request.Body = io.NopCloser(bytes.NewReader(encoded))
	}
	answer, err := http.DefaultClient.Do(request)
	must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(err)
	if answer.StatusCode >= 300 {
		panic(fmt.Sprintf("%s %s: %s %s", method, path, answer.Status, text))
	}
	var said map[string]any
	if len(text) > 0 {
		must(json.Unmarshal(text, &said))
	}
	return said
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(what string, actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%s: expected %#v, got %#v", what, expected, actual))
	}
}

// expectCode asserts that an operation failed with this code of the SDK, and at once.
func expectCode(err error, code azservicebus.Code) {
	var own *azservicebus.Error
	if !errors.As(err, &own) {
		panic(fmt.Sprintf("expected the code %s, got %v", code, err))
	}
	expect("code of "+err.Error(), own.Code, code)
}

// promptly runs what must not hang: go-amqp waits for ever on a refused attach that it does not understand.
func (bus *Bus) promptly(run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(bus.ctx, wait)
	defer cancel()
	return run(ctx)
}

func message(body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body)}
}

func bodies(messages []*azservicebus.ReceivedMessage) []string {
	all := []string{}
	for _, message := range messages {
		all = append(all, string(message.Body))
	}
	return all
}

func to[T any](value T) *T { return &value }
