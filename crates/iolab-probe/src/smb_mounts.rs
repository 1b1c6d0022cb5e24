// SPDX-License-Identifier: Apache-2.0
//! Counts of the kernel's SMB client, by server, share and command, from /proc/fs/cifs/Stats. No request is sent to a
//! server.

use crate::counts::{printed, Objects, Reading};
use crate::limited::{read_whole, TABLE};
use iolab_core::frames::samples::Samples;
use std::io;

/// File of the counts; exists while the module is loaded.
const PLACE: &str = "/proc/fs/cifs/Stats";
const FIELDS: [&str; 4] = ["ops", "errors", "read_bytes", "written_bytes"];
/// Indices in `FIELDS` of the transferred bytes, by command.
const READ: (&str, usize) = ("READ", 2);
const WRITE: (&str, usize) = ("WRITE", 3);
/// Command names in the file, and in the protocol.
const COMMANDS: [(&str, &str); 14] = [
    ("TreeConnects", "TREE_CONNECT"),
    ("TreeDisconnects", "TREE_DISCONNECT"),
    ("Creates", "CREATE"),
    ("Closes", "CLOSE"),
    ("Flushes", "FLUSH"),
    ("Reads", "READ"),
    ("Writes", "WRITE"),
    ("Locks", "LOCK"),
    ("IOCTLs", "IOCTL"),
    ("QueryDirectories", "QUERY_DIRECTORY"),
    ("ChangeNotifies", "CHANGE_NOTIFY"),
    ("QueryInfos", "QUERY_INFO"),
    ("SetInfos", "SET_INFO"),
    ("OplockBreaks", "OPLOCK_BREAK"),
];
/// Maximum number of shares times commands.
const MOST: usize = 1 << 16;

/// Counts of all SMB mounts, by server, share and command, separated by tabs.
#[derive(Debug, Default)]
pub struct SmbMounts(Objects<{ FIELDS.len() }>);

impl SmbMounts {
    /// Take a reading. Returns the number of lines that could not be read.
    pub fn read(&mut self, time_ns: i64, samples: &mut Samples) -> u64 {
        match read_whole(PLACE, TABLE) {
            Ok(text) => self.take(&text, time_ns, samples),
            // no module, thus no mounts
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.take(b"", time_ns, samples),
            Err(_) => 1,
        }
    }

    fn take(&mut self, text: &[u8], time_ns: i64, samples: &mut Samples) -> u64 {
        let (reading, damaged) = parse(text);
        self.0.take(reading, &FIELDS, time_ns, samples);
        damaged
    }
}

/// Counts by object, and the number of lines that could not be read.
fn parse(text: &[u8]) -> (Reading<{ FIELDS.len() }>, u64) {
    let (mut reading, mut damaged) = (Reading::new(), 0);
    let mut place: Option<String> = None;
    for line in String::from_utf8_lossy(text).lines() {
        if let Some(head) = share(line) {
            place = Some(head);
            continue;
        }
        let Some(place) = &place else { continue };
        match counts(line) {
            Ok(counts) => {
                for (command, field, count) in counts {
                    let object = format!("{place}\t{command}");
                    if reading.len() >= MOST && !reading.contains_key(&object) {
                        damaged += 1;
                        continue;
                    }
                    // a share with several connections counts once; its start is unknown, but after the previous
                    // reading if it was not part of that reading
                    let (row, _) = reading.entry(object).or_insert(([0; FIELDS.len()], 0));
                    row[field] = row[field].saturating_add(count);
                }
            }
            Err(()) => damaged += 1,
        }
    }
    (reading, damaged)
}

/// `1) \\server\share`, with a tab and DISCONNECTED if disconnected: the server and the share.
fn share(line: &str) -> Option<String> {
    let (number, name) = line.split_once(") ")?;
    let _: u32 = number.parse().ok()?;
    let name = name.split('\t').next()?.trim_end();
    let (server, share) = name.strip_prefix(r"\\")?.split_once('\\')?;
    (!server.is_empty() && !share.is_empty()).then(|| format!("{}\t{}", printed(server), printed(share)))
}

type Count = (&'static str, usize, u64);

/// Counts of a line by command and index in `FIELDS`; None for other lines.
///
/// `Creates: 2 total 0 failed` and `Bytes read: 4096  Bytes written: 0` of SMB 2 and 3, `Reads:  3 Bytes: 4096` of SMB 1.
fn counts(line: &str) -> Result<Vec<Count>, ()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let ["Bytes", "read:", read, "Bytes", "written:", written] = words[..] {
        return Ok(vec![(READ.0, READ.1, unsigned(read)?), (WRITE.0, WRITE.1, unsigned(written)?)]);
    }
    let name = words.first().and_then(|word| word.strip_suffix(':'));
    let Some((_, command)) = COMMANDS.iter().find(|(known, _)| Some(*known) == name) else { return Ok(Vec::new()) };
    match words[1..] {
        [ops, "total" | "sent", errors, "failed"] => {
            Ok(vec![(command, 0, wrapping(ops)?), (command, 1, wrapping(errors)?)])
        }
        [ops, "Bytes:", bytes] if [READ.0, WRITE.0].contains(command) => {
            let field = if *command == READ.0 { READ.1 } else { WRITE.1 };
            Ok(vec![(command, 0, wrapping(ops)?), (command, field, unsigned(bytes)?)])
        }
        // the other commands of SMB 1 share lines
        [_, other, ..] if other.ends_with(':') => Ok(Vec::new()),
        [_] => Ok(Vec::new()),
        _ => Err(()),
    }
}

fn unsigned(word: &str) -> Result<u64, ()> {
    word.parse().map_err(drop)
}

/// The kernel prints 32-bit numbers as signed.
fn wrapping(word: &str) -> Result<u64, ()> {
    let number: i64 = word.parse().map_err(drop)?;
    i32::try_from(number)
        .map(|number| u64::from(number as u32))
        .or_else(|_| u32::try_from(number).map(u64::from))
        .map_err(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_core::frames::reader::{Frame, Reader};
    use iolab_core::frames::{frame, Kind};
    use proptest::prelude::*;

    const TEXT: &str = r"Resources in use
CIFS Session: 1
Share (unique mount targets): 2
SMB Request/Response Buffer: 1 Pool size: 5
SMB Small Req/Resp Buffer: 1 Pool size: 30
Operations (MIDs): 0

0 session 0 share reconnects
Total vfs operations: 16 maximum at one time: 2

Max requests in flight: 3
1) \\fs1\data
SMBs: 9
Bytes read: 8192  Bytes written: 100
Open files: 0 total (local), 0 open on server
TreeConnects: 1 total 0 failed
Creates: 2 total 1 failed
Reads: 2 total 0 failed
Writes: -2 total 0 failed
OplockBreaks: 3 sent 0 failed
2) \\fs2\my share	DISCONNECTED 
SMBs: 1 Oplocks breaks: 0
Reads:  3 Bytes: 4096
Writes: 0 Bytes: 0
Flushes: 4
Locks: 0 HardLinks: 0 Symlinks: 0
";

    fn value(text: &str, object: &str) -> Option<[u64; 4]> {
        let (reading, damaged) = parse(text.as_bytes());
        assert_eq!(damaged, 0);
        reading.get(object).map(|(row, _)| *row)
    }

    #[test]
    fn shares_by_command() {
        assert_eq!(value(TEXT, "fs1\tdata\tREAD"), Some([2, 0, 8192, 0]));
        assert_eq!(value(TEXT, "fs1\tdata\tWRITE"), Some([4_294_967_294, 0, 0, 100]));
        assert_eq!(value(TEXT, "fs1\tdata\tCREATE"), Some([2, 1, 0, 0]));
        assert_eq!(value(TEXT, "fs1\tdata\tOPLOCK_BREAK"), Some([3, 0, 0, 0]));
        assert_eq!(value(TEXT, "fs2\tmy share\tREAD"), Some([3, 0, 4096, 0]));
        // its counts share lines with others; a share with two connections counts once
        assert_eq!(value(TEXT, "fs2\tmy share\tLOCK"), None);
        let twice = format!("{TEXT}3) \\\\fs1\\data\nReads: 5 total 1 failed\n");
        assert_eq!(value(&twice, "fs1\tdata\tREAD"), Some([7, 1, 8192, 0]));
    }

    #[test]
    fn damaged_lines_are_counted_and_foreign_text_has_no_shares() {
        for line in [
            "Reads: x total 0 failed",
            "Reads: 1 total",
            "Bytes read: 1  Bytes written: -",
            "Reads: 99999999999 total 0 failed",
        ] {
            let (reading, damaged) = parse(format!("1) \\\\a\\b\n{line}\n").as_bytes());
            assert_eq!((reading.len(), damaged), (0, 1), "{line}");
        }
        for text in [
            "",
            "Reads: 1 total 0 failed\n",
            "1) share\nReads: 1 total 0 failed\n",
            "x) \\\\a\\b\nReads: 1 total 0 failed\n",
        ] {
            assert_eq!(parse(text.as_bytes()), (Reading::new(), 0));
        }
    }

    #[test]
    fn a_mount_counts_from_its_start_unless_it_was_there_before() {
        let mut mounts = SmbMounts::default();
        let mut grown = |text: &str, second: i64| {
            let mut samples = Samples::default();
            assert_eq!(mounts.take(text.as_bytes(), second * 1_000_000_000, &mut samples), 0);
            if samples.is_empty() {
                return Vec::new();
            }
            let frames = Reader::default().feed(&frame(Kind::Samples, &samples.payload("smb-client"))).unwrap();
            let [Frame::Samples(read)] = &frames[..] else { panic!() };
            let number = |of: &[u8], row: usize| u32::from_le_bytes(of[row * 4..][..4].try_into().unwrap()) as usize;
            let integer = |of: &[u8], row: usize| i64::from_le_bytes(of[row * 8..][..8].try_into().unwrap());
            let name = |of: usize, row: usize| read.names[of][number(&read.ids[of], row)].as_str();
            (0..read.rows)
                .filter(|row| name(1, *row) == "ops" && !name(0, *row).is_empty())
                .map(|row| (integer(&read.time_ns, row) / 1_000_000_000, integer(&read.value, row)))
                .collect()
        };
        let mount = |name: &str, reads: u32| format!("1) \\\\{name}\\b\nReads: {reads} total 0 failed\n");
        assert_eq!(grown(&mount("old", 10), 1), []);
        assert_eq!(grown(&mount("old", 13), 2), [(1, 10), (2, 13)]);
        let mut both = grown(&(mount("old", 13) + &mount("new", 4)), 3);
        both.sort_unstable();
        assert_eq!(both, [(2, 0), (3, 4), (3, 13)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(1\\) \\\\\\\\a\\\\b|Reads:|Bytes|read:|written:| |\t|\n|[0-9]{1,20}|total|failed|-|é|[^\n]){0,40}") {
            parse(text.as_bytes());
        }
    }
}
