// SPDX-License-Identifier: Apache-2.0
//! Counts of the kernel's NFS client, by server, mount and procedure, from /proc/self/mountstats. No request is sent to
//! a server, so reading works while a server is down.

use crate::counts::{printed, Objects, Reading};
use crate::files_mounts::{unescaped, Mounts};
use crate::limited::{read_whole, TABLE};
use iolab_core::frames::samples::Samples;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::PathBuf;

/// File of the counts.
const PLACE: &str = "/proc/self/mountstats";
/// Numbers in the line of a procedure, in this order, followed by the transferred bytes. Older kernels have no
/// `errors`.
const FIELDS: [&str; 11] = [
    "ops",
    "transmissions",
    "timeouts",
    "sent_bytes",
    "received_bytes",
    "queue_ms",
    "rtt_ms",
    "execute_ms",
    "errors",
    "read_bytes",
    "written_bytes",
];
/// Minimum and maximum number of values of a procedure.
const NUMBERS: std::ops::RangeInclusive<usize> = 8..=9;
/// Indices in `FIELDS` of the transferred bytes.
const DATA: [(&str, usize); 2] = [("READ", 9), ("WRITE", 10)];
/// Maximum number of mounts times procedures.
const MOST: usize = 1 << 16;

type Row = [u64; FIELDS.len()];

/// Counts of all NFS mounts, by server, mount and procedure, separated by tabs.
#[derive(Debug, Default)]
pub struct NfsMounts(Objects<{ FIELDS.len() }>);

/// An NFS mount in /proc/self/mountstats.
#[derive(Debug, Default, PartialEq)]
struct NfsMount {
    server: String,
    path: PathBuf,
    /// Seconds since it was mounted.
    age: u64,
    /// Bytes read from and written to the server.
    data: [u64; 2],
    procedures: Vec<(String, Row)>,
}

impl NfsMounts {
    /// Take a reading. Returns the number of lines that could not be read.
    pub fn read(&mut self, time_ns: i64, samples: &mut Samples) -> u64 {
        // a kernel without NFS or a container without /proc has no such mounts
        let text = match read_whole(PLACE, TABLE) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => return 1,
            text => text.unwrap_or_default(),
        };
        let (mounts, damaged) = parse(&text);
        let mounts = if mounts.len() < 2 { mounts } else { one_of_each(mounts, &Mounts::own()) };
        damaged + self.take(&mounts, time_ns, samples)
    }

    /// Take the counts of these mounts. Returns the number of mounts beyond the maximum.
    fn take(&mut self, mounts: &[NfsMount], time_ns: i64, samples: &mut Samples) -> u64 {
        let mut rows = Reading::new();
        let mut left_out = 0;
        for mount in mounts {
            let place = format!("{}\t{}", mount.server, printed(&mount.path.to_string_lossy()));
            for (procedure, numbers) in &mount.procedures {
                if rows.len() >= MOST {
                    left_out += 1;
                    continue;
                }
                // a mount on top of another has the same name
                let (row, age) = rows.entry(format!("{place}\t{procedure}")).or_insert(([0; FIELDS.len()], mount.age));
                *age = mount.age.min(*age);
                for (sum, number) in row.iter_mut().zip(numbers) {
                    *sum = sum.saturating_add(*number);
                }
            }
        }
        self.0.take(rows, &FIELDS, time_ns, samples);
        left_out
    }
}

/// One mount of each file system: the counts are per file system, not per mount.
fn one_of_each(mut mounts: Vec<NfsMount>, all: &Mounts) -> Vec<NfsMount> {
    let chosen: HashSet<_> = all.one_of_each().into_iter().map(|mount| mount.path.clone()).collect();
    let known: HashSet<_> = all.paths().map(PathBuf::from).collect();
    // a mount that was added between the two reads is in the second file only
    mounts.retain(|mount| chosen.contains(&mount.path) || !known.contains(&mount.path));
    mounts
}

/// The NFS mounts, and the number of lines that could not be read.
fn parse(text: &[u8]) -> (Vec<NfsMount>, u64) {
    let (mut mounts, mut damaged) = (Vec::new(), 0);
    let (mut is_nfs, mut in_procedures) = (false, false);
    for line in text.split(|byte| *byte == b'\n') {
        if line.starts_with(b"device ") || line.starts_with(b"no device ") {
            in_procedures = false;
            let mount = head(line);
            is_nfs = mount.is_some();
            mounts.extend(mount);
            continue;
        }
        let Some(mount) = mounts.last_mut().filter(|_| is_nfs) else { continue };
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if in_procedures {
            match procedure(line) {
                Some((name, mut row)) => {
                    for ((of, place), bytes) in DATA.into_iter().zip(mount.data) {
                        if of == name {
                            row[place] = bytes;
                        }
                    }
                    mount.procedures.push((name.to_owned(), row));
                }
                None => damaged += u64::from(!line.is_empty()),
            }
        } else if line == "per-op statistics" {
            in_procedures = true;
        } else if let Some(age) = line.strip_prefix("age:") {
            damaged += u64::from(age.trim().parse().map(|age| mount.age = age).is_err());
        } else if let Some(bytes) = line.strip_prefix("bytes:") {
            // bytes of read and write calls of programs, cached and direct; then bytes read from and written to the
            // server
            let mut numbers = bytes.split_whitespace().skip(4).map(str::parse);
            match (numbers.next(), numbers.next()) {
                (Some(Ok(read)), Some(Ok(written))) => mount.data = [read, written],
                _ => damaged += 1,
            }
        }
    }
    (mounts, damaged)
}

/// `device SERVER:/EXPORT mounted on PATH with fstype nfs4 statvers=1.1`
fn head(line: &[u8]) -> Option<NfsMount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"device", device, b"mounted", b"on", path, b"with", b"fstype", b"nfs" | b"nfs4", version] = words[..] else {
        return None;
    };
    if !version.starts_with(b"statvers=1.") {
        return None;
    }
    let device = unescaped(device).to_string_lossy().into_owned();
    let host = match device.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => device.split_once(":/").or_else(|| device.split_once(':')).map_or(device.as_str(), |(host, _)| host),
    };
    Some(NfsMount { server: printed(host), path: unescaped(path), ..NfsMount::default() })
}

/// `READ: 5 5 0 880 5640 0 12 13 0`
fn procedure(line: &str) -> Option<(&str, Row)> {
    let (name, rest) = line.split_once(':')?;
    let is_name = |letter: u8| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return None;
    }
    let numbers: Vec<u64> = rest.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    if numbers.len() < *NUMBERS.start() {
        return None;
    }
    let mut row = [0; FIELDS.len()];
    let length = numbers.len().min(*NUMBERS.end());
    row[..length].copy_from_slice(&numbers[..length]);
    Some((name, row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::ALWAYS;
    use iolab_core::frames::reader::{Frame, Reader};
    use iolab_core::frames::{frame, Kind};
    use proptest::prelude::*;

    /// Format of Linux 6.1: a mount of NFS 3, two of one file system of NFS 4, and others.
    const TEXT: &str = include_str!("../../../tests/data/mountstats/linux-6.1");
    const SECOND: i64 = 1_000_000_000;

    /// Samples of a reading of these mounts: (time in s, object, field, value).
    fn reading(mounts: &mut NfsMounts, parsed: &[NfsMount], second: i64) -> Vec<(i64, String, String, i64)> {
        let mut samples = Samples::default();
        assert_eq!(mounts.take(parsed, second * SECOND, &mut samples), 0);
        let frames = Reader::default().feed(&frame(Kind::Samples, &samples.payload("nfs-client"))).unwrap();
        let [Frame::Samples(read)] = &frames[..] else { panic!() };
        let number = |of: &[u8], row: usize| u32::from_le_bytes(of[row * 4..][..4].try_into().unwrap()) as usize;
        let integer = |of: &[u8], row: usize| i64::from_le_bytes(of[row * 8..][..8].try_into().unwrap());
        let name = |of: usize, row: usize| read.names[of][number(&read.ids[of], row)].clone();
        (0..read.rows)
            .map(|row| (integer(&read.time_ns, row) / SECOND, name(0, row), name(1, row), integer(&read.value, row)))
            .collect()
    }

    fn mount(path: &str, age: u64, reads: u64) -> NfsMount {
        let mut row = [0; FIELDS.len()];
        row[0] = reads;
        NfsMount {
            server: "fs".into(),
            path: path.into(),
            age,
            data: [0, 0],
            procedures: vec![("READ".into(), row), ("NULL".into(), [0; FIELDS.len()])],
        }
    }

    /// Samples of all procedures in a reading: (time, object, operations).
    fn ops(mounts: &mut NfsMounts, parsed: &[NfsMount], second: i64) -> Vec<(i64, String, i64)> {
        let rows = reading(mounts, parsed, second).into_iter();
        rows.filter(|row| row.2 == "ops" && row.1 != ALWAYS).map(|(time, object, _, ops)| (time, object, ops)).collect()
    }

    #[test]
    fn lines_of_the_kernel() {
        let (mounts, damaged) = parse(TEXT.as_bytes());
        assert_eq!((mounts.len(), damaged), (3, 0));
        let [three, four, again] = &mounts[..] else { panic!() };
        assert_eq!((three.server.as_str(), three.path.to_str()), ("10.9.1.1", Some("/mnt/three")));
        assert_eq!((four.server.as_str(), four.path.to_str()), ("fd00::1", Some("/mnt/four files")));
        assert_eq!(again.path.to_str(), Some("/mnt/again/below"));
        let row = |mount: &NfsMount, name: &str| mount.procedures.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(row(three, "READ"), [40, 41, 1, 5440, 332_800, 3, 55, 60, 0, 327_680, 0]);
        assert_eq!(row(three, "WRITE")[9..], [0, 81_920]);
        assert_eq!(row(four, "LOOKUP"), [3, 3, 0, 564, 312, 0, 2, 2, 2, 0, 0]);
        assert_eq!((three.age, four.age), (97, 61));
    }

    #[test]
    fn a_file_system_that_is_mounted_twice_counts_once() {
        let lines = "30 1 0:50 / /mnt/three rw - nfs 10.9.1.1:/srv rw\n\
                     31 1 0:51 / /mnt/four\\040files rw - nfs4 [fd00::1]:/srv rw\n\
                     32 1 0:51 /below /mnt/again/below rw - nfs4 [fd00::1]:/srv/below rw\n";
        let chosen = one_of_each(parse(TEXT.as_bytes()).0, &Mounts::parse(lines.as_bytes()));
        assert_eq!(
            chosen.iter().map(|mount| mount.path.to_str().unwrap()).collect::<Vec<_>>(),
            ["/mnt/three", "/mnt/four files"]
        );
        assert_eq!(one_of_each(parse(TEXT.as_bytes()).0, &Mounts::default()).len(), 3);
    }

    #[test]
    fn growth_has_its_start() {
        let mut mounts = NfsMounts::default();
        let name = |path: &str| format!("fs\t{path}\tREAD");
        // operations before the first reading do not count
        assert_eq!(ops(&mut mounts, &[mount("/a", 900, 70)], 10), []);
        let grown = ops(&mut mounts, &[mount("/a", 901, 75)], 11);
        assert_eq!(grown, [(10, name("/a"), 70), (11, name("/a"), 75)]);
        // all operations of a new mount count; those of a mount that was moved here do not
        let rows = ops(&mut mounts, &[mount("/a", 902, 75), mount("/b", 0, 4), mount("/c", 500, 9)], 12);
        let of = |path: &str| rows.iter().filter(|row| row.1 == name(path)).cloned().collect::<Vec<_>>();
        assert_eq!(of("/b"), [(11, name("/b"), 0), (12, name("/b"), 4)]);
        assert_eq!(of("/c"), []);
        // an unmounted mount disappears
        assert_eq!(reading(&mut mounts, &[], 13).len(), FIELDS.len());
        assert!(mounts.0.counts.is_empty());
    }

    #[test]
    fn without_mounts_there_are_no_readings() {
        let (mut mounts, mut samples) = (NfsMounts::default(), Samples::default());
        assert_eq!(mounts.take(&[], 5 * SECOND, &mut samples), 0);
        assert!(samples.is_empty());
        // the first mount starts with a reading too
        let rows = reading(&mut mounts, &[mount("/a", 1, 3)], 6);
        let ops: Vec<_> = rows.iter().filter(|row| row.2 == "ops").map(|row| (row.0, row.1.as_str(), row.3)).collect();
        let of = |name: &str| ops.iter().filter(|row| row.1 == name).map(|row| (row.0, row.2)).collect::<Vec<_>>();
        assert_eq!(of(ALWAYS), [(5, 0), (6, 0)]);
        assert_eq!(of("fs\t/a\tREAD"), [(5, 0), (6, 3)]);
    }

    #[test]
    fn damaged_lines_are_counted_and_hostile_names_separate_nothing() {
        let text = "device a:/x\\011y mounted on /m\\011n\\012o with fstype nfs statvers=1.1\n age:\tmany\n bytes:\t1 2 3\n\
                    per-op statistics\nREAD: 1 2 3 4 5 6 7\nREAD: 1 2 3 4 5 6 7 -8\nread: 1 1 1 1 1 1 1 1\nWRITE: 1 1 1 1 1 1 1 1\n\
                    device \u{ff} mounted on /z with fstype nfs4 statvers=2.0\nper-op statistics\nREAD: 9 9 9 9 9 9 9 9\n\
                    device a mounted on /per-op with fstype fuse.nfs\nper-op statistics\nREAD: 9 9 9 9 9 9 9 9\n\
                    no device mounted on /y with fstype nfs statvers=1.1\nREAD: 9 9 9 9 9 9 9 9\n";
        let (parsed, damaged) = parse(text.as_bytes());
        assert_eq!((parsed.len(), damaged), (1, 5));
        assert_eq!(parsed[0].procedures, [("WRITE".to_owned(), [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0])]);
        let mut mounts = NfsMounts::default();
        reading(&mut mounts, &parsed, 1);
        assert_eq!(mounts.0.counts.keys().collect::<Vec<_>>(), ["a\t/m\\011n\\012o\tWRITE"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(device |a:/b |mounted on |/c |with fstype |nfs4? |statvers=1.1|per-op statistics|\n|READ: |age:|bytes:|[0-9]{1,21} |[^a]){0,60}") {
            let (parsed, _) = parse(text.as_bytes());
            let mut samples = Samples::default();
            NfsMounts::default().take(&parsed, 1, &mut samples);
        }
    }
}
