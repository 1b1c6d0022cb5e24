// SPDX-License-Identifier: Apache-2.0
//! Binary files of blktrace: one per CPU, merged by time, of either byte order.
//!
//! Records of 48 bytes (`struct blk_io_trace`, version 7) or 64 (`blk_io_trace2`, version 8, Linux 6.19), each followed
//! by its payload (`include/uapi/linux/blktrace_api.h`). Notes (category NOTIFY) name processes. Sequence numbers are
//! per device and CPU, so a gap shows lost records. After a damaged record, the reader continues at the next magic
//! number.

use super::Work;
use crate::event::{Dimension, Event, Op, Sink};
use crate::input::is_damage;
use crate::pairing::{Key, Pairing, Start};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, BufRead, BufReader, Read};

const MAGIC: u32 = 0x6561_7400;
const NOTIFY: u64 = 1 << 10;
/// Maximum number of process names.
const PROCESSES: usize = 100_000;
/// Maximum number of pairs of device and CPU; records of others are damage.
const SEQUENCES: usize = 1 << 16;

/// Byte order and version of a record, by its magic number.
fn magic(bytes: &[u8]) -> Option<(bool, u8)> {
    let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let little = u32::from_le_bytes(bytes);
    let big = u32::from_be_bytes(bytes);
    [(true, little), (false, big)]
        .into_iter()
        .find(|(_, word)| word & !0xff == MAGIC && matches!(word & 0xff, 7 | 8))
        .map(|(order, word)| (order, (word & 0xff) as u8))
}

/// Whether a file is output of blktrace.
pub fn detect(head: &[u8]) -> Option<bool> {
    Some(magic(head).is_some())
}

#[derive(Debug, Default)]
struct Record {
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    payload: Vec<u8>,
}

struct Stream {
    reader: BufReader<Box<dyn Read + Send>>,
    at: u64,
    next: Record,
}

impl Stream {
    /// Read the next record into `next`. Returns false at the end.
    fn advance(&mut self, work: &mut Work) -> io::Result<bool> {
        match self.record(work) {
            Err(error) if is_damage(&error) => {
                work.line = self.at;
                work.damage("the file ends within this record");
                Ok(false)
            }
            result => result,
        }
    }

    fn record(&mut self, work: &mut Work) -> io::Result<bool> {
        let mut head = [0u8; 64];
        let mut filled = 0;
        let mut resynced = false;
        loop {
            while filled < 4 {
                match self.reader.read(&mut head[filled..4])? {
                    0 if filled == 0 || resynced => return Ok(false),
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    bytes => filled += bytes,
                }
            }
            if magic(&head).is_some() {
                break;
            }
            if !resynced {
                resynced = true;
                work.line = self.at;
                work.damage("no record of blktrace begins here");
            }
            head.copy_within(1..4, 0);
            filled = 3;
            self.at += 1;
        }
        let (little, version) = magic(&head).expect("just found");
        let length = if version == 7 { 48 } else { 64 };
        self.reader.read_exact(&mut head[4..length])?;
        let u16_at = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if little {
                u16::from_le_bytes(bytes)
            } else {
                u16::from_be_bytes(bytes)
            }
        };
        let u32_at = |at: usize| {
            let bytes = head[at..at + 4].try_into().expect("four bytes");
            if little {
                u32::from_le_bytes(bytes)
            } else {
                u32::from_be_bytes(bytes)
            }
        };
        let u64_at = |at: usize| {
            let bytes = head[at..at + 8].try_into().expect("eight bytes");
            if little {
                u64::from_le_bytes(bytes)
            } else {
                u64::from_be_bytes(bytes)
            }
        };
        let next = &mut self.next;
        (next.sequence, next.time, next.sector, next.bytes) = (u32_at(4), u64_at(8), u64_at(16), u32_at(24));
        if version == 7 {
            (next.action, next.pid, next.device, next.cpu) =
                (u64::from(u32_at(28)), u32_at(32), u32_at(36), u32_at(40));
        } else {
            (next.pid, next.action, next.device, next.cpu) = (u32_at(28), u64_at(32), u32_at(40), u32_at(44));
        }
        let payload = usize::from(u16_at(if version == 7 { 46 } else { 50 }));
        next.payload.clear();
        if (next.action >> 16) & NOTIFY != 0 {
            next.payload.resize(payload, 0);
            self.reader.read_exact(&mut next.payload)?;
        } else {
            skip(&mut self.reader, payload)?;
        }
        self.at += (length + payload) as u64;
        Ok(true)
    }
}

fn skip(reader: &mut impl BufRead, mut bytes: usize) -> io::Result<()> {
    while bytes > 0 {
        let here = reader.fill_buf()?.len().min(bytes);
        if here == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        reader.consume(here);
        bytes -= here;
    }
    Ok(())
}

/// A reader of all files of a trace together.
pub struct Blktrace {
    streams: Vec<Stream>,
    /// Streams with a record, by its time.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    started: bool,
    pairing: Pairing,
    sequences: HashMap<(u32, u32), u32>,
    processes: HashMap<u32, u32>,
}

impl Blktrace {
    /// The reader for the files of all CPUs.
    pub fn new(files: Vec<Box<dyn Read + Send>>) -> Self {
        let stream = |file| Stream { reader: BufReader::with_capacity(64 << 10, file), at: 0, next: Record::default() };
        Self {
            streams: files.into_iter().map(stream).collect(),
            queue: BinaryHeap::new(),
            started: false,
            pairing: Pairing::default(),
            sequences: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    fn refill(&mut self, stream: usize, work: &mut Work) -> io::Result<()> {
        if self.streams[stream].advance(work)? {
            self.queue.push(Reverse((self.streams[stream].next.time, stream)));
        }
        Ok(())
    }

    /// Read up to this many records. Returns false at the end.
    pub fn step<S: Sink>(&mut self, records: usize, work: &mut Work, sink: &mut S) -> io::Result<bool> {
        if !self.started {
            self.started = true;
            for stream in 0..self.streams.len() {
                self.refill(stream, work)?;
            }
        }
        for _ in 0..records {
            let Some(Reverse((_, stream))) = self.queue.pop() else {
                work.ledger.unpaired += self.pairing.take_unpaired(true);
                return Ok(false);
            };
            let record = std::mem::take(&mut self.streams[stream].next);
            work.line = self.streams[stream].at;
            self.take(&record, work, sink);
            self.streams[stream].next = record;
            self.refill(stream, work)?;
        }
        Ok(true)
    }

    fn take<S: Sink>(&mut self, record: &Record, work: &mut Work, sink: &mut S) {
        if (record.action >> 16) & NOTIFY != 0 {
            self.note(record, work);
            return;
        }
        // notes have no sequence number, so only other records are counted
        let place = (record.device, record.cpu);
        if self.sequences.len() >= SEQUENCES && !self.sequences.contains_key(&place) {
            work.damage("more than 65,536 pairs of device and CPU");
            return;
        }
        let last = self.sequences.insert(place, record.sequence);
        let missing = last.map_or(0, |last| record.sequence.wrapping_sub(last).wrapping_sub(1));
        if missing > 0 && missing < 1 << 31 {
            work.ledger.losses += u64::from(missing);
            self.pairing.forget_all();
        }
        if record.time >= crate::cells::LONGEST as u64 {
            work.damage("a time beyond 146 years");
            return;
        }
        let key = Key { device: record.device, sector: record.sector, op: operation(record) };
        match record.action & 0xff {
            1 => {
                let start = self.start(record, work);
                self.pairing.queue(key, start);
            }
            2 => self.pairing.merged(key),
            6 => self.pairing.requeue(key),
            7 => {
                let start = self.start(record, work);
                self.pairing.issue(key, start);
            }
            8 => self.completed(key, record, work, sink),
            _ => {}
        }
    }

    fn completed<S: Sink>(&mut self, key: Key, record: &Record, work: &mut Work, sink: &mut S) {
        let begun = self.pairing.complete(key);
        let mut event = Event::at(record.time as i64, key.op);
        event.latency_ns = begun.filter(|begun| !begun.shared).map(|begun| record.time.saturating_sub(begun.time_ns));
        event.keys[Dimension::Process as usize] = begun.and_then(|begun| begun.process);
        // the kernel's encoding of a device number
        let device = format!("{},{}", record.device >> 20, record.device & 0xf_ffff);
        event.keys[Dimension::Device as usize] = Some(work.names.intern(Dimension::Device, device.as_bytes()));
        if record.bytes > 0 {
            event.offset_bytes = record.sector.checked_mul(512);
            event.size_bytes = Some(u64::from(record.bytes));
        }
        sink.event(&event, &work.names);
    }

    fn start(&mut self, record: &Record, work: &mut Work) -> Start {
        let process = self.processes.get(&record.pid).copied();
        let process = process.unwrap_or_else(|| {
            let name = if record.pid == 0 { "(kernel)".to_owned() } else { format!("process {}", record.pid) };
            work.names.intern(Dimension::Process, name.as_bytes())
        });
        Start { time_ns: record.time, process: Some(process), ..Start::default() }
    }

    /// A note: a process name (code 0), the time of day, or a message.
    fn note(&mut self, record: &Record, work: &mut Work) {
        if record.action & 0xff != 0 || record.action & 0x100 != 0 {
            return;
        }
        let name = record.payload.split(|&byte| byte == 0).next().unwrap_or(b"");
        if !name.is_empty() && (self.processes.len() < PROCESSES || self.processes.contains_key(&record.pid)) {
            let id = work.names.intern(Dimension::Process, name);
            self.processes.insert(record.pid, id);
        }
    }
}

fn operation(record: &Record) -> Op {
    let category = record.action >> 16;
    let has = |bit: u32| category & (1 << bit) != 0;
    if has(13) {
        Op::Trim
    } else if record.bytes == 0 && has(2) {
        Op::Flush
    } else if has(1) {
        Op::Write
    } else if has(0) {
        Op::Read
    } else {
        Op::Other
    }
}
