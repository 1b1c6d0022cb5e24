// SPDX-License-Identifier: Apache-2.0
//! Columns and sums of default maps: cases of the format, and damaged files.

use iolab_core::columns::{Buffers, Column, Table, NO_NAME};
use iolab_core::map_sums::{sum_maps, Content, Map, MapError, Wanted, WITHOUT};
use proptest::prelude::*;

/// A map that the recorder wrote: two seconds, two operations, a missing device and a missing value.
fn sample() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/maps/small.parquet")).unwrap()
}

fn wanted() -> Wanted {
    Wanted {
        source: "block".into(),
        interval_ns: 1_000_000_000,
        from_ns: i64::MIN,
        until_ns: i64::MAX,
        by_bucket: true,
        by_op: true,
        by_device: true,
        is_timed: true,
    }
}

fn map(bytes: &[u8], group: u32) -> Map {
    Map { content: Content::Bytes(bytes.to_vec()), group }
}

#[test]
fn a_file_of_the_recorder() {
    let bytes = sample();
    let table = Table::open(&bytes).unwrap();
    assert_eq!((table.groups(), table.range(0, "second_ns")), (1, Some((-1_000_000_000, 0))));
    assert_eq!(table.range(0, "device"), None);
    let wanted = ["second_ns", "device", "index", "count"];
    let mut buffers = Buffers::default();
    let columns = table.read(0, &wanted, &mut buffers).unwrap();
    assert_eq!(columns[0], Column::Numbers(vec![-1_000_000_000, -1_000_000_000, 0, 0]));
    assert_eq!(columns[1], Column::Names(vec![0, NO_NAME, 0, 0], vec!["sda".into()]));
    assert_eq!(columns[2], Column::Numbers(vec![7, i64::from(WITHOUT), 7, 9]));
    assert_eq!(columns[3], Column::Numbers(vec![2, 3, 5, 1]));
}

#[test]
fn buffers_keep_nothing_of_the_group_before() {
    let bytes = sample();
    let table = Table::open(&bytes).unwrap();
    let mut buffers = Buffers::default();
    for wanted in [&["second_ns", "device", "index"][..], &["op", "device"], &["count"], &["device", "op", "count"]] {
        let fresh = table.read(0, wanted, &mut Buffers::default()).map(<[Column]>::to_vec).unwrap();
        assert_eq!(table.read(0, wanted, &mut buffers).unwrap(), fresh);
        assert!(table.read(0, &["op", "no such column"], &mut buffers).is_err());
    }
}

#[test]
fn sums_by_key_group_and_column() {
    let maps = [map(&sample(), 1), map(&sample(), 1), map(&sample(), 2)];
    let sums = sum_maps(&maps, &wanted(), 1).unwrap();
    assert_eq!(sums.group, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(sums.ios.iter().sum::<i64>(), 33);
    assert_eq!(sums.spent.iter().sum::<i64>(), 3 * (20 + 500 + 90));
    assert_eq!(sums.column.iter().filter(|&&column| column == -1).count(), 6);
    assert!(sums.keys.contains(&(Some("write".into()), None)));
    let whole = Wanted { interval_ns: 10_000_000_000, by_op: false, by_device: false, by_bucket: false, ..wanted() };
    let sums = sum_maps(&maps[..2], &whole, 1).unwrap();
    assert_eq!((sums.column, sums.ios), (vec![-1, 0, -1, 0], vec![5, 6, 5, 6]));
}

#[test]
fn spans_and_sources() {
    let later = Wanted { from_ns: 0, ..wanted() };
    assert_eq!(sum_maps(&[map(&sample(), 0)], &later, 2).unwrap().ios, [5, 1]);
    let other = Wanted { source: "syscall".into(), ..wanted() };
    assert!(sum_maps(&[map(&sample(), 0)], &other, 2).unwrap().ios.is_empty());
    assert!(sum_maps(&[], &wanted(), 2).unwrap().ios.is_empty());
}

#[test]
fn errors_name_the_map() {
    let maps = [map(&sample(), 0), map(b"no map", 0)];
    assert!(matches!(sum_maps(&maps, &wanted(), 2), Err(MapError::Unreadable(1, _))));
    let missing = [Map { content: Content::File("/nonexistent".into()), group: 0 }];
    assert!(matches!(sum_maps(&missing, &wanted(), 2), Err(MapError::Io(0, _))));
}

#[test]
fn every_cut_is_an_error() {
    let bytes = sample();
    for cut in 0..bytes.len() {
        assert!(sum_maps(&[map(&bytes[..cut], 0)], &wanted(), 1).is_err(), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = sample();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = sum_maps(&[map(&bytes, 0)], &wanted(), 1);
    }
}
