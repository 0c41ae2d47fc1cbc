//! Reads the fields of a composite type in order, and the elements of arrays, which share one constructor.
//!
//! A null field is the same as one that is omitted at the end.

use super::{Compound, Reader, unexpected};
use crate::code::Width;
use crate::{DecodeError, MAX_WIDTHLESS, Value, code};

/// The fields of a described list, of which trailing ones may be omitted.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    left: u32,
    items: Reader<'a>,
}

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn of(list: Compound<'a>) -> Self {
        Self {
            left: list.count,
            items: list.items,
        }
    }

    /// Returns the next field; null if it is null or omitted.
    pub fn value(&mut self) -> Result<Value<'a>, DecodeError> {
        match self.step() {
            true => self.items.value(),
            false => Ok(Value::Null),
        }
    }

    /// Returns the bytes of the next field, unless it is null or omitted.
    #[inline(always)]
    pub fn raw(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        if !self.step() || self.items.take_null() {
            return Ok(None);
        }
        let mut items = self.items;
        let raw = items.skip()?;
        self.items = items;
        Ok(Some(raw))
    }

    /// Returns the next field as `uint`, `ushort` or `ubyte`.
    // Transfers are read at millions of fields a second. These functions are inlined, and copy the reader before they call
    // one that is not, so that it can stay in registers.
    #[inline(always)]
    pub fn u32(&mut self) -> Result<Option<u32>, DecodeError> {
        if !self.step() {
            return Ok(None);
        }
        let (number, rest) = match self.items.rest {
            [code::UINT, a, b, c, d, rest @ ..] => {
                (Some(u32::from_be_bytes([*a, *b, *c, *d])), rest)
            }
            [code::UINT_SMALL, number, rest @ ..] => (Some(u32::from(*number)), rest),
            [code::UINT_ZERO, rest @ ..] => (Some(0), rest),
            [code::NULL, rest @ ..] => (None, rest),
            _ => {
                let mut items = self.items;
                let number = odd_u32(&mut items)?;
                (Some(number), items.rest)
            }
        };
        self.items.rest = rest;
        Ok(number)
    }

    /// Returns the next field as `boolean`.
    #[inline(always)]
    pub fn bool(&mut self) -> Result<Option<bool>, DecodeError> {
        if !self.step() {
            return Ok(None);
        }
        let (flag, rest) = match self.items.rest {
            [code::TRUE, rest @ ..] => (Some(true), rest),
            [code::FALSE, rest @ ..] => (Some(false), rest),
            [code::NULL, rest @ ..] => (None, rest),
            [code::BOOLEAN, flag, rest @ ..] => (Some(*flag != 0), rest),
            [] | [code::BOOLEAN] => return Err(DecodeError::Truncated),
            [code, ..] => return Err(unexpected("boolean", *code)),
        };
        self.items.rest = rest;
        Ok(flag)
    }

    /// Returns the next field as `binary`.
    #[inline(always)]
    pub fn binary(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        if !self.step() || self.items.take_null() {
            return Ok(None);
        }
        let mut items = self.items;
        let bytes = items.binary()?;
        self.items = items;
        Ok(Some(bytes))
    }

    /// Returns the next field as `string` or `symbol`.
    pub fn text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        if !self.step() {
            return Ok(None);
        }
        let constructor = self.items.constructor()?;
        match self.items.value()? {
            Value::Null => Ok(None),
            Value::String(text) | Value::Symbol(text) => Ok(Some(text)),
            _ => Err(unexpected("string", constructor)),
        }
    }

    #[inline(always)]
    fn step(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// Reads a number in an unusual form for a field.
#[cold]
fn odd_u32(items: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let constructor = items.constructor()?;
    let number = match items.value()? {
        Value::Unsigned(number) => u32::try_from(number).ok(),
        _ => None,
    };
    number.ok_or_else(|| unexpected("uint", constructor))
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    left: u32,
    /// The constructor of every element, without the descriptors that they share.
    code: u8,
    items: Reader<'a>,
}

impl<'a> Reader<'a> {
    /// Reads an array.
    pub fn elements(&mut self) -> Result<Array<'a>, DecodeError> {
        let (count, mut items) = match self.byte()? {
            code::ARRAY8 => self.sized_and_counted(1)?,
            code::ARRAY32 => self.sized_and_counted(4)?,
            code => return Err(unexpected("an array", code)),
        };
        // serde_amqp omits the constructor if there are no elements.
        let mut code = code::NULL;
        if count > 0 {
            code = items.byte()?;
            while code == code::DESCRIBED {
                items.skip()?;
                code = items.byte()?;
            }
        }
        let is_widthless = matches!(code::width(code), Ok(Width::Fixed(0)));
        if is_widthless && count > MAX_WIDTHLESS {
            return Err(DecodeError::TooManyWidthless { count });
        }
        Ok(Array {
            left: count,
            code,
            items,
        })
    }
}

impl Array<'_> {
    /// Returns whether no element is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Replaces `value` with the next element and its constructor, as if it stood alone, but without descriptors; returns
    /// false if there is none.
    pub fn next_into(&mut self, value: &mut Vec<u8>) -> Result<bool, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        let content = match code::width(self.code)? {
            Width::Fixed(length) => self.items.take(length)?,
            Width::Sized(width) => {
                let mut sized = self.items;
                let length = width + sized.sized(width)?.len();
                self.items.take(length)?
            }
        };
        value.clear();
        value.push(self.code);
        value.extend_from_slice(content);
        self.left = left;
        Ok(true)
    }
}
