package servicebustest

import (
	"os"
	"reflect"
	"time"
)

// Fields have names and values as the control API or a configuration file has them. Durations are written as it wants them,
// and bytes are text.
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
	return func(settings *settings) {
		settings.queues = append(settings.queues, Fields{"name": name}.with(properties))
	}
}

// Topic declares a topic with its subscriptions, each made by [Subscription].
func Topic(name string, subscriptions ...Fields) Option {
	declared := Fields{"name": name, "subscriptions": subscriptions}
	return func(settings *settings) { settings.topics = append(settings.topics, declared) }
}

// Subscription is one of a topic; without [SQL] or [Correlation] it selects every message.
func Subscription(name string, properties Fields, rules ...Fields) Fields {
	return Fields{"name": name, "rules": rules}.with([]Fields{properties})
}

// SQL is a rule: SQL("high", "price > 10").
func SQL(name, expression string) Fields {
	return Fields{"name": name, "sql": expression}
}

// Correlation is a rule: Correlation("orders", Fields{"Label": "order"}).
func Correlation(name string, filter Fields) Fields {
	return Fields{"name": name, "correlation": filter}
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
func (settings *settings) configuration() (any, error) {
	if settings.file != nil || settings.err != nil {
		return settings.file, settings.err
	}
	if len(settings.queues)+len(settings.topics) == 0 {
		if file, err := os.ReadFile("testdata/topology.json"); err == nil && settings.namespace == nil {
			return file, nil
		}
		Queue("queue.1")(settings)
	}
	return Fields{"queues": settings.queues, "topics": settings.topics, "settings": settings.namespace}, nil
}

// with has further fields, which are as the control API has them.
func (fields Fields) with(more []Fields) Fields {
	for _, some := range more {
		for field, value := range some.asked() {
			fields[field] = value
		}
	}
	return fields
}

// asked are fields as the control API has them: durations in seconds, and bytes by their name there. JSON that is expected is
// left as it is.
func (fields Fields) asked() Fields {
	all := Fields{}
	for field, value := range fields {
		if _, isBytes := value.([]byte); isBytes || field != "body_json" && field != "json" {
			value = plain(value)
		}
		all[field] = value
	}
	return all
}

func plain(value any) any {
	switch value := value.(type) {
	case time.Duration:
		return value.Seconds()
	case []byte:
		return map[string]any{"$bytes": value}
	case Fields:
		return value.asked()
	case [][]byte, []any, []Fields:
		list := reflect.ValueOf(value)
		items := make([]any, list.Len())
		for i := range items {
			items[i] = plain(list.Index(i).Interface())
		}
		return items
	}
	return value
}
