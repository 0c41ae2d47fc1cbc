//! The identifiers of JMS selectors: header fields and JMS-defined properties, each of which is a system property of the
//! service, or exists only in selectors. The language of the service writes the latter as `sys.JMSPriority` and so on, so
//! that a rule that was created from a selector can be read back.

use servicebus_codec::{Reader, Value as Encoded};

use super::ast::Property;
use super::operators::Number;
use super::properties::Properties;
use super::system::SystemProperty;
use super::value::Value;

/// A JMS property without a system property of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JmsProperty {
    Priority,
    DeliveryMode,
    Timestamp,
    DeliveryCount,
    GroupSequence,
}

/// The default priority (AMQP 1.0 §3.2.1).
const PRIORITY: i64 = 4;
/// Indexes of header and properties fields.
const DURABLE: usize = 0;
const PRIORITY_FIELD: usize = 1;
const CREATION_TIME: usize = 9;
const GROUP_SEQUENCE: usize = 11;

/// Returns the property that a selector names; `None` for an application property.
pub(crate) fn property(name: &str) -> Option<Property> {
    let system = match name {
        "JMSMessageID" => SystemProperty::MessageId,
        "JMSCorrelationID" => SystemProperty::CorrelationId,
        "JMSType" => SystemProperty::Label,
        "JMSReplyTo" => SystemProperty::ReplyTo,
        "JMSDestination" => SystemProperty::To,
        "JMSXGroupID" => SystemProperty::SessionId,
        _ => return JmsProperty::from_name(name).map(Property::Jms),
    };
    Some(Property::System(system))
}

impl JmsProperty {
    const ALL: [Self; 5] = [
        Self::Priority,
        Self::DeliveryMode,
        Self::Timestamp,
        Self::DeliveryCount,
        Self::GroupSequence,
    ];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|property| property.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Priority => "JMSPriority",
            Self::DeliveryMode => "JMSDeliveryMode",
            Self::Timestamp => "JMSTimestamp",
            Self::DeliveryCount => "JMSXDeliveryCount",
            Self::GroupSequence => "JMSXGroupSeq",
        }
    }

    /// Returns its value for a message; null where the sender did not set it.
    pub(crate) fn of(self, message: &Properties<'_>) -> Value<'static> {
        let (header, properties) = message.sections();
        match self {
            Self::Priority => {
                let own = field(header, PRIORITY_FIELD).and_then(|own| own.as_i64());
                Value::Signed(own.unwrap_or(PRIORITY))
            }
            Self::DeliveryMode => match field(header, DURABLE) {
                Some(Encoded::Bool(true)) => Value::text("PERSISTENT"),
                _ => Value::text("NON_PERSISTENT"),
            },
            Self::Timestamp => match field(properties, CREATION_TIME) {
                Some(Encoded::Timestamp(instant)) => Value::Signed(instant),
                _ => Value::Null,
            },
            Self::GroupSequence => {
                let own = field(properties, GROUP_SEQUENCE).and_then(|own| own.as_i64());
                own.map_or(Value::Null, Value::Signed)
            }
            Self::DeliveryCount => {
                let failed = message.system(SystemProperty::DeliveryCount);
                let failed = Number::of(failed).and_then(Number::whole);
                let this = failed.and_then(|failed| i64::try_from(failed + 1).ok());
                this.map_or(Value::Null, Value::Signed)
            }
        }
    }
}

fn field(section: &[u8], place: usize) -> Option<Encoded<'_>> {
    let mut reader = Reader::new(section);
    reader.descriptor().ok()?;
    let mut fields = reader.fields().ok()?;
    for _before in 0..place {
        fields.raw().ok()?;
    }
    fields.value().ok()
}
