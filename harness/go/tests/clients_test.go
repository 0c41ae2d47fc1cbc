package tests

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	_ "servicebus-emulator.example/servicebustest/linux_amd64"

	"servicebus-emulator.example/servicebustest"
)

// Clients, with Microsoft's SDK.

func client(t *testing.T, connectionString string, options azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	options.RetryOptions.MaxRetries = -1
	client, err := azservicebus.NewClientFromConnectionString(connectionString, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func send(t *testing.T, bus *servicebustest.Bus, queue string, message azservicebus.Message) {
	t.Helper()
	sendBy(t, client(t, bus.ConnectionString, azservicebus.ClientOptions{}), queue, message)
}

func sendBy(t *testing.T, client *azservicebus.Client, queue string, message azservicebus.Message) {
	t.Helper()
	sender, err := client.NewSender(queue, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := "o-17"
	message.MessageID = &id
	message.Body = []byte("12")
	if err := sender.SendMessage(t.Context(), &message, nil); err != nil {
		t.Fatal(err)
	}
}

// complete receives a message, and returns the error of its completion.
func complete(t *testing.T, bus *servicebustest.Bus, queue string) error {
	t.Helper()
	receiver, err := client(t, bus.ConnectionString, azservicebus.ClientOptions{}).NewReceiverForQueue(queue, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	messages, err := receiver.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		return err
	}
	return receiver.CompleteMessage(ctx, messages[0], nil)
}
