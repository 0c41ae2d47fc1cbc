//! Finds the sections of an encoded message, and brings them into the standard form.
//!
//! It also converts `decimal128` to the layout of deliveries. Microsoft's AMQP library, and with it the service, writes the
//! upper half of the exponent two bits lower than IEEE 754 (observed 8). Python's client writes the one layout and reads
//! only the other; .NET's reads both.

use std::ops::Range;

use bytes::Bytes;
use servicebus_codec::{DecodeError, ElementBudget, Reader};

use super::{MessageError, annotations, limits};

pub(crate) const HEADER: u64 = 0x70;
pub(crate) const DELIVERY_ANNOTATIONS: u64 = 0x71;
pub(crate) const MESSAGE_ANNOTATIONS: u64 = 0x72;
pub(crate) const PROPERTIES: u64 = 0x73;
pub(crate) const APPLICATION_PROPERTIES: u64 = 0x74;
pub(crate) const DATA: u64 = 0x75;
pub(crate) const SEQUENCE: u64 = 0x76;
pub(crate) const VALUE: u64 = 0x77;
pub(crate) const FOOTER: u64 = 0x78;

/// Ranks of the three kinds of body, of which a message has one.
const BODY: std::ops::RangeInclusive<usize> = 6..=8;
/// Ranks of the sections that are maps of annotations.
const ANNOTATED: [usize; 3] = [2, 3, 9];
const APPLICATION_RANK: usize = 5;
const VALUE_RANK: usize = 8;

/// The end of each section; it begins at the end of the previous one, and is empty if it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sections {
    header: u32,
    delivery_annotations: u32,
    message_annotations: u32,
    properties: u32,
    application: u32,
}

/// The result of scanning a message.
pub(crate) struct Scanned {
    /// The ends of the sections, if it is in the standard form.
    pub(crate) sections: Sections,
    /// Whether it must be converted to the [standard form](standard_form).
    pub(crate) is_other_form: bool,
}

impl Sections {
    /// Scans the sections once, in any order: each at most once, except the parts of a body, of which there is one kind
    /// (AMQP 1.0 §3.2, observed 1).
    pub(crate) fn scan(payload: &[u8]) -> Result<Scanned, MessageError> {
        if u32::try_from(payload.len()).is_err() {
            return Err(MessageError::TooLarge(payload.len()));
        }
        let mut reader = Reader::new(payload);
        let mut ends = [0; 5];
        let (mut seen, mut last) = ([false; 10], 0);
        let mut is_other_form = false;
        let mut budget = ElementBudget::default();
        while !reader.is_empty() {
            let begin = reader.position();
            let code = reader.descriptor()?.section();
            let rank = rank(code).ok_or(MessageError::Section(code))?;
            is_other_form |= payload[begin..reader.position()] != descriptor(code);
            let may_repeat = matches!(code, DATA | SEQUENCE);
            let is_second_body =
                BODY.contains(&rank) && BODY.into_iter().any(|other| other != rank && seen[other]);
            if is_second_body || seen[rank] && !may_repeat {
                return Err(MessageError::Section(code));
            }
            // Validates nested values too, because other clients will decode what is accepted here.
            let content = reader;
            reader.validate_within(&mut budget)?;
            let is_other = check_shape(code, content)?;
            is_other_form |= is_other || rank < last;
            for end in ends.iter_mut().skip(rank - 1) {
                *end = reader.position() as u32;
            }
            seen[rank] = true;
            last = last.max(rank);
        }
        Ok(Scanned {
            sections: Self::from_ends(ends),
            is_other_form,
        })
    }

    /// Returns the ends in the order of the sections.
    pub(crate) fn ends(&self) -> [u32; 5] {
        [
            self.header,
            self.delivery_annotations,
            self.message_annotations,
            self.properties,
            self.application,
        ]
    }

    /// Creates sections from their ends; `None` if one would end before it begins.
    pub(crate) fn of_ends(ends: [u32; 5]) -> Option<Self> {
        ends.is_sorted().then_some(Self::from_ends(ends))
    }

    fn from_ends(ends: [u32; 5]) -> Self {
        let [
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application,
        ] = ends;
        Self {
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application,
        }
    }

    pub(crate) fn header<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[..self.header as usize]
    }

    pub(crate) fn delivery_annotations<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.header as usize..self.delivery_annotations as usize]
    }

    pub(crate) fn message_annotations<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.delivery_annotations as usize..self.message_annotations as usize]
    }

    pub(crate) fn properties<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.message_annotations as usize..self.properties as usize]
    }

    pub(crate) fn application<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.properties as usize..self.application as usize]
    }

    /// Returns where the message annotations begin.
    pub(crate) fn annotations_begin(&self) -> usize {
        self.delivery_annotations as usize
    }

    pub(crate) fn message_annotations_end(&self) -> usize {
        self.message_annotations as usize
    }

    /// Returns where the application properties begin and end.
    pub(crate) fn application_range(&self) -> (usize, usize) {
        (self.properties as usize, self.application as usize)
    }

    /// Returns the payload and its sections with another properties section.
    pub(crate) fn replace_properties(&self, payload: &[u8], properties: &[u8]) -> (Bytes, Self) {
        let before = &payload[..self.message_annotations as usize];
        let after = &payload[self.properties as usize..];
        let replaced = [before, properties, after].concat();
        let end = self.message_annotations + properties.len() as u32;
        let sections = Self {
            properties: end,
            application: end + (self.application - self.properties),
            ..*self
        };
        (replaced.into(), sections)
    }
}

/// A message that was scanned, with its sections in the order of AMQP (observed 1) under descriptors of three bytes, the
/// only ones that Python's client reads (wire.md §0.3), and with symbols as keys of its annotations and footer, as AMQP has
/// them and clients expect them (observed 58); names that no symbol can have stay. A decimal in a property, or as the body,
/// is written as clients read it (observed 8).
pub(crate) fn standard_form(payload: &[u8]) -> Result<Vec<u8>, MessageError> {
    let mut reader = Reader::new(payload);
    let mut found = Vec::new();
    while !reader.is_empty() {
        let code = reader.descriptor()?.section();
        let rank = rank(code).ok_or(MessageError::Section(code))?;
        found.push((rank, code, reader.skip()?));
    }
    found.sort_by_key(|(rank, ..)| *rank);
    let mut arranged = Vec::with_capacity(payload.len());
    for (rank, code, content) in found {
        let begin = arranged.len();
        arranged.extend_from_slice(&descriptor(code));
        let value = arranged.len();
        arranged.extend_from_slice(content);
        match rank {
            rank if ANNOTATED.contains(&rank) => {
                annotations::name_by_symbols(&mut arranged[begin..])?;
            }
            APPLICATION_RANK => edit_entries(&mut arranged[begin..], |_, value| {
                rewrite(value);
                Ok(())
            })?,
            VALUE_RANK => rewrite(&mut arranged[value..]),
            _ => {}
        }
    }
    Ok(arranged)
}

/// The shortest descriptor of a section.
fn descriptor(code: u64) -> [u8; 3] {
    [0, 0x53, code as u8]
}

/// Changes keys and values of a map section in place.
pub(crate) fn edit_entries(
    section: &mut [u8],
    edit: impl Fn(&mut [u8], &mut [u8]) -> Result<(), MessageError>,
) -> Result<(), MessageError> {
    let map = content(section)?.map()?;
    let (pairs, mut at) = (map.count / 2, section.len() - map.items.rest().len());
    for _ in 0..pairs {
        let mut items = Reader::new(&section[at..]);
        let key = items.skip()?.len();
        items.skip()?;
        let next = at + items.position();
        let (key, value) = section[at..next].split_at_mut(key);
        edit(key, value)?;
        at = next;
    }
    Ok(())
}

/// Skips the descriptor of a section.
pub(crate) fn content(section: &[u8]) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(section);
    reader.descriptor()?;
    Ok(reader)
}

/// Checks that the sections that deliveries decode have their AMQP types. Visits the entries of maps, so that copying them
/// cannot fail later. Returns whether something in it differs in the [standard form](standard_form).
fn check_shape(code: u64, mut content: Reader<'_>) -> Result<bool, MessageError> {
    match code {
        HEADER | PROPERTIES | SEQUENCE => drop(content.list()?),
        DELIVERY_ANNOTATIONS => return limits::check_annotations(content.map()?, false),
        MESSAGE_ANNOTATIONS => return limits::check_annotations(content.map()?, true),
        APPLICATION_PROPERTIES => return limits::check_application(content.map()?),
        VALUE => return Ok(is_ieee(content.rest())),
        FOOTER => return annotations::has_text_keys(content.map()?),
        DATA => drop(content.binary()?),
        _ => {}
    }
    Ok(false)
}

/// Returns the rank of a section in a message.
fn rank(code: u64) -> Option<usize> {
    Some(match code {
        HEADER => 1,
        DELIVERY_ANNOTATIONS => 2,
        MESSAGE_ANNOTATIONS => 3,
        PROPERTIES => 4,
        APPLICATION_PROPERTIES => 5,
        DATA => 6,
        SEQUENCE => 7,
        VALUE => 8,
        FOOTER => 9,
        _ => return None,
    })
}

/// Returns the ranges of the messages of a batch (message format 0x80013700: each is encoded in a data section of its own).
/// The envelope's own sections repeat the first message's and are not needed (wire.md §3.3).
pub(crate) fn split_batch(payload: &Bytes) -> Result<Vec<Range<usize>>, MessageError> {
    Sections::scan(payload)?;
    let mut reader = Reader::new(payload);
    let mut messages = Vec::new();
    while !reader.is_empty() {
        match reader.descriptor()?.section() {
            DATA => {
                let length = reader.binary()?.len();
                let end = reader.position();
                messages.push(end - length..end);
            }
            // Accepting a body without messages would lose the sender's data.
            code @ (SEQUENCE | VALUE) => {
                return Err(MessageError::Section(code));
            }
            _ => reader.validate()?,
        }
    }
    Ok(messages)
}

/// The constructor of `decimal128`.
const DECIMAL128: u8 = 0x94;
/// The upper seven bits of the exponents that Microsoft's layout can represent, with their bias of 6,176: in IEEE 754 after
/// the sign, and in that layout.
pub(crate) const EXPONENTS: (u8, u8) = (0x30, 0x0c);

/// Returns whether an encoded value is a decimal that must be [rewritten](rewrite). All others stay bit for bit.
pub(crate) fn is_ieee(value: &[u8]) -> bool {
    matches!(value, [DECIMAL128, first, ..] if first & 0x7f == EXPONENTS.0)
}

/// Rewrites such a decimal as Microsoft's library writes it.
pub(crate) fn rewrite(value: &mut [u8]) {
    if is_ieee(value) {
        value[1] = value[1] & 0x80 | EXPONENTS.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(first: u8, second: u8) -> Vec<u8> {
        let mut value = vec![DECIMAL128, first, second];
        value.resize(17, 7);
        value
    }

    #[test]
    fn rewriting_a_decimal_moves_only_its_exponent() {
        // 7…7 × 10⁻² and −7…7 × 10⁰, as IEEE 754 has them.
        for (sent, delivered) in [((0x30, 0x3c), (0x0c, 0x3c)), ((0xb0, 0x41), (0x8c, 0x41))] {
            let mut value = encoded(sent.0, sent.1);
            assert!(is_ieee(&value));
            rewrite(&mut value);
            assert_eq!(value, encoded(delivered.0, delivered.1));
            assert!(!is_ieee(&value), "once");
        }
    }

    #[test]
    fn decimals_outside_the_other_layout_are_not_rewritten() {
        for (first, second) in [
            (0x0c, 0x3c),
            (0x2f, 0x00),
            (0x31, 0x00),
            (0x78, 0),
            (0x60, 0),
        ] {
            let mut value = encoded(first, second);
            assert!(!is_ieee(&value));
            rewrite(&mut value);
            assert_eq!(value, encoded(first, second));
        }
    }
}
