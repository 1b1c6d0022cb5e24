// SPDX-License-Identifier: Apache-2.0
//! A small machine with block layer records, which become I/Os as text.

use super::rings::Kernel;
use iolab_core::block::fields::{Fields, Point, POINTS};
use iolab_core::block::{Block, Device, Process, World};
use iolab_core::event::Op;
use iolab_core::frames::events::{Events, Rows};
use iolab_core::frames::reader::{Frame, Reader};
use iolab_core::frames::{frame, Kind};
use std::collections::HashMap;

pub const SDA: u64 = 8 << 20;
pub const DM: u64 = 253 << 20;
pub const LOOP: u64 = 7 << 20;
pub const EPOCH: i64 = 1_000_000;

/// sda has requests, dm-0 has bios, loop0 is not recorded; thread 10 belongs to process 9, process 66 is excluded.
pub struct Small;

impl World for Small {
    fn device(&mut self, number: u32) -> Device {
        let name = match u64::from(number) {
            SDA => "sda",
            DM => "dm-0",
            _ => "loop0",
        };
        Device { name: name.into(), wanted: u64::from(number) != LOOP, bios: u64::from(number) == DM }
    }

    fn process(&mut self, thread: u32, name: &[u8]) -> Process {
        let pid = if thread == 10 { 9 } else { thread };
        Process { pid: Some(pid), name: name.to_vec(), excluded: pid == 66 }
    }
}

/// An I/O as text.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub struct Io {
    pub time: i64,
    pub op: &'static str,
    pub device: String,
    pub offset: Option<u64>,
    pub size: Option<u64>,
    pub latency: Option<u64>,
    pub queue: Option<u64>,
    pub submitter: Option<(String, u32, u32)>,
    pub error: Option<String>,
    pub flags: Option<String>,
}

pub struct Bench {
    pub kernel: Kernel,
    pub block: Block,
    pub rows: Rows,
    reader: Reader,
    names: HashMap<usize, Vec<String>>,
}

impl Bench {
    pub fn new(kernel: &str) -> Self {
        let kernel = Kernel::read(kernel);
        let fields = Fields::find(|name| kernel.formats.get(name)).unwrap();
        Self {
            kernel,
            block: Block::new(fields, EPOCH),
            rows: Rows::default(),
            reader: Reader::default(),
            names: HashMap::new(),
        }
    }

    pub fn record(
        &mut self,
        point: Point,
        device: u64,
        sector: u64,
        sectors: u64,
        letters: &str,
        more: &[(&str, u64)],
    ) -> Vec<u8> {
        let name = POINTS.iter().find(|named| named.1 == point).unwrap().0;
        let mut fields = vec![("dev", device), ("sector", sector)];
        if point != Point::Split {
            fields.push(("nr_sector", sectors));
        }
        if matches!(point, Point::Issue | Point::RequestMerged) {
            fields.push(("bytes", sectors * 512));
        }
        fields.extend(more);
        self.kernel.record(name, &fields, letters)
    }

    #[allow(clippy::too_many_arguments)] // all fields of a record
    pub fn at(
        &mut self,
        time: u64,
        point: Point,
        device: u64,
        sector: u64,
        sectors: u64,
        letters: &str,
        more: &[(&str, u64)],
    ) {
        let record = self.record(point, device, sector, sectors, letters, more);
        self.block.take(point, time, &record, &mut Small, &mut self.rows);
    }

    /// Queue, issue and completion of one request.
    pub fn whole(&mut self, time: u64, sector: u64, letters: &str, thread: u64) {
        self.at(time, Point::BioQueue, SDA, sector, 8, letters, &[("common_pid", thread)]);
        self.at(time + 3, Point::Issue, SDA, sector, 8, letters, &[]);
        self.at(time + 10, Point::Complete, SDA, sector, 8, letters, &[]);
    }

    pub fn ios(&mut self) -> Vec<Io> {
        let frames = self.reader.feed(&frame(Kind::Events, &self.rows.payload("block"))).unwrap();
        let Frame::Events(events) = &frames[0] else { panic!() };
        for (number, column) in events.columns.iter().enumerate() {
            self.names.entry(number).or_default().extend(column.names.iter().cloned());
        }
        ios(events, &self.names)
    }
}

pub fn ios(events: &Events, names: &HashMap<usize, Vec<String>>) -> Vec<Io> {
    let column = |number: usize, width: usize, row: usize| {
        let column = &events.columns[number];
        let mut value = [0; 8];
        value[..width].copy_from_slice(&column.values[row * width..][..width]);
        (column.valid[row] == 1).then(|| u64::from_le_bytes(value))
    };
    let name = |number: usize, row: usize| column(number, 4, row).map(|id| names[&number][id as usize].clone());
    let io = |row| Io {
        time: column(0, 8, row).unwrap() as i64 - EPOCH,
        op: Op::ALL[column(1, 1, row).unwrap() as usize].name(),
        device: name(9, row).unwrap(),
        offset: column(5, 8, row),
        size: column(6, 8, row),
        latency: column(3, 8, row),
        queue: column(4, 8, row),
        submitter: name(10, row)
            .map(|submitter| (submitter, column(7, 4, row).unwrap() as u32, column(8, 4, row).unwrap() as u32)),
        error: name(15, row),
        flags: name(16, row),
    };
    (0..events.rows).map(io).collect()
}

pub fn fio(pid: u32, thread: u32) -> Option<(String, u32, u32)> {
    Some(("fio".into(), pid, thread))
}

pub fn read(time: i64, sector: u64) -> Io {
    let (device, size) = ("sda".to_owned(), Some(4096));
    Io {
        time,
        op: "read",
        device,
        offset: Some(sector * 512),
        size,
        latency: Some(7),
        queue: Some(3),
        submitter: fio(9, 10),
        ..Io::default()
    }
}
