// SPDX-License-Identifier: Apache-2.0
//! State of tasks and descriptors in /proc, read if the tracepoints leave it open.
//!
//! The link of a descriptor shows whether it is a file: pipes and sockets have no path and are not read further.

use crate::clock::monotonic_ns;
use crate::fanotify_names::{is_file, without_suffix};
use crate::files_mounts::MountTables;
use crate::limited::{read_beginning, RECORD};
use iolab_core::syscall::record::Comm;
use iolab_core::syscall::{Opened, Seen, SeenDescriptor, SeenTask, World};
use nix::fcntl::readlink;
use nix::sys::stat::stat;
use nix::time::{clock_gettime, ClockId};
use nix::unistd::{sysconf, SysconfVar};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

/// Maximum number of reads per second: each takes some microseconds. Beyond it, the state counts as unknown.
const READS_PER_SECOND: u32 = 5000;
/// Maximum length of a command line in characters.
const COMMAND: usize = 4096;

/// A descriptor as /proc shows it.
#[derive(Clone, Debug)]
pub struct DescriptorState {
    /// The descriptor.
    pub seen: SeenDescriptor,
    /// Whether it is an io_uring.
    pub ring: bool,
}

/// /proc.
pub struct Files {
    mounts: MountTables,
    requested: Option<Vec<u64>>,
    all_watched: bool,
    reads: u32,
    since: Instant,
    ticks_per_second: u64,
}

impl Files {
    /// Reader for the file systems with these device numbers; None means all.
    pub fn new(requested: Option<Vec<u64>>) -> Self {
        let since = Instant::now();
        let ticks_per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().map_or(100, |ticks| ticks.max(1) as u64);
        Self { mounts: MountTables::default(), requested, all_watched: false, reads: 0, since, ticks_per_second }
    }

    /// Set whether opens on all file systems with data cause a notice.
    pub fn set_all_watched(&mut self, all: bool) {
        self.all_watched = all;
    }

    /// Reads a descriptor of a process. Returns None if it is closed or the process ended.
    pub fn look(&mut self, pid: u32, number: u32) -> Option<DescriptorState> {
        let link = format!("/proc/{pid}/fd/{number}");
        let path = readlink(link.as_str()).ok()?.into_vec();
        let other = |ring| DescriptorState {
            seen: SeenDescriptor { opened: Opened::Other, flags: 0, position: 0, alone: false },
            ring,
        };
        if path.first() != Some(&b'/') || path.starts_with(b"/memfd:") {
            return Some(other(path == b"anon_inode:[io_uring]"));
        }
        let (position, flags, mount) = information(pid, number)?;
        let (is_of_the_kernel, place) = match self.mounts.find(pid, mount) {
            Some((of_the_kernel, place)) => (of_the_kernel, Some(place)),
            None => (false, None),
        };
        if is_of_the_kernel {
            return Some(other(false));
        }
        let status = stat(link.as_str()).ok()?;
        if !is_file(&status) {
            return Some(other(false));
        }
        let seen = Seen {
            path: Some(without_suffix(path, status.st_nlink == 0)),
            mount: place,
            identity: Some((status.st_dev, status.st_ino)),
            requested: self.requested.as_ref().is_none_or(|requested| requested.contains(&status.st_dev)),
        };
        Some(DescriptorState {
            seen: SeenDescriptor { opened: Opened::File(seen), flags, position, alone: false },
            ring: false,
        })
    }

    fn may_read(&mut self) -> bool {
        if self.since.elapsed() > Duration::from_secs(1) {
            (self.since, self.reads) = (Instant::now(), 0);
        }
        self.reads += 1;
        self.reads <= READS_PER_SECOND
    }
}

impl World for Files {
    fn descriptor(&mut self, task: u32, number: u32) -> Option<SeenDescriptor> {
        if !self.may_read() {
            return None;
        }
        self.look(task, number).map(|state| state.seen)
    }

    fn task(&mut self, task: u32) -> Option<SeenTask> {
        if !self.may_read() {
            return None;
        }
        let pid = process_number(&read_beginning(format!("/proc/{task}/status"), RECORD).ok()?)?;
        let statistics = read_beginning(format!("/proc/{task}/stat"), RECORD).ok()?;
        let began_ns =
            parse_start(&statistics)?.saturating_add(1).saturating_mul(1_000_000_000 / self.ticks_per_second);
        Some(SeenTask { pid, comm: name_of(pid)?, began_ns: began_ns.saturating_sub(asleep_ns()) })
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn all_watched(&self) -> bool {
        self.all_watched
    }
}

/// The process of a task, from the beginning of its status: the groups of its user, which may be many, come later.
pub fn process_number(status: &[u8]) -> Option<u32> {
    let number = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"))?;
    std::str::from_utf8(number).ok()?.trim().parse().ok()
}

/// Clock ticks from boot to the start of a task. The name, in parentheses, may contain any character.
fn parse_start(statistics: &[u8]) -> Option<u64> {
    let name_end = statistics.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(&statistics[name_end + 1..]).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Time in suspend: CLOCK_MONOTONIC stops in suspend, the clock of start times does not.
fn asleep_ns() -> u64 {
    let now =
        |clock| clock_gettime(clock).map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
    let monotonic_ns = now(ClockId::CLOCK_MONOTONIC);
    // read after the monotonic clock, so that the result is not too small and no task seems older than it is
    let boot_ns = now(ClockId::CLOCK_BOOTTIME);
    boot_ns.saturating_sub(monotonic_ns).saturating_sub(1_000_000)
}

/// Position, flags and mount number of a descriptor.
fn information(pid: u32, number: u32) -> Option<(u64, u32, u32)> {
    // locks may follow, in any number
    let text = read_beginning(format!("/proc/{pid}/fdinfo/{number}"), RECORD).ok()?;
    parse_information(&String::from_utf8_lossy(&text))
}

fn parse_information(text: &str) -> Option<(u64, u32, u32)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some((
        value("pos:")?.parse().ok()?,
        u32::from_str_radix(value("flags:")?, 8).ok()?,
        value("mnt_id:")?.parse().ok()?,
    ))
}

/// Command name of a process.
pub fn name_of(pid: u32) -> Option<Comm> {
    let bytes = read_beginning(format!("/proc/{pid}/comm"), RECORD).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut comm = [0; 16];
    let length = name.len().min(comm.len() - 1);
    comm[..length].copy_from_slice(&name[..length]);
    Some(comm)
}

/// Command line of a process; empty if the process ended.
pub fn command_of(pid: u32) -> String {
    let bytes = read_beginning(format!("/proc/{pid}/cmdline"), COMMAND).unwrap_or_default();
    let words: Vec<_> = bytes.split(|&byte| byte == 0).map(iolab_core::names::text).collect();
    words.join(" ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn an_own_file_is_a_file_and_a_pipe_is_not() {
        let directory = std::env::temp_dir().join(format!("iolab-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a file (deleted)");
        let mut file = std::fs::File::create(&path).unwrap();
        file.seek(SeekFrom::Start(77)).unwrap();
        let mut files = Files::new(None);
        let own = std::process::id();
        let state = files.look(own, file.as_raw_fd() as u32).unwrap().seen;
        let Opened::File(seen) = &state.opened else { panic!("a file") };
        assert_eq!((seen.path.as_deref(), state.position), (Some(path.as_os_str().as_bytes()), 77));
        assert_eq!(state.flags & 3, 1, "write only");
        std::fs::remove_dir_all(&directory).unwrap();
        let state = files.look(own, file.as_raw_fd() as u32).unwrap().seen;
        let Opened::File(seen) = &state.opened else { panic!("still a file") };
        assert_eq!(seen.path.as_deref(), Some(path.as_os_str().as_bytes()), "only the kernel's suffix is removed");
        let (reader, _writer) = nix::unistd::pipe().unwrap();
        assert_eq!(files.look(own, reader.as_raw_fd() as u32).unwrap().seen.opened, Opened::Other);
        let status = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(files.look(own, status.as_raw_fd() as u32).unwrap().seen.opened, Opened::Other, "the kernel's own");
        assert!(files.look(own, 1 << 20).is_none());
        let task = files.task(own).unwrap();
        assert_eq!(task.pid, own);
        assert!(task.began_ns > 0 && task.began_ns < monotonic_ns() + 11_000_000, "{}", task.began_ns);
        assert_eq!(parse_start(b"7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20"), Some(777));
        for damaged in [&b"7 (a"[..], b"7 (a) S", b"7 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"] {
            assert_eq!(parse_start(damaged), None);
        }
    }

    #[test]
    fn reads_per_second_are_limited() {
        let mut files = Files::new(None);
        for _ in 0..READS_PER_SECOND + 7 {
            files.may_read();
        }
        assert!(!files.may_read() || files.since.elapsed() > Duration::from_millis(900));
    }

    #[test]
    fn damaged_information_is_none() {
        assert_eq!(parse_information("pos:\t5\nflags:\t0102001\nmnt_id:\t27\n"), Some((5, 0o102001, 27)));
        for text in ["", "pos: 5\nflags: 9\nmnt_id: 1\n", "pos: -5\nflags: 0\nmnt_id: 1\n", "pos: 1\nmnt_id: 2\n"] {
            assert_eq!(parse_information(text), None, "{text}");
        }
    }

    /// A process without an end of its command line: nothing beyond the limits is read.
    #[test]
    fn a_long_command_line_is_cut() {
        let argument = "x".repeat(100 << 10);
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line", &argument, &argument])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut command = command_of(child.id());
        // between fork and exec, it has the command line of its parent
        for _ in 0..1000 {
            if command.starts_with("sh ") {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
            command = command_of(child.id());
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(command.starts_with("sh -c read line xxx"), "{command:.40}");
        assert_eq!(command.len(), COMMAND);
    }

    #[test]
    fn the_process_of_a_task_comes_before_its_groups() {
        let status = b"Name:\tTgid:9\nUmask:\t0022\nTgid:\t77\nGroups:\t1 2 3";
        assert_eq!(process_number(status), Some(77));
        assert_eq!(process_number(b"Tgid:\t\n"), None);
    }
}
