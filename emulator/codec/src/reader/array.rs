//! Reads arrays: one constructor, then the elements without theirs.

use super::{Reader, unexpected};
use crate::code::{self, Width};
use crate::{DecodeError, MAX_WIDTHLESS};

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    left: u32,
    /// Of every element: descriptors, if it has any, and the code.
    constructor: &'a [u8],
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
        let start = items.rest;
        if count > 0 {
            while items.byte()? == code::DESCRIBED {
                items.skip()?;
            }
        }
        let constructor = &start[..start.len() - items.rest.len()];
        let array = Array {
            left: count,
            constructor,
            items,
        };
        let is_widthless = matches!(array.width(), Ok(Width::Fixed(0)));
        if is_widthless && count > MAX_WIDTHLESS {
            return Err(DecodeError::TooManyElements { count });
        }
        Ok(array)
    }
}

impl Array<'_> {
    /// Writes the next element to `value`, replacing what is there, with its constructor as if it stood alone; false
    /// when there is none.
    pub fn next_into(&mut self, value: &mut Vec<u8>) -> Result<bool, DecodeError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        let content = match self.width()? {
            Width::Fixed(length) => self.items.take(length)?,
            Width::Sized(width) => {
                let mut sized = self.items;
                let length = width + sized.sized(width)?.len();
                self.items.take(length)?
            }
        };
        value.clear();
        value.extend_from_slice(self.constructor);
        value.extend_from_slice(content);
        self.left = left;
        Ok(true)
    }

    fn width(&self) -> Result<Width, DecodeError> {
        code::width(self.constructor.last().copied().unwrap_or(code::NULL))
    }
}
