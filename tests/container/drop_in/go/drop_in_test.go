package dropin

import (
	"bytes"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/azure/servicebus"
	"github.com/testcontainers/testcontainers-go/wait"
)

// Testcontainers' own module for the official emulator, pointed at the image.
func TestMessagesAreSentAndReceived(t *testing.T) {
	image := os.Getenv("SERVICEBUS_EMULATOR_IMAGE")
	config, err := os.ReadFile(os.Getenv("CONFIG_PATH"))
	if err != nil {
		t.Fatal(err)
	}
	// The module starts a database; a second container of the image stands in for it.
	database := servicebus.WithMSSQL(image, testcontainers.WithWaitStrategy(wait.ForLog("Emulator Service is Successfully Up!")))
	container, err := servicebus.Run(t.Context(), image, servicebus.WithAcceptEULA(), database,
		servicebus.WithConfig(bytes.NewReader(config)))
	testcontainers.CleanupContainer(t, container)
	if err != nil {
		t.Fatal(err)
	}
	connectionString, err := container.ConnectionString(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azservicebus.NewClientFromConnectionString(connectionString, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("an order")}, nil); err != nil {
		t.Fatal(err)
	}
	receiver, err := client.NewReceiverForQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	if err != nil || string(messages[0].Body) != "an order" {
		t.Fatal(messages, err)
	}
	if err := receiver.CompleteMessage(t.Context(), messages[0], nil); err != nil {
		t.Fatal(err)
	}
}
