// SPDX-License-Identifier: Apache-2.0
//! The source `counters`: counters of the kernel, read periodically. Only the files below are read.

use crate::capacity::{file_systems, links};
use crate::kstats::{self, Groups};
use crate::limited::{read_text, TABLE};
use crate::nfs_mounts::NfsMounts;
use crate::peers::Peers;
use crate::smb_mounts::SmbMounts;
use crate::sock_diag::SockDiag;
use iolab_core::frames::samples::Samples;
use nix::errno::Errno;
use std::io;
use std::path::Path;

/// Fields of a line of /proc/diskstats after the name.
const DISK: [&str; 17] = [
    "reads",
    "reads_merged",
    "read_sectors",
    "read_ms",
    "writes",
    "writes_merged",
    "write_sectors",
    "write_ms",
    "in_flight",
    "io_ms",
    "weighted_io_ms",
    "discards",
    "discards_merged",
    "discard_sectors",
    "discard_ms",
    "flushes",
    "flush_ms",
];
/// Fields of a line `cpu` of /proc/stat.
const CPU: [&str; 10] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
/// Lines of /proc/stat with one value.
const STAT: [&str; 4] = ["ctxt", "processes", "procs_running", "procs_blocked"];
/// Lines of /proc/meminfo: KiB in the file, bytes in samples.
const MEMINFO: [&str; 9] =
    ["MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "Dirty", "Writeback", "AnonPages", "Slab"];
/// Lines of /proc/vmstat.
const VMSTAT: [&str; 14] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgfault",
    "pgmajfault",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "nr_dirtied",
    "nr_written",
    "allocstall_normal",
    "allocstall_movable",
];
/// Fields of a line of /proc/net/dev after the name.
const NETWORK: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errs",
    "rx_drop",
    "rx_fifo",
    "rx_frame",
    "rx_compressed",
    "rx_multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errs",
    "tx_drop",
    "tx_fifo",
    "tx_colls",
    "tx_carrier",
    "tx_compressed",
];

/// Sources of samples.
pub const SOURCES: [&str; 11] = [
    "diskstats",
    "cpu",
    "memory",
    "network",
    "filesystems",
    "tcp",
    "arcstats",
    "zil",
    "txgs",
    "nfs-client",
    "smb-client",
];

/// Pending readings, by source.
type Pending = [Samples; SOURCES.len()];

/// Counters that could not be read: source, number if known, description.
pub type Missed = (&'static str, Option<u64>, &'static str);

/// Reader of TCP connections.
#[derive(Debug, Default)]
struct Connections {
    /// None if it must be opened again.
    diag: Option<SockDiag>,
    /// Whether a reading ever succeeded.
    succeeded: bool,
    /// Whether this kernel or container has no such counters.
    is_absent: bool,
}

impl Connections {
    fn open(&mut self) -> io::Result<&mut SockDiag> {
        match self.diag.take() {
            Some(diag) => Ok(self.diag.insert(diag)),
            None => Ok(self.diag.insert(SockDiag::open()?)),
        }
    }

    /// Evaluates the result of a reading. Returns a description if something was missed.
    fn settle(&mut self, read: io::Result<bool>) -> Option<&'static str> {
        match read {
            Ok(is_complete) => {
                self.succeeded = true;
                (!is_complete)
                    .then_some("the kernel's buffer of ended TCP connections was full: their last bytes are missing")
            }
            Err(error) => {
                // a late answer to this request must not be taken for an answer to the next one
                self.diag = None;
                self.is_absent = !self.succeeded && is_absence(&error);
                (!self.is_absent)
                    .then_some("TCP connections could not be read: the last bytes of those that ended are missing")
            }
        }
    }
}

/// Whether the error means that the kernel has no such module or that the container has no permission, not a temporary
/// error.
fn is_absence(error: &io::Error) -> bool {
    let absent = [
        Errno::ENOENT,
        Errno::EPERM,
        Errno::EACCES,
        Errno::EOPNOTSUPP,
        Errno::EPROTONOSUPPORT,
        Errno::EAFNOSUPPORT,
        Errno::ENOSYS,
    ];
    error.raw_os_error().is_some_and(|code| absent.contains(&Errno::from_raw(code)))
}

/// Pending readings, by source, and the state of each reader.
#[derive(Debug, Default)]
pub struct Counters {
    samples: Pending,
    tcp: Connections,
    peers: Peers,
    groups: Groups,
    nfs_mounts: NfsMounts,
    smb_mounts: SmbMounts,
    /// Counters that could not be read since this was last taken.
    pub missed: Vec<Missed>,
}

impl Counters {
    /// Open the readers.
    pub fn start() -> Self {
        let mut counters = Self::default();
        // connections that end are reported from now on; the first reading reports an error of opening
        let _ = counters.tcp.open();
        counters
    }

    /// Read everything once.
    pub fn read(&mut self, time_ns: i64) {
        let mut missed = 0;
        for (path, parse) in FILES {
            match read_text(path, TABLE) {
                Ok(text) => parse(&text, time_ns, &mut self.samples),
                Err(_) => missed += 1,
            }
        }
        if missed > 0 {
            self.missed.push(("counters", Some(missed), "files of counters that could not be read"));
        }
        links(Path::new("/sys/class/net"), time_ns, &mut self.samples[3]);
        file_systems(time_ns, &mut self.samples[4]);
        self.connections(time_ns);
        self.kstats(Path::new(kstats::PLACE), time_ns);
        let damaged = self.nfs_mounts.read(time_ns, &mut self.samples[9]);
        if damaged > 0 {
            self.missed.push(("nfs-client", Some(damaged), "counts of NFS mounts that could not be read"));
        }
        let damaged = self.smb_mounts.read(time_ns, &mut self.samples[10]);
        if damaged > 0 {
            self.missed.push(("smb-client", Some(damaged), "counts of SMB mounts that could not be read"));
        }
    }

    fn connections(&mut self, time_ns: i64) {
        if self.tcp.is_absent {
            return;
        }
        let (peers, samples) = (&mut self.peers, &mut self.samples[5]);
        let read = self.tcp.open().and_then(|diag| peers.read(diag, time_ns, samples));
        if let Some(words) = self.tcp.settle(read) {
            self.missed.push(("tcp", None, words));
        }
    }

    fn kstats(&mut self, place: &Path, time_ns: i64) {
        for (number, name) in [(6, "arcstats"), (7, "zil")] {
            // most machines have no OpenZFS; its module may be loaded later
            if let Ok(text) = read_text(place.join(name), TABLE) {
                kstats::named(&text, time_ns, &mut self.samples[number]);
            }
        }
        let missed = self.groups.read(place, time_ns, &mut self.samples[8]);
        if missed > 0 {
            self.missed.push(("txgs", Some(missed), "transaction groups that passed between two readings"));
        }
    }

    /// Payloads of frames with all readings, by source.
    pub fn payloads(&mut self) -> Vec<Vec<u8>> {
        for (samples, source) in self.samples.iter_mut().zip(SOURCES) {
            let beyond = samples.take_beyond();
            if beyond > 0 {
                let words = "readings with a name beyond the maximum number of names: shown as (other)";
                self.missed.push((source, Some(beyond), words));
            }
        }
        let filled = self.samples.iter_mut().zip(SOURCES).filter(|(samples, _)| !samples.is_empty());
        filled.map(|(samples, source)| samples.payload(source)).collect()
    }
}

type Parse = fn(&str, i64, &mut Pending);

const FILES: [(&str, Parse); 5] = [
    ("/proc/diskstats", |text, time, samples| diskstats(text, time, &mut samples[0])),
    ("/proc/stat", |text, time, samples| stat(text, time, &mut samples[1])),
    ("/proc/meminfo", |text, time, samples| named(text, time, &MEMINFO, 1024, &mut samples[2])),
    ("/proc/vmstat", |text, time, samples| named(text, time, &VMSTAT, 1, &mut samples[2])),
    ("/proc/net/dev", |text, time, samples| network(text, time, &mut samples[3])),
];

fn values<'a>(words: impl Iterator<Item = &'a str>, names: &[&'static str]) -> Vec<(&'static str, i64)> {
    words.zip(names).filter_map(|(word, &name)| Some((name, word.parse().ok()?))).collect()
}

fn diskstats(text: &str, time_ns: i64, samples: &mut Samples) {
    for line in text.lines() {
        let mut words = line.split_whitespace().skip(2);
        let Some(device) = words.next() else { continue };
        for (field, value) in values(words, &DISK) {
            samples.push(time_ns, device.as_bytes(), field.as_bytes(), value);
        }
    }
}

fn stat(text: &str, time_ns: i64, samples: &mut Samples) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        if let Some(number) = name.strip_prefix("cpu") {
            let object = if number.is_empty() { "" } else { name };
            for (field, value) in values(words, &CPU) {
                samples.push(time_ns, object.as_bytes(), field.as_bytes(), value);
            }
        } else if STAT.contains(&name) {
            if let Some(value) = words.next().and_then(|word| word.parse().ok()) {
                samples.push(time_ns, b"", name.as_bytes(), value);
            }
        }
    }
}

fn named(text: &str, time_ns: i64, names: &[&str], unit: i64, samples: &mut Samples) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().map(|name| name.trim_end_matches(':')) else { continue };
        if let (true, Some(Ok(value))) = (names.contains(&name), words.next().map(str::parse::<i64>)) {
            samples.push(time_ns, b"", name.as_bytes(), value.saturating_mul(unit));
        }
    }
}

fn network(text: &str, time_ns: i64, samples: &mut Samples) {
    for line in text.lines() {
        let Some((name, rest)) = line.rsplit_once(':') else { continue };
        for (field, value) in values(rest.split_whitespace(), &NETWORK) {
            samples.push(time_ns, name.trim().as_bytes(), field.as_bytes(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_core::frames::reader::{Frame, Reader};
    use iolab_core::frames::{frame, Kind};

    /// Samples of a reading: (object, field, value).
    fn taken(take: impl Fn(&mut Samples)) -> Vec<(String, String, i64)> {
        let mut samples = Samples::default();
        take(&mut samples);
        let frames = Reader::default().feed(&frame(Kind::Samples, &samples.payload("x"))).unwrap();
        let [Frame::Samples(read)] = &frames[..] else { panic!() };
        let name = |of: usize, row: usize| {
            read.names[of][u32::from_le_bytes(read.ids[of][row * 4..][..4].try_into().unwrap()) as usize].clone()
        };
        let value = |row: usize| i64::from_le_bytes(read.value[row * 8..][..8].try_into().unwrap());
        (0..read.rows).map(|row| (name(0, row), name(1, row), value(row))).collect()
    }

    #[test]
    fn lines_of_the_kernel() {
        let old = taken(|samples| diskstats("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n", 0, samples));
        assert_eq!((old.len(), &old[10]), (11, &("sda".into(), "weighted_io_ms".into(), 11)));
        let cpu = taken(|samples| stat("cpu  1 2 3 4\ncpu0 5 6\nintr 7 8\nctxt 9\n", 0, samples));
        assert_eq!(cpu.len(), 7);
        assert_eq!(cpu[4], ("cpu0".into(), "user".into(), 5));
        assert_eq!(cpu[6], (String::new(), "ctxt".into(), 9));
        let memory = taken(|samples| named("MemFree:  3 kB\nHugePages_Total: 4\n", 0, &MEMINFO, 1024, samples));
        assert_eq!(memory, [(String::new(), "MemFree".into(), 3072)]);
        let head = "Inter-|   Receive\n face |bytes    packets\n";
        let lines = format!("{head}  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\neth0:1: 7\n");
        let network = taken(|samples| network(&lines, 0, samples));
        assert_eq!((network.len(), &network[8]), (17, &("eth0".into(), "tx_bytes".into(), 9)));
        assert_eq!(network[16], ("eth0:1".into(), "rx_bytes".into(), 7));
        assert!(taken(|samples| diskstats("\n8 0\n8 0 sda x y\n\0", 0, samples)).is_empty());
    }

    #[test]
    fn names_beyond_the_limit_are_a_loss() {
        let mut counters = Counters::default();
        for number in 0..iolab_core::names::LIMIT + 5 {
            counters.samples[0].push(1, number.to_string().as_bytes(), b"reads", 1);
        }
        assert_eq!(counters.payloads().len(), 1);
        let missed: Vec<_> = counters.missed.iter().map(|missed| (missed.0, missed.1)).collect();
        assert!(matches!(missed[..], [("diskstats", Some(5))]), "{missed:?}");
        counters.missed.clear();
        counters.payloads();
        assert_eq!(counters.missed, []);
    }

    #[test]
    fn this_machine_is_read() {
        let mut counters = Counters::start();
        counters.read(1);
        assert_eq!(counters.missed, []);
        // a machine may have no local file system, no sock_diag and no OpenZFS
        assert!((4..=SOURCES.len()).contains(&counters.payloads().len()));
        assert!(counters.payloads().is_empty());
    }

    #[test]
    fn absent_counters_are_not_read_again() {
        for absent in [Errno::ENOENT, Errno::EPERM, Errno::EOPNOTSUPP] {
            let mut counters = Counters::start();
            assert_eq!(counters.tcp.settle(Err(absent.into())), None);
            counters.connections(1);
            assert!(counters.missed.is_empty() && counters.payloads().is_empty());
        }
    }

    #[test]
    fn a_temporary_error_of_connections_is_a_loss() {
        let mut counters = Counters::start();
        counters.connections(1);
        if counters.tcp.is_absent {
            return eprintln!("skipped: no sock_diag here");
        }
        assert_eq!((counters.missed.len(), counters.payloads().len()), (0, 1));
        for (time, retry_time) in [(2, 3), (4, 5)] {
            counters.tcp.diag = Some(SockDiag::broken());
            counters.connections(time);
            assert_eq!(counters.missed.iter().map(|missed| missed.0).collect::<Vec<_>>(), ["tcp"]);
            assert!(counters.payloads().is_empty());
            counters.missed.clear();
            counters.connections(retry_time);
            assert_eq!((counters.missed.len(), counters.payloads().len()), (0, 1));
        }
        // after the first success, no error means that there are no such counters
        assert!(counters.tcp.settle(Err(Errno::ENOENT.into())).is_some());
        assert!(!counters.tcp.is_absent);
        // a temporary error at the first reading does not mean it either
        let mut first = Counters::start();
        assert!(first.tcp.settle(Err(Errno::EAGAIN.into())).is_some());
        first.connections(1);
        assert_eq!((first.missed.len(), first.payloads().len()), (0, 1));
    }

    #[test]
    fn counters_of_openzfs() {
        let place = std::env::temp_dir().join(format!("iolab-zfs-{}", std::process::id()));
        std::fs::create_dir_all(place.join("tank")).unwrap();
        std::fs::write(place.join("arcstats"), "1 1\nname type data\nhits 4 7\n").unwrap();
        let row = |txg: u32| format!("{txg} 1 C 1 2 3 4 5 6 7 8 9\n");
        std::fs::write(place.join("tank/txgs"), row(5)).unwrap();
        let mut counters = Counters::default();
        counters.kstats(&place, 1);
        assert_eq!(counters.payloads().len(), 2);
        std::fs::write(place.join("tank/txgs"), row(8)).unwrap();
        counters.kstats(&place, 2);
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(counters.missed.iter().map(|missed| (missed.0, missed.1)).collect::<Vec<_>>(), [("txgs", Some(2))]);
        counters.payloads();
        counters.kstats(&place, 3);
        assert!(counters.payloads().is_empty());
    }
}
