//! Walks a value down to its leaves.
//!
//! A skip believes what is inside a compound; this believes nothing. It allocates nothing, and goes no deeper than
//! [`MAX_DEPTH`].

use super::{Compound, MAX_DEPTH, Reader, text};
use crate::{DecodeError, code};

impl Reader<'_> {
    /// Walks one value completely: every length, count and constructor down to the leaves.
    ///
    /// What passes can be handed to a recursive decoder that allocates by count.
    pub fn validate(&mut self) -> Result<(), DecodeError> {
        self.validate_at(MAX_DEPTH)
    }

    fn validate_at(&mut self, depth: usize) -> Result<(), DecodeError> {
        let Some(inner) = depth.checked_sub(1) else {
            return Err(DecodeError::TooDeep);
        };
        match self.peek().ok_or(DecodeError::Truncated)? {
            code::DESCRIBED => {
                self.byte()?;
                self.validate_at(inner)?;
                self.validate_at(inner)
            }
            code::LIST8 | code::LIST32 | code::LIST_EMPTY => self.list()?.validate_at(inner),
            code::MAP8 | code::MAP32 => self.map()?.validate_at(inner),
            code @ (code::ARRAY8 | code::ARRAY32) => {
                self.byte()?;
                self.validate_array(code, inner)
            }
            code::STRING8 | code::SYMBOL8 => {
                self.byte()?;
                text(self.sized(1)?).map(drop)
            }
            code::STRING32 | code::SYMBOL32 => {
                self.byte()?;
                text(self.sized(4)?).map(drop)
            }
            _ => self.skip_plain(),
        }
    }

    /// The inside of an array with this constructor.
    fn validate_array(&mut self, code: u8, depth: usize) -> Result<(), DecodeError> {
        let width = if code == code::ARRAY8 { 1 } else { 4 };
        let Compound { count, mut items } = self.compound(width)?;
        let Some(inner) = depth.checked_sub(1) else {
            return Err(DecodeError::TooDeep);
        };
        // serde_amqp leaves the constructor out when there is no element.
        if count == 0 && items.is_empty() {
            return Ok(());
        }
        let mut code = items.byte()?;
        while code == code::DESCRIBED {
            items.validate_at(inner)?;
            code = items.byte()?;
        }
        for _ in 0..count {
            items.validate_element(code, inner)?;
        }
        if items.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::CountMismatch)
        }
    }

    /// One array element: a value whose constructor stands before the first element.
    fn validate_element(&mut self, code: u8, depth: usize) -> Result<(), DecodeError> {
        match code {
            code::LIST8 => self.compound(1)?.validate_at(depth),
            code::LIST32 => self.compound(4)?.validate_at(depth),
            code::MAP8 => self.compound(1)?.validate_at(depth),
            code::MAP32 => self.compound(4)?.validate_at(depth),
            code::ARRAY8 | code::ARRAY32 => self.validate_array(code, depth),
            _ => self.skip_content(code),
        }
    }
}

impl Compound<'_> {
    fn validate_at(mut self, depth: usize) -> Result<(), DecodeError> {
        for _ in 0..self.count {
            // Most fields of a message are null.
            if depth == 0 || !self.items.take_null() {
                self.items.validate_at(depth)?;
            }
        }
        if self.items.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::CountMismatch)
        }
    }
}
