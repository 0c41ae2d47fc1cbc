//! Random messages. `tests/fuzz/src/message.rs` covers damaged ones and random bytes.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::message::sections;

/// The sections of a message; empty if missing.
#[derive(Debug, Clone)]
struct SentMessage {
    /// In order: header, delivery annotations, message annotations, properties, application properties.
    envelope: [Vec<u8>; 5],
    body: Vec<u8>,
    footer: Vec<u8>,
}

impl SentMessage {
    fn payload(&self) -> Vec<u8> {
        [&self.envelope.concat(), &self.body, &self.footer]
            .map(Vec::as_slice)
            .concat()
    }
}

proptest! {
    #[test]
    fn a_random_message_is_delivered_as_sent(sent in sent_message(), time_to_live in any::<Option<u64>>()) {
        // Decimals in the layout of IEEE 754 are rewritten, which `decimals` tests.
        let has_other_decimal = |bytes: &[u8]| bytes.windows(3).any(sections::is_ieee);
        prop_assume!(!has_other_decimal(&sent.payload()));
        let message = parse(sent.payload()).unwrap();
        let broker_properties = BrokerProperties {
            time_to_live,
            ..plain()
        };
        let delivered = Delivered::of(&message, &broker_properties);
        let [_, _, _, properties, application] = &sent.envelope;
        prop_assert_eq!(delivered.application(), application);
        let footer = sections::standard_form(&sent.footer).unwrap();
        prop_assert_eq!(delivered.body(), [&*sent.body, &*footer].concat());
        let empty = section(sections::PROPERTIES, &list(&[]));
        let properties = if properties.is_empty() { &empty } else { properties };
        let (sent, received) = (raw_fields(properties, 16), raw_fields(delivered.properties(), 16));
        for at in 0..16 {
            let owned = at == 0 && sent[0].is_empty() || at == 8 && time_to_live.is_some();
            prop_assert!(owned || sent[at] == received[at], "field {}", at);
        }
    }

    #[test]
    fn a_random_scheduled_time_is_kept_in_namespace_time(
        before in map_of(value()), instant in any::<i32>(), ahead in any::<i32>(), by in any::<i32>(),
    ) {
        let (instant, ahead, by) = (i64::from(instant), i64::from(ahead), i64::from(by));
        let scheduled = |instant| {
            let before = Reader::new(&before).map().unwrap();
            let (name, time) = (symbol("x-opt-scheduled-enqueue-time"), encoded(|out| out.timestamp(instant)));
            let mut items: Vec<&[u8]> = before.raw_entries().flat_map(|entry| {
                let (key, value) = entry.unwrap();
                [key, value]
            }).collect();
            items.extend([&*name, &*time]);
            section(sections::MESSAGE_ANNOTATIONS, &map(&items))
        };
        let mut message = parse([scheduled(instant), properties("id")].concat()).unwrap();
        prop_assert_eq!(message.scheduled_at(), Some(Timestamp::from_millis(instant)));
        message.shift_to_namespace_time(ahead);
        prop_assert_eq!(message.scheduled_at(), Some(Timestamp::from_millis(instant + ahead)));
        let sent = [scheduled(instant + ahead), properties("id")].concat();
        prop_assert_eq!(&*message.payload, &*sections::standard_form(&sent).unwrap());
        let delivered = Delivered::ahead(&message, &plain(), by);
        let seen = parse(delivered.bytes).unwrap().scheduled_at();
        prop_assert_eq!(seen, Some(Timestamp::from_millis(instant + ahead - by)));
    }

    /// Observed 1.
    #[test]
    fn sections_are_accepted_in_any_order(sent in sent_message(), at in any::<[Index; 6]>()) {
        let expected = Delivered::of(&parse(sent.payload()).unwrap(), &plain());
        let mut parts: Vec<&[u8]> = sent.envelope.iter().map(Vec::as_slice).collect();
        parts.extend([&*sent.body, &*sent.footer]);
        for (from, to) in at.iter().enumerate() {
            parts.swap(from, to.index(7));
        }
        let mixed = Delivered::of(&parse(parts.concat()).unwrap(), &plain());
        prop_assert_eq!(mixed.bytes, expected.bytes);
    }

    #[test]
    fn a_delivered_message_can_be_sent_again(sent in sent_message()) {
        let message = parse(sent.payload()).unwrap();
        let once = Delivered::of(&message, &plain());
        let again = Delivered::of(&parse(once.bytes.clone()).unwrap(), &plain());
        prop_assert_eq!(once.bytes, again.bytes);
    }
}

fn sent_message() -> impl Strategy<Value = SentMessage> {
    let properties = prop::collection::vec(value(), 0..16).prop_map(|fields| {
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        section(sections::PROPERTIES, &list(&fields))
    });
    let envelope = (
        optional(header_section()),
        optional(map_section(sections::DELIVERY_ANNOTATIONS)),
        optional(map_section(sections::MESSAGE_ANNOTATIONS)),
        optional(properties),
        optional(
            map_of(primitive()).prop_map(|map| section(sections::APPLICATION_PROPERTIES, &map)),
        ),
    );
    (envelope, body(), optional(map_section(0x78))).prop_map(|(envelope, body, footer)| {
        SentMessage {
            envelope: envelope.into(),
            body,
            footer,
        }
    })
}

fn optional(section: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    prop::option::of(section).prop_map(Option::unwrap_or_default)
}

fn header_section() -> impl Strategy<Value = Vec<u8>> {
    let fields = (
        any::<Option<bool>>(),
        any::<Option<u8>>(),
        prop::option::of(1u32..),
    );
    fields.prop_map(|(durable, priority, time_to_live)| {
        let durable = durable.map_or_else(null, |durable| encoded(|out| out.bool(durable)));
        let priority = priority.map_or_else(null, |priority| encoded(|out| out.ubyte(priority)));
        let time_to_live = time_to_live.map_or_else(null, |ms| encoded(|out| out.uint(ms)));
        section(
            sections::HEADER,
            &list(&[&durable, &priority, &time_to_live]),
        )
    })
}

fn map_section(code: u64) -> impl Strategy<Value = Vec<u8>> {
    map_of(value()).prop_map(move |map| section(code, &map))
}

fn map_of(values: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let keys = prop_oneof![
        "[a-c]{1,2}".prop_map(|name| symbol(&name)),
        "[a-c]{1,2}".prop_map(|name| string(&name)),
        Just(symbol("x-opt-sequence-number")),
    ];
    prop::collection::vec((keys, values), 0..4).prop_map(|entries| {
        let items = entries.iter().flat_map(|(key, value)| [&**key, &**value]);
        map(&items.collect::<Vec<_>>())
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(bytes.prop_map(|bytes| data(&bytes)), 1..3)
            .prop_map(|sections| sections.concat()),
        value().prop_map(|value| section(sections::SEQUENCE, &list(&[&value]))),
        value().prop_map(|value| section(sections::VALUE, &value)),
    ]
}

/// Any one value, encoded.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        scalar(),
        Just(vec![0x45]),
        Just(vec![0xe0, 2, 4, 0x41]),
        prop::collection::vec(any::<i64>(), 0..4)
            .prop_map(|numbers| encoded(|out| out.long_array(numbers.into_iter()))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| { list(&items.iter().map(Vec::as_slice).collect::<Vec<_>>()) }),
            map_of(inner.clone()),
            inner.clone().prop_map(|value| described(&value)),
            (inner.clone(), inner)
                .prop_map(|(descriptor, value)| { [&[0], &*descriptor, &*value].concat() }),
        ]
    })
}

/// What an application property may be.
fn primitive() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        scalar(),
        scalar().prop_map(|value| described(&value)),
        (value(), scalar()).prop_map(|(descriptor, value)| [&[0], &*descriptor, &*value].concat()),
    ]
}

fn described(value: &[u8]) -> Vec<u8> {
    encoded(|out| {
        out.raw(&[0]);
        out.symbol("some:type");
        out.raw(value);
    })
}

fn scalar() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(null()),
        any::<bool>().prop_map(|flag| encoded(|out| out.bool(flag))),
        any::<u32>().prop_map(|number| encoded(|out| out.uint(number))),
        any::<u64>().prop_map(|number| encoded(|out| out.ulong(number))),
        any::<i64>().prop_map(|number| encoded(|out| out.long(number))),
        any::<i64>().prop_map(|instant| encoded(|out| out.timestamp(instant))),
        any::<u128>().prop_map(|bits| encoded(|out| out.uuid(uuid::Uuid::from_u128(bits)))),
        ".{0,3}".prop_map(|text| string(&text)),
        "[a-z]{0,3}".prop_map(|text| symbol(&text)),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(|b| encoded(|out| out.binary(&b))),
        any::<[u8; 4]>().prop_map(|bits| [&[0x73][..], &bits].concat()),
        any::<[u8; 16]>().prop_map(|bits| [&[0x94][..], &bits].concat()),
    ]
}
