package main

// Observed behaviour of the service, by the numbers of tests/conformance/OBSERVED.md.
//
// Source: spec/observed.md.

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/coder/websocket"
)

var observedCases = Cases{
	"dates":          observedDates,
	"nameless_rule":  observedNamelessRule,
	"filter_counts":  observedFilterCounts,
	"websocket_path": observedWebSocketPath,
	"expired_token":  observedExpiredToken,
}

// A rule without a name is not added, and replaces no rule (21).
func observedNamelessRule(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	expectErrorText("The specified HTTP verb (PUT) is not valid", rules.add("", condition("price = 1"), nil))
	expect("names", rules.names(), []string{"$Default"})
}

// A date in a rule keeps all seven digits of its second, as a parameter and as a property (46).
func observedDates(bus *Bus) {
	at := time.Date(2021, time.July, 5, 11, 12, 13, 123456700, time.UTC)
	rules := bus.rulesOf("prices", "all")
	parameter := &admin.SQLFilter{Expression: "at = @at", Parameters: Values{"@at": at}}
	check(rules.add("parameter", parameter, nil))
	check(rules.add("property", &admin.CorrelationFilter{ApplicationProperties: Values{"at": at}}, nil))
	for _, rule := range rules.list() {
		switch filter := rule.Filter.(type) {
		case *admin.CorrelationFilter:
			expect("property", filter.ApplicationProperties["at"], at)
		case *admin.SQLFilter:
			expect("parameter", filter.Parameters["@at"], at)
		}
	}
}

// The rule that a subscription begins with counts as an SQL filter (22).
func observedFilterCounts(bus *Bus) {
	check(bus.rulesOf("prices", "all").add("correlation", &admin.CorrelationFilter{Subject: pointer("s")}, nil))
	shown := must(bus.administrator().GetTopicRuntimeProperties(soon(), "prices", nil))
	expect("filters", [2]int32{shown.SQLFilterCount, shown.CorrelationFilterCount}, [2]int32{1, 1})
}

// A WebSocket at another path than the service's is not found, and the error contains the path (51).
func observedWebSocketPath(bus *Bus) {
	answered := make(chan *http.Response, 1)
	options := &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			elsewhere := "ws://" + bus.Environment["SERVICEBUS_WEB_ADDRESS"] + "/$servicebus/elsewhere"
			_, response, err := websocket.Dial(ctx, elsewhere, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
			if response != nil {
				answered <- response
			}
			return nil, errors.Join(errors.New("it did not open"), err)
		},
	}
	client := must(azservicebus.NewClientFromConnectionString(bus.connectionString(), options))
	expectErrorText("404", Sender{must(client.NewSender("orders", nil))}.try(text("lost")))
	expect("status", (<-answered).StatusCode, http.StatusNotFound)
}

// A token that has expired is rejected with its expiry time (67).
func observedExpiredToken(bus *Bus) {
	address, token := strings.Split(bus.connectionString(), ";")[0], signature("2019-04-11T21:12:56Z")
	signed := address + ";SharedAccessSignature=" + token + ";UseDevelopmentEmulator=true"
	err := bus.tryingOnce(signed).trySend("orders", text("too late"))
	expectCode(azservicebus.CodeUnauthorizedAccess, err)
	expectErrorText("ExpiredToken: The token is expired. Expiration time: '2019-04-11 21:12:56Z'", err)
}

// signature is a token of the namespace's key for the whole namespace, with this expiry time.
func signature(end string) string {
	resource, expiry := url.QueryEscape("sb://localhost/"), fmt.Sprint(must(time.Parse(time.RFC3339, end)).Unix())
	hash := hmac.New(sha256.New, []byte("SAS_KEY_VALUE"))
	must(fmt.Fprint(hash, resource, "\n", expiry))
	signed := url.QueryEscape(base64.StdEncoding.EncodeToString(hash.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%s&skn=RootManageSharedAccessKey", resource, signed, expiry)
}
