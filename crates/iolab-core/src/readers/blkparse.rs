// SPDX-License-Identifier: Apache-2.0
//! The default text output of blkparse: `8,0  3  11  0.009507758  697  C  W 223490 + 8 [0]`.
//!
//! Device, CPU, sequence number, seconds, PID, action, operation, sector `+` sectors, and process. The action is the
//! event: Q queued, M and F merged, D issued, R requeued, C completed (blkparse(1), "Trace actions").

use super::{head_lines, TextFormat, Work, CUT};
use crate::event::{Dimension, Event, Op, Sink};
use crate::ledger::Reason;
use crate::number::{scaled, unsigned};
use crate::pairing::{Key, Pairing, Start};

/// Reader of the text, with the requests in flight.
#[derive(Clone, Debug, Default)]
pub struct Blkparse {
    pairing: Pairing,
}

struct Line<'a> {
    device: &'a [u8],
    time_ns: u64,
    action: &'a [u8],
    letters: &'a [u8],
    rest: Vec<&'a [u8]>,
    /// The text in brackets at the end; a command name may contain spaces.
    command: Option<&'a [u8]>,
}

fn device_number(text: &[u8]) -> Option<u32> {
    let comma = memchr::memchr(b',', text)?;
    let (major, minor) = (unsigned(&text[..comma])?, unsigned(&text[comma + 1..])?);
    (major < 1 << 12 && minor < 1 << 20).then_some((major as u32) << 20 | minor as u32)
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let device = words.next()?;
    device_number(device)?;
    unsigned(words.next()?)?;
    unsigned(words.next()?)?;
    let time_ns = scaled(words.next()?, 1_000_000_000).filter(|&time| time < crate::cells::LONGEST as u64)?;
    unsigned(words.next()?)?;
    let action = words.next()?;
    let letters = words.next().unwrap_or(b"");
    let command =
        line.trim_ascii_end().strip_suffix(b"]").and_then(|line| Some(&line[memchr::memchr(b'[', line)? + 1..]));
    Some(Line {
        device,
        time_ns,
        action,
        letters,
        rest: words.collect(),
        command: command.filter(|command| !command.is_empty()),
    })
}

impl Blkparse {
    /// Whether a file is output of blkparse.
    pub fn detect(head: &[u8]) -> Option<bool> {
        let (mut good, mut all) = (0, 0);
        for line in head_lines(head, 200) {
            all += 1;
            good += usize::from(parse(line).is_some());
        }
        Some(good * 2 > all && good > 0)
    }

    fn event<S: Sink>(&mut self, line: &Line<'_>, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        let (sector, sectors) = match line.rest.as_slice() {
            [sector, b"+", sectors, ..] => (
                unsigned(sector).ok_or("the sector is not a number")?,
                unsigned(sectors).ok_or("the length is not a number")?,
            ),
            // a flush has neither
            _ => (0, 0),
        };
        let placed = sectors > 0;
        let op = Op::of_letters(line.letters);
        let op = if !placed && line.letters.contains(&b'F') { Op::Flush } else { op };
        let key = Key { device: device_number(line.device).ok_or("no device number")?, sector, op };
        let mut start = || {
            let process = line.command.map(|command| work.names.intern(Dimension::Process, command));
            Start { time_ns: line.time_ns, process, ..Start::default() }
        };
        match line.action {
            b"Q" => {
                let start = start();
                self.pairing.queue(key, start);
            }
            b"D" => {
                let start = start();
                self.pairing.issue(key, start);
            }
            b"M" => self.pairing.merged(key),
            b"R" => self.pairing.requeue(key),
            b"C" => {
                let begun = self.pairing.complete(key);
                let mut event = Event::at(line.time_ns as i64, op);
                event.latency_ns =
                    begun.filter(|begun| !begun.shared).map(|begun| line.time_ns.saturating_sub(begun.time_ns));
                event.keys[Dimension::Process as usize] = begun.and_then(|begun| begun.process);
                event.keys[Dimension::Device as usize] = Some(work.names.intern(Dimension::Device, line.device));
                if placed {
                    event.offset_bytes = Some(sector.checked_mul(512).ok_or("a sector beyond 64 bits of bytes")?);
                    event.size_bytes = sectors.checked_mul(512);
                }
                sink.event(&event, &work.names);
            }
            _ => {}
        }
        Ok(())
    }
}

impl TextFormat for Blkparse {
    fn line<S: Sink>(&mut self, line: &[u8], whole: bool, work: &mut Work, sink: &mut S) -> Result<(), Reason> {
        // the summary at the end begins with words, and its counts are indented
        let first = line.trim_ascii_start().first().copied();
        let summary = |byte: u8| byte.is_ascii_alphabetic() || byte == b'(';
        if first.is_none_or(summary) {
            if let Some(skipped) =
                line.strip_prefix(b"Skips: ").and_then(|rest| unsigned(rest.split(|&byte| byte == b' ').next()?))
            {
                work.ledger.losses = work.ledger.losses.saturating_add(skipped);
            }
            return Ok(());
        }
        if !whole {
            return Err(CUT);
        }
        let parsed = parse(line).ok_or("not a line of blkparse: device, CPU, sequence, time, process, action")?;
        self.event(&parsed, work, sink)
    }

    fn finish<S: Sink>(&mut self, work: &mut Work, _sink: &mut S) {
        work.ledger.unpaired += self.pairing.take_unpaired(true);
    }

    fn is_independent(&self) -> bool {
        false
    }
}
