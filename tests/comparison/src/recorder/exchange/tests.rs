//! Frames as both sides send them, and what the trace says of them.

use bytes::Bytes;
use fe2o3_amqp::types::primitives::Value;
use servicebus_test_support::frame::encoded_list;
use servicebus_test_support::message::{PROPERTIES, section};
use servicebus_test_support::value::{composite, list, symbol};

use super::*;

const RECEIVER: Value = Value::Bool(true);
const SENDER: Value = Value::Bool(false);

/// What both sides number as they like.
#[derive(Clone, Copy)]
struct Ids {
    client_channel: u16,
    service_channel: u16,
    client_handle: u32,
    service_handle: u32,
    first_delivery: u32,
}

const ONE: Ids = Ids {
    client_channel: 0,
    service_channel: 0,
    client_handle: 0,
    service_handle: 0,
    first_delivery: 0,
};
const OTHER: Ids = Ids {
    client_channel: 7,
    service_channel: 3,
    client_handle: 9,
    service_handle: 2,
    first_delivery: 400,
};

/// A connection whose frames a test says.
struct TestExchange {
    exchange: Exchange,
    numbers: Ids,
}

impl TestExchange {
    fn new(numbers: Ids) -> Self {
        let mut exchange = Self {
            exchange: Exchange::new(Arc::default()),
            numbers,
        };
        exchange.client(0x11, vec![Value::Null]);
        exchange.service(0x11, vec![Value::Ushort(numbers.client_channel)]);
        exchange
    }

    fn client(&mut self, code: u8, fields: Vec<Value>) {
        self.frame(Side::Client, self.numbers.client_channel, code, fields, &[]);
    }

    fn service(&mut self, code: u8, fields: Vec<Value>) {
        self.frame(
            Side::Service,
            self.numbers.service_channel,
            code,
            fields,
            &[],
        );
    }

    fn frame(&mut self, side: Side, channel: u16, code: u8, fields: Vec<Value>, payload: &[u8]) {
        let mut body = encoded_list(code, &fields);
        body.extend_from_slice(payload);
        let frame = Frame {
            kind: 0,
            channel,
            body: Bytes::from(body),
        };
        self.exchange.frame(side, &frame).unwrap();
    }

    /// A link of the client, with the service's answer.
    fn attach(&mut self, role: Value, address: &str) {
        let numbers = self.numbers;
        let opposite = if role == RECEIVER { SENDER } else { RECEIVER };
        self.client(0x12, attach(numbers.client_handle, role, address));
        self.service(0x12, attach(numbers.service_handle, opposite, address));
    }

    fn transfer(&mut self, side: Side, delivery: u32, payload: &[u8]) {
        let numbers = self.numbers;
        let (channel, handle) = match side {
            Side::Client => (numbers.client_channel, numbers.client_handle),
            Side::Service => (numbers.service_channel, numbers.service_handle),
        };
        let id = Value::Uint(numbers.first_delivery + delivery);
        let format = Value::Uint(0);
        let fields = vec![Value::Uint(handle), id, Value::Null, format];
        self.frame(side, channel, 0x14, fields, payload);
    }

    fn disposition(&mut self, side: Side, role: Value, range: [u32; 2], state: Value) {
        let [first, last] = range.map(|id| Value::Uint(self.numbers.first_delivery + id));
        let fields = vec![role, first, last, Value::Bool(true), state];
        match side {
            Side::Client => self.client(0x15, fields),
            Side::Service => self.service(0x15, fields),
        }
    }

    fn render(&self) -> Vec<(String, Vec<String>)> {
        self.exchange.render().collect()
    }
}

fn attach(handle: u32, role: Value, address: &str) -> Vec<Value> {
    let terminus = |code| composite(code, vec![Value::from(address)]);
    let mut fields = vec![Value::from("link"), Value::Uint(handle), role];
    fields.extend([
        Value::Ubyte(2),
        Value::Ubyte(0),
        terminus(0x28),
        terminus(0x29),
    ]);
    fields
}

fn accepted() -> Value {
    composite(0x24, Vec::new())
}

fn error(description: &str) -> Value {
    let condition = symbol("amqp:not-found");
    composite(0x1d, vec![condition, Value::from(description)])
}

/// Two messages are sent; their outcomes come in one frame or in two.
fn sends(numbers: Ids, ranges: &[[u32; 2]]) -> Vec<(String, Vec<String>)> {
    let mut exchange = TestExchange::new(numbers);
    exchange.attach(SENDER, "orders");
    exchange.transfer(Side::Client, 0, b"\x00\x53\x75\xa0\x01a");
    exchange.transfer(Side::Client, 1, b"\x00\x53\x75\xa0\x01b");
    for range in ranges {
        exchange.disposition(Side::Service, RECEIVER, *range, accepted());
    }
    exchange.render()
}

#[test]
fn delivery_ids_and_ranges_are_not_rendered() {
    let rendered = sends(ONE, &[[0, 1]]);
    assert_eq!(rendered, sends(OTHER, &[[1, 1], [0, 0]]));
    let (title, operations) = &rendered[1];
    assert_eq!(title, "sender to orders");
    assert_eq!(
        operations[0],
        "attached: snd-settle-mode as asked, rcv-settle-mode as asked, source (address as asked), target (address as asked)"
    );
    assert_eq!(operations[1..], ["sent; accepted", "sent; accepted"]);
}

#[test]
fn a_repeated_outcome_is_rendered_once() {
    let mut exchange = TestExchange::new(ONE);
    exchange.attach(SENDER, "orders");
    exchange.transfer(Side::Client, 0, b"\x00\x53\x75\xa0\x01a");
    for _ in 0..2 {
        let fields = vec![
            RECEIVER,
            Value::Uint(0),
            Value::Null,
            Value::Bool(false),
            accepted(),
        ];
        exchange.frame(Side::Service, ONE.service_channel, 0x15, fields, &[]);
    }
    exchange.disposition(Side::Service, RECEIVER, [0, 0], accepted());
    assert_eq!(exchange.render()[1].1[1..], ["sent; accepted"]);
}

#[test]
fn a_delivery_is_rendered_with_its_settlement() {
    let settled = |answer: Option<Value>| {
        let mut exchange = TestExchange::new(OTHER);
        exchange.attach(RECEIVER, "orders");
        exchange.transfer(Side::Service, 0, b"\x00\x53\x75\xa0\x02hi");
        exchange.disposition(Side::Client, RECEIVER, [0, 0], accepted());
        if let Some(answer) = answer {
            exchange.disposition(Side::Service, SENDER, [0, 0], answer);
        }
        exchange.render()[1].1[1].clone()
    };
    let delivered = "delivered with a tag of 0 bytes, format 0: data \"hi\"";
    assert_eq!(settled(None), delivered);
    assert_eq!(settled(Some(accepted())), delivered);
}

#[test]
fn a_refused_settlement_is_rendered_with_its_reason() {
    let mut exchange = TestExchange::new(ONE);
    exchange.attach(RECEIVER, "orders");
    exchange.transfer(Side::Service, 0, b"\x00\x53\x75\xa0\x02hi");
    let (channel, wanted) = (ONE.client_channel, accepted());
    let unsettled = vec![RECEIVER, Value::Uint(0), Value::Null, SENDER, wanted];
    exchange.frame(Side::Client, channel, 0x15, unsettled, &[]);
    let lost = composite(0x25, vec![error("too late")]);
    exchange.disposition(Side::Service, SENDER, [0, 0], lost);
    let rendered = exchange.render()[1].1[1].clone();
    let expected = "; the client wanted accepted; rejected with amqp:not-found: \"too late\"";
    assert!(rendered.ends_with(expected), "{rendered}");
}

#[test]
fn a_refused_link_is_rendered_with_its_reason() {
    let mut exchange = TestExchange::new(OTHER);
    exchange.client(0x12, attach(9, SENDER, "missing"));
    let mut refused = attach(2, RECEIVER, "missing");
    refused[6] = Value::Null;
    exchange.service(0x12, refused);
    exchange.service(
        0x16,
        vec![Value::Uint(2), Value::Bool(true), error("no such queue")],
    );
    let (_, operations) = &exchange.render()[1];
    assert!(operations[0].ends_with("target null"), "{}", operations[0]);
    assert_eq!(
        operations[1],
        "detached with amqp:not-found: \"no such queue\""
    );
}

#[test]
fn a_response_is_rendered_with_its_request() {
    let message = |id: &str, property: usize, operation: Option<&str>| {
        let mut fields = vec![Value::Null; property];
        fields.push(Value::from(id));
        let mut bytes = section(PROPERTIES, &list(fields));
        if let Some(operation) = operation {
            let length = operation.len() as u8;
            bytes.extend([0x00, 0x53, 0x74, 0xc1, length + 14, 2, 0xa1, 9]);
            bytes.extend(b"operation\xa1");
            bytes.push(length);
            bytes.extend(operation.bytes());
        }
        let text = if property == 0 { "asked" } else { id };
        bytes.extend([0x00, 0x53, 0x77, 0xa1, text.len() as u8]);
        bytes.extend(text.bytes());
        bytes
    };
    let mut exchange = TestExchange::new(ONE);
    exchange.attach(SENDER, "orders/$management");
    exchange.transfer(Side::Client, 0, &message("1", 0, Some("peek")));
    exchange.transfer(Side::Client, 1, &message("2", 0, Some("renew")));
    exchange.numbers.client_handle = 1;
    exchange.numbers.service_handle = 1;
    exchange.attach(RECEIVER, "orders/$management");
    exchange.transfer(Side::Service, 2, &message("2", 5, None));
    exchange.transfer(Side::Service, 3, &message("1", 5, None));
    exchange.transfer(Side::Service, 4, &message("3", 5, None));
    let rendered = exchange.render();
    assert_eq!(
        rendered[1].1[1..],
        ["request peek; body \"1\"", "request renew; body \"2\""]
    );
    assert_eq!(rendered[2].1[1..], ["an answer to no request: body \"3\""]);
}

#[test]
fn operations_beyond_the_limit_are_left_out() {
    let mut exchange = TestExchange::new(ONE);
    exchange.attach(SENDER, "orders");
    for delivery in 0..5_000 {
        exchange.transfer(Side::Client, delivery, b"\x00\x53\x75\xa0\x01a");
    }
    let operations = exchange.render()[1].1.len();
    assert!((900..=1_000).contains(&operations), "{operations}");
    assert!(exchange.exchange.budget.exceeded().is_some());
}
