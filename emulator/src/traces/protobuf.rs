//! Encodes `ExportTraceServiceRequest` of OpenTelemetry's protocol in protobuf: the few messages and fields that spans of
//! the emulator have (opentelemetry-proto, `collector/trace/v1` and `trace/v1`).

use super::export::{Attribute, Span};

/// The instrumentation scope.
const SCOPE: &str = "servicebus-emulator";
/// `SPAN_KIND_INTERNAL`: events within the service, beside the spans of its clients.
const INTERNAL: u64 = 1;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

/// The wire types of fields.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// One message while it is encoded.
#[derive(Default)]
struct Message(Vec<u8>);

/// Returns the body of a request that exports spans of a resource.
pub(super) fn request(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |own| {
            for (key, value) in resource {
                own.text_attribute(1, key, value);
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, SCOPE.as_bytes());
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |message| message.span(span));
            }
        });
    });
    request.0
}

impl Message {
    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.trace.to_be_bytes());
        self.bytes(2, &span.id.to_be_bytes());
        if span.parent != 0 {
            self.bytes(4, &span.parent.to_be_bytes());
        }
        self.bytes(5, span.name.as_bytes());
        self.number(6, INTERNAL);
        self.instant(7, span.begun);
        self.instant(8, span.ended);
        for (key, value) in &span.attributes {
            match value {
                Attribute::Text(text) => self.text_attribute(9, key, text),
                Attribute::Number(number) => self.message(9, |attribute| {
                    attribute.bytes(1, key.as_bytes());
                    attribute.message(2, |value| value.number(3, *number as u64));
                }),
            }
        }
        if let Some(error) = &span.error {
            self.message(15, |status| {
                status.bytes(2, error.as_bytes());
                status.number(3, ERROR);
            });
        }
    }

    fn text_attribute(&mut self, field: u64, key: &str, value: &str) {
        self.message(field, |attribute| {
            attribute.bytes(1, key.as_bytes());
            attribute.message(2, |any| any.bytes(1, value.as_bytes()));
        });
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(number);
    }

    fn instant(&mut self, field: u64, nanoseconds: u64) {
        self.varint(field << 3 | FIXED64);
        self.0.extend_from_slice(&nanoseconds.to_le_bytes());
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message as _;

    use super::*;

    #[test]
    fn encoded_spans_decode_in_the_types_of_opentelemetry() {
        let long = "ä".repeat(300);
        let spans = [-1, i64::MAX].map(|number| Span {
            trace: 7,
            id: 8,
            parent: u64::from(number > 0),
            name: long.clone(),
            begun: 1,
            ended: u64::MAX,
            error: (number > 0).then(|| "TTLExpiredException".to_owned()),
            attributes: vec![
                ("number", Attribute::Number(number)),
                ("text", Attribute::Text(String::new())),
            ],
        });
        let resource = [("service.name".to_owned(), "orders".to_owned())];
        let body = request(&resource, &spans);
        let read = ExportTraceServiceRequest::decode(body.as_slice()).expect("it is protobuf");
        let [resource_spans] = &read.resource_spans[..] else {
            panic!("{read:?}");
        };
        let own = resource_spans.resource.as_ref().expect("it is written");
        assert_eq!(own.attributes[0].key, "service.name");
        let scope_spans = &resource_spans.scope_spans[0];
        assert_eq!(scope_spans.scope.as_ref().expect("it is").name, SCOPE);
        let [root, child] = &scope_spans.spans[..] else {
            panic!("{scope_spans:?}");
        };
        assert_eq!(
            (root.parent_span_id.len(), root.status.is_none()),
            (0, true)
        );
        assert_eq!(child.parent_span_id, 1_u64.to_be_bytes());
        assert_eq!(child.trace_id, 7_u128.to_be_bytes());
        assert_eq!((child.name.as_str(), child.kind), (long.as_str(), 1));
        let times = (child.start_time_unix_nano, child.end_time_unix_nano);
        assert_eq!(times, (1, u64::MAX));
        let status = child.status.as_ref().expect("it is written");
        assert_eq!(
            (status.code, status.message.as_str()),
            (2, "TTLExpiredException")
        );
        let value = |span: usize, index: usize| {
            let any = scope_spans.spans[span].attributes[index].value.clone();
            any.and_then(|any| any.value)
        };
        assert_eq!(value(0, 0), Some(Value::IntValue(-1)));
        assert_eq!(value(1, 0), Some(Value::IntValue(i64::MAX)));
        assert_eq!(value(1, 1), Some(Value::StringValue(String::new())));
    }
}
