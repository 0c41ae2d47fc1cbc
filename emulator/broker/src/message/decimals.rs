//! `decimal128` in the layout in which messages are delivered.
//!
//! Microsoft's AMQP library, and with it the service, writes the upper half of the exponent two bits lower than IEEE 754
//! has it (observed 8). Python's client writes the one layout and reads only the other; .NET's reads both.

/// The constructor of `decimal128`.
const DECIMAL128: u8 = 0x94;
/// Exponents, with their bias of 6,176, that the layout of Microsoft's library can have.
const EXPONENTS: std::ops::Range<u16> = 0x1800..0x1880;

/// Whether an encoded value is a decimal that has to be [written anew](rewrite). All others stay bit for bit.
pub(crate) fn is_ieee(value: &[u8]) -> bool {
    exponent(value).is_some_and(|exponent| EXPONENTS.contains(&exponent))
}

/// Writes such a decimal as Microsoft's library does.
pub(crate) fn rewrite(value: &mut [u8]) {
    let Some(exponent) = exponent(value).filter(|exponent| EXPONENTS.contains(exponent)) else {
        return;
    };
    let upper = (exponent >> 9) as u8;
    value[1] = value[1] & 0x80 | upper;
}

/// The 14 bits of the exponent behind the sign, where a finite number of the usual size has them.
fn exponent(value: &[u8]) -> Option<u16> {
    match value {
        [DECIMAL128, first, second, ..] if first & 0x60 != 0x60 => {
            Some(u16::from(first & 0x7f) << 7 | u16::from(second >> 1))
        }
        _ => None,
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
    fn the_exponent_moves_and_nothing_else() {
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
    fn what_the_other_layout_cannot_have_stays() {
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
