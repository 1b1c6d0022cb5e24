// SPDX-License-Identifier: Apache-2.0
//! Helpers of the tests of readers.
#![allow(dead_code)] // each test file uses a part

use iolab_core::error::TraceError;
use iolab_core::event::{Dimension, Event, Sink};
use iolab_core::input;
use iolab_core::names::Names;
use iolab_core::readers::Work;
use iolab_core::trace::Trace;
use std::io::Cursor;

pub const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// Stores every event.
#[derive(Clone, Debug, Default)]
pub struct Keep(pub Vec<Event>);

impl Sink for Keep {
    fn event(&mut self, event: &Event, _names: &Names) {
        self.0.push(*event);
    }
}

/// Everything read from a trace.
#[derive(Debug)]
pub struct Read {
    pub events: Vec<Event>,
    pub work: Work,
    pub format: &'static str,
    pub assumptions: Vec<String>,
    pub averaged: bool,
}

impl Read {
    /// Name of an event in a dimension.
    pub fn name(&self, event: usize, dimension: Dimension) -> Option<String> {
        let key = self.events[event].key(dimension)?;
        Some(String::from_utf8_lossy(self.work.names.table(dimension).name(key)).into_owned())
    }

    pub fn damaged_lines(&self) -> Vec<u64> {
        self.work.ledger.examples(&[]).into_iter().map(|example| example.0).collect()
    }
}

pub fn read_bytes(bytes: &[u8], name: &str, format: Option<&str>, columns: Option<&str>) -> Result<Read, TraceError> {
    let input = input::from_reader(Cursor::new(bytes.to_vec()), name).map_err(|error| TraceError::io(name, &error))?;
    finish(Trace::of_input(input, Vec::new(), format, columns)?)
}

/// All events of an open trace, to its end.
pub fn finish(mut trace: Trace) -> Result<Read, TraceError> {
    let (mut work, mut keep) = (Work::default(), Keep::default());
    while trace.step(&mut work, &mut keep).map_err(|error| TraceError::new(error.to_string()))? {}
    Ok(Read { events: keep.0, work, format: trace.format, assumptions: trace.assumptions, averaged: trace.averaged })
}

pub fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(format!("{CORPUS}/{name}")).expect("a file of the corpus")
}

/// A record of blktrace.
#[derive(Clone, Debug)]
pub struct Record {
    pub sequence: u32,
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u32,
    pub pid: u32,
    pub device: u32,
    pub cpu: u32,
    pub payload: Vec<u8>,
}

pub const READ: u32 = 1 << 16;
pub const WRITE: u32 = 1 << 17;
pub const NOTIFY: u32 = 1 << 26;
pub const QUEUED: u32 = 1;
pub const ISSUED: u32 = 7;
pub const COMPLETED: u32 = 8;
pub const SDA: u32 = 8 << 20;

impl Record {
    pub fn io(sequence: u32, time: u64, action: u32, sector: u64) -> Self {
        Self { sequence, time, sector, bytes: 4096, action, pid: 42, device: SDA, cpu: 0, payload: Vec::new() }
    }

    pub fn process(pid: u32, name: &str) -> Self {
        let mut payload = name.as_bytes().to_vec();
        payload.resize(16, 0);
        Self { pid, payload, bytes: 0, ..Self::io(0, 0, NOTIFY, 0) }
    }

    /// The bytes of version 7 or 8.
    pub fn encode(&self, little: bool, version: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let put32 = |out: &mut Vec<u8>, value: u32| {
            out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
        };
        let put64 = |out: &mut Vec<u8>, value: u64| {
            out.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
        };
        put32(&mut out, 0x6561_7400 | u32::from(version));
        put32(&mut out, self.sequence);
        put64(&mut out, self.time);
        put64(&mut out, self.sector);
        put32(&mut out, self.bytes);
        if version == 7 {
            put32(&mut out, self.action);
            put32(&mut out, self.pid);
        } else {
            put32(&mut out, self.pid);
            put64(&mut out, u64::from(self.action));
        }
        put32(&mut out, self.device);
        put32(&mut out, self.cpu);
        let length = self.payload.len() as u16;
        let pair = [[0, 0], if little { length.to_le_bytes() } else { length.to_be_bytes() }];
        out.extend(pair.concat());
        if version == 8 {
            out.extend([0; 12]);
        }
        out.extend(&self.payload);
        out
    }
}

/// A small binary trace: two I/Os of a process with a name.
pub fn blktrace(little: bool, version: u8) -> Vec<u8> {
    let records = [
        Record::process(42, "fio"),
        Record::io(1, 1000, READ | QUEUED, 8),
        Record::io(2, 1500, READ | ISSUED, 8),
        Record::io(3, 2000, WRITE | ISSUED, 800),
        Record::io(4, 9500, READ | COMPLETED, 8),
        Record::io(5, 12_000, WRITE | COMPLETED, 800),
    ];
    records.iter().flat_map(|record| record.encode(little, version)).collect()
}

/// A line of a histogram log with counts in these bins.
pub fn histogram_line(time: u64, direction: u8, bins: usize, filled: &[(usize, u64)]) -> String {
    let mut counts = vec![0u64; bins];
    filled.iter().for_each(|&(bin, count)| counts[bin] += count);
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    format!("{time}, {direction}, 8192, {}\n", counts.join(", "))
}
