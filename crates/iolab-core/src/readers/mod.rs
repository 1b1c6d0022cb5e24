// SPDX-License-Identifier: Apache-2.0
//! Formats of traces, one file each: how they are told apart and how their bytes become events.

pub mod biosnoop;
pub mod blkparse;
pub mod blktrace;
pub mod csv;
pub mod field;
pub mod fio_hist;
pub mod fio_layout;
pub mod fio_log;
pub mod iosnoop;
pub mod table;

use crate::event::Sink;
use crate::ledger::{Ledger, Reason};
use crate::names::Names;

/// What a reader works with besides its bytes.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Names met so far.
    pub names: Names,
    /// What could not be read.
    pub ledger: Ledger,
    /// Block of the file that is being read; 0 where a file is read in order.
    pub block: u64,
    /// Lines of the block that were read.
    pub line: u64,
}

impl Work {
    /// Count the current line as damaged.
    #[cold]
    pub fn damage(&mut self, reason: Reason) {
        self.ledger.damage(self.block, self.line, reason);
    }
}

/// A format whose bytes are lines.
pub trait TextFormat {
    /// One line without its end; `whole` is false for a last line that has none. What is no event (blank, header, chatter)
    /// is `Ok` without one.
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason>;

    /// Whole lines. A format may do better than line by line.
    #[inline]
    fn lines<S: Sink>(&mut self, block: &[u8], work: &mut Work, sink: &mut S) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            work.line += 1;
            if let Err(reason) = self.line(trim_end(&block[start..end]), true, work, sink) {
                work.damage(reason);
            }
            start = end + 1;
        }
    }

    /// Nothing follows.
    fn finish<S: Sink>(&mut self, _work: &mut Work, _sink: &mut S) {}

    /// Whether lines can be read in any order.
    fn is_independent(&self) -> bool {
        true
    }
}

/// A line without what some systems put before its end.
pub fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whole lines at the beginning of a file, at most so many, blank ones left out.
pub fn head_lines(head: &[u8], limit: usize) -> impl Iterator<Item = &[u8]> {
    // the last piece is no whole line, unless it is all there is
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    whole
        .split(|&byte| byte == b'\n')
        .map(trim_end)
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
        .take(limit)
}

/// Why a line that is cut is not read: its last number may be too.
pub const CUT: Reason = "the file ends within this line";
