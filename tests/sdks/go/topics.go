package main

import (
	"errors"
	"net/http"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

func init() {
	register("topics", map[string]func(*Bus){"fans_out": fansOut, "filtered": filtered})
	register("admin", map[string]func(*Bus){"queues": queues, "topics": topics, "rules": rules, "missing": missing})
}

func price(body string, amount int64) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), ApplicationProperties: map[string]any{"price": amount}}
}

// Each subscription has a copy that shows where it comes from (observed 3).
func fansOut(bus *Bus) {
	bus.send("prices", price("a", 1), price("b", 20))
	receiver := bus.subscriber("prices", "all")
	messages := bus.receive(receiver, 2)
	expect("bodies", bodies(messages), []string{"a", "b"})
	expect("number in the topic", *messages[1].EnqueuedSequenceNumber, int64(2))
	for _, message := range messages {
		must(receiver.CompleteMessage(bus.ctx, message, nil))
	}
}

func filtered(bus *Bus) {
	bus.send("prices", price("a", 1), price("b", 20))
	receiver := bus.subscriber("prices", "cheap")
	expect("bodies", bodies(bus.receive(receiver, 1)), []string{"a"})
	bus.receiveNothing(receiver)
}

func administration() *admin.Client {
	client, err := admin.NewClientFromConnectionString(os.Getenv("SERVICEBUS_ADMIN_CONNECTION_STRING"), &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: httpsClient()},
	})
	must(err)
	return client
}

func queues(bus *Bus) {
	client := administration()
	asked := &admin.QueueProperties{LockDuration: to("PT30S"), MaxDeliveryCount: to(int32(3)), RequiresSession: to(true)}
	_, err := client.CreateQueue(bus.ctx, "made", &admin.CreateQueueOptions{Properties: asked})
	must(err)
	got, err := client.GetQueue(bus.ctx, "made", nil)
	must(err)
	expect("properties", []any{*got.LockDuration, *got.MaxDeliveryCount, *got.RequiresSession}, []any{"PT30S", int32(3), true})
	got.QueueProperties.MaxDeliveryCount = to(int32(5))
	updated, err := client.UpdateQueue(bus.ctx, "made", got.QueueProperties, nil)
	must(err)
	expect("deliveries", *updated.MaxDeliveryCount, int32(5))
	bus.send("made", cart("1", "a"))
	counts, err := client.GetQueueRuntimeProperties(bus.ctx, "made", nil)
	must(err)
	expect("messages", counts.ActiveMessageCount, int32(1))
	names := []string{}
	for pager := client.NewListQueuesPager(nil); pager.More(); {
		page, err := pager.NextPage(bus.ctx)
		must(err)
		for _, queue := range page.Queues {
			names = append(names, queue.QueueName)
		}
	}
	expect("queues", names, []string{"failures", "made", "orders"})
	_, err = client.DeleteQueue(bus.ctx, "made", nil)
	must(err)
	gone, err := client.GetQueue(bus.ctx, "made", nil)
	must(err)
	if gone != nil {
		panic("it is deleted")
	}
}

func topics(bus *Bus) {
	client := administration()
	_, err := client.CreateTopic(bus.ctx, "made", nil)
	must(err)
	_, err = client.CreateSubscription(bus.ctx, "made", "own", nil)
	must(err)
	bus.send("made", message("a"))
	counts, err := client.GetSubscriptionRuntimeProperties(bus.ctx, "made", "own", nil)
	must(err)
	expect("messages", counts.ActiveMessageCount, int32(1))
	topic, err := client.GetTopicRuntimeProperties(bus.ctx, "made", nil)
	must(err)
	expect("subscriptions", topic.SubscriptionCount, int32(1))
	_, err = client.DeleteTopic(bus.ctx, "made", nil)
	must(err)
}

func rules(bus *Bus) {
	client := administration()
	_, err := client.CreateRule(bus.ctx, "prices", "all", &admin.CreateRuleOptions{
		Name: to("dear"), Filter: &admin.SQLFilter{Expression: "price > 10"}, Action: &admin.SQLAction{Expression: "SET dear = TRUE"},
	})
	must(err)
	_, err = client.DeleteRule(bus.ctx, "prices", "all", "$Default", nil)
	must(err)
	rule, err := client.GetRule(bus.ctx, "prices", "all", "dear", nil)
	must(err)
	expect("filter", rule.Filter.(*admin.SQLFilter).Expression, "price > 10")
	bus.send("prices", price("a", 1), price("b", 20))
	letter := bus.receive(bus.subscriber("prices", "all"), 1)[0]
	expect("message", []any{string(letter.Body), letter.ApplicationProperties["dear"]}, []any{"b", true})
}

func missing(bus *Bus) {
	client := administration()
	none, err := client.GetQueue(bus.ctx, "missing", nil)
	must(err)
	if none != nil {
		panic("there is none")
	}
	_, err = client.DeleteQueue(bus.ctx, "missing", nil)
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		panic(err)
	}
	expect("status", answer.StatusCode, http.StatusNotFound)
}
