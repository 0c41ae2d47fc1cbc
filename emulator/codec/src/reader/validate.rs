//! Validates a value completely.
//!
//! Skipping trusts the contents of a compound; validation does not. It allocates nothing, and goes no deeper than
//! [`MAX_DEPTH`]. Every other method of a reader can skip, read and visit a validated value.

use super::{Compound, MAX_DEPTH, Reader, text, unexpected};
use crate::code::{self, Width};
use crate::{DecodeError, MAX_ELEMENTS, MAX_WIDTHLESS};

/// How many more elements the values that are decoded together may have.
#[derive(Debug, Clone, Copy)]
pub struct ElementBudget {
    /// Elements of lists, maps and arrays, and the values themselves.
    elements: u32,
    /// Elements of arrays without width.
    widthless: u32,
    /// Whether `serde_amqp` must be able to decode them.
    for_serde_amqp: bool,
}

impl Default for ElementBudget {
    fn default() -> Self {
        Self {
            elements: MAX_ELEMENTS,
            widthless: MAX_WIDTHLESS,
            for_serde_amqp: false,
        }
    }
}

impl ElementBudget {
    /// The budget of a value that `serde_amqp` will decode. After an array that is empty or has compound or described elements,
    /// its version 0.18 reads the next value with the constructor of that array, and so bytes that were never validated, to any
    /// depth; here such an array is an error.
    pub fn for_serde_amqp() -> Self {
        Self {
            for_serde_amqp: true,
            ..Self::default()
        }
    }

    fn walk(&mut self, count: u32) -> Result<(), DecodeError> {
        let left = self.elements.checked_sub(count);
        self.elements = left.ok_or(DecodeError::TooManyElements { count })?;
        Ok(())
    }

    fn count_widthless(&mut self, count: u32) -> Result<(), DecodeError> {
        let left = self.widthless.checked_sub(count);
        self.widthless = left.ok_or(DecodeError::TooManyWidthless { count })?;
        Ok(())
    }
}

impl Reader<'_> {
    /// Validates one value completely: every length, count and constructor at every level.
    ///
    /// A recursive decoder that allocates by count can then decode it.
    pub fn validate(&mut self) -> Result<(), DecodeError> {
        self.validate_within(&mut ElementBudget::default())
    }

    /// Validates one of several values that are decoded together and share one budget.
    pub fn validate_within(&mut self, budget: &mut ElementBudget) -> Result<(), DecodeError> {
        budget.walk(1)?;
        self.validate_at(MAX_DEPTH, budget)
    }

    fn validate_at(&mut self, depth: usize, budget: &mut ElementBudget) -> Result<(), DecodeError> {
        let inner = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let code = self.byte()?;
        if code == code::DESCRIBED {
            self.validate_at(inner, budget)?;
            return self.validate_at(inner, budget);
        }
        self.validate_content(code, inner, budget)
    }

    /// Validates the content after a constructor: of a value, or of all elements of an array.
    fn validate_content(
        &mut self,
        code: u8,
        depth: usize,
        budget: &mut ElementBudget,
    ) -> Result<(), DecodeError> {
        match code {
            code::LIST8 => self.compound(1)?.validate_at(depth, budget),
            code::LIST32 => self.compound(4)?.validate_at(depth, budget),
            code::MAP8 => self.pairs_of(1)?.validate_at(depth, budget),
            code::MAP32 => self.pairs_of(4)?.validate_at(depth, budget),
            code::ARRAY8 => self.validate_array(1, depth, budget),
            code::ARRAY32 => self.validate_array(4, depth, budget),
            code::STRING8 | code::SYMBOL8 => text(self.sized(1)?).map(drop),
            code::STRING32 | code::SYMBOL32 => text(self.sized(4)?).map(drop),
            code if code::is_defined(code) => self.skip_content(code),
            code => Err(unexpected("a value", code)),
        }
    }

    /// Validates the contents of an array whose size and count have `width` bytes.
    fn validate_array(
        &mut self,
        width: usize,
        depth: usize,
        budget: &mut ElementBudget,
    ) -> Result<(), DecodeError> {
        let (count, mut items) = self.sized_and_counted(width)?;
        // serde_amqp omits the constructor if there are no elements.
        if count == 0 && items.is_empty() {
            return Ok(());
        }
        let mut inner = depth.checked_sub(1).ok_or(DecodeError::TooDeep)?;
        let mut code = items.byte()?;
        let is_misread = count == 0 || code == code::DESCRIBED || code::is_compound(code);
        if budget.for_serde_amqp && is_misread {
            return Err(unexpected("an array of scalars", code));
        }
        while code == code::DESCRIBED {
            inner = inner.checked_sub(1).ok_or(DecodeError::TooDeep)?;
            items.validate_at(inner, budget)?;
            code = items.byte()?;
        }
        if let Ok(Width::Fixed(0)) = code::width(code) {
            // All elements are the same, so that only their number can be wrong.
            budget.count_widthless(count)?;
            items.validate_content(code, inner, budget)?;
        } else if let Ok(Width::Fixed(width)) = code::width(code) {
            // Every content of this width is valid.
            if !code::is_defined(code) {
                return Err(unexpected("a value", code));
            }
            let size = (count as usize).checked_mul(width);
            items.take(size.ok_or(DecodeError::Truncated)?)?;
        } else {
            budget.walk(count)?;
            for _ in 0..count {
                items.validate_content(code, inner, budget)?;
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
    fn validate_at(mut self, depth: usize, budget: &mut ElementBudget) -> Result<(), DecodeError> {
        budget.walk(self.count)?;
        for _ in 0..self.count {
            // Most fields of a message are null.
            if depth == 0 || !self.items.take_null() {
                self.items.validate_at(depth, budget)?;
            }
        }
        if self.items.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::CountMismatch)
        }
    }
}
