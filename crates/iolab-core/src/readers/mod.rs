// SPDX-License-Identifier: Apache-2.0
//! Formats of traces, one file each: detection, and parsing of bytes into events.

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

/// State shared by readers.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Interned names.
    pub names: Names,
    /// Counts of data that was not read.
    pub ledger: Ledger,
    /// Current block of the file; 0 if a file is read in order.
    pub block: u64,
    /// Number of lines read in the block.
    pub line: u64,
}

impl Work {
    /// Count the current line as damaged.
    #[cold]
    pub fn damage(&mut self, reason: Reason) {
        self.ledger.damage(self.block, self.line, reason);
    }
}

/// A format of text lines.
pub trait TextFormat {
    /// A line without its end; `whole` is false for a last line without a line end. Lines without an event (blank,
    /// header, messages) return `Ok(None)`.
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason>;

    /// Complete lines. A format may have a faster implementation.
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

    /// End of the data.
    fn finish<S: Sink>(&mut self, _work: &mut Work, _sink: &mut S) {}

    /// Whether lines can be read in any order.
    fn is_independent(&self) -> bool {
        true
    }
}

/// A line without a trailing carriage return.
pub fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Complete lines at the beginning of a file, up to this many, without blank ones.
pub fn head_lines(head: &[u8], limit: usize) -> impl Iterator<Item = &[u8]> {
    // the last piece is not a complete line, unless it is the whole text
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    whole
        .split(|&byte| byte == b'\n')
        .map(trim_end)
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
        .take(limit)
}

/// Why a truncated line is not read: its last number may be truncated too.
pub const CUT: Reason = "the file ends within this line";
