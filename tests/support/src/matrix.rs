//! The message matrix: encoded messages, each named by its special property.
//!
//! It has every body kind, every AMQP primitive in every encoding (AMQP 1.0 §1.6) as application property, annotation,
//! footer and body, and every field of header and properties. Encoded, because a client that builds messages from values
//! would encode some of them differently.

use servicebus_codec::Writer;

use crate::message::{
    APPLICATION_PROPERTIES, DATA, DELIVERY_ANNOTATIONS, FOOTER, HEADER, MESSAGE_ANNOTATIONS,
    PROPERTIES, SEQUENCE, VALUE,
};

/// A message of the matrix.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its special property.
    pub name: String,
    /// All its sections.
    pub bytes: Vec<u8>,
}

/// Returns all cases.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(bodies());
    cases.extend(values());
    cases.extend(application_properties());
    cases.extend(maps());
    cases.extend(headers());
    cases.extend(properties());
    cases.push(case("everything at once", everything()));
    cases
}

fn case(name: impl Into<String>, sections: Vec<Vec<u8>>) -> Case {
    Case {
        name: name.into(),
        bytes: sections.concat(),
    }
}

fn bodies() -> Vec<Case> {
    let body = |name: &str, body: Vec<u8>| case(format!("body: {name}"), vec![id(), body]);
    let items = list(&[&text("x"), &NULL, &list(&[&[0x54, 1]])]);
    vec![
        body("none", vec![]),
        body("data, empty", data(0)),
        body("data", data(255)),
        body("data, long form", data(256)),
        body("data, two frames", data(100_000)),
        body(
            "data, three sections",
            [data(1), data(300), data(0)].concat(),
        ),
        body("sequence", section(SEQUENCE, &items)),
        body("sequence, empty", section(SEQUENCE, &[0x45])),
        body(
            "sequence, three sections",
            section(SEQUENCE, &items).repeat(3),
        ),
    ]
}

fn values() -> Vec<Case> {
    let all = primitives().into_iter().chain(compounds());
    all.map(|(name, value)| case(format!("value: {name}"), vec![id(), section(VALUE, &value)]))
        .collect()
}

fn application_properties() -> Vec<Case> {
    let with = |name: &str, value: &[u8]| {
        let section = section(APPLICATION_PROPERTIES, &map(&[(&text("key"), value)]));
        case(format!("property: {name}"), vec![id(), section, data(3)])
    };
    let primitives = primitives();
    let mut cases: Vec<_> = primitives
        .iter()
        .map(|(name, value)| with(name, value))
        .collect();
    for (name, value) in described_primitives() {
        cases.push(with(name, &value));
    }
    cases.push(with("text of many scripts", &text("ÄΩ中\u{1F600}\0")));
    let none = section(APPLICATION_PROPERTIES, &map(&[]));
    cases.push(case("property: none", vec![id(), none]));
    cases
}

/// Returns every type in each of the maps that accept any type.
fn maps() -> Vec<Case> {
    let codes = [
        ("delivery annotations", DELIVERY_ANNOTATIONS),
        ("message annotations", MESSAGE_ANNOTATIONS),
        ("footer", FOOTER),
    ];
    let case_of = |(name, code)| {
        let section = section(code, &every_type());
        let sections = match code {
            FOOTER => vec![id(), data(3), section],
            _ => vec![section, id(), data(3)],
        };
        case(format!("{name}: every type"), sections)
    };
    codes.into_iter().map(case_of).collect()
}

fn headers() -> Vec<Case> {
    let mut cases = vec![case(
        "header: no fields",
        vec![section(HEADER, &[0x45]), id()],
    )];
    let durables: [(&str, &[u8]); 3] = [("absent", &NULL), ("true", &[0x41]), ("false", &[0x42])];
    let priorities: [(&str, &[u8]); 4] = [
        ("absent", &NULL),
        ("0", &[0x50, 0]),
        ("4", &[0x50, 4]),
        ("255", &[0x50, 255]),
    ];
    for (durable_name, durable) in durables {
        for (priority_name, priority) in priorities {
            let header = section(HEADER, &list(&[durable, priority]));
            let name = format!("header: durable {durable_name}, priority {priority_name}");
            cases.push(case(name, vec![header, id(), data(3)]));
        }
    }
    let hour: &[u8] = &[0x70, 0, 0x36, 0xee, 0x80];
    let header = section(HEADER, &list(&[&NULL, &NULL, hour]));
    cases.push(case("header: time to live", vec![header, id(), data(3)]));
    let header = section(HEADER, &list(&[&NULL, &NULL, &NULL, &[0x41], &[0x52, 7]]));
    cases.push(case("header: what the broker owns", vec![header, id()]));
    cases
}

fn properties() -> Vec<Case> {
    let ids: [(&str, Vec<u8>); 5] = [
        ("text", text("order-1")),
        ("empty text", text("")),
        ("ulong", vec![0x80, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("uuid", [&[0x98][..], &[7; 16]].concat()),
        ("binary", vec![0xa0, 2, 0, 0xff]),
    ];
    let mut cases = Vec::new();
    for (name, id) in &ids {
        let message = section(PROPERTIES, &list(&[id]));
        cases.push(case(format!("message id: {name}"), vec![message, data(3)]));
        let fields = [&*text("id"), &NULL, &NULL, &NULL, &NULL, id];
        let correlation = section(PROPERTIES, &list(&fields));
        cases.push(case(
            format!("correlation id: {name}"),
            vec![correlation, data(3)],
        ));
    }
    cases.push(case(
        "properties: all",
        vec![section(PROPERTIES, &all_properties()), data(3)],
    ));
    let trailing = list(&[&text("id"), &NULL, &NULL]);
    cases.push(case(
        "properties: nulls behind",
        vec![section(PROPERTIES, &trailing)],
    ));
    cases.push(case("message id: none, no properties", vec![data(3)]));
    cases.push(case(
        "message id: none, no fields",
        vec![section(PROPERTIES, &[0x45]), data(3)],
    ));
    let others = list(&[&NULL, &[0xa0, 1, 9], &text("to")]);
    cases.push(case(
        "message id: none, other fields",
        vec![section(PROPERTIES, &others), data(3)],
    ));
    cases
}

fn everything() -> Vec<Vec<u8>> {
    let named = |(at, (_, value)): (usize, (&str, Vec<u8>))| (text(&format!("key {at}")), value);
    let entries: Vec<_> = primitives().into_iter().enumerate().map(named).collect();
    let entries: Vec<(&[u8], &[u8])> = entries
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    vec![
        section(HEADER, &list(&[&[0x42], &[0x50, 9]])),
        section(DELIVERY_ANNOTATIONS, &every_type()),
        section(MESSAGE_ANNOTATIONS, &every_type()),
        section(PROPERTIES, &all_properties()),
        section(APPLICATION_PROPERTIES, &map(&entries)),
        data(300),
        section(FOOTER, &every_type()),
    ]
}

/// Returns every primitive type in each of its encodings.
fn primitives() -> Vec<(&'static str, Vec<u8>)> {
    let wide =
        |code: u8, bytes: &[u8]| [&[code][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let of = |code: u8, bytes: &[u8]| [&[code], bytes].concat();
    vec![
        ("null", NULL.to_vec()),
        ("true", vec![0x41]),
        ("false", vec![0x42]),
        ("boolean, true", vec![0x56, 1]),
        ("boolean, false", vec![0x56, 0]),
        ("ubyte", vec![0x50, 0xff]),
        ("ushort", of(0x60, &u16::MAX.to_be_bytes())),
        ("uint", of(0x70, &u32::MAX.to_be_bytes())),
        ("uint, wide", of(0x70, &1u32.to_be_bytes())),
        ("smalluint", vec![0x52, 0xff]),
        ("uint0", vec![0x43]),
        ("ulong", of(0x80, &u64::MAX.to_be_bytes())),
        ("ulong, wide", of(0x80, &1u64.to_be_bytes())),
        ("smallulong", vec![0x53, 0xff]),
        ("ulong0", vec![0x44]),
        ("byte", vec![0x51, 0x80]),
        ("short", of(0x61, &i16::MIN.to_be_bytes())),
        ("int", of(0x71, &i32::MIN.to_be_bytes())),
        ("smallint", vec![0x54, 0xff]),
        ("long", of(0x81, &i64::MIN.to_be_bytes())),
        ("smalllong", vec![0x55, 0xff]),
        ("float", of(0x72, &1.5f32.to_be_bytes())),
        (
            "float, infinite",
            of(0x72, &f32::NEG_INFINITY.to_be_bytes()),
        ),
        ("double", of(0x82, &f64::MIN_POSITIVE.to_be_bytes())),
        ("double, minus zero", of(0x82, &(-0.0f64).to_be_bytes())),
        ("decimal32", vec![0x74, 0x22, 0x50, 0, 1]),
        ("decimal64", of(0x84, &[0x22, 0x38, 0, 0, 0, 0, 0, 1])),
        (
            "decimal128",
            [&[0x94, 0x22, 8][..], &[0; 13], &[1]].concat(),
        ),
        ("char", vec![0x73, 0, 1, 0xf6, 0]),
        ("timestamp", of(0x83, &1_700_000_000_123i64.to_be_bytes())),
        (
            "timestamp, year 1",
            of(0x83, &(-62_135_596_800_000i64).to_be_bytes()),
        ),
        ("uuid", [&[0x98][..], &[0xab; 16]].concat()),
        ("binary", vec![0xa0, 3, 0, 1, 0xff]),
        ("binary, empty", vec![0xa0, 0]),
        ("binary, wide", wide(0xb0, &[7])),
        ("binary, long", wide(0xb0, &[7; 300])),
        ("string", text("text")),
        ("string, empty", text("")),
        ("string, wide", wide(0xb1, b"w")),
        ("string, long", text(&"long ".repeat(100))),
        ("symbol", vec![0xa3, 3, b's', b'y', b'm']),
        ("symbol, wide", wide(0xb3, b"w")),
    ]
}

/// Returns .NET's encodings of types that AMQP does not have (wire.md §7.2), and a numeric descriptor.
fn described_primitives() -> Vec<(&'static str, Vec<u8>)> {
    let ticks = [&[0x81][..], &638_000_000_000_000_000i64.to_be_bytes()].concat();
    vec![
        ("timespan", described("com.microsoft:timespan", &ticks)),
        (
            "datetime-offset",
            described("com.microsoft:datetime-offset", &ticks),
        ),
        ("uri", described("com.microsoft:uri", &text("http://x/"))),
        (
            "described by a number",
            [&[0, 0x80][..], &[1; 8], &text("x")].concat(),
        ),
    ]
}

fn compounds() -> Vec<(&'static str, Vec<u8>)> {
    let inner = list(&[&text("x"), &map(&[(&text("k"), &NULL)])]);
    let mut compounds = vec![
        ("list, empty", vec![0x45]),
        ("list, short form", vec![0xc0, 3, 2, 0x41, 0x40]),
        ("list", inner.clone()),
        ("map, empty", map(&[])),
        ("map, short form", vec![0xc1, 5, 2, 0xa1, 1, b'k', 0x41]),
        ("map", map(&[(&text("a"), &inner), (&[0x54, 1], &NULL)])),
        ("array", vec![0xe0, 4, 2, 0x50, 1, 2]),
        (
            "array, long form",
            vec![0xf0, 0, 0, 0, 9, 0, 0, 0, 2, 0x61, 0, 1, 0, 2],
        ),
        ("array of text", vec![0xe0, 6, 2, 0xa1, 1, b'a', 1, b'b']),
    ];
    compounds.push(("described list", described("some:list", &inner)));
    compounds.extend(described_primitives());
    compounds
}

/// Returns a map from symbols to values of every type.
fn every_type() -> Vec<u8> {
    let all = primitives().into_iter().chain(compounds());
    let entries: Vec<_> = all
        .map(|(name, value)| (symbol(&format!("x-{name}")), value))
        .collect();
    let entries: Vec<(&[u8], &[u8])> = entries
        .iter()
        .map(|(key, value)| (&**key, &**value))
        .collect();
    map(&entries)
}

fn all_properties() -> Vec<u8> {
    let instant = |milliseconds: i64| [&[0x83][..], &milliseconds.to_be_bytes()].concat();
    list(&[
        &text("message-id"),
        &[0xa0, 2, 1, 2],
        &text("to"),
        &text("subject"),
        &text("reply-to"),
        &[0x53, 7],
        &symbol("content/type"),
        &symbol("gzip"),
        &instant(4_000_000_000_000),
        &instant(1_700_000_000_000),
        &text("group"),
        &[0x52, 9],
        &text("reply-to-group"),
    ])
}

fn id() -> Vec<u8> {
    section(PROPERTIES, &list(&[&text("id")]))
}

fn data(length: usize) -> Vec<u8> {
    let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    section(DATA, &encoded(|out| out.binary(&body)))
}

const NULL: [u8; 1] = [0x40];

fn encoded(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes
}

fn section(code: u8, content: &[u8]) -> Vec<u8> {
    encoded(|out| {
        out.descriptor(code);
        out.raw(content);
    })
}

fn described(name: &str, value: &[u8]) -> Vec<u8> {
    [&[0][..], &symbol(name), value].concat()
}

fn text(text: &str) -> Vec<u8> {
    encoded(|out| out.string(text))
}

fn symbol(name: &str) -> Vec<u8> {
    encoded(|out| out.symbol(name))
}

fn list(items: &[&[u8]]) -> Vec<u8> {
    encoded(|out| {
        let mark = out.begin_list();
        items.iter().for_each(|item| out.raw(item));
        out.end(mark, items.len() as u32);
    })
}

fn map(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    encoded(|out| {
        let mark = out.begin_map();
        for (key, value) in entries {
            out.raw(key);
            out.raw(value);
        }
        out.end(mark, 2 * entries.len() as u32);
    })
}
