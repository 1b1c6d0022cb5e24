// SPDX-License-Identifier: Apache-2.0
//! Readers with damaged input: no panic, and losses are counted.

mod support;

use iolab_core::input::from_reader;
use iolab_core::trace::{detect, Trace, FORMATS};
use proptest::prelude::*;
use std::io::Cursor;
use support::{blktrace, corpus, finish, histogram_line, read_bytes, CORPUS};

/// All files of the corpus, and generated ones.
fn samples() -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> =
        std::fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut samples: Vec<_> = names.into_iter().map(|name| (name.clone(), corpus(&name))).collect();
    samples.extend([true, false].map(|little| ("trace.blktrace.0".to_owned(), blktrace(little, 7))));
    samples.push(("h_clat_hist.1.log".into(), histogram_line(100, 0, 1856, &[(5, 3), (700, 2)]).into_bytes()));
    samples
}

#[test]
fn detection_by_name_and_by_content_agree() {
    let mut formats = std::collections::BTreeSet::new();
    for (name, bytes) in samples() {
        let Some(format) = detect(&bytes, &name) else { continue };
        formats.insert(format);
        let (by_name, by_content) =
            (read_bytes(&bytes, &name, Some(format), None), read_bytes(&bytes, &name, None, None));
        match (by_name, by_content) {
            (Ok(by_name), Ok(by_content)) => {
                assert_eq!(by_name.events, by_content.events, "{name}");
                assert_eq!(by_name.work.ledger, by_content.work.ledger, "{name}");
            }
            (by_name, by_content) => assert_eq!(by_name.unwrap_err(), by_content.unwrap_err(), "{name}"),
        }
    }
    assert_eq!(formats.len(), FORMATS.len(), "every format has a sample: {formats:?}");
}

#[test]
fn every_cut_of_every_sample() {
    for (name, bytes) in samples() {
        let Some(format) = detect(&bytes, &name) else { continue };
        let Ok(whole) = read_bytes(&bytes, &name, Some(format), None) else { continue };
        for cut in 1..bytes.len().min(6000) {
            let Ok(part) = read_bytes(&bytes[..cut], &name, Some(format), None) else { continue };
            assert!(part.events.len() <= whole.events.len(), "{name} cut at {cut}");
            // a truncation costs at most the line at its end, except that a layout depends on the lines that show it
            if format == "blktrace" {
                assert_eq!(part.events, whole.events[..part.events.len()], "{name} cut at {cut}");
            }
        }
    }
}

#[test]
fn a_cut_blktrace_says_so() {
    let bytes = blktrace(true, 7);
    let read = read_bytes(&bytes[..bytes.len() - 10], "", None, None).unwrap();
    assert_eq!((read.events.len(), read.work.ledger.damaged, read.work.ledger.unpaired), (1, 1, 1));
    let middle = bytes.len() - 3 * 48;
    let torn = [&bytes[..middle + 20], &bytes[middle + 48..]].concat();
    let read = read_bytes(&torn, "", None, None).unwrap();
    assert!(read.work.ledger.damaged >= 1 && !read.events.is_empty());
}

#[test]
fn compressed_samples_read_alike() {
    use std::io::Write;
    for (name, bytes) in samples() {
        let Ok(whole) = read_bytes(&bytes, &name, None, None) else { continue };
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        let packed = encoder.finish().unwrap();
        let read = read_bytes(&packed, &format!("{name}.gz"), None, None).unwrap();
        assert_eq!(read.events, whole.events, "{name}");
        let cut = read_bytes(&packed[..packed.len() - 1], &format!("{name}.gz"), None, None).unwrap();
        assert!(cut.work.ledger.damaged >= whole.work.ledger.damaged.max(1), "{name}: a cut gzip file is counted");
    }
}

fn any_format() -> impl Strategy<Value = &'static str> {
    prop::sample::select(FORMATS.to_vec())
}

fn anything(bytes: Vec<u8>, format: Option<&str>, columns: Option<&str>) {
    let Ok(input) = from_reader(Cursor::new(bytes), "x") else { return };
    if let Ok(trace) = Trace::of_input(input, Vec::new(), format, columns) {
        let _ = finish(trace);
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), format in prop::option::of(any_format())) {
        anything(bytes, format, None);
    }

    #[test]
    fn random_text_never_panics(text in "([0-9, .:+\\-xRWQDC\\[\\]\"\t]{0,60}\n){0,30}", format in prop::option::of(any_format())) {
        anything(text.into_bytes(), format, None);
    }

    #[test]
    fn random_tables_never_panic(text in "([0-9,.;e\\-\"a]{0,40}\n){0,20}", columns in "((time|latency|offset|size|op|-)(:(s|us|ns|bytes))?,){1,4}") {
        anything(text.into_bytes(), None, Some(columns.trim_end_matches(',')));
    }

    #[test]
    fn a_table_reads_alike_by_every_separator(
        rows in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 30), 1..40), header in any::<bool>(), bad in "[a-z]{1,9}", at in any::<prop::sample::Index>(),
    ) {
        let mut found = Vec::new();
        for separator in [",", "\t", ";", " ", "  \t"] {
            let mut lines: Vec<String> =
                rows.iter().map(|(time, latency, size)| [time, latency, size].map(u64::to_string).join(separator)).collect();
            // not among the first lines, where it would be the header
            lines.insert(1 + at.index(lines.len()), bad.clone());
            if header {
                lines.insert(0, ["when", "how long", "how much"].map(|word| word.replace(' ', "_")).join(separator));
            }
            let text = lines.join("\n") + "\n";
            let read = read_bytes(text.as_bytes(), "", None, Some("time:us,latency:us,size")).unwrap();
            prop_assert_eq!(read.work.ledger.damaged, 1, "{}", text);
            found.push(read.events);
        }
        prop_assert_eq!(found[0].len(), rows.len());
        prop_assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn tables_one_after_another_are_read_each_by_its_header(
        parts in prop::collection::vec((any::<bool>(), prop::collection::vec((0u64..1 << 30, 1u64..1 << 30), 0..8), "[a-z \n]{0,40}"), 1..6),
    ) {
        let (mut text, mut wanted) = (String::new(), Vec::new());
        for (queued, rows, prose) in &parts {
            let (heading, waited) = if *queued { (" QUE(ms)", " 0.25") } else { ("", "") };
            text += &format!("\n{prose}\nTIME(s) COMM PID DISK T SECTOR BYTES{heading} LAT(ms)\n");
            for (bytes, latency) in rows {
                text += &format!("0.5 a b 7 sda R 8 {bytes}{waited} {latency}\n");
                wanted.push((Some(*bytes), Some(latency * 1_000_000)));
            }
        }
        let read = read_bytes(text.as_bytes(), "", Some("biosnoop"), None).unwrap();
        let found: Vec<_> = read.events.iter().map(|event| (event.size_bytes, event.latency_ns)).collect();
        if wanted.is_empty() || detect(text.as_bytes(), "") == Some("biosnoop") {
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(read.work.ledger.damaged, 0);
        }
    }

    #[test]
    fn samples_with_damage_never_panic(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), noise in prop::collection::vec(any::<u8>(), 0..40), drop in 0usize..40,
    ) {
        let samples = samples();
        let (name, bytes) = which.get(&samples);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            let damaged = [&bytes[..at], &noise, &bytes[(at + drop).min(bytes.len())..]].concat();
            anything(damaged, detect(bytes, name), None);
        }
    }

    #[test]
    fn a_damaged_line_costs_that_line(rows in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u8..3, 1u64..1 << 30), 1..40), bad in "[a-z ]{1,20}", at in any::<prop::sample::Index>()) {
        let mut lines: Vec<String> =
            rows.iter().map(|(time, value, op, size)| format!("{}, {value}, {op}, {size}, 0", time % (1 << 41))).collect();
        lines.insert(at.index(lines.len() + 1), bad);
        let read = read_bytes((lines.join("\n") + "\n").as_bytes(), "x_lat.1.log", Some("fio-lat"), None);
        if let Ok(read) = read {
            let blank = u64::from(lines.iter().any(|line| line.trim().is_empty()));
            prop_assert_eq!(read.work.ledger.damaged, 1 - blank);
            let found: Vec<_> = read.events.iter().map(|event| (event.time_ns as u64 / 1_000_000, event.latency_ns.unwrap(), event.op as u8, event.size_bytes.unwrap())).collect();
            prop_assert_eq!(found, rows);
        }
    }
}
