// SPDX-License-Identifier: Apache-2.0
//! Records of the block layer of three kernels become I/Os: each once, with its latency and process.

#[path = "support/blocks.rs"]
mod blocks;
#[path = "support/rings.rs"]
mod rings;

use blocks::{fio, read, Bench, Io, Small, DM, LOOP, SDA};
use iolab_core::block::fields::{Fields, Point, POINTS};
use iolab_core::tracefs::merge::Merge;
use proptest::prelude::*;
use rings::{page, Kernel, Piece, KERNELS};

#[test]
fn the_same_pages_in_three_kernels() {
    for name in KERNELS {
        let mut bench = Bench::new(name);
        let mut merge = Merge::new(bench.kernel.layout, 2);
        let queue = bench.record(Point::BioQueue, SDA, 80, 8, "RA", &[("common_pid", 10)]);
        let issue = bench.record(Point::Issue, SDA, 80, 8, "RA", &[]);
        let complete = bench.record(Point::Complete, SDA, 80, 8, "RA", &[("error", -121i64 as u64)]);
        merge.push(1, page(&bench.kernel.layout, 110, &[Piece::Data(0, complete)]), 1000);
        merge.push(0, page(&bench.kernel.layout, 100, &[Piece::Data(0, queue), Piece::Data(3, issue)]), 1000);
        let Bench { kernel, block, rows, .. } = &mut bench;
        merge.drain(1000, |_, time, record| {
            let (_, point, _) =
                POINTS.into_iter().find(|named| record[..2] == kernel.formats[named.0].id.to_le_bytes()).unwrap();
            block.take(point, time, record, &mut Small, rows);
        });
        let expected = Io { error: Some("EREMOTEIO".into()), flags: Some("A".into()), ..read(110, 80) };
        assert_eq!(bench.ios(), [expected], "{name}");
        assert_eq!((bench.block.counts.damaged, bench.block.take_unpaired()), (0, 0));
    }
}

#[test]
fn parts_are_one_io() {
    let mut bench = Bench::new("linux-6.18");
    bench.at(0, Point::BioQueue, SDA, 8, 16, "R", &[("common_pid", 10)]);
    bench.at(3, Point::Issue, SDA, 8, 16, "R", &[]);
    bench.at(5, Point::Complete, SDA, 8, 10, "R", &[]);
    assert!(bench.ios().is_empty());
    bench.at(10, Point::Complete, SDA, 18, 6, "R", &[]);
    assert_eq!(bench.ios(), [Io { size: Some(8192), ..read(10, 8) }]);
}

#[test]
fn a_failed_request_ends_as_a_whole() {
    let mut bench = Bench::new("linux-6.18");
    bench.at(3, Point::Issue, SDA, 8, 16, "R", &[]);
    bench.at(10, Point::Complete, SDA, 8, 8, "R", &[("error", -5i64 as u64)]);
    let failed = &bench.ios()[0];
    assert_eq!((failed.error.as_deref(), failed.size, failed.latency), (Some("EIO"), Some(8192), Some(7)));
    assert_eq!(bench.block.take_unpaired(), 0);
}

#[test]
fn a_write_between_flushes_is_three_ios() {
    let mut bench = Bench::new("linux-6.18");
    let thread = [("common_pid", 10)];
    bench.at(0, Point::BioQueue, SDA, 40, 8, "FWFSM", &thread);
    bench.at(1, Point::Issue, SDA, 0, 0, "FF", &[]);
    bench.at(4, Point::Complete, SDA, u64::MAX, 0, "FF", &[]);
    bench.at(5, Point::Issue, SDA, 40, 8, "WSM", &[]);
    bench.at(9, Point::Complete, SDA, 40, 8, "WSM", &[]);
    bench.at(10, Point::Issue, SDA, 0, 0, "FF", &[]);
    bench.at(12, Point::Complete, SDA, u64::MAX, 0, "FF", &[]);
    bench.at(12, Point::Complete, SDA, 40, 0, "WSM", &[]);
    let sda = || "sda".to_owned();
    let flush = Io { op: "flush", device: sda(), ..Io::default() };
    assert_eq!(
        bench.ios(),
        [
            Io { time: 4, latency: Some(3), queue: Some(1), submitter: fio(9, 10), ..flush.clone() },
            Io {
                time: 9,
                op: "write",
                device: sda(),
                offset: Some(40 * 512),
                size: Some(4096),
                latency: Some(4),
                queue: Some(5),
                submitter: fio(9, 10),
                flags: Some("MS".into()),
                ..Io::default()
            },
            Io { time: 12, latency: Some(2), ..flush },
        ]
    );
    // fsync of an unchanged file: a flush without data
    bench.at(20, Point::BioQueue, SDA, 0, 0, "FWS", &thread);
    bench.at(21, Point::Issue, SDA, 0, 0, "FF", &[]);
    bench.at(24, Point::Complete, SDA, u64::MAX, 0, "FF", &[]);
    bench.at(24, Point::Complete, SDA, 0, 0, "FWS", &[]);
    let ios = bench.ios();
    assert_eq!((ios.len(), ios[0].op, ios[0].latency), (1, "flush", Some(3)));
    assert_eq!(bench.block.take_unpaired(), 0);
}

#[test]
fn discards_requeues_merges_and_splits() {
    let mut bench = Bench::new("linux-6.18");
    bench.whole(0, 8, "DS", 10);
    let discard = Io { op: "trim", flags: Some("S".into()), ..read(10, 8) };
    assert_eq!(bench.ios(), [discard]);
    // returned by the driver: the latency is that of the second issue, the queue time counts from the first
    bench.at(0, Point::BioQueue, SDA, 8, 8, "R", &[("common_pid", 10)]);
    bench.at(3, Point::Issue, SDA, 8, 8, "R", &[]);
    bench.at(4, Point::Requeue, SDA, 8, 8, "R", &[]);
    bench.at(13, Point::Issue, SDA, 8, 8, "R", &[]);
    bench.at(20, Point::Complete, SDA, 8, 8, "R", &[]);
    assert_eq!(bench.ios(), [Io { queue: Some(13), ..read(20, 8) }]);
    // 16 is merged after 8 into one request; 64 to 80 is split
    for (sector, sectors) in [(8, 8), (16, 8), (64, 16)] {
        bench.at(30, Point::BioQueue, SDA, sector, sectors, "R", &[("common_pid", 10)]);
    }
    bench.at(31, Point::Merged, SDA, 16, 8, "R", &[]);
    bench.at(32, Point::Split, SDA, 64, 0, "R", &[("new_sector", 72)]);
    for (sector, sectors) in [(8, 16), (64, 8), (72, 8)] {
        bench.at(33, Point::Issue, SDA, sector, sectors, "R", &[]);
        bench.at(40, Point::Complete, SDA, sector, sectors, "R", &[]);
    }
    assert_eq!(bench.ios(), [Io { size: Some(8192), ..read(40, 8) }, read(40, 64), read(40, 72)]);
    assert_eq!(bench.block.take_unpaired(), 0);
}

#[test]
fn devices_with_bios_and_those_not_wanted() {
    let mut bench = Bench::new("linux-6.18");
    for device in [DM, LOOP] {
        bench.at(3, Point::BioQueue, device, 8, 8, "R", &[("common_pid", 10)]);
        bench.at(10, Point::BioComplete, device, 8, 8, "R", &[]);
    }
    bench.at(11, Point::BioComplete, SDA, 8, 8, "R", &[]);
    bench.at(11, Point::Complete, DM, 8, 8, "R", &[]);
    assert_eq!(bench.ios(), [Io { device: "dm-0".into(), queue: None, ..read(10, 8) }], "nothing twice");
}

#[test]
fn processes_are_excluded_by_queueing_not_by_completion() {
    let mut bench = Bench::new("linux-6.18");
    bench.at(0, Point::BioQueue, SDA, 8, 8, "R", &[("common_pid", 66)]);
    bench.at(3, Point::Issue, SDA, 8, 8, "R", &[("common_pid", 10)]);
    bench.at(10, Point::Complete, SDA, 8, 8, "R", &[("common_pid", 10)]);
    bench.at(20, Point::BioQueue, SDA, 8, 8, "R", &[("common_pid", 10)]);
    bench.at(23, Point::Issue, SDA, 8, 8, "R", &[("common_pid", 66)]);
    bench.at(30, Point::Complete, SDA, 8, 8, "R", &[("common_pid", 66)]);
    assert_eq!(bench.ios(), [read(30, 8)]);
    assert_eq!((bench.block.counts.events, bench.block.counts.excluded), (1, 1));
}

#[test]
fn after_a_loss_no_latency_is_invented() {
    let mut bench = Bench::new("linux-6.18");
    bench.at(3, Point::Issue, SDA, 8, 8, "R", &[]);
    bench.block.begin_loss();
    // the completion of the first, and the issue of another at the same position, are missing
    bench.at(10, Point::Complete, SDA, 8, 8, "R", &[]);
    bench.at(11, Point::Issue, SDA, 16, 8, "R", &[]);
    bench.block.end_loss();
    bench.at(20, Point::Complete, SDA, 16, 8, "R", &[]);
    bench.whole(30, 8, "R", 10);
    let unknown = |time, sector| Io { latency: None, queue: None, submitter: None, ..read(time, sector) };
    assert_eq!(bench.ios(), [unknown(10, 8), unknown(20, 16), read(40, 8)]);
    assert_eq!(bench.block.take_unpaired(), 3, "a start and two completions");
}

#[test]
fn a_missing_tracepoint_or_field_is_reported() {
    let mut kernel = Kernel::read("linux-6.1");
    kernel.formats.remove("block_rq_requeue");
    assert!(Fields::find(|name| kernel.formats.get(name)).is_ok(), "an optional one");
    let issue = kernel.formats.remove("block_rq_issue").unwrap();
    let words = Fields::find(|name| kernel.formats.get(name)).unwrap_err().0;
    assert!(words.contains("no tracepoint block_rq_issue"), "{words}");
    let fields = issue.fields.iter().filter(|field| field.name != "bytes").cloned().collect();
    kernel.formats.insert(issue.name.clone(), iolab_core::tracefs::format::Format { fields, ..issue });
    let words = Fields::find(|name| kernel.formats.get(name)).unwrap_err().0;
    assert!(words.contains("block_rq_issue has no field bytes"), "{words}");
}

#[test]
fn short_records_are_counted() {
    let mut bench = Bench::new("linux-6.18");
    for (_, point, _) in POINTS {
        let record = bench.record(point, if point == Point::BioComplete { DM } else { SDA }, 8, 8, "R", &[]);
        for length in 0..record.len().min(24) {
            bench.block.take(point, 1, &record[..length], &mut Small, &mut bench.rows);
        }
    }
    assert!(bench.block.counts.damaged >= 24 * 8 - 8);
    assert!(bench.ios().is_empty());
}

#[derive(Clone, Debug)]
struct Request {
    start: u64,
    sector: u64,
    sectors: u64,
    write: bool,
    parts: Vec<u64>,
    latency: u64,
}

prop_compose! {
    fn request()(start in 0u64..1000, sector in 0u64..60, write: bool, parts in prop::collection::vec(1u64..9, 1..4), latency in 1u64..300) -> Request {
        Request { start, sector: sector * 64, sectors: parts.iter().sum(), write, parts, latency }
    }
}

proptest! {
    // Every request is one I/O with its latency; if another one is in flight at the same position, it has no latency.
    #[test]
    fn every_request_is_one_io(requests in prop::collection::vec(request(), 1..20)) {
        let mut bench = Bench::new("linux-6.1");
        let mut steps: Vec<(u64, usize, usize)> = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            steps.push((request.start, number, 0));
            (1..=request.parts.len()).for_each(|part| steps.push((request.start + request.latency, number, part)));
        }
        steps.sort_unstable();
        for (time, number, part) in steps {
            let Request { sector, sectors, write, parts, .. } = &requests[number];
            let letters = if *write { "W" } else { "R" };
            if part == 0 {
                bench.at(time, Point::Issue, SDA, *sector, *sectors, letters, &[]);
            } else {
                let done: u64 = parts[..part - 1].iter().sum();
                bench.at(time, Point::Complete, SDA, sector + done, parts[part - 1], letters, &[]);
            }
        }
        let io = |request: &Request| {
            let op = if request.write { "write" } else { "read" };
            let (time, latency) = ((request.start + request.latency) as i64, Some(request.latency));
            let size = Some(request.sectors * 512);
            Io { op, size, latency, queue: None, submitter: None, ..read(time, request.sector) }
        };
        let meets = |one: &Request, two: &Request| one.sector == two.sector && one.write == two.write
            && one.start <= two.start + two.latency && two.start <= one.start + one.latency;
        let alone = requests.iter().enumerate().all(|(number, one)| requests[..number].iter().all(|two| !meets(one, two)));
        let (mut ios, mut expected) = (bench.ios(), requests.iter().map(io).collect::<Vec<_>>());
        prop_assert!(ios.iter().all(|io| io.latency.is_none() || expected.contains(io)), "{:?}", ios);
        if alone {
            let order = |io: &Io| (io.time, io.offset, io.op);
            ios.sort_by_key(order);
            expected.sort_by_key(order);
            prop_assert_eq!(ios, expected);
            prop_assert_eq!(bench.block.take_unpaired(), 0);
        }
    }
}
