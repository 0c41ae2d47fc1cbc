//! IEEE 754 decimals, as .NET writes its `decimal`: binary integer significand, in 32, 64 or 128 bits.
//!
//! They become the nearest double: constants of the language are doubles, and C# has no operator between the two.

/// The nearest double to an encoded decimal; none for any other value, infinities and NaN.
pub(crate) fn decode(encoded: &[u8]) -> Option<f64> {
    let (&code, bits) = encoded.split_first()?;
    let (width, exponent_bits, bias) = match code {
        0x74 => (32, 8, 101),
        0x84 => (64, 10, 398),
        0x94 => (128, 14, 6176),
        _ => return None,
    };
    if bits.len() * 8 != width {
        return None;
    }
    let bits = bits
        .iter()
        .fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    let exponent_place = width - 1 - exponent_bits;
    let combination = bits >> (width - 3) & 0b11;
    if combination == 0b11 {
        // The other form holds only significands that are out of range, infinities and NaN.
        return None;
    }
    let exponent = (bits >> exponent_place & ((1 << exponent_bits) - 1)) as i32 - bias;
    let significand = bits & ((1 << exponent_place) - 1);
    let sign = if bits >> (width - 1) == 1 { "-" } else { "" };
    // Through text: scaling by powers of ten in binary would round twice.
    format!("{sign}{significand}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decimals_of_every_width_become_doubles() {
        let decimal32 = [&[0x74][..], &(99_u32 << 23 | 1050).to_be_bytes()].concat();
        assert_eq!(decode(&decimal32), Some(10.5));
        let decimal64 = [&[0x84][..], &(1_u64 << 63 | 397 << 53 | 25).to_be_bytes()].concat();
        assert_eq!(decode(&decimal64), Some(-2.5));
        let decimal128 = [&[0x94][..], &(6174_u128 << 113 | 1999).to_be_bytes()].concat();
        assert_eq!(decode(&decimal128), Some(19.99));
    }

    #[test]
    fn what_is_no_finite_decimal_is_left_alone() {
        assert_eq!(decode(&[0x74, 0x78, 0, 0, 0]), None);
        assert_eq!(decode(&[0x74, 0]), None);
        assert_eq!(decode(&[0x71, 0, 0, 0, 1]), None);
        assert_eq!(decode(&[]), None);
    }
}
