// Sends and receives with DefaultAzureCredential, like a program without settings for an emulator.
package main

import (
	"context"
	"crypto/tls"
	"net/url"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	endpoint := must(url.Parse(os.Getenv("SERVICEBUS_TLS_ENDPOINT")))
	credential := must(azidentity.NewDefaultAzureCredential(nil))
	// The SDK would request the certificate of this name, which here contains a port.
	options := &azservicebus.ClientOptions{TLSConfig: &tls.Config{ServerName: os.Getenv("SERVICEBUS_FULLY_QUALIFIED_NAMESPACE")}}
	client := must(azservicebus.NewClient(endpoint.Host, credential, options))
	sender := must(client.NewSender("queue.1", nil))
	check(sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("an order")}, nil))
	receiver := must(client.NewReceiverForQueue("queue.1", nil))
	for _, message := range must(receiver.ReceiveMessages(ctx, 1, nil)) {
		check(receiver.CompleteMessage(ctx, message, nil))
	}
	check(client.Close(ctx))
}
