// SPDX-License-Identifier: Apache-2.0
//! Pages of trace rings are decoded as the kernel wrote them, merged by time, and refused if inconsistent.

#[path = "support/rings.rs"]
mod rings;

use iolab_core::tracefs::format::{Format, Layout};
use iolab_core::tracefs::merge::Merge;
use iolab_core::tracefs::page::{Cursor, Head};
use proptest::prelude::*;
use rings::{page, Kernel, Piece, KERNELS};

const LAYOUT: Layout = Layout { timestamp: 0, commit: 8, commit_size: 8, data: 16, size: 4096 };

/// Time and data of a record.
type Timed = (u64, Vec<u8>);

/// The records of a page, and the result at its end.
fn read(page: &[u8]) -> (Vec<Timed>, Result<(), &'static str>) {
    let mut records = Vec::new();
    let head = match Head::of(page, &LAYOUT) {
        Ok(head) => head,
        Err(torn) => return (records, Err(torn.0)),
    };
    let mut cursor = Cursor::new(&head);
    loop {
        match cursor.next(page) {
            Ok(Some(record)) => records.push((record.time_ns, page[record.start..record.end].to_vec())),
            Ok(None) => return (records, Ok(())),
            Err(torn) => return (records, Err(torn.0)),
        }
    }
}

#[test]
fn times_run_on_over_every_kind_of_piece() {
    let top = 0xa8u64 << 56;
    let pieces = [
        Piece::Data(5, vec![1; 4]),
        Piece::Extend(1 << 40),
        Piece::Data(7, vec![2; 8]),
        Piece::Discarded(3),
        Piece::LongData(1, vec![3; 200]),
        Piece::Stamp(1 << 50),
        Piece::Data(2, vec![4; 112]),
    ];
    let (records, end) = read(&page(&LAYOUT, top + 100, &pieces));
    assert_eq!(end, Ok(()));
    let times: Vec<u64> = records.iter().map(|record| record.0 - top).collect();
    assert_eq!(times, [105, (1 << 40) + 112, (1 << 40) + 113, (1 << 50) + 2], "discarded records move no time");
    assert_eq!(records.iter().map(|record| record.1.len()).collect::<Vec<_>>(), [4, 8, 200, 112]);
}

#[test]
fn a_header_reports_missed_records() {
    let mut bytes = page(&LAYOUT, 9, &[Piece::Data(0, vec![1; 4])]);
    bytes[8 + 3] |= 0x80 | 0x40;
    bytes[16 + 8..][..8].copy_from_slice(&77u64.to_le_bytes());
    let head = Head::of(&bytes, &LAYOUT).unwrap();
    assert_eq!((head.missed, head.missed_count), (true, Some(77)));
    assert_eq!(read(&bytes).0.len(), 1);
    bytes[8 + 3] = 0x80;
    assert_eq!(Head::of(&bytes, &LAYOUT).unwrap().missed_count, None);
    let mut merge = Merge::new(LAYOUT, 1);
    merge.push(0, bytes, 100);
    let faults = merge.take_faults();
    assert_eq!((faults.gaps, faults.missed), (1, 1), "a gap without a number is not zero records");
}

#[test]
fn torn_pages_are_refused() {
    let good = page(&LAYOUT, 9, &[Piece::Data(0, vec![1; 40]), Piece::Data(0, vec![2; 40])]);
    assert!(read(&good[..10]).1.unwrap_err().contains("ends within"));
    let mut long = good.clone();
    long[8..12].copy_from_slice(&5000u32.to_le_bytes());
    assert!(read(&long).1.unwrap_err().contains("more bytes than it has"));
    let mut cut = good.clone();
    cut[8..12].copy_from_slice(&60u32.to_le_bytes());
    let (records, end) = read(&cut);
    assert_eq!((records.len(), end.is_err()), (1, true), "what is whole is kept");
    for word in [0u32, 29 | 1 << 5] {
        let mut empty = page(&LAYOUT, 9, &[]);
        empty[8] = 12;
        empty[16..20].copy_from_slice(&word.to_le_bytes());
        assert!(read(&empty).1.unwrap_err().contains("without length"));
    }
    let mut rest = good;
    rest[16..20].copy_from_slice(&29u32.to_le_bytes());
    assert_eq!(read(&rest), (vec![], Ok(())), "an empty rest is the end");
}

#[test]
fn pages_of_a_kernel() {
    // written by Linux 6.18 on two processors for three reads of 4 KiB of a loop device by dd
    let kernel = Kernel::read("linux-6.18");
    let mut merge = Merge::new(kernel.layout, 2);
    for processor in 0..2 {
        let place = format!("{}/../../tests/data/tracefs/linux-6.18/cpu{processor}.page", env!("CARGO_MANIFEST_DIR"));
        merge.push(processor, std::fs::read(place).unwrap(), u64::MAX);
    }
    let mut records = Vec::new();
    merge.drain(u64::MAX, |_, time, data| records.push((time, data.to_vec())));
    assert_eq!(merge.take_faults(), Default::default());
    let name = |record: &(u64, Vec<u8>)| {
        let of = kernel.formats.values().find(|format| record.1[..2] == format.id.to_le_bytes());
        of.expect("an event that was switched on").name.clone()
    };
    let names: Vec<String> = records.iter().map(name).collect();
    assert_eq!(names, ["block_bio_queue", "block_rq_issue", "block_rq_complete"].repeat(3));
    let field =
        |record: usize, field: &str| kernel.formats[&names[record]].number(field).unwrap().of(&records[record].1);
    for read in 0..3 {
        for record in read * 3..read * 3 + 3 {
            assert_eq!(field(record, "sector"), Some(read as u64 * 8));
            assert_eq!((field(record, "nr_sector"), field(record, "dev")), (Some(8), Some(7 << 20)));
        }
        assert_eq!(field(read * 3 + 2, "error"), Some(0));
        assert_eq!(kernel.formats["block_bio_queue"].text("comm").unwrap().of(&records[read * 3].1), Some(&b"dd"[..]));
    }
}

#[test]
fn descriptions_of_three_kernels() {
    let sizes = KERNELS.map(|name| Kernel::read(name).layout.size);
    assert_eq!(sizes, [4096, 4096, 65536]);
    let letters = KERNELS.map(|name| Kernel::read(name).formats["block_rq_issue"].field("rwbs").unwrap().size);
    assert_eq!(letters, [10, 8, 8]);
}

#[test]
fn incomplete_formats_name_the_missing_part() {
    let text = "name: x\nID: 7\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n\tfield:__data_loc char[] b;\toffset:4;\tsize:4;\tsigned:0;\n";
    let format = Format::parse(text).unwrap();
    assert_eq!(format.number("a").unwrap().of(&[0xff, 0xff, 0xff, 0xff]), Some(u64::MAX));
    let record = [0, 0, 0, 0, 8, 0, 4, 0, b'h', b'i', 0, 9];
    assert_eq!(format.text("b").unwrap().of(&record), Some(&b"hi"[..]));
    assert_eq!(format.text("b").unwrap().of(&record[..10]), None, "data beyond the record is missing");
    let relative = Format::parse(&text.replace("__data_loc", "__rel_loc")).unwrap();
    let record = [0, 0, 0, 0, 1, 0, 3, 0, 9, b'h', b'i', 0];
    assert_eq!(relative.text("b").unwrap().of(&record), Some(&b"hi"[..]));
    assert_eq!(relative.text("b").unwrap().of(&record[..11]), None);
    for (declaration, is_number, is_text) in [
        ("char a[4]", false, true),
        ("unsigned char a", true, false),
        ("const char * a", true, false),
        ("u32 a[1]", false, false),
        ("__data_loc u8[] a", false, false),
    ] {
        let format = Format::parse(&text.replace("int a", declaration)).unwrap();
        assert_eq!((format.number("a").is_ok(), format.text("a").is_ok()), (is_number, is_text), "{declaration}");
    }
    assert!(format.number("c").unwrap_err().0.contains("has no field c"));
    assert!(format.number("b").unwrap_err().0.contains("not a number"));
    for (bad, words) in [
        ("", "without the event's name"),
        ("name: x\nID: many\n", "no number"),
        ("name: x\nID: 1\n\tfield:int a;\toffset:x;\tsize:4;\n", "cannot read the field"),
        ("name: x\nID: 1\n\tfield:int a;\toffset:99999999;\tsize:4;\n", "cannot read the field"),
        ("name: x\nID: 1\n\tfield:", "ends within a field"),
    ] {
        assert!(Format::parse(bad).unwrap_err().0.contains(words), "{bad}");
    }
    assert!(Layout::parse("").unwrap_err().0.contains("timestamp"));
    let tiny = "field: u64 timestamp;offset:0;size:8;\nfield: local_t commit;offset:8;size:8;\nfield: char data;offset:16;size:8;\n";
    assert!(Layout::parse(tiny).unwrap_err().0.contains("cannot read"));
}

#[test]
fn a_record_from_the_future_is_refused() {
    let mut merge = Merge::new(LAYOUT, 1);
    merge.push(
        0,
        page(&LAYOUT, 50, &[Piece::Data(0, vec![1; 4]), Piece::Extend(1 << 58), Piece::Data(0, vec![2; 4])]),
        100,
    );
    merge.push(0, page(&LAYOUT, 60, &[Piece::Data(0, vec![3; 4])]), 100);
    let mut seen = Vec::new();
    merge.drain(u64::MAX, |_, time, data| seen.push((time, data[0])));
    assert_eq!(seen, [(50, 1), (60, 3)]);
    assert_eq!(merge.take_faults().torn, 1);
    assert_eq!(merge.waiting(0), 0);
}

prop_compose! {
    fn stream()(pages in prop::collection::vec((0u64..2000, prop::collection::vec((0u32..500, 1usize..40), 0..20)), 0..6)) -> Vec<(u64, Vec<(u32, usize)>)> {
        pages
    }
}

proptest! {
    #[test]
    fn merged_records_are_in_order_and_complete(streams in prop::collection::vec(stream(), 1..4), until in 0u64..8000) {
        let mut merge = Merge::new(LAYOUT, streams.len());
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut serial = 0u32;
        for (processor, pages) in streams.iter().enumerate() {
            let mut time = 0;
            for (later, records) in pages {
                time += later;
                let start = time;
                let mut pieces = Vec::new();
                for (delta, words) in records {
                    time += u64::from(*delta);
                    expected.push((time, serial));
                    pieces.push(Piece::Data(*delta, serial.to_le_bytes().repeat(*words)));
                    serial += 1;
                }
                merge.push(processor, page(&LAYOUT, start, &pieces), 100_000);
            }
        }
        let mut seen = Vec::new();
        let mut take = |_: usize, time: u64, data: &[u8]| seen.push((time, u32::from_le_bytes(data[..4].try_into().unwrap())));
        merge.drain(until, &mut take);
        merge.drain(u64::MAX, &mut take);
        prop_assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert_eq!(merge.take_faults().torn, 0);
        seen.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn any_bytes_are_a_page_or_not(bytes in prop::collection::vec(any::<u8>(), 0..600), length in prop::option::of(0u64..600)) {
        let mut bytes = bytes;
        if let (Some(length), true) = (length, bytes.len() > 16) {
            bytes[8..16].copy_from_slice(&length.to_le_bytes());
        }
        let (records, _) = read(&bytes);
        prop_assert!(records.iter().map(|record| record.1.len()).sum::<usize>() <= bytes.len());
        let mut merge = Merge::new(LAYOUT, 1);
        merge.push(0, bytes, u64::MAX);
        let mut seen = 0;
        merge.drain(u64::MAX, |_, _, _| seen += 1);
        prop_assert_eq!(seen, records.len());
    }

    #[test]
    fn any_text_is_a_description_or_not(text in "(name: [a-z]{0,3}\n)?(ID: [0-9]{0,6}\n)?(\tfield:[a-z_ \\[\\]0-9]{0,20};\t?(offset|size|signed):[0-9-]{0,9};(size:[0-9]{0,9};)?\n){0,6}") {
        if let Ok(format) = Format::parse(&text) {
            for field in &format.fields {
                let _ = format.number(&field.name).map(|number| number.of(&[0; 64]));
                let _ = format.text(&field.name).map(|text| text.of(&[0xff; 64]).map(<[u8]>::len));
            }
        }
        let _ = Layout::parse(&text);
    }
}
