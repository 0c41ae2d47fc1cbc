package servicebustest

import "strings"

// Timeline is the events of a namespace, oldest first; as text it has a line for each event.
type Timeline []Event

// Event is an event of the timeline, as in the control API.
type Event struct {
	At, Kind, Entity, Client, Reason, Detail, Session, Line string

	Offset         float64
	SequenceNumber int64  `json:"sequence_number"`
	MessageID      string `json:"message_id"`
	DeliveryCount  int    `json:"delivery_count"`
	LockedUntil    string `json:"locked_until"`
}

// Kinds are the kinds of the events: sent, delivered, completed.
func (timeline Timeline) Kinds() []string {
	return each(timeline, func(event Event) string { return event.Kind })
}

func (timeline Timeline) String() string {
	if len(timeline) == 0 {
		return "  nothing happened"
	}
	return strings.Join(each(timeline, Event.String), "\n")
}

// String is the time, the kind, the message, the client and the entity in one line.
func (event Event) String() string { return event.Line }
