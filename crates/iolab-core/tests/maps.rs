// SPDX-License-Identifier: Apache-2.0
//! Maps and summaries compared with events counted one by one, in order and in blocks on several threads.

mod support;

use iolab_core::event::{Dimension, Op};
use iolab_core::filter::Filter;
use iolab_core::grid::Grid;
use iolab_core::heatmap::{heatmap, HeatMap, Scale, Spec, Weight, Y};
use iolab_core::input::from_reader;
use iolab_core::scan::{scan, Scanned, SMALL};
use iolab_core::summary::Summary;
use iolab_core::trace::Trace;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::atomic::AtomicBool;
use support::{corpus, read_bytes};

fn open(bytes: &[u8], name: &str) -> Trace {
    Trace::of_input(from_reader(Cursor::new(bytes.to_vec()), name).unwrap(), Vec::new(), None, None).unwrap()
}

fn map(trace: &mut Trace, spec: &Spec, filter: &Filter, threads: usize) -> (HeatMap, Scanned<()>) {
    heatmap(trace, spec, filter, Some(threads), &AtomicBool::new(false)).unwrap()
}

type Row = (u64, u64, u8, u64, u64);

fn log(rows: &[Row]) -> String {
    rows.iter()
        .map(|(time, latency, op, size, offset)| format!("{time}, {latency}, {op}, {size}, {offset}, 0\n"))
        .collect()
}

fn row() -> impl Strategy<Value = Row> {
    (0u64..100_000, 0u64..1 << 45, 0u8..3, 1u64..1 << 24, 2u64..1 << 50)
}

/// Cells as absolute (start of the column, smallest value of the bucket) -> count.
fn cells(map: &HeatMap) -> BTreeMap<(i64, u64), u64> {
    let lower = |index: u32| match map.scale {
        Scale::Log(grid) => grid.lower(index),
        Scale::Linear { low, width, buckets } => {
            assert!(index < buckets);
            low + u64::from(index) * width
        }
    };
    let start = |column: u32| map.t0_ns + i64::from(column) * map.interval_ns;
    (0..map.column.len()).map(|cell| ((start(map.column[cell]), lower(map.index[cell])), map.count[cell])).collect()
}

proptest! {
    #[test]
    fn a_map_equals_counting_one_by_one(rows in prop::collection::vec(row(), 1..200), bits in 0u32..=6, wanted in 1u32..50, which in 0usize..3) {
        let y = [Y::Latency, Y::Offset, Y::Size][which];
        let spec = Spec { bits, columns_wanted: wanted, linear_buckets: (y == Y::Offset).then_some(64), ..Spec::new(y) };
        let (map, _) = map(&mut open(log(&rows).as_bytes(), "x_lat.1.log"), &spec, &Filter::default(), 1);
        let mut expected = BTreeMap::new();
        for (time, latency, _, size, offset) in rows.iter().copied() {
            let value = match y { Y::Latency => latency, Y::Offset => offset, Y::Size => size };
            let lower = match map.scale {
                Scale::Log(grid) => grid.lower(grid.index(value)),
                Scale::Linear { width, .. } => value / width * width,
            };
            *expected.entry(((time as i64 * 1_000_000).div_euclid(map.interval_ns) * map.interval_ns, lower)).or_insert(0u64) += 1;
        }
        prop_assert_eq!(cells(&map), expected);
        prop_assert!(map.column_count <= wanted.max(2));
        prop_assert_eq!(map.tally.events, rows.len() as u64);
        let order: Vec<_> = map.column.iter().zip(&map.index).collect();
        prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        if let Scale::Linear { buckets, .. } = map.scale {
            prop_assert!(buckets <= 64);
        }
    }

    #[test]
    fn filters_ranges_and_weights_account_for_every_event(rows in prop::collection::vec(row(), 1..100), low in 0u64..1 << 44, span in 1u64..1 << 45) {
        let spec = Spec { low: Some(low), high: Some(low + span), weight: Weight::Time, ..Spec::new(Y::Latency) };
        let reads = ["read".to_owned()];
        let filter = Filter::new([("op", &reads[..])]).unwrap();
        let (map, _) = map(&mut open(log(&rows).as_bytes(), "x_lat.1.log"), &spec, &filter, 1);
        let reads: Vec<_> = rows.iter().filter(|row| row.2 == 0).map(|row| row.1).collect();
        let inside: Vec<_> = reads.iter().copied().filter(|&latency| low <= latency && latency < low + span).collect();
        prop_assert_eq!(map.tally.skipped, (rows.len() - reads.len()) as u64);
        prop_assert_eq!(map.tally.outside, (reads.len() - inside.len()) as u64);
        prop_assert_eq!(map.tally.events, inside.len() as u64);
        prop_assert_eq!(map.count.iter().sum::<u64>(), inside.iter().sum::<u64>());
    }

    #[test]
    fn percentiles_are_within_the_grids_bound(rows in prop::collection::vec(row(), 1..200)) {
        let mut trace = open(log(&rows).as_bytes(), "x_lat.1.log");
        let scanned = scan(&mut trace, |work| Summary::new(Filter::default(), work), Some(1), &AtomicBool::new(false)).unwrap();
        let mut latencies: Vec<_> = rows.iter().map(|row| row.1).collect();
        latencies.sort_unstable();
        for (name, found) in scanned.sink.latency.percentiles() {
            let q = name.parse::<f64>().map_or(1.0, |percent| percent / 100.0);
            let exact = latencies[((q * latencies.len() as f64).ceil() as usize).clamp(1, latencies.len()) - 1];
            prop_assert!(exact <= found && found as f64 <= exact as f64 * (1.0 + 1.0 / 64.0));
        }
    }
}

#[test]
fn fixed_intervals_and_both_ends_of_the_range() {
    let rows = [(0, 10, 0, 1, 100), (1, 20, 0, 1, 200), (5, 30, 0, 1, 299)];
    let spec = Spec {
        interval_ns: Some(2_000_000),
        low: Some(100),
        high: Some(300),
        linear_buckets: Some(200),
        ..Spec::new(Y::Offset)
    };
    let (map, _) = map(&mut open(log(&rows).as_bytes(), "x_lat.1.log"), &spec, &Filter::default(), 1);
    assert_eq!(map.scale, Scale::Linear { low: 100, width: 1, buckets: 200 });
    assert_eq!((map.column.as_slice(), map.index.as_slice()), (&[0, 0, 2][..], &[0, 100, 199][..]));
    assert_eq!((map.t0_ns, map.interval_ns, map.column_count), (0, 2_000_000, 3));
}

#[test]
fn no_matching_event_is_an_empty_map() {
    let words = ["sdz".to_owned()];
    let filter = Filter::new([("device", &words[..])]).unwrap();
    let (map, _) = map(&mut open(&corpus("biosnoop.txt"), ""), &Spec::new(Y::Offset), &filter, 1);
    assert_eq!((map.column_count, map.column.len(), map.tally.events, map.tally.skipped), (0, 0, 0, 4));
}

#[test]
fn invalid_maps_are_refused() {
    let latency = Spec::new(Y::Latency);
    for spec in [
        Spec { bits: 11, ..latency.clone() },
        Spec { interval_ns: Some(0), ..latency.clone() },
        Spec { columns_wanted: 0, ..latency.clone() },
        Spec { linear_buckets: Some(0), ..latency.clone() },
        Spec { low: Some(5), high: Some(5), ..latency.clone() },
    ] {
        assert!(spec.check().is_err(), "{spec:?}");
    }
}

/// A large log with some damage, in its own file.
fn big() -> (std::path::PathBuf, u64) {
    use std::fmt::Write;
    let mut text = String::new();
    let mut lines = 0u64;
    while text.len() < SMALL as usize + 100_000 {
        let value = lines.wrapping_mul(2_654_435_761) % (1 << (10 + lines % 20));
        if lines % 50_021 == 17 {
            text.push_str("torn, line\n");
        } else {
            writeln!(
                text,
                "{}, {value}, {}, {}, {}, 0",
                lines / 40,
                lines % 2,
                512 << (lines % 9),
                (lines * 40_503) % 65_536 * 4096
            )
            .unwrap();
        }
        lines += 1;
    }
    let path = std::env::temp_dir().join(format!(
        "iolab-big-{}-{:?}_lat.1.log",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&path, text).unwrap();
    (path, lines)
}

#[test]
fn threads_change_nothing() {
    let (path, lines) = big();
    let open = || Trace::open(path.to_str().unwrap(), None, None).unwrap();
    for y in [Y::Latency, Y::Offset, Y::Size] {
        let (one, alone) = map(&mut open(), &Spec::new(y), &Filter::default(), 1);
        let (three, together) = map(&mut open(), &Spec::new(y), &Filter::default(), 3);
        assert_eq!(one, three);
        assert_eq!(one.tally.events + alone.work.ledger.damaged, lines);
        let examples = |scanned: &Scanned<()>| scanned.work.ledger.examples(&scanned.lines_of_block);
        assert_eq!(examples(&alone), examples(&together));
        assert_eq!(examples(&alone)[1].0, 50_021 + 18);
    }
    let summary = |threads| {
        scan(&mut open(), |work| Summary::new(Filter::default(), work), Some(threads), &AtomicBool::new(false))
            .unwrap()
            .sink
    };
    let (mut one, mut three) = (summary(1), summary(3));
    assert_eq!(
        (one.events, one.span, one.ops, one.backwards()),
        (three.events, three.span, three.ops, three.backwards())
    );
    assert_eq!(one.latency.percentiles(), three.latency.percentiles());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn time_running_backwards_is_counted() {
    let rows = [(5, 1, 0, 1, 2), (4, 1, 0, 1, 2), (6, 1, 0, 1, 2), (1, 1, 0, 1, 2)];
    let mut trace = open(log(&rows).as_bytes(), "x_lat.1.log");
    let mut summary =
        scan(&mut trace, |work| Summary::new(Filter::default(), work), Some(1), &AtomicBool::new(false)).unwrap().sink;
    assert_eq!((summary.backwards(), summary.span), (2, Some((1_000_000, 6_000_000))));
}

#[test]
fn names_beyond_the_limit_become_other_except_requested_ones() {
    let mut text = String::from("time_us,device\n");
    for number in 0..100_500 {
        text.push_str(&format!("{number},d{number}\n"));
    }
    let words = ["d100400".to_owned()];
    let mut trace = open(text.as_bytes(), "");
    let scanned =
        scan(&mut trace, |work| Summary::new(Filter::default(), work), Some(1), &AtomicBool::new(false)).unwrap();
    assert_eq!(scanned.sink.other(Dimension::Device, &scanned.work.names), 500);
    assert_eq!(scanned.sink.distinct(Dimension::Device), 100_001);
    let filter = Filter::new([("device", &words[..])]).unwrap();
    let scanned = scan(
        &mut open(text.as_bytes(), ""),
        |work| Summary::new(filter.clone(), work),
        Some(1),
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_eq!(scanned.sink.events, 1);
}

#[test]
fn the_grid_of_a_map_agrees_with_events() {
    let events = read_bytes(&corpus("biosnoop.txt"), "", None, None).unwrap().events;
    let (map, _) = map(&mut open(&corpus("biosnoop.txt"), ""), &Spec::new(Y::Latency), &Filter::default(), 1);
    let grid = Grid::new(3).unwrap();
    let mut indices: Vec<_> =
        events.iter().filter_map(|event| event.latency_ns).map(|latency| grid.index(latency)).collect();
    indices.sort_unstable();
    let mut found: Vec<_> =
        map.index.iter().zip(&map.count).flat_map(|(&index, &count)| vec![index; count as usize]).collect();
    found.sort_unstable();
    assert_eq!(found, indices);
    assert!(events.iter().any(|event| event.op == Op::Trim));
}
