package main

// The rules of a subscription: created, listed and deleted; this SDK uses HTTP.
//
// Source: topic-filters. The subscriptions are those of the topics' cases.

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

var rulesCases = Cases{
	"configured":   rulesConfigured,
	"enumerates":   rulesEnumerates,
	"pages":        rulesPages,
	"takes_effect": rulesTakesEffect,
	"action":       rulesAction,
	"duplicate":    rulesDuplicate,
	"unknown":      rulesUnknown,
	"malformed":    rulesMalformed,
	"not_found":    rulesNotFound,
}

// rules are those of one subscription.
type rules struct {
	*admin.Client
	topic, subscription string
}

// A subscription starts with $Default; one in the configuration has its own rules instead.
func rulesConfigured(bus *Bus) {
	expect("of all", bus.rulesOf("prices", "all").list(), []admin.RuleProperties{{Name: "$Default", Filter: &admin.TrueFilter{}}})
	below := []admin.RuleProperties{{Name: "below-ten", Filter: condition("price < 10")}}
	expect("of cheap", bus.rulesOf("prices", "cheap").list(), below)
	filter := &admin.CorrelationFilter{Subject: pointer("changed"), ApplicationProperties: Values{"region": "eu"}}
	expect("of eu", bus.rulesOf("prices", "eu").list(), []admin.RuleProperties{{Name: "of-the-eu", Filter: filter}})
	marked := bus.rulesOf("alarms", "marked")
	expect("names", marked.names(), []string{"plain", "plain-too", "raised"})
	expected := "SET level = level + 1; SET sys.Label = 'raised'; SET seen = TRUE; REMOVE secret"
	expect("action", marked.list()[2].Action, change(expected))
}

// Added rules are listed as they were created, filters and actions with every type of value.
func rulesEnumerates(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	whole := &admin.CorrelationFilter{
		CorrelationID:    pointer("c"),
		MessageID:        pointer("m"),
		To:               pointer("t"),
		ReplyTo:          pointer("r"),
		Subject:          pointer("s"),
		SessionID:        pointer("i"),
		ReplyToSessionID: pointer("ri"),
		ContentType:      pointer("text/plain"),
		ApplicationProperties: Values{
			"text": "x", "number": int64(5), "float": 1.5, "yes": true, "at": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
	}
	expected := []admin.RuleProperties{
		{Name: "$Default", Filter: &admin.TrueFilter{}},
		{Name: "by-price", Filter: condition("Price >= 10 AND [my region] LIKE 'e%'")},
		{Name: "marked", Filter: condition("TRUE = TRUE"), Action: change("SET seen = 1")},
		{Name: "never", Filter: &admin.FalseFilter{}},
		{Name: "whole", Filter: whole},
		{Name: "whole-marked", Filter: &admin.CorrelationFilter{Subject: pointer("s")}, Action: change("REMOVE price;")},
	}
	for _, rule := range expected[1:] {
		check(rules.add(rule.Name, rule.Filter, rule.Action))
	}
	for index, rule := range rules.list() {
		expect("rule", rule, expected[index])
	}
	expect("names", len(rules.list()), len(expected))
}

// They are listed in pages.
func rulesPages(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	for index := range 4 {
		check(rules.add(fmt.Sprintf("rule-%d", index), condition(fmt.Sprintf("price = %d", index)), nil))
	}
	pages := everything(rules.NewListRulesPager("prices", "all", &admin.ListRulesOptions{MaxPageSize: 2}))
	sizes := mapped(pages, func(page admin.ListRulesResponse) int { return len(page.Rules) })
	expect("sizes", sizes, []int{2, 2, 1})
	expect("names", rules.names(), []string{"$Default", "rule-0", "rule-1", "rule-2", "rule-3"})
}

// Rules apply to messages that are sent later; without rules, no message arrives.
func rulesTakesEffect(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	bus.send("prices", price("before", 50))
	check(rules.remove("$Default"))
	expect("names", rules.names(), []string{})
	bus.send("prices", price("none", 50))
	check(rules.add("dear", condition("price > 10"), nil))
	five := &admin.CorrelationFilter{Subject: pointer("hello"), ApplicationProperties: Values{"price": 5.0}}
	check(rules.add("greeting", five, nil))
	bus.send("prices", price("dear", 11), price("cheap", 9), price("five", 5))
	bus.send("prices", priced("greeting", Values{"price": 5.0}, "hello"))
	bus.send("prices", priced("both", Values{"price": 5.0}, "Hello"))
	check(rules.remove("dear"))
	bus.send("prices", price("dear too late", 11))
	receiver := bus.subscriber("prices", "all")
	messages := receiver.receive(3)
	expect("received", bodies(messages), []string{"before", "dear", "greeting"})
	receiver.complete(messages...)
	receiver.receiveNothing()
}

// An action changes the copy of the message, which contains the name of the rule.
func rulesAction(bus *Bus) {
	action := change("SET sys.Label = 'half'; SET price = price / 2; SET region = 'eu'; REMOVE secret")
	check(bus.rulesOf("prices", "all").add("halved", condition("price >= 10"), action))
	bus.send("prices", priced("a", Values{"price": int64(30), "secret": "s"}, "whole"))
	messages := bus.subscriber("prices", "all").receive(2)
	copies := mapped(messages, func(message *Received) string {
		return fmt.Sprint(*message.Subject, " ", message.ApplicationProperties)
	})
	slices.Sort(copies)
	expect("copies", copies, []string{
		"half map[RuleName:halved price:15 region:eu]",
		"whole map[price:30 secret:s]",
	})
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 2, "locked": 2})
}

// A name can be used once; the existing rule stays unchanged.
func rulesDuplicate(bus *Bus) {
	rules := bus.rulesOf("prices", "cheap")
	expectStatus(http.StatusConflict, rules.add("below-ten", condition("1=1"), nil))
	expect("filter", rules.list()[0].Filter, condition("price < 10"))
}

// A missing rule cannot be deleted.
func rulesUnknown(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	expectStatus(http.StatusNotFound, rules.remove("missing"))
	check(rules.remove("$Default"))
	expectStatus(http.StatusNotFound, rules.remove("$Default"))
}

// A rule with an invalid filter or action is rejected, and the error has the position.
func rulesMalformed(bus *Bus) {
	rules := bus.rulesOf("prices", "all")
	for _, filter := range []string{"price <", "price = 'open", "sys.Nothing = 1", ""} {
		expectStatus(http.StatusBadRequest, rules.add("wrong", condition(filter), nil))
	}
	expectStatus(http.StatusBadRequest, rules.add("wrong", condition("1=1"), change("DROP price")))
	expect("names", rules.names(), []string{"$Default"})
}

// Only a subscription that exists has rules.
func rulesNotFound(bus *Bus) {
	for _, path := range [][2]string{{"missing", "all"}, {"prices", "missing"}} {
		_, err := bus.rulesOf(path[0], path[1]).NewListRulesPager(path[0], path[1], nil).NextPage(soon())
		expectStatus(http.StatusNotFound, err)
	}
}

func (bus *Bus) rulesOf(topic, subscription string) rules {
	return rules{bus.administration(bus.adminConnectionString()), topic, subscription}
}

func (rules rules) add(name string, filter admin.RuleFilter, action admin.RuleAction) error {
	options := &admin.CreateRuleOptions{Name: &name, Filter: filter, Action: action}
	_, err := rules.CreateRule(soon(), rules.topic, rules.subscription, options)
	return err
}

func (rules rules) remove(name string) error {
	_, err := rules.DeleteRule(soon(), rules.topic, rules.subscription, name, nil)
	return err
}

func (rules rules) list() []admin.RuleProperties {
	var all []admin.RuleProperties
	for _, page := range everything(rules.NewListRulesPager(rules.topic, rules.subscription, nil)) {
		all = append(all, page.Rules...)
	}
	return all
}

func (rules rules) names() []string {
	return mapped(rules.list(), func(rule admin.RuleProperties) string { return rule.Name })
}

func condition(expression string) *admin.SQLFilter { return &admin.SQLFilter{Expression: expression} }

func change(expression string) *admin.SQLAction { return &admin.SQLAction{Expression: expression} }
