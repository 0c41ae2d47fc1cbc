package servicebustest

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Fields have names and values as the control API or a configuration file has them. Durations are written as it wants them,
// and bytes as text.
type Fields map[string]any

// An Option declares what a namespace holds, or how its emulator is started.
type Option func(*settings)

type settings struct {
	queues, topics []Fields
	namespace      Fields
	file           []byte
	err            error
	options        []string
}

// Queue declares a queue, with properties by their names in the configuration file:
// Queue("orders", Fields{"MaxDeliveryCount": 3, "LockDuration": 30 * time.Second}).
func Queue(name string, properties ...Fields) Option {
	return func(settings *settings) { settings.queues = append(settings.queues, entity(name, properties)) }
}

// Topic declares a topic with its subscriptions, each made by [Subscription].
func Topic(name string, subscriptions ...Fields) Option {
	declared := Fields{"Name": name, "Subscriptions": append([]Fields{}, subscriptions...)}
	return func(settings *settings) { settings.topics = append(settings.topics, declared) }
}

// Subscription is one of a topic; without [SQL] or [Correlation] it selects every message.
func Subscription(name string, properties Fields, rules ...Fields) Fields {
	declared := entity(name, []Fields{properties})
	declared["Rules"] = append([]Fields{}, rules...)
	return declared
}

// SQL is a rule: SQL("high", "price > 10").
func SQL(name, expression string) Fields {
	return rule(name, "Sql", Fields{"SqlExpression": expression})
}

// Correlation is a rule: Correlation("orders", Fields{"Label": "order"}).
func Correlation(name string, filter Fields) Fields {
	return rule(name, "Correlation", filter)
}

// Settings are the block Emulator of the namespace: Settings(Fields{"Tier": "premium"}).
func Settings(block Fields) Option {
	return func(settings *settings) { settings.namespace = block }
}

// File declares what a configuration file does, which is looked for beside the test.
func File(path string) Option {
	return func(settings *settings) { settings.file, settings.err = os.ReadFile(path) }
}

// JSON declares what the text of a configuration file does.
func JSON(text string) Option {
	return func(settings *settings) { settings.file = []byte(text) }
}

// EmulatorOptions are those of the emulator's command line; tests with the same ones share an emulator.
func EmulatorOptions(options ...string) Option {
	return func(settings *settings) { settings.options = options }
}

// configuration is what was declared, else testdata/topology.json, else one queue, queue.1.
func (settings *settings) configuration() ([]byte, error) {
	if settings.file != nil || settings.err != nil {
		return settings.file, settings.err
	}
	if len(settings.queues)+len(settings.topics) == 0 {
		if file, err := os.ReadFile("testdata/topology.json"); err == nil && settings.namespace == nil {
			return file, nil
		}
		Queue("queue.1")(settings)
	}
	namespace := Fields{"Name": "tests", "Queues": settings.queues, "Topics": settings.topics}
	if settings.namespace != nil {
		namespace["Emulator"] = settings.namespace
	}
	return json.Marshal(Fields{"UserConfig": Fields{"Namespaces": []Fields{namespace}}})
}

func entity(name string, properties []Fields) Fields {
	all := Fields{}
	for _, some := range properties {
		for property, value := range some {
			if duration, ok := value.(time.Duration); ok {
				value = "PT" + strings.ToUpper(duration.String())
			}
			all[property] = value
		}
	}
	return Fields{"Name": name, "Properties": all}
}

func rule(name, kind string, filter Fields) Fields {
	return Fields{"Name": name, "Properties": Fields{"FilterType": kind, kind + "Filter": filter}}
}

// asked are fields as the control API has them: durations in seconds, and bytes as the text that they are. Those of a session's
// state it has in base64.
func (fields Fields) asked() Fields {
	all := Fields{}
	for field, value := range fields {
		all[field] = asked(field, value)
	}
	return all
}

func asked(field string, value any) any {
	if bytes, isBytes := value.([]byte); isBytes && field != "bytes" {
		return text{field, bytes}
	}
	if isJSON(field) {
		return value
	}
	switch value := value.(type) {
	case time.Duration:
		return value.Seconds()
	case Fields:
		return value.asked()
	case [][]byte, []any, []Fields:
		list := reflect.ValueOf(value)
		items := make([]any, list.Len())
		for i := range items {
			items[i] = asked(field, list.Index(i).Interface())
		}
		return items
	}
	return value
}

func isJSON(field string) bool {
	return field == "body_json" || field == "json"
}

// text is bytes where a text is asked for, which are refused where it would be other than they are.
type text struct {
	field string
	bytes []byte
}

func (text text) MarshalJSON() ([]byte, error) {
	if isJSON(text.field) {
		return nil, fmt.Errorf("%s is bytes; it takes a value, such as a json.RawMessage", text.field)
	}
	if !utf8.Valid(text.bytes) {
		return nil, fmt.Errorf("%s is %q, which is no UTF-8; it takes a text", text.field, text.bytes)
	}
	return json.Marshal(string(text.bytes))
}
