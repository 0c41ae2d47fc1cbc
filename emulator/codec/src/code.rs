//! Constructor codes and the widths of their values (AMQP 1.0 part 1, section 1.6).

use crate::DecodeError;

pub(crate) const DESCRIBED: u8 = 0x00;
pub(crate) const NULL: u8 = 0x40;
pub(crate) const TRUE: u8 = 0x41;
pub(crate) const FALSE: u8 = 0x42;
pub(crate) const UINT_ZERO: u8 = 0x43;
pub(crate) const ULONG_ZERO: u8 = 0x44;
pub(crate) const LIST_EMPTY: u8 = 0x45;
pub(crate) const UBYTE: u8 = 0x50;
pub(crate) const BYTE: u8 = 0x51;
pub(crate) const UINT_SMALL: u8 = 0x52;
pub(crate) const ULONG_SMALL: u8 = 0x53;
pub(crate) const INT_SMALL: u8 = 0x54;
pub(crate) const LONG_SMALL: u8 = 0x55;
pub(crate) const BOOLEAN: u8 = 0x56;
pub(crate) const USHORT: u8 = 0x60;
pub(crate) const SHORT: u8 = 0x61;
pub(crate) const UINT: u8 = 0x70;
pub(crate) const INT: u8 = 0x71;
pub(crate) const FLOAT: u8 = 0x72;
pub(crate) const DECIMAL32: u8 = 0x74;
pub(crate) const ULONG: u8 = 0x80;
pub(crate) const LONG: u8 = 0x81;
pub(crate) const DOUBLE: u8 = 0x82;
pub(crate) const TIMESTAMP: u8 = 0x83;
pub(crate) const DECIMAL64: u8 = 0x84;
pub(crate) const DECIMAL128: u8 = 0x94;
pub(crate) const UUID: u8 = 0x98;
pub(crate) const BINARY8: u8 = 0xa0;
pub(crate) const STRING8: u8 = 0xa1;
pub(crate) const SYMBOL8: u8 = 0xa3;
pub(crate) const BINARY32: u8 = 0xb0;
pub(crate) const STRING32: u8 = 0xb1;
pub(crate) const SYMBOL32: u8 = 0xb3;
pub(crate) const LIST8: u8 = 0xc0;
pub(crate) const MAP8: u8 = 0xc1;
pub(crate) const LIST32: u8 = 0xd0;
pub(crate) const MAP32: u8 = 0xd1;
pub(crate) const ARRAY8: u8 = 0xe0;
pub(crate) const ARRAY32: u8 = 0xf0;

/// Returns whether AMQP defines `code` for a value, described ones aside.
pub(crate) fn is_defined(code: u8) -> bool {
    matches!(
        code,
        NULL..=LIST_EMPTY
            | UBYTE..=BOOLEAN
            | USHORT..=SHORT
            | UINT..=DECIMAL32
            | ULONG..=DECIMAL64
            | DECIMAL128
            | UUID
            | BINARY8
            | STRING8
            | SYMBOL8
            | BINARY32
            | STRING32
            | SYMBOL32
            | LIST8
            | MAP8
            | LIST32
            | MAP32
            | ARRAY8
            | ARRAY32
    )
}

/// Returns whether `code` is that of a list, map or array.
pub(crate) fn is_compound(code: u8) -> bool {
    code == LIST_EMPTY || code >> 4 >= 0xc
}

/// Returns the constructor of the symbol for a string constructor; `None` for other types.
pub fn symbol_constructor(string: u8) -> Option<u8> {
    match string {
        STRING8 => Some(SYMBOL8),
        STRING32 => Some(SYMBOL32),
        _ => None,
    }
}

/// The number of bytes after a constructor.
pub(crate) enum Width {
    /// This many bytes.
    Fixed(usize),
    /// A size of this many bytes, then as many bytes as the size.
    Sized(usize),
}

/// Returns the width of the value after `code`; the high nibble decides.
pub(crate) fn width(code: u8) -> Result<Width, DecodeError> {
    Ok(match code >> 4 {
        0x4 => Width::Fixed(0),
        0x5 => Width::Fixed(1),
        0x6 => Width::Fixed(2),
        0x7 => Width::Fixed(4),
        0x8 => Width::Fixed(8),
        0x9 => Width::Fixed(16),
        0xa | 0xc | 0xe => Width::Sized(1),
        0xb | 0xd | 0xf => Width::Sized(4),
        _ => {
            return Err(DecodeError::Unexpected {
                expected: "a value",
                code,
            });
        }
    })
}
