// SPDX-License-Identifier: Apache-2.0
//! `rwbs`: the kernel's letters for the operation and flags of a request (`FWFS`: preflush, write, FUA, sync).

use crate::event::Op;

const KNOWN: [(u8, u8); 5] = [(b'A', 1), (b'E', 2), (b'F', 4), (b'M', 8), (b'S', 16)];

/// Decoded letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters {
    /// Operation.
    pub op: Op,
    /// Whether the cache of the device is flushed first.
    pub preflush: bool,
    /// The letters besides the operation, a bit for each of A (readahead), E (secure erase), F (preflush or FUA), M
    /// (metadata), S (sync).
    pub flags: u8,
}

impl Letters {
    /// Decode the letters. A leading F is a preflush of the next operation; the letter after it, or the first, is the
    /// operation.
    pub fn of(letters: &[u8]) -> Self {
        let preflush = letters.len() > 1 && letters[0] == b'F';
        let rest = if preflush { &letters[1..] } else { letters };
        // zoned devices: ZA is an append, other letters after Z are changes of zones
        let (op, length) = match rest {
            [b'Z', b'A', ..] => (Op::Write, 2),
            [b'Z', _, ..] => (Op::Other, 2),
            [b'R', ..] => (Op::Read, 1),
            [b'W', ..] => (Op::Write, 1),
            [b'D', ..] => (Op::Trim, 1),
            [b'F', ..] => (Op::Flush, 1),
            _ => (Op::Other, rest.len().min(1)),
        };
        let bit = |letter: &u8| KNOWN.iter().find(|known| known.0 == *letter).map_or(0, |known| known.1);
        // the F of a flush has no further meaning
        let before = if preflush && op != Op::Flush { bit(&b'F') } else { 0 };
        Self { op, preflush, flags: rest[length..].iter().fold(before, |flags, letter| flags | bit(letter)) }
    }

    /// The letters of flags, sorted.
    pub fn text(flags: u8) -> String {
        KNOWN.iter().filter(|known| flags & known.1 != 0).map(|known| char::from(known.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_the_kernel() {
        for (letters, op, preflush, flags) in [
            ("R", Op::Read, false, ""),
            ("RA", Op::Read, false, "A"),
            ("RSM", Op::Read, false, "MS"),
            ("WS", Op::Write, false, "S"),
            ("WFS", Op::Write, false, "FS"),
            ("FWFSM", Op::Write, true, "FMS"),
            ("FF", Op::Flush, true, ""),
            ("F", Op::Flush, false, ""),
            ("FWS", Op::Write, true, "FS"),
            ("D", Op::Trim, false, ""),
            ("DES", Op::Trim, false, "ES"),
            ("ZA", Op::Write, false, ""),
            ("ZR", Op::Other, false, ""),
            ("N", Op::Other, false, ""),
            ("", Op::Other, false, ""),
        ] {
            let read = Letters::of(letters.as_bytes());
            assert_eq!(
                (read.op, read.preflush, Letters::text(read.flags).as_str()),
                (op, preflush, flags),
                "{letters}"
            );
        }
    }
}
