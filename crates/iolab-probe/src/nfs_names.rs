// SPDX-License-Identifier: Apache-2.0
//! Names of the files that the kernel's NFS server reads and writes.
//!
//! fanotify reports each read and write of the server with the file system's handle of the file, its directory and its
//! name. A report is in the queue before the tracepoint of the same I/O is in its ring. So the reports of all I/O in
//! the ring are in the queue when the queue is read after the ring. `/proc/net/rpc/nfsd.fh` has the export numbers in
//! file handles.

use crate::clock::monotonic_ns;
use crate::fanotify::open_group;
use crate::fanotify_names::Names;
use crate::files::name_of;
use crate::files_mounts::{unescaped, Mount, Mounts};
use crate::limited::{read_lines, TABLE};
use iolab_core::nfs::names::{ExportNumber, FileNames};
use iolab_core::syscall::notice::{mask, parse};
use iolab_core::syscall::Opened;
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{Fanotify, MarkFlags, MaskFlags};
use nix::sys::statvfs::statvfs;
use nix::unistd::read;
use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Configured exports, exports known to the kernel, and export numbers in file handles. The kernel adds an export when
/// a client first uses it.
const CONFIGURED: &str = "/var/lib/nfs/etab";
const KNOWN: &str = "/proc/net/rpc/nfsd.export/content";
const NUMBERS: &str = "/proc/net/rpc/nfsd.fh/content";
/// Name of the server threads.
const SERVER: &[u8] = b"nfsd";
/// Time between readings of the exports.
const LOOK: Duration = Duration::from_secs(1);
const BUFFER: usize = 256 << 10;
/// Maximum number of cached tasks; beyond it, the cache is cleared.
const TASKS: usize = 1 << 12;
/// Kinds of file systems where a call may wait for another machine.
const REMOTE: [&str; 5] = ["nfs", "cifs", "smb3", "ceph", "fuse"];

/// A watch on the file systems of all exports.
pub struct NfsNames {
    group: Fanotify,
    names: Names,
    numbers: HashMap<[u8; 8], Vec<ExportNumber>>,
    mounts: Mounts,
    watched: Vec<Mount>,
    /// Whether a task is a server thread.
    tasks: HashMap<i32, bool>,
    buffer: Vec<u8>,
    exports_read: Option<Instant>,
}

impl NfsNames {
    /// Start watching.
    pub fn start() -> Result<Self, Errno> {
        let group = open_group()?;
        let mut names = Self {
            group,
            names: Names::new(None),
            numbers: HashMap::new(),
            mounts: Mounts::default(),
            watched: Vec::new(),
            tasks: HashMap::new(),
            buffer: vec![0; BUFFER],
            exports_read: None,
        };
        names.look();
        Ok(names)
    }

    /// Take the reports since the last call.
    pub fn read(&mut self, file_names: &mut FileNames) {
        // I/O before the watch starts is not reported
        let mut is_whole = self.exports_read.is_some_and(|time| time.elapsed() < LOOK) || !self.look();
        self.names.begin();
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut files = Vec::new();
        loop {
            match read(self.group.as_fd(), &mut buffer) {
                Ok(0) | Err(Errno::EAGAIN) => break,
                Ok(length) => is_whole &= self.take(&buffer[..length], &mut files),
                Err(Errno::EINTR) => {}
                Err(_) => {
                    is_whole = false;
                    break;
                }
            }
        }
        self.buffer = buffer;
        let read_ns = monotonic_ns();
        if self.names.end() {
            files.iter_mut().for_each(|file| self.names.review(&mut file.opened));
        }
        let has_number = |numbers: &HashMap<_, _>| files.iter().all(|file| numbers.contains_key(&file.file_system));
        if !has_number(&self.numbers) {
            self.read_numbers();
            is_whole &= has_number(&self.numbers);
        }
        if !is_whole {
            file_names.lose(read_ns);
        }
        for File { file_system, kind, bytes, opened } in files {
            let Opened::File(seen) = opened else { continue };
            for number in self.numbers.get(&file_system).into_iter().flatten() {
                if let Some(handle) = number.handle(kind, &bytes) {
                    file_names.set(handle, seen.path.as_deref(), read_ns);
                }
            }
        }
    }

    /// Reads and writes by the server. Returns whether no report was lost.
    fn take(&mut self, bytes: &[u8], files: &mut Vec<File>) -> bool {
        let (names, tasks, mut overflow) = (&mut self.names, &mut self.tasks, false);
        let parsed = parse(bytes, |raw| {
            overflow |= raw.mask & mask::OVERFLOW != 0;
            if raw.mask & mask::DIRECTORY != 0 {
                if raw.mask & mask::MOVED_FROM != 0 {
                    names.directory_moved(&raw);
                }
                return;
            }
            let Some(object) = raw.object.filter(|_| raw.mask & (mask::ACCESS | mask::MODIFY) != 0) else { return };
            if tasks.len() >= TASKS {
                tasks.clear();
            }
            let is_server = || u32::try_from(raw.task).ok().and_then(name_of).is_some_and(|name| is_server(&name));
            if *tasks.entry(raw.task).or_insert_with(is_server) {
                let (file_system, kind, bytes) = (object.file_system, object.kind, object.bytes.into());
                files.push(File { file_system, kind, bytes, opened: names.opened(&raw) });
            }
        });
        parsed.is_ok() && !overflow
    }

    /// Watch the file systems of exports, and read export numbers. Returns whether the set of watched file systems
    /// changed.
    fn look(&mut self) -> bool {
        self.exports_read = Some(Instant::now());
        // a task number may have been reused
        self.tasks.clear();
        let text = |path| read_lines(path, TABLE).unwrap_or_default();
        let paths = exported(&text(CONFIGURED), &text(KNOWN));
        self.mounts = Mounts::own();
        let wanted: Vec<Mount> = mounts_of(&paths, &self.mounts).into_iter().cloned().collect();
        let is_changed = wanted != self.watched;
        if is_changed {
            let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
            let events =
                MaskFlags::FAN_ACCESS | MaskFlags::FAN_MODIFY | MaskFlags::FAN_MOVED_FROM | MaskFlags::FAN_ONDIR;
            let marked =
                wanted.iter().filter(|mount| self.group.mark(flags, events, AT_FDCWD, Some(&mount.path)).is_ok());
            self.names.watch(&marked.collect::<Vec<_>>());
            self.watched = wanted;
        }
        self.read_numbers();
        is_changed
    }

    fn read_numbers(&mut self) {
        self.numbers.clear();
        for (number, path) in numbers(&read_lines(NUMBERS, TABLE).unwrap_or_default()) {
            let mount = self.mounts.containing(&path);
            if !mount.is_some_and(|mount| self.watched.iter().any(|watched| watched.device == mount.device)) {
                continue;
            }
            if let Ok(status) = statvfs(&path) {
                self.numbers.entry(status.filesystem_id().to_ne_bytes()).or_default().push(number);
            }
        }
    }
}

/// A file that the server read or wrote.
struct File {
    file_system: [u8; 8],
    kind: i32,
    bytes: Box<[u8]>,
    opened: Opened,
}

fn is_server(name: &[u8]) -> bool {
    name.strip_prefix(SERVER).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}

/// Paths of exports: `PATH<tab>CLIENT(OPTIONS)`. The kernel also lists the parent directories of an export, which NFS 4
/// clients walk through; no file is read there.
fn exported(configured: &[u8], in_kernel: &[u8]) -> HashSet<PathBuf> {
    let lines = configured.split(|&byte| byte == b'\n').chain(in_kernel.split(|&byte| byte == b'\n'));
    let export = |line: &[u8]| {
        let end = line.iter().position(u8::is_ascii_whitespace)?;
        let (path, options) = (unescaped(&line[..end]), &line[end..]);
        let is_above = options.split(|byte| b"(,)".contains(byte)).any(|option| option == b"v4root");
        (path.is_absolute() && !is_above).then_some(path)
    };
    lines.filter_map(export).collect()
}

/// Lines `CLIENT KIND 0xNUMBER PATH`: export numbers in file handles, as 32-bit words, with the path.
fn numbers(text: &[u8]) -> Vec<(ExportNumber, PathBuf)> {
    let number = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ').skip(1);
        let mut text = || std::str::from_utf8(words.next()?).ok();
        let (kind, digits) = (text()?.parse().ok()?, text()?.strip_prefix("0x")?);
        if !digits.is_ascii() || digits.len() % 8 != 0 {
            return None;
        }
        let parsed = (0..digits.len()).step_by(8).map(|at| u32::from_str_radix(&digits[at..at + 8], 16).ok());
        let bytes = parsed.map(|word| Some(word?.to_ne_bytes())).collect::<Option<Vec<_>>>()?.concat();
        let path = unescaped(words.next()?);
        path.is_absolute().then_some((ExportNumber { kind, bytes }, path))
    };
    text.split(|&byte| byte == b'\n').filter_map(number).collect()
}

/// The mounts of the local file systems with these paths, without duplicates.
fn mounts_of<'a>(paths: &HashSet<PathBuf>, mounts: &'a Mounts) -> Vec<&'a Mount> {
    let chosen = mounts.one_of_each();
    let is_remote = |mount: &Mount| REMOTE.iter().any(|kind| mount.kind.starts_with(kind)) || mount.is_of_the_kernel();
    let devices: HashSet<u64> =
        paths.iter().filter_map(|path| mounts.containing(path)).map(|mount| mount.device).collect();
    chosen.into_iter().filter(|mount| devices.contains(&mount.device) && !is_remote(mount)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_listed_directories() {
        let configured = b"/srv/a\\040b\t10.9.0.0/16(rw,fsid=7)\nrelative\t*(rw)\n\n";
        let in_kernel = b"#path domain(flags)\n/srv/v4root\t*(rw)\n/srv/xfs\t*(rw,uuid=d283dbc5:95574038)\n/\t*(ro,v4root,fsid=0)\n\xff\t\n";
        let paths = exported(configured, in_kernel);
        assert_eq!(paths, HashSet::from(["/srv/a b", "/srv/v4root", "/srv/xfs"].map(PathBuf::from)));
    }

    #[test]
    fn numbers_are_words_in_the_order_of_this_machine() {
        let text = b"#domain fsidtype fsid [path]\n* 1 0x00000007 /srv/zfs\n10.9.0.0/16 6 0xdeb5a953fc44fcaf6c708d9c853a1777 /srv/a\\040b\n\
            * 1 0x00000000\n* x 0x00000000 /a\n* 1 0x0000 /a\n* 1 0x0000000g /a\n* 300 0x00000000 /a\n* 1 00000000 /a\n* 1 0x\xc3\xa900000 /a\n";
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let expected = [
            (ExportNumber { kind: 1, bytes: bytes(&[7]) }, PathBuf::from("/srv/zfs")),
            (
                ExportNumber { kind: 6, bytes: bytes(&[0xdeb5_a953, 0xfc44_fcaf, 0x6c70_8d9c, 0x853a_1777]) },
                "/srv/a b".into(),
            ),
        ];
        assert_eq!(numbers(text), expected);
    }

    #[test]
    fn only_local_file_systems_of_exports_are_watched() {
        let mounts = Mounts::parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /srv rw - xfs /dev/sdb rw\n3 1 0:50 / /far rw - nfs4 a:/b rw\n\
              4 2 0:51 / /srv/sys rw - sysfs sysfs rw\n5 1 8:2 /part /bind rw - xfs /dev/sdb rw\n",
        );
        let of = |paths: &[&str]| {
            let paths = paths.iter().map(PathBuf::from).collect();
            mounts_of(&paths, &mounts).iter().map(|mount| mount.id).collect::<Vec<_>>()
        };
        assert_eq!(of(&["/srv/data", "/bind/x", "/far/x", "/srv/sys/x"]), [2]);
        assert_eq!(of(&["/srvnot"]), [1]);
        assert_eq!(of(&[]), [] as [u32; 0]);
    }

    #[test]
    fn threads_of_the_server_are_known_by_name() {
        assert!(is_server(b"nfsd\0\0") && !is_server(b"nfsdcld\0") && !is_server(b"fio"));
    }
}
