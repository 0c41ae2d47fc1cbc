//! Reads arrays: one constructor, then the elements without theirs.

use super::{Reader, unexpected};
use crate::code::{self, Width};
use crate::{DecodeError, MAX_WIDTHLESS};

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    left: u32,
    /// Of every element, without the descriptors that they share.
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
        // serde_amqp leaves the constructor out when there is no element.
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
    /// Writes the next element to `value`, replacing what is there, with its constructor as if it stood alone, but for
    /// descriptors; false when there is none.
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
