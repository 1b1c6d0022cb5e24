// SPDX-License-Identifier: Apache-2.0
//! Runs a trace through a sink: on several threads if its lines are independent, otherwise in order.
//!
//! Threads take blocks of a file in turn. A block contains the lines that begin in it, so its last line is read beyond
//! its end.

use crate::error::TraceError;
use crate::event::Sink;
use crate::lines::{BLOCK, LONGEST};
use crate::readers::Work;
use crate::trace::{AnyText, Trace};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A file smaller than this is read by one thread.
pub const SMALL: u64 = 4 << 20;
/// Maximum number of threads: with more, the limit is memory, not parsing.
const THREADS: usize = 4;

/// A sink whose parts can be merged.
pub trait Merge: Sink + Send {
    /// Merge another part. Its names have the ids of `other_work`.
    fn merge(&mut self, other: Self, own: &mut Work, other_work: &Work);
}

/// Result of a scan.
pub struct Scanned<S> {
    /// The sink with all events.
    pub sink: S,
    /// Names and ledger.
    pub work: Work,
    /// Lines of each block, if the file was read in blocks.
    pub lines_of_block: Vec<u32>,
}

/// Send all events of a trace to sinks that `make` creates; `stop` ends it early.
pub fn scan<S: Merge>(
    trace: &mut Trace,
    make: impl Fn(&mut Work) -> S,
    threads: Option<usize>,
    stop: &AtomicBool,
) -> Result<Scanned<S>, TraceError> {
    let available = || std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let threads = threads.unwrap_or_else(available);
    let failed = |error: io::Error| TraceError::new(format!("reading failed: {error}"));
    if threads > 1 {
        if let Some((file, size, reader)) = trace.plain.take().filter(|plain| plain.1 >= SMALL) {
            return blocks(&file, size, &reader, make, threads, BLOCK as u64, stop).map_err(failed);
        }
    }
    let mut work = Work::default();
    let mut sink = make(&mut work);
    while !stop.load(Ordering::Relaxed) && trace.step(&mut work, &mut sink).map_err(failed)? {}
    Ok(Scanned { sink, work, lines_of_block: Vec::new() })
}

/// Send the events at the beginning and at the end of an uncompressed file to a sink; of other files none.
pub fn ends<S: Sink>(trace: &Trace, work: &mut Work, sink: &mut S) -> io::Result<()> {
    let Some((file, size, reader)) = &trace.plain else { return Ok(()) };
    let mut buffer = vec![0; 64 << 10];
    for from in [0, size.saturating_sub(buffer.len() as u64)] {
        let bytes = file.read_at(&mut buffer, from)?;
        let begin = if from == 0 { 0 } else { memchr::memchr(b'\n', &buffer[..bytes]).map_or(bytes, |end| end + 1) };
        let end = memchr::memrchr(b'\n', &buffer[..bytes]).map_or(begin, |end| (end + 1).max(begin));
        reader.clone().lines(&buffer[begin..end], work, sink);
    }
    Ok(())
}

fn blocks<S: Merge>(
    file: &File,
    size: u64,
    reader: &AnyText,
    make: impl Fn(&mut Work) -> S,
    threads: usize,
    block: u64,
    stop: &AtomicBool,
) -> io::Result<Scanned<S>> {
    let next = AtomicU64::new(0);
    let parts: Vec<Read<S>> = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for _ in 0..threads {
            let mut work = Work::default();
            let mut part = Part {
                file,
                size,
                block,
                buffer: Vec::new(),
                sink: make(&mut work),
                reader: reader.clone(),
                work,
                counted: Vec::new(),
            };
            let next = &next;
            running.push(scope.spawn(move || -> io::Result<_> {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number * block >= size || stop.load(Ordering::Relaxed) {
                        return Ok((part.sink, part.work, part.counted));
                    }
                    part.read(number)?;
                }
            }));
        }
        running.into_iter().map(|thread| thread.join().expect("a reader does not panic")).collect::<io::Result<_>>()
    })?;
    let mut parts = parts.into_iter();
    let (mut sink, mut work, mut counted) = parts.next().expect("at least one thread");
    for (other, other_work, other_counted) in parts {
        work.ledger.merge(&other_work.ledger);
        sink.merge(other, &mut work, &other_work);
        counted.extend(other_counted);
    }
    counted.sort_unstable();
    Ok(Scanned { sink, work, lines_of_block: counted.into_iter().map(|entry| entry.1).collect() })
}

/// State of a thread: its sink, its work, and the lines of its blocks.
type Read<S> = (S, Work, Vec<(u64, u32)>);

struct Part<'a, S> {
    file: &'a File,
    size: u64,
    block: u64,
    buffer: Vec<u8>,
    sink: S,
    reader: AnyText,
    work: Work,
    counted: Vec<(u64, u32)>,
}

impl<S: Sink> Part<'_, S> {
    /// Read the lines that begin in block `number`.
    fn read(&mut self, number: u64) -> io::Result<()> {
        let start = number * self.block;
        let end = (start + self.block).min(self.size);
        // the preceding byte shows whether a line begins at the start
        let from = start.saturating_sub(1);
        self.load(from, end)?;
        let begin = if start == 0 { Some(0) } else { memchr::memchr(b'\n', &self.buffer).map(|end| end + 1) };
        self.work.block = number;
        self.work.line = 0;
        self.sink.block(number);
        if let Some(begin) = begin.filter(|&begin| from + (begin as u64) < end) {
            let complete = self.complete(from)?;
            let whole = memchr::memrchr(b'\n', &self.buffer[begin..]).map_or(begin, |end| begin + end + 1);
            self.reader.lines(&self.buffer[begin..whole], &mut self.work, &mut self.sink);
            if whole < self.buffer.len() {
                if complete {
                    self.reader.cut(&self.buffer[whole..], &mut self.work, &mut self.sink);
                } else {
                    self.work.line += 1;
                    self.work.damage("a line longer than 1 MiB");
                }
            }
        }
        self.counted.push((number, self.work.line as u32));
        Ok(())
    }

    fn load(&mut self, from: u64, to: u64) -> io::Result<()> {
        let length = (to - from) as usize;
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        self.buffer.truncate(length);
        let mut filled = 0;
        while filled < length {
            match self.file.read_at(&mut self.buffer[filled..], from + filled as u64) {
                // the file was truncated in the meantime
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }

    /// Read to the end of the last line that begins in the block. Returns false if it does not end within `LONGEST`.
    fn complete(&mut self, from: u64) -> io::Result<bool> {
        let mut end = from + self.buffer.len() as u64;
        let limit = end + LONGEST as u64;
        while self.buffer.last() != Some(&b'\n') && end < self.size {
            if end >= limit {
                return Ok(false);
            }
            let mut more = [0u8; 512];
            let bytes = self.file.read_at(&mut more[..((self.size - end) as usize).min(512)], end)?;
            if bytes == 0 {
                break;
            }
            match memchr::memchr(b'\n', &more[..bytes]) {
                Some(found) => {
                    self.buffer.extend_from_slice(&more[..found + 1]);
                    return Ok(true);
                }
                None => self.buffer.extend_from_slice(&more[..bytes]),
            }
            end += bytes as u64;
        }
        Ok(true)
    }
}
