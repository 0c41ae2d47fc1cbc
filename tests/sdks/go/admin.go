package main

// The administration client: entities and rules are created, read, listed, updated and deleted.
//
// Source: the SDK's own tests of its client, spec/admin-http.md. It uses TLS only, with the emulator's certificate.

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

const forever = "P10675199DT2H48M5.4775807S"

var adminCases = Cases{
	"namespace":    adminNamespace,
	"queues":       adminQueues,
	"changes":      adminChanges,
	"topics":       adminTopics,
	"rules":        adminRules,
	"pages":        adminPages,
	"counts":       adminCounts,
	"missing":      adminMissing,
	"conflicts":    adminConflicts,
	"refused":      adminRefused,
	"wrong_key":    adminWrongKey,
	"used_at_once": adminUsedAtOnce,
}

// The properties of the namespace.
func adminNamespace(bus *Bus) {
	shown := must(bus.administrator().GetNamespaceProperties(soon(), nil))
	expect("namespace", []string{shown.Name, shown.SKU}, []string{"sbemulatorns", "Standard"})
}

// A queue has the properties it was created with, also if its name contains a slash.
func adminQueues(bus *Bus) {
	client := bus.administrator()
	rights := []admin.AccessRight{admin.AccessRightSend, admin.AccessRightListen}
	settings := admin.QueueProperties{
		LockDuration:                        pointer("PT13S"),
		MaxSizeInMegabytes:                  pointer(int32(3072)),
		RequiresDuplicateDetection:          pointer(true),
		RequiresSession:                     pointer(true),
		DefaultMessageTimeToLive:            pointer("P7D"),
		DeadLetteringOnMessageExpiration:    pointer(true),
		DuplicateDetectionHistoryTimeWindow: pointer("PT12M"),
		MaxDeliveryCount:                    pointer(int32(14)),
		EnableBatchedOperations:             pointer(false),
		AutoDeleteOnIdle:                    pointer("PT10M"),
		EnablePartitioning:                  pointer(true),
		UserMetadata:                        pointer("a < b & 'c'"),
		Status:                              pointer(admin.EntityStatusActive),
	}
	properties := settings
	properties.AuthorizationRules = []admin.AuthorizationRule{{AccessRights: rights, KeyName: pointer("mine")}}
	created := must(client.CreateQueue(soon(), "eu/new", &admin.CreateQueueOptions{Properties: &properties}))
	read := must(client.GetQueue(soon(), "eu/new", nil))
	expect("names", []string{created.QueueName, read.QueueName}, []string{"eu/new", "eu/new"})
	// Each of the 16 partitions has the requested size (observed 30).
	settings.MaxSizeInMegabytes = pointer(int32(16 * 3072))
	for _, shown := range []admin.QueueProperties{created.QueueProperties, read.QueueProperties} {
		kept := shown.AuthorizationRules[0]
		expect("rights", kept.AccessRights, rights)
		expect("name of the key", *kept.KeyName, "mine")
		expect("length of the key", len(*kept.PrimaryKey), 44)
		shown.AuthorizationRules, shown.MaxMessageSizeInKilobytes = nil, nil
		expect("properties", shown, settings)
	}
	// Observed 25, 27: with sessions and auto-delete on idle, too.
	forwarding := must(client.CreateQueue(soon(), "to-orders", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		ForwardTo: pointer("orders"), RequiresSession: pointer(true), AutoDeleteOnIdle: pointer("PT10M"),
	}}))
	expect("whether it has sessions", *forwarding.RequiresSession, true)
	expect("idleness", *forwarding.AutoDeleteOnIdle, "PT10M")
	expect("target", *forwarding.ForwardTo, "orders")
	expect("names", queueNames(client), []string{"eu/new", "failures", "orders", "to-orders"})
	must(client.DeleteQueue(soon(), "eu/new", nil))
	expect("names", queueNames(client), []string{"failures", "orders", "to-orders"})
}

// Properties that were read can be changed and written back; properties that are left out are reset.
func adminChanges(bus *Bus) {
	client := bus.administrator()
	must(client.CreateQueue(soon(), "new", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		UserMetadata: pointer("m"), ForwardTo: pointer("orders"), RequiresDuplicateDetection: pointer(true),
	}}))
	queue := must(client.GetQueue(soon(), "new", nil)).QueueProperties
	queue.LockDuration, queue.ForwardTo, queue.Status = pointer("PT2M"), nil, pointer(admin.EntityStatusSendDisabled)
	must(client.UpdateQueue(soon(), "new", queue, nil))
	expect("queue", must(client.GetQueue(soon(), "new", nil)).QueueProperties, queue)
	topic := must(client.GetTopic(soon(), "prices", nil)).TopicProperties
	topic.DefaultMessageTimeToLive = pointer("PT1M")
	must(client.UpdateTopic(soon(), "prices", topic, nil))
	expect("topic", must(client.GetTopic(soon(), "prices", nil)).TopicProperties, topic)
	subscription := must(client.GetSubscription(soon(), "prices", "all", nil)).SubscriptionProperties
	subscription.MaxDeliveryCount = pointer(int32(3))
	must(client.UpdateSubscription(soon(), "prices", "all", subscription, nil))
	expect("subscription", must(client.GetSubscription(soon(), "prices", "all", nil)).SubscriptionProperties, subscription)
}

// Topics with subscriptions; deleting an entity deletes those that it contains.
func adminTopics(bus *Bus) {
	client := bus.administrator()
	must(client.CreateTopic(soon(), "new", &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		SupportOrdering: pointer(false), MaxSizeInMegabytes: pointer(int32(2048)),
	}}))
	topic := must(client.GetTopic(soon(), "new", nil))
	expect("whether it is ordered", *topic.SupportOrdering, false)
	expect("size", *topic.MaxSizeInMegabytes, int32(2048))
	expect("for ever", *topic.DefaultMessageTimeToLive, forever)
	properties := &admin.SubscriptionProperties{MaxDeliveryCount: pointer(int32(3)), RequiresSession: pointer(true)}
	options := &admin.CreateSubscriptionOptions{Properties: properties}
	made := must(client.CreateSubscription(soon(), "new", "One", options))
	expect("subscription", []string{made.SubscriptionName, made.TopicName}, []string{"One", "new"})
	expect("deliveries", *made.MaxDeliveryCount, int32(3))
	expect("whether it has sessions", *made.RequiresSession, true)
	options.Properties = &admin.SubscriptionProperties{ForwardTo: pointer("orders")}
	must(client.CreateSubscription(soon(), "new", "two", options))
	var names []string
	for _, page := range everything(client.NewListSubscriptionsPager("new", nil)) {
		for _, one := range page.Subscriptions {
			names = append(names, one.SubscriptionName)
		}
	}
	expect("names", names, []string{"One", "two"})
	expect("count", must(client.GetTopicRuntimeProperties(soon(), "new", nil)).SubscriptionCount, int32(2))
	must(client.DeleteSubscription(soon(), "new", "two", nil))
	expect("whether it is there", must(client.GetSubscription(soon(), "new", "two", nil)) != nil, false)
	expect("count", must(client.GetTopicRuntimeProperties(soon(), "new", nil)).SubscriptionCount, int32(1))
	must(client.DeleteTopic(soon(), "new", nil))
	expect("whether it is listed", slices.Contains(topicNames(client), "new"), false)
}

// Rules of every kind are returned as they were created.
func adminRules(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	filter := &admin.SQLFilter{Expression: "price > @p", Parameters: Values{"@p": int64(10)}}
	action := &admin.SQLAction{Expression: "SET mark = @m", Parameters: Values{"@m": "x"}}
	check(rules.add("sql", filter, action))
	at := time.Date(2020, 7, 5, 11, 12, 13, 0, time.UTC)
	correlation := &admin.CorrelationFilter{
		Subject:               pointer("l"),
		SessionID:             pointer("s"),
		ApplicationProperties: Values{"s": "x", "i": int64(5), "f": 1.5, "b": true, "d": at},
	}
	check(rules.add("correlation", correlation, nil))
	sql := must(rules.GetRule(soon(), "prices", "all", "sql", nil)).RuleProperties
	expect("sql", sql, admin.RuleProperties{Name: "sql", Filter: filter, Action: action})
	read := must(rules.GetRule(soon(), "prices", "all", "correlation", nil)).RuleProperties
	expect("correlation", read, admin.RuleProperties{Name: "correlation", Filter: correlation})
	read.Filter = condition("price = 1")
	must(rules.UpdateRule(soon(), "prices", "all", read))
	read = must(rules.GetRule(soon(), "prices", "all", "correlation", nil)).RuleProperties
	expect("changed", read.Filter, condition("price = 1"))
	// The default rule and "sql" are two filters of this subscription, in addition to those of cheap and eu.
	topic := must(rules.GetTopicRuntimeProperties(soon(), "prices", nil))
	expect("filters", []int32{topic.SQLFilterCount, topic.CorrelationFilterCount}, []int32{4, 1})
	check(rules.remove("$Default"))
	expect("names", rules.names(), []string{"correlation", "sql"})
	expect("whether it is there", must(rules.GetRule(soon(), "prices", "all", "$Default", nil)) != nil, false)
}

// More queues than fit in a page are all listed, each once.
func adminPages(bus *Bus) {
	client := bus.administrator()
	all := []string{"failures"}
	for index := range 203 {
		all = append(all, fmt.Sprintf("many-%03d", index))
		must(client.CreateQueue(soon(), all[index+1], nil))
	}
	all = append(all, "orders")
	expect("names", queueNames(client), all)
	var names []string
	for _, page := range everything(client.NewListQueuesRuntimePropertiesPager(nil)) {
		for _, queue := range page.QueueRuntimeProperties {
			names = append(names, queue.QueueName)
		}
	}
	expect("runtime properties", names, all)
	pages := everything(client.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 90}))
	sizes := mapped(pages, func(page admin.ListQueuesResponse) int { return len(page.Queues) })
	expect("sizes", sizes, []int{90, 90, 25})
}

// The subscription counts dead-lettered messages, the topic counts scheduled ones.
func adminCounts(bus *Bus) {
	client := bus.administrator()
	subscription := must(client.GetSubscription(soon(), "prices", "all", nil)).SubscriptionProperties
	subscription.DefaultMessageTimeToLive = pointer("PT1M")
	subscription.DeadLetteringOnMessageExpiration = pointer(true)
	must(client.UpdateSubscription(soon(), "prices", "all", subscription, nil))
	bus.sender("prices").sendBatch(texts(numbered(0, 62)...)...)
	bus.advance(61)
	bus.send("prices", text("active"), annotated("later", later(3600)))
	shown := must(client.GetSubscriptionRuntimeProperties(soon(), "prices", "all", nil))
	seen := []int64{int64(shown.ActiveMessageCount), int64(shown.DeadLetterMessageCount), shown.TotalMessageCount}
	expect("subscription", seen, []int64{1, 62, 63})
	for _, page := range everything(client.NewListSubscriptionsRuntimePropertiesPager("prices", nil)) {
		for _, one := range page.SubscriptionRuntimeProperties {
			if one.SubscriptionName == "all" {
				expect("in a list", one.DeadLetterMessageCount, int32(62))
			}
		}
	}
	topic := must(client.GetTopicRuntimeProperties(soon(), "prices", nil))
	expect("topic", topic.ScheduledMessageCount, int32(1))
	expect("whether it holds something", topic.SizeInBytes > 0, true)
	bus.send("orders", text("m"))
	queue := must(client.GetQueueRuntimeProperties(soon(), "orders", nil))
	expect("queue", []int64{int64(queue.ActiveMessageCount), queue.TotalMessageCount}, []int64{1, 1})
	isOrdered := queue.CreatedAt.Before(queue.UpdatedAt) && queue.UpdatedAt.Before(queue.AccessedAt)
	expect("order", isOrdered, true)
}

// Reading a missing entity returns nil; changing it is an error.
func adminMissing(bus *Bus) {
	client := bus.administrator()
	absent := func(shown any, err error) {
		check(err)
		expect("whether it exists", reflect.ValueOf(shown).IsNil(), true)
	}
	absent(client.GetQueue(soon(), "missing", nil))
	absent(client.GetTopic(soon(), "missing", nil))
	absent(client.GetSubscription(soon(), "missing", "all", nil))
	absent(client.GetSubscription(soon(), "prices", "missing", nil))
	absent(client.GetRule(soon(), "prices", "all", "missing", nil))
	absent(client.GetQueueRuntimeProperties(soon(), "missing", nil))
	_, err := client.DeleteQueue(soon(), "missing", nil)
	expectStatus(http.StatusNotFound, err)
	_, err = client.DeleteSubscription(soon(), "prices", "missing", nil)
	expectStatus(http.StatusNotFound, err)
	_, err = client.DeleteRule(soon(), "prices", "all", "missing", nil)
	expectStatus(http.StatusNotFound, err)
	_, err = client.CreateSubscription(soon(), "missing", "new", nil)
	expectStatus(http.StatusNotFound, err)
	queue := must(client.GetQueue(soon(), "orders", nil)).QueueProperties
	must(client.DeleteQueue(soon(), "orders", nil))
	_, err = client.UpdateQueue(soon(), "orders", queue, nil)
	expectStatus(http.StatusNotFound, err)
}

// A name can be used once.
func adminConflicts(bus *Bus) {
	client := bus.administrator()
	_, err := client.CreateQueue(soon(), "ORDERS", nil)
	expectStatus(http.StatusConflict, err)
	_, err = client.CreateTopic(soon(), "orders", nil)
	expectStatus(http.StatusConflict, err)
	_, err = client.CreateQueue(soon(), "prices", nil)
	expectStatus(http.StatusConflict, err)
	_, err = client.CreateSubscription(soon(), "prices", "all", nil)
	expectStatus(http.StatusConflict, err)
	expectStatus(http.StatusConflict, bus.rulesOf("prices", "all").add("$Default", nil, nil))
}

// Invalid properties are rejected with the reason.
func adminRefused(bus *Bus) {
	client := bus.administrator()
	for description, properties := range map[string]admin.QueueProperties{
		"'5' minutes":      {LockDuration: pointer("PT10M")},
		"MaxDeliveryCount": {MaxDeliveryCount: pointer(int32(0))},
		"AutoDeleteOnIdle": {AutoDeleteOnIdle: pointer("PT1M")},
		"doesn't exist":    {ForwardTo: pointer("missing")},
		"ISO 8601":         {LockDuration: pointer("soon")},
	} {
		_, err := client.CreateQueue(soon(), "new", &admin.CreateQueueOptions{Properties: &properties})
		expectStatus(http.StatusBadRequest, err)
		expectErrorText(description, err)
	}
	err := bus.rulesOf("prices", "all").add("new", condition("price >"), nil)
	expectStatus(http.StatusBadRequest, err)
	expectErrorText("cannot be understood", err)
	queue := must(client.GetQueue(soon(), "orders", nil)).QueueProperties
	queue.RequiresSession = pointer(true)
	_, err = client.UpdateQueue(soon(), "orders", queue, nil)
	expectErrorText("RequiresSession property of an existing Queue", err)
	expect("names", queueNames(client), []string{"failures", "orders"})
}

// A client without a key cannot read or change entities.
func adminWrongKey(bus *Bus) {
	stranger := bus.administration(strings.Replace(bus.adminConnectionString(), "SAS_KEY_VALUE", "wrong", 1))
	_, err := stranger.GetQueue(soon(), "orders", nil)
	expectStatus(http.StatusUnauthorized, err)
	_, err = stranger.DeleteQueue(soon(), "orders", nil)
	expectStatus(http.StatusUnauthorized, err)
	_, err = stranger.CreateQueue(soon(), "new", nil)
	expectStatus(http.StatusUnauthorized, err)
	expect("names", queueNames(bus.administrator()), []string{"failures", "orders"})
}

// Clients send to and receive from a created queue; a deleted queue no longer exists.
func adminUsedAtOnce(bus *Bus) {
	client := bus.administrator()
	must(client.CreateTopic(soon(), "new", nil))
	must(client.CreateSubscription(soon(), "new", "one", nil))
	bus.send("new", text("m"))
	receiver := bus.subscriber("new", "one")
	message := receiver.one()
	expect("body", body(message), "m")
	receiver.complete(message)
	receiver.close()
	left := must(client.GetSubscriptionRuntimeProperties(soon(), "new", "one", nil))
	expect("left", left.TotalMessageCount, int64(0))
	must(client.DeleteTopic(soon(), "new", nil))
	expectMissing(bus.trySend("new", text("lost")))
}

func (environment Environment) administrator() *admin.Client {
	return environment.administration(environment.adminConnectionString())
}

func queueNames(client *admin.Client) []string {
	var names []string
	for _, page := range everything(client.NewListQueuesPager(nil)) {
		for _, queue := range page.Queues {
			names = append(names, queue.QueueName)
		}
	}
	return names
}

func topicNames(client *admin.Client) []string {
	var names []string
	for _, page := range everything(client.NewListTopicsPager(nil)) {
		for _, topic := range page.Topics {
			names = append(names, topic.TopicName)
		}
	}
	return names
}

// expectStatus asserts the status of the administration API's response.
func expectStatus(status int, err error) {
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.StatusCode != status {
		panic(fmt.Errorf("expected the status %d, got %T %v", status, err, err))
	}
}
