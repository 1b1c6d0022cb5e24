// SPDX-License-Identifier: Apache-2.0
//! Every reader, on small files as its tool writes them.

mod support;

use iolab_core::event::{Dimension, Op};
use support::{blktrace, corpus, finish, histogram_line, read_bytes, Read, Record, COMPLETED, ISSUED, READ};

fn read(name: &str) -> Read {
    read_bytes(&corpus(name), name, None, None).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// (time ns, latency ns, offset, size, operation)
type Row = (i64, Option<u64>, Option<u64>, Option<u64>, Op);

fn rows(read: &Read) -> Vec<Row> {
    read.events
        .iter()
        .map(|event| (event.time_ns, event.latency_ns, event.offset_bytes, event.size_bytes, event.op))
        .collect()
}

const MS: i64 = 1_000_000;

#[test]
fn fio_logs_of_every_layout() {
    let new = read("new_lat.1.log");
    assert_eq!(new.format, "fio-lat");
    assert_eq!(rows(&new)[1], (0, Some(1_242_815), Some(12_419_072), Some(8192), Op::Write));
    assert_eq!(rows(&new)[3], (12 * MS, Some(9000), Some(14_139_392), Some(65_536), Op::Trim));
    assert_eq!(rows(&read("prio_lat.1.log"))[1], (12 * MS, Some(7296), None, Some(4096), Op::Write));
    assert_eq!(
        rows(&read("prio_offset_clat.1.log"))[1],
        (13 * MS, Some(7296), Some(99_999_999_999_999), Some(4096), Op::Write)
    );
    assert_eq!(rows(&read("noprio_lat.1.log"))[1], (12 * MS, Some(7296), None, Some(4096), Op::Write));
    assert_eq!(rows(&read("offset_slat.1.log"))[2], (20 * MS, Some(989), Some(123_456_789_012), Some(4096), Op::Read));
    assert_eq!(rows(&read("issue_clat.1.log"))[1], (4 * MS, Some(71_780), Some(2_097_152), Some(4096), Op::Write));
    assert_eq!(rows(&read("issue_only_clat.1.log"))[1], (4 * MS, Some(71_780), None, Some(4096), Op::Write));
    assert_eq!(rows(&read("crlf_lat.1.log")).len(), 2);
}

#[test]
fn averaged_fio_logs_say_so() {
    let averaged = read("averaged_lat.1.log");
    assert!(averaged.averaged);
    assert_eq!(rows(&averaged)[1], (500 * MS, Some(7178), None, None, Op::Write));
    let both = read("both_lat.1.log");
    assert!(both.averaged);
    assert_eq!(rows(&both)[1], (501 * MS, Some(7178), None, None, Op::Write));
    assert!(!read("new_lat.1.log").averaged);
}

#[test]
fn the_type_of_fio_values_is_known_by_name_or_assumed() {
    assert_eq!(read("run_bw.1.log").format, "fio-bw");
    assert_eq!(rows(&read("run_bw.1.log"))[0], (MS, None, Some(1_007_616), Some(8192), Op::Read));
    assert_eq!(read("run_iops.1.log").format, "fio-iops");
    let unnamed = read_bytes(&corpus("new_lat.1.log"), "", None, None).unwrap();
    assert_eq!(unnamed.format, "fio-lat");
    assert_eq!(unnamed.assumptions.len(), 1);
    assert_eq!(rows(&unnamed), rows(&read("new_lat.1.log")));
    let ones = read_bytes(&corpus("run_iops.1.log"), "", None, None).unwrap();
    assert_eq!(ones.format, "fio-iops");
}

#[test]
fn microseconds_of_old_fio_are_detected_by_littles_law() {
    let old = read("old_lat.log");
    assert_eq!((old.format, old.assumptions.len()), ("fio-lat-us", 1));
    assert_eq!(rows(&old)[3], (24 * MS, Some(7_003_000), None, Some(4096), Op::Write));
    let said = read_bytes(&corpus("old_lat.log"), "old_lat.log", Some("fio-lat"), None).unwrap();
    assert_eq!(rows(&said)[3].1, Some(7003));
    assert!(said.assumptions.is_empty());
}

#[test]
fn the_unit_of_a_latency_log_without_a_version_is_an_assumption() {
    let rows_of =
        |value: u32, rest: &str| (1..200).map(|row| format!("{row}, {value}, 0, 4096{rest}\n")).collect::<String>();
    let assumed = |text: &str, format: Option<&str>| {
        let read = read_bytes(text.as_bytes(), "x_clat.1.log", format, None).unwrap();
        (read.format, read.assumptions.len(), read.events[0].latency_ns)
    };
    assert_eq!(assumed(&rows_of(900_000, ""), None), ("fio-lat", 1, Some(900_000)));
    assert_eq!(assumed(&rows_of(900_000, ""), Some("fio-lat")), ("fio-lat", 0, Some(900_000)), "given");
    assert_eq!(assumed(&rows_of(900_000, ""), Some("fio-lat-us")), ("fio-lat-us", 0, Some(900_000_000)), "given");
    assert_eq!(assumed(&rows_of(900_000, ", 0"), None).1, 1, "an offset of an old fio, or a priority");
    assert_eq!(assumed(&rows_of(900_000, ", 8192, 0"), None).1, 0, "a priority next to an offset: 3.19 or later");
    assert_eq!(assumed(&rows_of(900_000, ", 0x4001"), None).1, 0, "a priority in hexadecimal");
    let averaged: String = (1..20).map(|row| format!("{row}000, 80, 0, 0\n")).collect();
    assert_eq!(assumed(&averaged, None), ("fio-lat-us", 1, Some(80_000)));
}

#[test]
fn damaged_lines_cost_themselves_and_are_counted() {
    let damaged = read("damaged_lat.1.log");
    assert_eq!(rows(&damaged).iter().map(|row| row.0 / MS).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(damaged.work.ledger.damaged, 7);
    assert_eq!(damaged.damaged_lines(), [12, 14, 15, 16, 17], "the first five, counted from 1, the blank line too");
}

#[test]
fn histogram_logs_stand_for_many() {
    let text = histogram_line(100, 0, 1856, &[(5, 3), (700, 2)]) + &histogram_line(200, 1, 1856, &[(64, 1)]);
    let read = read_bytes(text.as_bytes(), "h_clat_hist.1.log", None, None).unwrap();
    assert_eq!(read.format, "fio-hist");
    let counts: Vec<_> = read.events.iter().map(|event| (event.op, event.latency_ns.unwrap(), event.count)).collect();
    // bin 700: octave 700 / 64 - 1 = 9 shifts, 64 + 700 % 64 = 124 of them, and half a width
    assert_eq!(counts, [(Op::Read, 5, 3), (Op::Read, (124 << 9) + 255, 2), (Op::Write, 64, 1)]);
    let old = read_bytes(histogram_line(1, 0, 1216, &[(7, 1)]).as_bytes(), "", None, None).unwrap();
    assert_eq!(old.events[0].latency_ns, Some(7000), "microseconds before fio 3.0");
    let short = text.replace("200, 1, 8192, 0, ", "200, 1, 8192, ");
    assert_eq!(read_bytes(short.as_bytes(), "", None, None).unwrap().work.ledger.damaged, 1);
}

#[test]
fn blkparse_pairs_issue_and_completion() {
    let read = read("blkparse.txt");
    assert_eq!(read.format, "blkparse");
    let found = rows(&read);
    assert_eq!(found.len(), 5);
    assert_eq!(found[0], (9_507_758, Some(9_499_151), Some(223_490 * 512), Some(8192), Op::Write));
    assert_eq!(
        read.name(0, Dimension::Process).as_deref(),
        Some("kjournald"),
        "the process that queued it, not the one that issued it"
    );
    assert_eq!(read.name(2, Dimension::Process).as_deref(), Some("Web Content"));
    assert_eq!(found[2], (10_011_000, Some(10_000_000), Some(64 * 512), Some(32 * 512), Op::Read));
    assert_eq!(found[3], (10_500_000, None, Some(4096 * 512), Some(2048 * 512), Op::Trim));
    assert_eq!(found[4], (10_900_000, Some(300_000), None, None, Op::Flush));
    assert_eq!(read.name(0, Dimension::Device).as_deref(), Some("8,0"));
    assert_eq!((read.work.ledger.unpaired, read.work.ledger.losses, read.work.ledger.damaged), (1, 3, 0));
}

#[test]
fn blktrace_of_both_byte_orders_and_versions() {
    for (little, version) in [(true, 7), (false, 7), (true, 8), (false, 8)] {
        let read = read_bytes(&blktrace(little, version), "", None, None).unwrap();
        assert_eq!(read.format, "blktrace");
        assert_eq!(
            rows(&read),
            [
                (9500, Some(8000), Some(4096), Some(4096), Op::Read),
                (12_000, Some(10_000), Some(409_600), Some(4096), Op::Write)
            ]
        );
        assert_eq!(read.name(0, Dimension::Process).as_deref(), Some("fio"));
        assert_eq!(read.name(0, Dimension::Device).as_deref(), Some("8,0"));
        assert_eq!(read.work.ledger.damaged + read.work.ledger.losses + read.work.ledger.unpaired, 0);
    }
}

#[test]
fn after_a_gap_no_latency_is_invented() {
    let records = [Record::io(1, 10, READ | ISSUED, 8), Record::io(5, 90, READ | COMPLETED, 8)];
    let bytes: Vec<u8> = records.iter().flat_map(|record| record.encode(true, 7)).collect();
    let read = read_bytes(&bytes, "", None, None).unwrap();
    assert_eq!(read.work.ledger.losses, 3);
    assert_eq!(read.events[0].latency_ns, None);
    assert_eq!(read.work.ledger.unpaired, 2);
}

#[test]
fn pairs_of_device_and_cpu_are_bounded() {
    let record = |cpu: u32| Record { cpu, ..Record::io(1, u64::from(cpu), READ | ISSUED, 8) };
    let bytes: Vec<u8> = (0..(1 << 16) + 3).flat_map(|cpu| record(cpu).encode(true, 7)).collect();
    assert_eq!(read_bytes(&bytes, "", None, None).unwrap().work.ledger.damaged, 3);
}

#[test]
fn blktrace_files_of_cpus_are_merged_by_time() {
    let folder = std::env::temp_dir().join(format!("iolab-blktrace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let on = |cpu: u32, record: Record| Record { cpu, ..record }.encode(true, 7);
    let zero = [on(0, Record::io(1, 10, READ | ISSUED, 8)), on(0, Record::io(2, 70, READ | COMPLETED, 16))].concat();
    let one = [on(1, Record::io(1, 20, READ | ISSUED, 16)), on(1, Record::io(2, 50, READ | COMPLETED, 8))].concat();
    std::fs::write(folder.join("sda.blktrace.0"), zero).unwrap();
    std::fs::write(folder.join("sda.blktrace.1"), one).unwrap();
    std::fs::write(folder.join("sdb.blktrace.0"), b"another trace").unwrap();
    for path in ["sda.blktrace.0", "sda.blktrace.1", "sda"] {
        let path = folder.join(path);
        let trace = iolab_core::trace::Trace::open(path.to_str().unwrap(), None, None).unwrap();
        let found: Vec<_> = rows(&finish(trace).unwrap()).iter().map(|row| (row.0, row.1)).collect();
        assert_eq!(found, [(50, Some(40)), (70, Some(50))], "{path:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn biosnoop_of_every_header() {
    let plain = read("biosnoop.txt");
    assert_eq!(plain.format, "biosnoop");
    assert_eq!(rows(&plain)[2], (1_469_000, Some(1_240_000), Some(13_092_440 * 512), Some(8192), Op::Read));
    assert_eq!(plain.name(2, Dimension::Process).as_deref(), Some("Web Content"));
    assert_eq!(plain.name(2, Dimension::Device).as_deref(), Some("xvda1"));
    assert_eq!(rows(&plain)[3], (1_588_000, Some(10_000_000), None, Some(0), Op::Trim));
    assert_eq!((plain.work.ledger.losses, plain.work.ledger.damaged), (7, 1));
    assert_eq!(
        rows(&read("biosnoop_queue.txt"))[1],
        (178_000, Some(250_000), Some(200_224_800 * 512), Some(4096), Op::Read)
    );
    assert_eq!(rows(&read("biosnoop_pattern.txt"))[1], (100_000, Some(250_000), Some(8192), Some(4096), Op::Read));
    let bare = read("biosnoop_bare.txt");
    assert_eq!(bare.assumptions.len(), 1);
    assert_eq!(rows(&bare)[1], rows(&plain)[2]);
}

#[test]
fn biosnoop_of_bpftrace() {
    let read_bt = read("biosnoop_bt.txt");
    assert_eq!(read_bt.format, "biosnoop-bt");
    assert_eq!(rows(&read_bt)[1], (612 * MS, Some(2_000_000), None, None, Op::Other));
    assert_eq!(read_bt.name(1, Dimension::Process).as_deref(), Some("Web Content"));
    assert_eq!(read_bt.work.ledger.losses, 11);
    assert_eq!(read("biosnoop_bt_old.txt").events.len(), 1);
}

#[test]
fn iosnoop_of_dtrace_and_linux() {
    let dtrace = read("iosnoop_dtrace.txt");
    assert_eq!(dtrace.format, "iosnoop");
    assert_eq!(rows(&dtrace)[0], (949_417_948_636_000, Some(11_985_000), Some(172_636 * 512), Some(2048), Op::Read));
    assert_eq!(dtrace.name(2, Dimension::File).as_deref(), Some("/home/a file"));
    let linux = read("iosnoop_linux.txt");
    assert_eq!(rows(&linux)[0], (5_982_800_302_679_000, Some(620_000), Some(17_039_600 * 512), Some(4096), Op::Write));
    assert_eq!(linux.name(0, Dimension::Device).as_deref(), Some("202,1"));
    let error = read_bytes(&corpus("iosnoop_untimed.txt"), "", None, None).unwrap_err();
    assert!(error.0.contains("without times"), "{error}");
}

#[test]
fn tables_by_header_and_by_columns() {
    let named = read("named.csv");
    assert_eq!(named.format, "csv");
    assert_eq!(rows(&named)[0], (10_500, Some(2500), Some(4096), Some(512), Op::Read));
    assert_eq!(rows(&named)[1], (20_000, None, None, Some(4096), Op::Write));
    assert_eq!(named.name(0, Dimension::Process).as_deref(), Some("a, \"b\""));
    assert_eq!(named.damaged_lines(), [5, 6]);
    let columns = Some("time:ms,latency:us,offset:sectors,op");
    let plain = read_bytes(&corpus("plain.tsv"), "plain.tsv", None, columns).unwrap();
    assert_eq!(rows(&plain)[0], (1_500_000, Some(250_000), Some(4096), None, Op::Write));
    let skipped = read_bytes(b"x;1\ny;2\n", "", None, Some("-,time:s")).unwrap();
    assert_eq!(rows(&skipped)[1].0, 2_000_000_000);
}

#[test]
fn columns_apart_by_any_separator_are_read() {
    let wanted = [(1_500_000, Some(250_000), None, None, Op::Other), (1_700_000, Some(9000), None, None, Op::Other)];
    for separator in [",", ", ", "\t", ";", " ", "   ", " \t ", "\t\t"] {
        for header in ["", "TIMEus DELTAus\n", "T1_2 D3\n", "time_us latency_us\n"] {
            let body = ["1500 250", "1700 9"].map(|row| row.replace(' ', separator) + "\n").concat();
            let text = header.replace(' ', separator) + &body + "\nthat was all\n";
            let read = read_bytes(text.as_bytes(), "", None, Some("time:us,latency:us")).unwrap();
            assert_eq!(rows(&read), wanted, "{text:?}");
            assert_eq!(read.work.ledger.damaged, 1, "prose is counted: {text:?}");
        }
    }
    let padded = read_bytes(b"   1500   250\n   1700     9", "", None, Some("time:us,latency:us")).unwrap();
    assert_eq!(rows(&padded), wanted);
    let quoted = read_bytes(b"1500 \"a job\" 250\n", "", None, Some("time:us,job,latency:us")).unwrap();
    assert_eq!(
        (quoted.name(0, Dimension::Job).as_deref(), quoted.events[0].latency_ns),
        (Some("a job"), Some(250_000))
    );
    let lacking = read_bytes(b"1500\t\t7\n", "", None, Some("time:us,latency:us,size")).unwrap();
    assert_eq!(rows(&lacking)[0], (1_500_000, None, None, Some(7), Op::Other), "an empty field stays one");
    let row = read_bytes(b"1500,file\n", "", None, Some("time:us,process")).unwrap();
    assert_eq!(row.events.len(), 1, "a name that is also a field's makes no header");
}

#[test]
fn a_table_apart_by_blanks_names_itself_and_prose_does_not() {
    let read = read_bytes(b"start (us)  latency (us)  queue\n 100  20 3\n 200  30 4\n", "", None, None).unwrap();
    assert_eq!((read.format, rows(&read)[1].0, rows(&read)[1].1), ("csv", 230_000, Some(30_000)));
    assert_eq!(read.assumptions, ["skipped unknown columns: queue"]);
    for prose in ["the time and the latency of a disk\nare what counts\n", "time_us latency_us\nno row below\n"] {
        assert!(read_bytes(prose.as_bytes(), "", None, None).is_err(), "{prose:?}");
    }
}

#[test]
fn time_is_the_completion_unless_a_start_is_given() {
    for (columns, time) in [("time:us,latency:us", 1000), ("end:us,latency:us", 1000), ("start:us,latency:us", 1250)] {
        let read = read_bytes(b"1000 250\n", "", None, Some(columns)).unwrap();
        assert_eq!((read.events[0].time_ns, read.events[0].latency_ns), (time * 1000, Some(250_000)), "{columns}");
    }
    let both = read_bytes(b"1000,1250\n", "", None, Some("start:us,end:us")).unwrap();
    assert_eq!((both.events[0].time_ns, both.events[0].latency_ns), (1_250_000, Some(250_000)));
}

#[test]
fn unknown_columns_are_named_and_a_client_is_a_key() {
    let read =
        read_bytes(b"time_us,latency_us,client,weather,Queue Depth\n1,2,host7,rain,5\n", "", None, None).unwrap();
    assert_eq!(read.name(0, Dimension::Client).as_deref(), Some("host7"));
    assert_eq!(read.assumptions, ["skipped unknown columns: weather, Queue Depth"]);
    let given = read_bytes(b"1,host7\n", "", None, Some("time:us,client")).unwrap();
    assert_eq!(given.name(0, Dimension::Client).as_deref(), Some("host7"));
    let more = read_bytes(b"time,what,weather\n1,2,3\n", "", None, Some("time:us,latency:us")).unwrap();
    assert_eq!(more.assumptions, ["skipped unknown columns: weather"]);
}

#[test]
fn a_second_header_changes_the_columns_and_prose_is_no_damage() {
    let plain = "TIME(s)     COMM  PID  DISK  T SECTOR  BYTES  LAT(ms)\n0.000004 fio 19 sda W 8 4096 0.74\n";
    let queued =
        "TIME(s)  COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n0.5 Web Content 7 nvme0n1 R 16 8192 0.01 0.55\n";
    let text =
        format!("A recording.\n\n{plain}\nThe same with -Q,\nsda 0.00 1.00\n\n{queued}{plain}[...]\n\nThat was all.");
    let read = read_bytes(text.as_bytes(), "", None, None).unwrap();
    let times = rows(&read).iter().map(|row| (row.1, row.2, row.3)).collect::<Vec<_>>();
    let first = (Some(740_000), Some(4096), Some(4096));
    assert_eq!(times, [first, (Some(550_000), Some(8192), Some(8192)), first]);
    assert_eq!(read.name(1, Dimension::Process).as_deref(), Some("Web Content"));
    assert_eq!(read.work.ledger.damaged, 1, "[...] within a table is no prose");
}

#[test]
fn a_trace_without_a_readable_line_is_an_error() {
    let unread = |text: &str, format, columns| {
        let input = iolab_core::input::from_reader(std::io::Cursor::new(text.as_bytes().to_vec()), "x").unwrap();
        let mut trace = iolab_core::trace::Trace::of_input(input, Vec::new(), format, columns).unwrap();
        let (mut work, mut keep) = (iolab_core::readers::Work::default(), support::Keep::default());
        while trace.step(&mut work, &mut keep).unwrap() {}
        trace.refuse_unread(keep.0.len() as u64, &work.ledger, &[])
    };
    let error = unread("1,a\n2,b\n", None, Some("time:us,latency:us,op")).unwrap_err().0;
    assert_eq!(
        error,
        "none of 2 lines could be read; line 1: the latency is not a number of 0 or more; a line of csv is such as '1000,250,read'"
    );
    let columns = Some("time:us,latency:us,op");
    assert!(read_bytes(b"1000,250,read\n", "", None, columns).is_ok_and(|read| read.events.len() == 1));
    assert!(unread("hello\nworld\n", Some("biosnoop"), None).unwrap_err().0.contains("such as '1000 fio 1 sda"));
    assert!(unread("8,0 0 1 0.1 7 D R x + 8 [a]\n", Some("blkparse"), None).unwrap_err().0.contains("none of 1 lines"));
    assert_eq!(unread("1,2,read\n2,b\n", None, columns), Ok(()));
    assert_eq!(unread("time_us,latency_us\n", None, None), Ok(()), "a header alone is an empty trace");
}

#[test]
fn errors_are_one_line() {
    let refused = |bytes: &[u8], format, columns| read_bytes(bytes, "", format, columns).unwrap_err().0;
    let cases = [
        (refused(b"", None, None), "empty"),
        (refused(&corpus("noise.bin"), None, None), "unknown trace format"),
        (refused(b"1,2\n", None, Some("time,latency:ns")), "needs a unit"),
        (refused(b"1,2\n", None, Some("time:parsec")), "no unit \"parsec\""),
        (refused(b"1,2\n", None, Some("latency:ns,op")), "no time"),
        (refused(b"1,2\n", None, Some("time:s,time:s")), "twice"),
        (refused(b"1,2\n", None, Some("time:s,colour")), "no column"),
        (refused(b"1,2\n", Some("biosnoop"), Some("time:s")), "another format"),
        (refused(b"1,2\n", Some("blktrac"), None), "no format"),
        (refused(b"time,latency_ns\n1,2\n", None, None), "needs a unit"),
        (refused(b"hello\n", Some("fio-lat"), None), "no log of fio"),
        (refused(b"hello\n", Some("fio-hist"), None), "no histogram log"),
        (refused(b"hello\n", Some("iosnoop"), None), "no header"),
    ];
    for (error, wanted) in cases {
        assert!(error.contains(wanted) && !error.contains('\n'), "{error:?} says nothing of {wanted:?}");
    }
}
