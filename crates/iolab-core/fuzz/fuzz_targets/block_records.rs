// SPDX-License-Identifier: Apache-2.0
// Any records of the block layer's tracepoints: never a panic, and no more I/Os than completions.

#![no_main]

use iolab_core::block::fields::{Fields, Point, POINTS};
use iolab_core::block::{Block, Device, Process, World};
use iolab_core::frames::events::Rows;
use iolab_core::tracefs::format::{Field, Format, Kind};

struct Any;

impl World for Any {
    fn device(&mut self, number: u32) -> Device {
        Device { name: number.to_string(), wanted: number % 5 != 0, bios: number % 3 == 0 }
    }

    fn process(&mut self, thread: u32, name: &[u8]) -> Process {
        Process { pid: (thread % 7 != 0).then_some(thread), name: name.to_vec(), excluded: thread % 11 == 0 }
    }
}

fn format(name: &str) -> Format {
    let field = |name: &str, offset, size| {
        let kind = if matches!(name, "rwbs" | "comm") { Kind::Characters } else { Kind::Number };
        Field { name: name.into(), offset, size, signed: name == "error", kind }
    };
    let fields = vec![
        field("common_pid", 0, 1),
        field("dev", 1, 1),
        field("sector", 2, 1),
        field("nr_sector", 3, 1),
        field("new_sector", 3, 1),
        field("bytes", 4, 2),
        field("error", 6, 1),
        field("rwbs", 7, 3),
        field("comm", 7, 2),
    ];
    Format { name: name.into(), id: 1, fields }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let formats = POINTS.map(|(name, _, _)| format(name));
    let find = |name: &str| formats.iter().find(|format| format.name == name);
    let mut block = Block::new(Fields::find(find).expect("all fields are there"), 0);
    let mut rows = Rows::default();
    let mut completions = 0;
    for (time, record) in data.chunks(12).enumerate() {
        match record[0] % 10 {
            8 => block.begin_loss(),
            9 => block.end_loss(),
            number => {
                let point = POINTS[usize::from(number)].1;
                completions += u64::from(matches!(point, Point::Complete | Point::BioComplete));
                block.take(point, time as u64, &record[1..], &mut Any, &mut rows);
            }
        }
    }
    assert!(block.counts.events + block.counts.excluded <= completions);
    assert_eq!(rows.len() as u64, block.counts.events);
    rows.payload("block");
});
