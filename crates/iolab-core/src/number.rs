// SPDX-License-Identifier: Apache-2.0
//! Fast, exact parsing of numbers.

/// The digits at `at`: their value and end. `None` if there is no digit, or if the value exceeds 64 bits.
///
/// Reads eight bytes together (Daniel Lemire, "Number parsing at a gigabyte per second", 2021, section 3).
#[inline(always)]
pub fn digits(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    if let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let zeroed = word ^ 0x3030_3030_3030_3030;
        // the top bit of a byte is set if the byte is not a digit
        let other = (zeroed.wrapping_add(0x7676_7676_7676_7676) | zeroed) & 0x8080_8080_8080_8080;
        if other != 0 {
            let length = (other.trailing_zeros() / 8) as usize;
            if length == 0 {
                return None;
            }
            return Some((eight(zeroed << (64 - 8 * length)), at + length));
        }
        // offsets have nine to fifteen digits
        if let Some(chunk) = bytes.get(at + 8..at + 16) {
            let next = u64::from_le_bytes(chunk.try_into().expect("eight bytes")) ^ 0x3030_3030_3030_3030;
            let other = (next.wrapping_add(0x7676_7676_7676_7676) | next) & 0x8080_8080_8080_8080;
            if other != 0 {
                let length = (other.trailing_zeros() / 8) as usize;
                let low = if length == 0 { 0 } else { eight(next << (64 - 8 * length)) };
                return Some((eight(zeroed) * TENS[length] + low, at + 8 + length));
            }
        }
    }
    digits_slowly(bytes, at)
}

/// The digits of a column, read with the previous text of the column as a guess, and then with its length.
///
/// If the guess is right, the position of the next column does not depend on reading the digits of this one: the
/// processor continues while it checks the guess. It is faster for columns that seldom change.
#[derive(Clone, Copy, Debug)]
pub struct Guess {
    length: usize,
    /// Mask of the digits and of the byte after them.
    within: u64,
    /// Mask of the top bit of the byte after them.
    after: u64,
    /// The digits and the byte after them, and their value.
    text: u64,
    value: u64,
}

const TOPS: u64 = 0x8080_8080_8080_8080;

impl Guess {
    fn of(length: usize) -> Self {
        // equals a text of zeroes and a zero byte, which is true for any text
        let text = 0x0030_3030_3030_3030 & ((1u64 << (8 * length)) - 1);
        Self { length, within: u64::MAX >> (56 - 8 * length), after: 0x80 << (8 * length), text, value: 0 }
    }

    /// The digits at `at`: their value and end, as returned by `digits`.
    #[inline(always)]
    pub fn digits(&mut self, bytes: &[u8], at: usize) -> Option<(u64, usize)> {
        let chunk = bytes.get(at..at + 8)?;
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        if word & self.within == self.text {
            return Some((self.value, at + self.length));
        }
        let zeroed = word ^ 0x3030_3030_3030_3030;
        let other = (zeroed.wrapping_add(0x7676_7676_7676_7676) | zeroed) & TOPS;
        if other & self.within == self.after {
            self.text = word & self.within;
            self.value = eight(zeroed << (64 - 8 * self.length));
            return Some((self.value, at + self.length));
        }
        self.afresh(bytes, at)
    }

    #[cold]
    fn afresh(&mut self, bytes: &[u8], at: usize) -> Option<(u64, usize)> {
        let (value, end) = digits(bytes, at)?;
        if end - at < 8 {
            *self = Self::of(end - at);
        }
        Some((value, end))
    }
}

impl Default for Guess {
    fn default() -> Self {
        Self::of(1)
    }
}

const TENS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Value of eight digits, the first in the lowest byte, minus the ASCII offset.
#[inline(always)]
fn eight(zeroed: u64) -> u64 {
    let pairs = zeroed.wrapping_mul(10).wrapping_add(zeroed >> 8);
    let low = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

#[inline(never)]
fn digits_slowly(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut end = at;
    let mut value = 0u64;
    while let Some(&byte) = bytes.get(end) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        end += 1;
    }
    (end > at).then_some((value, end))
}

/// The text as an unsigned integer.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    digits(text, 0).filter(|&(_, end)| end == text.len()).map(|(value, _)| value)
}

/// A decimal number times `unit`, rounded to an integer; exact if the result fits 64 bits. `None` if negative.
pub fn scaled(text: &[u8], unit: u64) -> Option<u64> {
    let (negative, value) = magnitude(text, unit)?;
    (!negative || value == 0).then_some(value)
}

/// The same for signed numbers.
pub fn scaled_signed(text: &[u8], unit: u64) -> Option<i64> {
    let (negative, value) = magnitude(text, unit)?;
    let value = i64::try_from(value).ok()?;
    Some(if negative { -value } else { value })
}

fn magnitude(text: &[u8], unit: u64) -> Option<(bool, u64)> {
    let (negative, digits_part) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let mut value = 0u128;
    let mut decimals = None::<u32>;
    let mut seen = false;
    for &byte in digits_part {
        match byte {
            b'0'..=b'9' => {
                seen = true;
                match &mut decimals {
                    // digits after the 18th are below a nanosecond
                    Some(18) => continue,
                    Some(count) => *count += 1,
                    None => {}
                }
                value = value * 10 + u128::from(byte - b'0');
                if value > 1 << 100 {
                    return None;
                }
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b'e' | b'E' if seen => return exponent(text, unit),
            _ => return None,
        }
    }
    if !seen {
        return None;
    }
    let divisor = 10u128.pow(decimals.unwrap_or(0));
    let scaled = value.checked_mul(u128::from(unit))?.checked_add(divisor / 2)? / divisor;
    Some((negative, u64::try_from(scaled).ok()?))
}

/// Numbers such as `1.5e-05`, printed by programs from a double: 53 bits are sufficient.
fn exponent(text: &[u8], unit: u64) -> Option<(bool, u64)> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let scaled = (value.abs() * unit as f64).round();
    (scaled < u64::MAX as f64).then_some((value < 0.0, scaled as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled(b"0.029000", 1_000_000), Some(29_000));
        assert_eq!(scaled(b"1234567890.123456789", 1_000_000_000), Some(1_234_567_890_123_456_789));
        assert_eq!(scaled(b"7", 512), Some(3584));
        assert_eq!(scaled(b"0.5", 1), Some(1));
        assert_eq!(scaled(b"1.5e-05", 1_000_000_000), Some(15_000));
        assert_eq!(scaled(b".25", 1000), Some(250));
        assert_eq!(scaled_signed(b"-2.5", 1000), Some(-2500));
        assert_eq!(scaled(b"-1", 1), None);
        assert_eq!(scaled(b"309485009.821345068724781055", 1 << 40), None, "the rounding exceeds 128 bits");
        for bad in [&b""[..], b".", b"1.2.3", b"e5", b"12a", b"99999999999999999999", b"- 1", b"0x10", b"nan", b"1e400"]
        {
            assert_eq!(scaled(bad, 1), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    proptest! {
        #[test]
        fn digits_agree_with_the_standard_library(value: u64, tail in "[, \n][0-9a-z, \n]{0,12}") {
            let text = format!("{value}{tail}");
            prop_assert_eq!(digits(text.as_bytes(), 0), Some((value, value.to_string().len())));
        }

        #[test]
        fn anything_is_digits_or_not(bytes in prop::collection::vec(prop_oneof![b'0'..=b'9', any::<u8>()], 0..30), at in 0usize..40) {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let expected = std::str::from_utf8(&rest[..length]).unwrap().parse::<u64>().ok().map(|value| (value, at + length));
            prop_assert_eq!(digits(&bytes, at), expected);
        }

        #[test]
        fn a_guess_changes_nothing(texts in prop::collection::vec(prop_oneof!["[0-9]{1,12}, 00000000", "[0-9a-z,]{8,20}"], 1..20)) {
            let mut guess = Guess::default();
            for text in texts {
                prop_assert_eq!(guess.digits(text.as_bytes(), 0), digits(text.as_bytes(), 0));
            }
        }

        #[test]
        fn scaling_round_trips(value in 0u64..1 << 62) {
            prop_assert_eq!(scaled(format!("{}.{:09}", value / 1_000_000_000, value % 1_000_000_000).as_bytes(), 1_000_000_000), Some(value));
        }
    }
}
