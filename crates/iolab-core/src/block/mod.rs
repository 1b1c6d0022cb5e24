// SPDX-License-Identifier: Apache-2.0
//! Turns tracepoints of the block layer into I/Os.
//!
//! Latency is that of the device: from `block_rq_issue` to `block_rq_complete`. The process and the time of queueing
//! come from `block_bio_queue`, which runs in the submitter; at the issue any process may be current. A request that
//! completes in parts is one I/O, which ends with its last byte. Devices without requests (device mapper, md) show bios
//! only; these are recorded from `block_bio_queue` to `block_bio_complete` if requested, because the lower devices show
//! the same I/O again. Does no I/O; data of processes and devices comes from a `World`.

pub mod fields;
pub mod letters;

use crate::errno;
use crate::event::Op;
use crate::frames::events::{Key as Names, Row, Rows};
use crate::pairing::{Completed, Key, Pairing, Start};
use fields::{Fields, Point};
use letters::Letters;
use std::collections::HashMap;

/// Maximum number of cached threads.
const THREADS: usize = 1 << 16;
/// Maximum number of cached devices.
const DEVICES: usize = 1 << 12;
/// Bytes of a sector of the block layer, for all devices.
const SECTOR: u64 = 512;

/// Properties of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Name.
    pub name: String,
    /// Whether its I/O is recorded.
    pub wanted: bool,
    /// Whether it has bios but no requests.
    pub bios: bool,
}

/// Properties of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// PID, if known.
    pub pid: Option<u32>,
    /// Command name.
    pub name: Vec<u8>,
    /// Whether its I/O is left out.
    pub excluded: bool,
}

/// Source of data about devices and processes.
pub trait World {
    /// A device by kernel number (major in the upper 12 bits, minor in the lower 20).
    fn device(&mut self, number: u32) -> Device;

    /// The process of a thread with the command name `name`.
    fn process(&mut self, thread: u32, name: &[u8]) -> Process;
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os.
    pub events: u64,
    /// I/Os of processes that are left out.
    pub excluded: u64,
    /// I/Os without latency, because others with the same position and operation were in flight.
    pub shared: u64,
    /// Records shorter than their format.
    pub damaged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    id: u32,
    wanted: bool,
    bios: bool,
}

#[derive(Clone, Copy, Debug)]
struct Submitter {
    name: [u8; 16],
    pid: Option<u32>,
    id: u32,
    excluded: bool,
}

/// Turns records into I/Os.
#[derive(Debug)]
pub struct Block {
    fields: Fields,
    pairing: Pairing,
    devices: HashMap<u32, Known>,
    threads: HashMap<u32, Submitter>,
    flags: HashMap<u8, u32>,
    excluded: HashMap<u32, ()>,
    /// Difference of the Unix epoch and the trace clock.
    epoch_ns: i64,
    lossy: bool,
    /// Counts.
    pub counts: Counts,
}

impl Block {
    /// No I/Os yet. `epoch_ns` plus the trace clock is the time in nanoseconds since the Unix epoch.
    pub fn new(fields: Fields, epoch_ns: i64) -> Self {
        Self {
            fields,
            pairing: Pairing::default(),
            devices: HashMap::default(),
            threads: HashMap::default(),
            flags: HashMap::default(),
            excluded: HashMap::default(),
            epoch_ns,
            lossy: false,
            counts: Counts::default(),
        }
    }

    /// Process a record of a tracepoint.
    pub fn take(&mut self, point: Point, time_ns: u64, record: &[u8], world: &mut impl World, rows: &mut Rows) {
        if self.take_one(point, time_ns, record, world, rows).is_none() {
            self.counts.damaged += 1;
        }
    }

    /// Records are missing from now on: no start in flight is valid, and no new one until `end_loss`.
    pub fn begin_loss(&mut self) {
        self.pairing.forget_all();
        self.lossy = true;
    }

    /// Records are complete again from now on.
    pub fn end_loss(&mut self) {
        self.pairing.forget_all();
        self.lossy = false;
    }

    /// The name or process of a thread may have changed.
    pub fn forget_thread(&mut self, thread: u32) {
        self.threads.remove(&thread);
    }

    /// Starts without a completion, and completions without a start, since the last call.
    pub fn take_unpaired(&mut self) -> u64 {
        self.pairing.take_unpaired(false)
    }

    fn take_one(
        &mut self,
        point: Point,
        time_ns: u64,
        record: &[u8],
        world: &mut impl World,
        rows: &mut Rows,
    ) -> Option<()> {
        let number = self.fields.device.of(record)? as u32;
        let known = self.device(number, world, rows);
        if !known.wanted || known.bios != matches!(point, Point::BioComplete) && point != Point::BioQueue {
            return Some(());
        }
        let sector = self.fields.sector.of(record)?;
        let letters = Letters::of(self.fields.letters(point).of(record)?);
        // a flush has no position: kernels write 0 or the maximum there, which may differ between issue and completion
        let flush = Key { device: number, sector: 0, op: Op::Flush };
        let key = if letters.op == Op::Flush { flush } else { Key { device: number, sector, op: letters.op } };
        match point {
            Point::BioQueue => {
                let start = self.start(time_ns, record, world, rows)?;
                let bytes = self.fields.sectors.of(record)?.saturating_mul(SECTOR);
                if letters.preflush {
                    // the kernel issues a separate flush request, which may serve other waiters too
                    self.pairing.queue(flush, start);
                }
                if bytes > 0 || !letters.preflush {
                    self.pairing.queue(key, Start { sector, bytes, left: bytes, ..start });
                }
            }
            Point::Issue => {
                let bytes = self.fields.bytes.of(record)?;
                if !self.lossy {
                    self.pairing.issue(key, Start { time_ns, sector, bytes, left: bytes, ..Start::default() });
                }
            }
            Point::Complete => {
                let bytes = self.fields.sectors.of(record)?.saturating_mul(SECTOR);
                // after the parts of a write with a flush, the kernel completes it once more with no data
                if bytes == 0 && matches!(letters.op, Op::Read | Op::Write) {
                    return Some(());
                }
                let error = self.fields.error(point).of(record)? as i64;
                // a failed request ends as a whole, whatever part was done
                let done = if error == 0 { bytes } else { 0 };
                let begun = match self.pairing.complete_part(key, done) {
                    Completed::Part => return Some(()),
                    Completed::Whole(start) => Some(start),
                    Completed::Unknown => None,
                };
                self.done(time_ns, key, bytes, error, begun, known.id, letters, rows);
            }
            Point::BioComplete => {
                let bytes = self.fields.sectors.of(record)?.saturating_mul(SECTOR);
                let error = self.fields.error(point).of(record)? as i64;
                let key = if bytes == 0 && letters.preflush { flush } else { key };
                let begun = self.pairing.complete(key);
                self.done(time_ns, key, bytes, error, begun, known.id, letters, rows);
            }
            Point::Requeue => self.pairing.requeue(key),
            Point::Merged | Point::RequestMerged => self.pairing.merged(key),
            Point::Split => {
                let to = self.fields.split_to?.of(record)?;
                self.pairing.split(key, to);
            }
        }
        Some(())
    }

    /// The start of a bio with its process.
    fn start(&mut self, time_ns: u64, record: &[u8], world: &mut impl World, rows: &mut Rows) -> Option<Start> {
        let thread = self.fields.thread.of(record)? as u32;
        let name = self.fields.command.of(record)?;
        let submitter = self.submitter(thread, name, world, rows);
        let process = Some(submitter.id);
        Some(Start { time_ns, process, pid: submitter.pid, thread: Some(thread), ..Start::default() })
    }

    fn submitter(&mut self, thread: u32, name: &[u8], world: &mut impl World, rows: &mut Rows) -> Submitter {
        let mut padded = [0; 16];
        let length = name.len().min(padded.len());
        padded[..length].copy_from_slice(&name[..length]);
        if let Some(&submitter) = self.threads.get(&thread).filter(|submitter| submitter.name == padded) {
            return submitter;
        }
        let process = world.process(thread, name);
        let id = rows.intern(Names::Process, &process.name);
        let submitter = Submitter { name: padded, pid: process.pid, id, excluded: process.excluded };
        if self.threads.len() >= THREADS {
            self.threads.clear();
        }
        if let (true, Some(pid)) = (submitter.excluded, submitter.pid) {
            self.excluded.insert(pid, ());
        }
        self.threads.insert(thread, submitter);
        submitter
    }

    fn device(&mut self, number: u32, world: &mut impl World, rows: &mut Rows) -> Known {
        if let Some(&known) = self.devices.get(&number) {
            return known;
        }
        let Device { name, wanted, bios } = world.device(number);
        let known = Known { id: rows.intern(Names::Device, name.as_bytes()), wanted, bios };
        if self.devices.len() >= DEVICES {
            self.devices.clear();
        }
        self.devices.insert(number, known);
        known
    }

    #[allow(clippy::too_many_arguments)] // all properties of a completion
    fn done(
        &mut self,
        time_ns: u64,
        key: Key,
        bytes: u64,
        error: i64,
        begun: Option<Start>,
        device: u32,
        letters: Letters,
        rows: &mut Rows,
    ) {
        if begun.and_then(|begun| begun.pid).is_some_and(|pid| self.excluded.contains_key(&pid)) {
            self.counts.excluded += 1;
            return;
        }
        self.counts.events += 1;
        let mut row = Row::at(self.epoch_ns.saturating_add_unsigned(time_ns), key.op);
        if let Some(begun) = begun {
            if begun.shared {
                self.counts.shared += 1;
            } else {
                row.latency_ns = Some(time_ns.saturating_sub(begun.time_ns));
                row.queue_ns = begun.queued_ns.map(|queued| begun.time_ns.saturating_sub(queued));
            }
            (row.pid, row.thread) = (begun.pid, begun.thread);
            row.keys[Names::Process as usize] = begun.process;
        }
        if key.op != Op::Flush {
            row.offset_bytes = begun.map_or(key.sector, |begun| begun.sector).checked_mul(SECTOR);
            row.size_bytes = Some(begun.map_or(bytes, |begun| begun.bytes));
        }
        row.keys[Names::Device as usize] = Some(device);
        if error != 0 {
            let number = error.unsigned_abs().min(u64::from(u32::MAX)) as u32;
            row.keys[Names::Error as usize] = Some(rows.intern(Names::Error, errno::words(number).as_bytes()));
        }
        row.keys[Names::Flags as usize] = match letters.flags {
            0 => None,
            flags => Some(
                *self.flags.entry(flags).or_insert_with(|| rows.intern(Names::Flags, Letters::text(flags).as_bytes())),
            ),
        };
        rows.push(&row);
    }
}
