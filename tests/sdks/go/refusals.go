package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func init() {
	register("not_found", map[string]func(*Bus){
		"sender":       func(bus *Bus) { expectCode(bus.sendTo("missing"), azservicebus.CodeNotFound) },
		"receiver":     func(bus *Bus) { expectCode(bus.receiveFrom(bus.receiver("missing")), azservicebus.CodeNotFound) },
		"dead_letters": func(bus *Bus) { expectCode(bus.receiveFrom(bus.deadLetters("missing")), azservicebus.CodeNotFound) },
		"peek":         peekMissing,
	})
	register("refusals", map[string]func(*Bus){"wrong_key": wrongKey, "to_dead_letters": toDeadLetters})
	register("connection", map[string]func(*Bus){"token": byToken})
}

func (bus *Bus) sendTo(entity string) error {
	return bus.promptly(func(ctx context.Context) error {
		return bus.sender(entity).SendMessage(ctx, message("lost"), nil)
	})
}

func (bus *Bus) receiveFrom(receiver Receiver) error {
	return bus.promptly(func(ctx context.Context) error {
		_, err := receiver.ReceiveMessages(ctx, 1, nil)
		return err
	})
}

func peekMissing(bus *Bus) {
	err := bus.promptly(func(ctx context.Context) error {
		_, err := bus.receiver("missing").PeekMessages(ctx, 1, nil)
		return err
	})
	expectCode(err, azservicebus.CodeNotFound)
}

// Another key is refused as such.
func wrongKey(bus *Bus) {
	own := os.Getenv("SERVICEBUS_CONNECTION_STRING")
	wrong := regexp.MustCompile("SharedAccessKey=[^;]*").ReplaceAllString(own, "SharedAccessKey=d3Jvbmc=")
	client, err := azservicebus.NewClientFromConnectionString(wrong, options())
	must(err)
	stranger := &Bus{bus.ctx, client}
	expectCode(stranger.sendTo("orders"), azservicebus.CodeUnauthorizedAccess)
	bus.expectCounts("orders", map[string]int{"active": 0})
}

// Nothing is sent to a dead-letter queue: the attach is refused, and that is no lost connection (observed 12).
func toDeadLetters(bus *Bus) {
	err := bus.sendTo("orders/$DeadLetterQueue")
	if err == nil || !strings.Contains(err.Error(), "amqp:not-allowed") {
		panic(fmt.Sprint("expected a refused attach, got ", err))
	}
	bus.send("orders", message("the connection goes on"))
}

// jwt is a credential that shows an unsigned token, which the namespace of the cases accepts.
type jwt struct{}

func (jwt) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	end := time.Now().Add(time.Hour)
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	claims := fmt.Sprintf(`{"aud":"https://servicebus.azure.net","exp":%d,"oid":"test"}`, end.Unix())
	token := part(`{"alg":"none","typ":"JWT"}`) + "." + part(claims) + "." + part("unsigned")
	return azcore.AccessToken{Token: token, ExpiresOn: end}, nil
}

// A client that signs in by a token of Microsoft Entra instead of a key.
func byToken(bus *Bus) {
	host := regexp.MustCompile(`Endpoint=sb://([^;/]*)`).FindStringSubmatch(os.Getenv("SERVICEBUS_CONNECTION_STRING"))[1]
	client, err := azservicebus.NewClient(host, jwt{}, options())
	must(err)
	signed := &Bus{bus.ctx, client}
	signed.send("orders", message("by token"))
	receiver := signed.receiver("orders")
	must(receiver.CompleteMessage(bus.ctx, signed.receive(receiver, 1)[0], nil))
	must(client.Close(bus.ctx))
}
