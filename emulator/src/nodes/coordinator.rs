//! Requests to the transaction coordinator (AMQP 1.0 §4.5.1, §4.5.3; wire.md §8).

use servicebus_codec::{DecodeError, Descriptor, Reader};

use super::condition::{Condition, ServiceError};

const AMQP_VALUE: u64 = 0x77;

/// The body of a message to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoordinatorRequest {
    /// Declares a new transaction.
    Declare,
    /// Discharges a transaction.
    Discharge {
        /// Its id from the client.
        transaction: Vec<u8>,
        /// Whether it is rolled back.
        fail: bool,
    },
}

impl CoordinatorRequest {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, ServiceError> {
        let demand = Self::read(payload).map_err(|error| {
            let text = format!("The message to the coordinator cannot be decoded: {error}.");
            ServiceError::new(Condition::DecodeError, text)
        })?;
        demand.ok_or_else(|| {
            let text = "The coordinator takes messages whose body is an amqp-value with a declare or a discharge.";
            ServiceError::new(Condition::NotImplemented, text)
        })
    }

    fn read(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let section = reader.descriptor()?.section();
            let content = reader;
            reader.validate()?;
            if section == AMQP_VALUE {
                return Self::of_body(content);
            }
        }
        Ok(None)
    }

    fn of_body(mut body: Reader<'_>) -> Result<Option<Self>, DecodeError> {
        // The body was validated: without a descriptor it is another type.
        let Ok(descriptor) = body.descriptor() else {
            return Ok(None);
        };
        match descriptor {
            Descriptor::Code(0x31) | Descriptor::Symbol("amqp:declare:list") => {
                Ok(Some(Self::Declare))
            }
            Descriptor::Code(0x32) | Descriptor::Symbol("amqp:discharge:list") => {
                let mut fields = body.fields()?;
                let transaction = fields.binary()?.unwrap_or_default().to_vec();
                let fail = fields.bool()?.unwrap_or(false);
                Ok(Some(Self::Discharge { transaction, fail }))
            }
            Descriptor::Code(_) | Descriptor::Symbol(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declare_and_discharge_are_decoded_by_code_and_by_symbol() {
        let declare = [0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45];
        assert_eq!(
            CoordinatorRequest::parse(&declare),
            Ok(CoordinatorRequest::Declare)
        );
        let discharge = |fail: &[u8]| {
            let mut payload = vec![0x00, 0x53, 0x77, 0x00, 0x53, 0x32, 0xc0];
            payload.extend([5 + fail.len() as u8, 1 + !fail.is_empty() as u8]);
            payload.extend([0xa0, 2, 7, 8]);
            payload.extend(fail);
            CoordinatorRequest::parse(&payload)
        };
        for (encoded, fail) in [(&[][..], false), (&[0x41], true), (&[0x42], false)] {
            let transaction = vec![7, 8];
            let expected = CoordinatorRequest::Discharge { transaction, fail };
            assert_eq!(discharge(encoded), Ok(expected));
        }
        let mut named = vec![0x00, 0x53, 0x77, 0x00, 0xa3, 17];
        named.extend(b"amqp:declare:list\x45");
        assert_eq!(
            CoordinatorRequest::parse(&named),
            Ok(CoordinatorRequest::Declare)
        );
    }

    #[test]
    fn an_invalid_coordinator_request_is_refused() {
        let condition = |payload: &[u8]| CoordinatorRequest::parse(payload).unwrap_err().condition;
        assert_eq!(condition(&[]), Condition::NotImplemented);
        let text = [0x00, 0x53, 0x77, 0x00, 0x53, 0x30, 0x45];
        assert_eq!(condition(&text), Condition::NotImplemented);
        let data = [0x00, 0x53, 0x75, 0xa0, 1, 1];
        assert_eq!(condition(&data), Condition::NotImplemented);
        assert_eq!(condition(&[0x00, 0x53, 0x77, 0xc0]), Condition::DecodeError);
    }
}
