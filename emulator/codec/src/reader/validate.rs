//! Walks a value down to its leaves.
//!
//! A skip believes what is inside a compound; this believes nothing. It allocates nothing, and goes no deeper than
//! [`MAX_DEPTH`]. What passes can be skipped, read and walked through by every other method of a reader.

use super::{Compound, MAX_DEPTH, Reader, text, unexpected};
use crate::code::{self, Width};
use crate::{DecodeError, MAX_WIDTHLESS};

impl Reader<'_> {
    /// Walks one value completely: every length, count and constructor down to the leaves.
    ///
    /// What passes can be handed to a recursive decoder that allocates by count.
    pub fn validate(&mut self) -> Result<(), DecodeError> {
        let mut widthless = MAX_WIDTHLESS;
        self.validate_within(&mut widthless)
    }

    /// The same for one of several values that are decoded together: `widthless` is how many elements without width
    /// the arrays in all of them may still have, at first [`MAX_WIDTHLESS`].
    pub fn validate_within(&mut self, widthless: &mut u32) -> Result<(), DecodeError> {
        self.validate_at(MAX_DEPTH, widthless)
    }

    fn validate_at(&mut self, depth: usize, widthless: &mut u32) -> Result<(), DecodeError> {
        let inner = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let code = self.byte()?;
        if code == code::DESCRIBED {
            self.validate_at(inner, widthless)?;
            return self.validate_at(inner, widthless);
        }
        self.validate_content(code, inner, widthless)
    }

    /// What follows a constructor: of a value, or of all elements of an array.
    fn validate_content(
        &mut self,
        code: u8,
        depth: usize,
        widthless: &mut u32,
    ) -> Result<(), DecodeError> {
        match code {
            code::LIST8 => self.compound(1)?.validate_at(depth, widthless),
            code::LIST32 => self.compound(4)?.validate_at(depth, widthless),
            code::MAP8 => self.pairs_of(1)?.validate_at(depth, widthless),
            code::MAP32 => self.pairs_of(4)?.validate_at(depth, widthless),
            code::ARRAY8 => self.validate_array(1, depth, widthless),
            code::ARRAY32 => self.validate_array(4, depth, widthless),
            code::STRING8 | code::SYMBOL8 => text(self.sized(1)?).map(drop),
            code::STRING32 | code::SYMBOL32 => text(self.sized(4)?).map(drop),
            code if code::is_defined(code) => self.skip_content(code),
            code => Err(unexpected("a value", code)),
        }
    }

    /// The inside of an array whose size and count have `width` bytes.
    fn validate_array(
        &mut self,
        width: usize,
        depth: usize,
        widthless: &mut u32,
    ) -> Result<(), DecodeError> {
        let (count, mut items) = self.sized_and_counted(width)?;
        // serde_amqp leaves the constructor out when there is no element.
        if count == 0 && items.is_empty() {
            return Ok(());
        }
        let mut inner = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let mut code = items.byte()?;
        while code == code::DESCRIBED {
            inner = inner.checked_sub(1).ok_or(DecodeError::TooDeep)?;
            items.validate_at(inner, widthless)?;
            code = items.byte()?;
        }
        if let Ok(Width::Fixed(0)) = code::width(code) {
            // All of them are the same, and nothing of them can be wrong but their number.
            *widthless = widthless
                .checked_sub(count)
                .ok_or(DecodeError::TooManyElements { count })?;
            items.validate_content(code, inner, widthless)?;
        } else {
            for _ in 0..count {
                items.validate_content(code, inner, widthless)?;
            }
        }
        if items.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::CountMismatch)
        }
    }
}

impl Compound<'_> {
    fn validate_at(mut self, depth: usize, widthless: &mut u32) -> Result<(), DecodeError> {
        for _ in 0..self.count {
            // Most fields of a message are null.
            if depth == 0 || !self.items.take_null() {
                self.items.validate_at(depth, widthless)?;
            }
        }
        if self.items.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::CountMismatch)
        }
    }
}
