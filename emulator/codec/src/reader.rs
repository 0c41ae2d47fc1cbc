//! Reads encoded values without copying them.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

mod fields;
mod validate;

use uuid::Uuid;

use crate::code::{self, Width};
use crate::{DecodeError, Value};

pub use fields::Array;
pub use fields::Fields;
pub use validate::ElementBudget;

/// Maximum nesting of lists, maps, arrays and descriptors in a value.
pub const MAX_DEPTH: usize = 32;

/// Maximum number of elements without width (null, true, false, zero, the empty list) in arrays: as many as a list in 256
/// KiB would have. Nine bytes can announce 2³² of them, for which a decoder would have to allocate.
pub const MAX_WIDTHLESS: u32 = 256 * 1024;

/// Maximum number of elements in the lists, maps and arrays of values that are decoded together, such as a message's: twice
/// as many as fit into the largest message of most namespaces, so that visiting them takes a bounded time. Array elements of
/// one fixed width are not visited and do not count.
pub const MAX_ELEMENTS: u32 = 2 * 1024 * 1024;

/// A cursor over encoded AMQP values.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Length of the input.
    length: usize,
}

/// The descriptor of a described type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// Numeric, as every SDK writes it.
    Code(u64),
    /// Symbolic.
    Symbol(&'a str),
}

/// The names of the sections of a message, in the order of their codes (AMQP 1.0 §3.2).
const SECTIONS: [&str; 9] = [
    "amqp:header:list",
    "amqp:delivery-annotations:map",
    "amqp:message-annotations:map",
    "amqp:properties:list",
    "amqp:application-properties:map",
    "amqp:data:binary",
    "amqp:amqp-sequence:list",
    "amqp:amqp-value:*",
    "amqp:footer:map",
];

impl Descriptor<'_> {
    /// The code, of the section of a message where it is a name; 0 for any other name.
    #[inline]
    pub fn section(self) -> u64 {
        match self {
            Self::Code(code) => code,
            Self::Symbol(name) => {
                let place = SECTIONS.iter().position(|known| *known == name);
                place.map_or(0, |place| 0x70 + place as u64)
            }
        }
    }
}

/// The contents of a list or map.
#[derive(Debug, Clone, Copy)]
pub struct Compound<'a> {
    /// Number of elements; in a map, of keys and values.
    pub count: u32,
    /// The elements, bounded by the size of the compound.
    pub items: Reader<'a>,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the beginning of `input`.
    #[inline]
    pub fn new(input: &'a [u8]) -> Self {
        Self {
            rest: input,
            length: input.len(),
        }
    }

    /// Returns the number of bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Returns the bytes that are not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next constructor, if there is one.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Returns the next constructor, which must be there.
    fn constructor(&self) -> Result<u8, DecodeError> {
        self.peek().ok_or(DecodeError::Truncated)
    }

    /// Returns whether the next value is a string or symbol.
    #[inline]
    pub fn next_is_text(&self) -> bool {
        matches!(
            self.peek(),
            Some(code::STRING8 | code::STRING32 | code::SYMBOL8 | code::SYMBOL32)
        )
    }

    /// Returns whether the next value is a primitive, or a described primitive: no list, map or array.
    pub fn next_is_primitive(&self) -> bool {
        let mut reader = *self;
        for _ in 0..=MAX_DEPTH {
            match reader.byte() {
                Ok(code::DESCRIBED) => {}
                Ok(code) => return !code::is_compound(code),
                Err(_) => return false,
            }
            if reader.skip().is_err() {
                return false;
            }
        }
        false
    }

    /// Skips a null; returns whether there was one.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        if let [code::NULL, rest @ ..] = self.rest {
            self.rest = rest;
            return true;
        }
        false
    }

    /// Reads `0x00` and the descriptor after it; the described value follows.
    #[inline]
    pub fn descriptor(&mut self) -> Result<Descriptor<'a>, DecodeError> {
        // The usual form.
        if let [code::DESCRIBED, code::ULONG_SMALL, number, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(Descriptor::Code(u64::from(*number)));
        }
        self.odd_descriptor()
    }

    #[cold]
    fn odd_descriptor(&mut self) -> Result<Descriptor<'a>, DecodeError> {
        match self.byte()? {
            code::DESCRIBED => {}
            code => return Err(unexpected("a described type", code)),
        }
        let constructor = self.constructor()?;
        match self.value()? {
            Value::Unsigned(code) => Ok(Descriptor::Code(code)),
            Value::Symbol(name) => Ok(Descriptor::Symbol(name)),
            _ => Err(unexpected("a numeric or symbolic descriptor", constructor)),
        }
    }

    /// Reads a list.
    #[inline]
    pub fn list(&mut self) -> Result<Compound<'a>, DecodeError> {
        match self.byte()? {
            code::LIST_EMPTY => Ok(Compound {
                count: 0,
                items: Reader::new(&[]),
            }),
            code::LIST8 => self.compound(1),
            code::LIST32 => self.compound(4),
            code => Err(unexpected("a list", code)),
        }
    }

    /// Reads a list whose elements are the fields of a composite type.
    #[inline]
    pub fn fields(&mut self) -> Result<Fields<'a>, DecodeError> {
        self.list().map(Fields::of)
    }

    /// Reads a map, whose count is even.
    pub fn map(&mut self) -> Result<Compound<'a>, DecodeError> {
        match self.byte()? {
            code::MAP8 => self.pairs_of(1),
            code::MAP32 => self.pairs_of(4),
            code => Err(unexpected("a map", code)),
        }
    }

    /// Reads `binary`.
    #[inline]
    pub fn binary(&mut self) -> Result<&'a [u8], DecodeError> {
        match self.byte()? {
            code::BINARY8 => self.sized(1),
            code::BINARY32 => self.sized(4),
            code => Err(unexpected("binary", code)),
        }
    }

    /// Reads one value of any type; compound, described and uncommon ones are returned as bytes.
    pub fn value(&mut self) -> Result<Value<'a>, DecodeError> {
        let start = self.rest;
        let code = self.byte()?;
        Ok(match code {
            code::NULL => Value::Null,
            code::TRUE => Value::Bool(true),
            code::FALSE => Value::Bool(false),
            code::UINT_ZERO | code::ULONG_ZERO => Value::Unsigned(0),
            code::UBYTE | code::UINT_SMALL | code::ULONG_SMALL => {
                Value::Unsigned(u64::from(self.byte()?))
            }
            code::BYTE | code::INT_SMALL | code::LONG_SMALL => {
                Value::Signed(i64::from(i8::from_be_bytes(self.array()?)))
            }
            code::BOOLEAN => Value::Bool(self.byte()? != 0),
            code::USHORT => Value::Unsigned(u64::from(u16::from_be_bytes(self.array()?))),
            code::SHORT => Value::Signed(i64::from(i16::from_be_bytes(self.array()?))),
            code::UINT => Value::Unsigned(u64::from(u32::from_be_bytes(self.array()?))),
            code::INT => Value::Signed(i64::from(i32::from_be_bytes(self.array()?))),
            code::FLOAT => Value::Float(f64::from(f32::from_be_bytes(self.array()?))),
            code::ULONG => Value::Unsigned(u64::from_be_bytes(self.array()?)),
            code::LONG => Value::Signed(i64::from_be_bytes(self.array()?)),
            code::DOUBLE => Value::Float(f64::from_be_bytes(self.array()?)),
            code::TIMESTAMP => Value::Timestamp(i64::from_be_bytes(self.array()?)),
            code::UUID => Value::Uuid(Uuid::from_bytes(self.array()?)),
            code::BINARY8 => Value::Binary(self.sized(1)?),
            code::BINARY32 => Value::Binary(self.sized(4)?),
            code::STRING8 => Value::String(text(self.sized(1)?)?),
            code::STRING32 => Value::String(text(self.sized(4)?)?),
            code::SYMBOL8 => Value::Symbol(text(self.sized(1)?)?),
            code::SYMBOL32 => Value::Symbol(text(self.sized(4)?)?),
            _ => {
                self.rest = start;
                Value::Other(self.skip()?)
            }
        })
    }

    /// Skips one value by its lengths alone and returns its bytes; does not check the contents of a compound.
    #[inline]
    pub fn skip(&mut self) -> Result<&'a [u8], DecodeError> {
        let start = self.rest;
        // A described value is two values, each of which may be described.
        let mut due = 1usize;
        while due > 0 {
            let code = self.byte()?;
            if code == code::DESCRIBED {
                due += 1;
            } else {
                self.skip_content(code)?;
                due -= 1;
            }
        }
        Ok(&start[..start.len() - self.rest.len()])
    }

    fn skip_content(&mut self, code: u8) -> Result<(), DecodeError> {
        match code::width(code)? {
            Width::Fixed(length) => self.take(length).map(drop),
            Width::Sized(width) => self.sized(width).map(drop),
        }
    }

    /// Reads size and count of `width` bytes each, then the elements.
    #[inline]
    fn compound(&mut self, width: usize) -> Result<Compound<'a>, DecodeError> {
        let (count, items) = self.sized_and_counted(width)?;
        // Every element has at least a constructor.
        if count as usize > items.rest.len() {
            return Err(DecodeError::CountMismatch);
        }
        Ok(Compound { count, items })
    }

    /// Reads a compound of keys and values.
    fn pairs_of(&mut self, width: usize) -> Result<Compound<'a>, DecodeError> {
        let map = self.compound(width)?;
        if map.count % 2 == 0 {
            Ok(map)
        } else {
            Err(DecodeError::CountMismatch)
        }
    }

    #[inline]
    fn sized_and_counted(&mut self, width: usize) -> Result<(u32, Self), DecodeError> {
        let mut items = Reader::new(self.sized(width)?);
        let count = items.size(width)?;
        Ok((count as u32, Reader::new(items.rest)))
    }

    #[inline]
    fn sized(&mut self, width: usize) -> Result<&'a [u8], DecodeError> {
        let length = self.size(width)?;
        self.take(length)
    }

    #[inline]
    fn size(&mut self, width: usize) -> Result<usize, DecodeError> {
        if width == 1 {
            Ok(usize::from(self.byte()?))
        } else {
            Ok(u32::from_be_bytes(self.array()?) as usize)
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (byte, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| DecodeError::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Compound<'a> {
    /// Returns the pairs of a map in the order written; stops after an entry that does not decode.
    pub fn entries(self) -> impl Iterator<Item = Result<(Value<'a>, Value<'a>), DecodeError>> {
        self.pairs(Reader::value)
    }

    /// Returns the encoded pairs of a map; stops after an entry that cannot be skipped.
    pub fn raw_entries(self) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8]), DecodeError>> {
        self.pairs(Reader::skip)
    }

    #[inline]
    fn pairs<T>(
        self,
        read: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> impl Iterator<Item = Result<(T, T), DecodeError>> {
        let mut items = self.items;
        let mut left = self.count / 2;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let entry = read(&mut items).and_then(|key| Ok((key, read(&mut items)?)));
            if entry.is_err() {
                left = 0;
            }
            Some(entry)
        })
    }
}

fn unexpected(expected: &'static str, code: u8) -> DecodeError {
    DecodeError::Unexpected { expected, code }
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| DecodeError::InvalidText)
}
