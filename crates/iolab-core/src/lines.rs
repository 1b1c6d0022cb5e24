// SPDX-License-Identifier: Apache-2.0
//! Text in blocks that end at line ends.

use crate::input::is_damage;
use std::io::{self, Read};

/// Bytes of a block: large enough for cheap reads, small enough for the cache of a processor.
pub const BLOCK: usize = 256 << 10;
/// Maximum length of a line. Longer ones count as damage; otherwise memory would grow with them.
pub const LONGEST: usize = 1 << 20;

/// Result of `Lines::read`.
pub enum Piece<'a> {
    /// Whole lines, each with its end.
    Lines(&'a [u8]),
    /// The last line, without its end.
    Cut(&'a [u8]),
    /// A line longer than `LONGEST`, skipped.
    TooLong,
    /// Compressed data that are damaged or end early; nothing more can be read.
    Damaged,
    /// End of the data.
    End,
}

/// Blocks of lines from any reader.
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    filled: usize,
    given: usize,
    block: usize,
    ended: bool,
    damaged: bool,
    skipping: bool,
}

impl<R: Read> Lines<R> {
    /// Reads lines in blocks of about this many bytes.
    pub fn new(reader: R, block: usize) -> Self {
        let buffer = vec![0; block];
        Self { reader, buffer, filled: 0, given: 0, block, ended: false, damaged: false, skipping: false }
    }

    /// The next block.
    pub fn read(&mut self) -> io::Result<Piece<'_>> {
        self.drop_front(self.given);
        self.given = 0;
        loop {
            self.fill()?;
            let data = &self.buffer[..self.filled];
            if self.skipping {
                let end = memchr::memchr(b'\n', data);
                self.skipping = end.is_none() && !self.ended;
                self.drop_front(end.map_or(self.filled, |end| end + 1));
                continue;
            }
            if let Some(end) = memchr::memrchr(b'\n', data) {
                self.given = end + 1;
                return Ok(Piece::Lines(&self.buffer[..end + 1]));
            }
            if self.damaged {
                self.damaged = false;
                self.filled = 0;
                return Ok(Piece::Damaged);
            }
            if self.ended {
                self.given = self.filled;
                return Ok(if self.filled > 0 { Piece::Cut(&self.buffer[..self.filled]) } else { Piece::End });
            }
            if self.buffer.len() > LONGEST {
                self.skipping = true;
                self.filled = 0;
                self.buffer.truncate(self.block);
                return Ok(Piece::TooLong);
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn drop_front(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }

    fn fill(&mut self) -> io::Result<()> {
        while !self.ended && self.filled < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_damage(&error) => {
                    self.ended = true;
                    self.damaged = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(bytes: &[u8], block: usize) -> (Vec<u8>, u64, bool) {
        let mut lines = Lines::new(bytes, block);
        let (mut out, mut too_long) = (Vec::new(), 0);
        loop {
            match lines.read().unwrap() {
                Piece::Lines(piece) => {
                    assert_eq!(piece.last(), Some(&b'\n'));
                    out.extend_from_slice(piece);
                }
                Piece::Cut(piece) => {
                    out.extend_from_slice(piece);
                    assert!(matches!(lines.read().unwrap(), Piece::End));
                    return (out, too_long, true);
                }
                Piece::TooLong => too_long += 1,
                Piece::Damaged => panic!("nothing is compressed"),
                Piece::End => return (out, too_long, false),
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300), block in 1usize..40) {
            let (out, too_long, cut) = collect(&bytes, block);
            prop_assert_eq!(out, bytes.clone());
            prop_assert_eq!(too_long, 0);
            prop_assert_eq!(cut, bytes.last().is_some_and(|&last| last != b'\n'));
        }
    }

    #[test]
    fn an_endless_line_is_skipped_in_bounded_memory() {
        let mut bytes = vec![b'7'; 5 * LONGEST];
        bytes.extend_from_slice(b"\nnext\n");
        assert_eq!(collect(&bytes, 1000), (b"next\n".to_vec(), 1, false));
        assert_eq!(collect(&bytes[..3 * LONGEST], 1000), (Vec::new(), 1, false));
    }

    #[test]
    fn damage_comes_after_the_lines_before_it() {
        struct Torn(usize);
        impl Read for Torn {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 1 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                buffer[..5].copy_from_slice(b"a\nb\nc");
                Ok(5)
            }
        }
        let mut lines = Lines::new(Torn(0), 100);
        assert!(matches!(lines.read().unwrap(), Piece::Lines(b"a\nb\n")));
        assert!(matches!(lines.read().unwrap(), Piece::Damaged));
        assert!(matches!(lines.read().unwrap(), Piece::End));
    }
}
