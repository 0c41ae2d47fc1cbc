//! Delivery states: outcomes, and the transactional state that may wrap them (AMQP 1.0 §3.4, §4.5.8).

use servicebus_codec::{DecodeError, Descriptor, Reader, Writer};

use super::code;
use crate::error::Error;
use crate::unsettled::{DeliveryState, Outcome};

/// A peer's delivery state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct State {
    /// The outcome; `None` if the state is not terminal or not known.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) transaction: Option<Box<[u8]>>,
}

/// The state of nearly every disposition.
pub(crate) static ACCEPTED: State = State {
    outcome: Some(Outcome::Accepted),
    transaction: None,
};

/// The state of a disposition without one.
pub(crate) static NOTHING: State = State {
    outcome: None,
    transaction: None,
};

/// Returns whether an encoded delivery state is [`ACCEPTED`] in the form of the SDKs.
#[inline]
pub(crate) fn is_accepted(encoded: &[u8]) -> bool {
    matches!(encoded, [0x00, 0x53, code::ACCEPTED, ..])
}

/// Reads an encoded delivery state. States that are not outcomes are not errors.
pub(crate) fn read(encoded: &[u8]) -> Result<State, DecodeError> {
    let mut reader = Reader::new(encoded);
    if described(&mut reader)? != Some(code::TRANSACTIONAL) {
        return Ok(State {
            outcome: outcome(encoded)?,
            transaction: None,
        });
    }
    let mut fields = reader.fields()?;
    // None is an id that no transaction has: what names none is not done outside of all.
    let transaction = Some(fields.binary()?.unwrap_or_default().into());
    let outcome = match fields.raw()? {
        Some(encoded) => outcome(encoded)?,
        None => None,
    };
    Ok(State {
        outcome,
        transaction,
    })
}

fn outcome(encoded: &[u8]) -> Result<Option<Outcome>, DecodeError> {
    let mut reader = Reader::new(encoded);
    Ok(match described(&mut reader)? {
        Some(code::ACCEPTED) => Some(Outcome::Accepted),
        Some(code::RELEASED) => Some(Outcome::Released),
        Some(code::REJECTED) => {
            let error = reader.fields()?.raw()?;
            Some(Outcome::Rejected {
                error: error.map(read_error).transpose()?.map(Box::new),
            })
        }
        Some(code::MODIFIED) => {
            let mut fields = reader.fields()?;
            Some(Outcome::Modified {
                delivery_failed: fields.bool()?.unwrap_or(false),
                undeliverable_here: fields.bool()?.unwrap_or(false),
                annotations: fields.raw()?.map(map).transpose()?,
            })
        }
        _ => None,
    })
}

fn described(reader: &mut Reader<'_>) -> Result<Option<u8>, DecodeError> {
    let descriptor = reader.descriptor()?;
    Ok(match descriptor {
        Descriptor::Code(number) => u8::try_from(number).ok(),
        Descriptor::Symbol("amqp:received:list") => Some(code::RECEIVED),
        Descriptor::Symbol("amqp:accepted:list") => Some(code::ACCEPTED),
        Descriptor::Symbol("amqp:rejected:list") => Some(code::REJECTED),
        Descriptor::Symbol("amqp:released:list") => Some(code::RELEASED),
        Descriptor::Symbol("amqp:modified:list") => Some(code::MODIFIED),
        Descriptor::Symbol("amqp:transactional-state:list") => Some(code::TRANSACTIONAL),
        Descriptor::Symbol(_) => None,
    })
}

pub(crate) fn read_error(encoded: &[u8]) -> Result<Error, DecodeError> {
    let mut reader = Reader::new(encoded);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let condition = fields.text()?.unwrap_or_default().to_owned();
    let description = fields.text()?.unwrap_or_default().to_owned();
    let info = fields.raw()?.map(map).transpose()?;
    Ok(Error {
        condition: condition.into(),
        description,
        info,
    })
}

/// Copies an encoded map after validating it completely.
fn map(encoded: &[u8]) -> Result<Box<[u8]>, DecodeError> {
    Reader::new(encoded).map()?;
    Reader::new(encoded).validate()?;
    Ok(encoded.into())
}

pub(crate) fn write_state(out: &mut Vec<u8>, state: &DeliveryState) {
    match state {
        DeliveryState::Outcome(outcome) => write(out, outcome),
        DeliveryState::Transactional {
            transaction,
            outcome,
        } => {
            let mut writer = Writer::new(out);
            writer.descriptor(code::TRANSACTIONAL);
            let list = writer.begin_list();
            writer.binary(transaction);
            write(out, outcome);
            Writer::new(out).end(list, 2);
        }
        DeliveryState::Declared(transaction) => {
            let mut writer = Writer::new(out);
            writer.descriptor(code::DECLARED);
            let list = writer.begin_list();
            writer.binary(transaction);
            writer.end(list, 1);
        }
    }
}

/// Appends an outcome. Accepted and released have no fields: a padding null breaks Go (spec/wire.md §10a.2).
pub(crate) fn write(out: &mut Vec<u8>, outcome: &Outcome) {
    let mut writer = Writer::new(out);
    match outcome {
        Outcome::Accepted => writer.raw(&[0x00, 0x53, code::ACCEPTED, 0x45]),
        Outcome::Released => writer.raw(&[0x00, 0x53, code::RELEASED, 0x45]),
        Outcome::Rejected { error } => {
            writer.descriptor(code::REJECTED);
            let list = writer.begin_list();
            write_error(&mut writer, error.as_deref());
            writer.end(list, 1);
        }
        Outcome::Modified {
            delivery_failed,
            undeliverable_here,
            annotations,
        } => {
            writer.descriptor(code::MODIFIED);
            let list = writer.begin_list();
            writer.bool(*delivery_failed);
            writer.bool(*undeliverable_here);
            raw_or_null(&mut writer, annotations.as_deref());
            writer.end(list, 3);
        }
    }
}

/// Appends an error with all three fields, or null.
pub(crate) fn write_error(writer: &mut Writer<'_>, error: Option<&Error>) {
    let Some(error) = error else {
        writer.null();
        return;
    };
    writer.descriptor(code::ERROR);
    let list = writer.begin_list();
    writer.symbol(&error.condition);
    writer.string(&error.description);
    raw_or_null(writer, error.info.as_deref());
    writer.end(list, 3);
}

pub(crate) fn raw_or_null(writer: &mut Writer<'_>, encoded: Option<&[u8]>) {
    match encoded {
        Some(encoded) => writer.raw(encoded),
        None => writer.null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(outcome: &Outcome) -> Option<Outcome> {
        let mut out = Vec::new();
        write(&mut out, outcome);
        let mut reader = Reader::new(&out);
        reader.validate().unwrap();
        assert!(reader.is_empty());
        read(&out).unwrap().outcome
    }

    #[test]
    fn every_written_outcome_decodes_to_itself() {
        let map: Box<[u8]> = [0xc1, 6, 2, 0xa3, 1, b'k', 0x54, 1].into();
        let error = Error {
            info: Some(map.clone()),
            ..Error::new("com.microsoft:dead-letter", "why")
        };
        for outcome in [
            Outcome::Accepted,
            Outcome::Released,
            Outcome::Rejected { error: None },
            Outcome::from(error),
            Outcome::Modified {
                delivery_failed: true,
                undeliverable_here: false,
                annotations: Some(map),
            },
        ] {
            assert_eq!(round_trip(&outcome), Some(outcome));
        }
    }

    #[test]
    fn a_transactional_state_carries_an_outcome() {
        let state = read(&[
            0x00, 0x53, 0x34, 0xc0, 9, 2, 0xa0, 2, 7, 8, 0x00, 0x53, 0x24, 0x45,
        ]);
        let state = state.unwrap();
        assert_eq!(state.outcome, Some(Outcome::Accepted));
        assert_eq!(state.transaction.as_deref(), Some(&[7, 8][..]));
    }

    #[test]
    fn a_transactional_state_without_an_id_has_an_empty_one() {
        let state = read(&[0x00, 0x53, 0x34, 0xc0, 6, 2, 0x40, 0x00, 0x53, 0x24, 0x45]);
        assert_eq!(state.unwrap().transaction.as_deref(), Some(&[][..]));
    }

    #[test]
    fn transactional_states_decode_to_their_id_and_outcome() {
        let rejected = Outcome::from(Error::new("a:b", "why"));
        for outcome in [Outcome::Accepted, rejected] {
            let transaction: Box<[u8]> = [1, 2, 3].into();
            let mut out = Vec::new();
            let state = DeliveryState::Transactional {
                transaction: transaction.clone().into(),
                outcome: outcome.clone(),
            };
            write_state(&mut out, &state);
            let mut reader = Reader::new(&out);
            reader.validate().unwrap();
            assert!(reader.is_empty());
            let expected = State {
                outcome: Some(outcome),
                transaction: Some(transaction),
            };
            assert_eq!(read(&out).unwrap(), expected);
        }
        let mut out = Vec::new();
        write_state(&mut out, &DeliveryState::Declared(vec![7].into()));
        let mut reader = Reader::new(&out);
        assert_eq!(reader.descriptor().unwrap(), Descriptor::Code(0x33));
        let id = reader.fields().unwrap().binary().unwrap();
        assert_eq!(id, Some(&[7][..]));
    }

    #[test]
    fn received_and_unknown_states_have_no_outcome() {
        let received = [0x00, 0x53, 0x23, 0xc0, 3, 2, 0x43, 0x44];
        assert_eq!(read(&received).unwrap(), State::default());
        let unknown = [0x00, 0xa3, 1, b'x', 0x45];
        assert_eq!(read(&unknown).unwrap(), State::default());
        assert!(read(&[0x40]).is_err());
    }

    #[test]
    fn annotations_that_are_not_a_map_are_refused() {
        assert!(read(&[0x00, 0x53, 0x27, 0xc0, 5, 3, 0x42, 0x42, 0x54, 1]).is_err());
    }
}
