// SPDX-License-Identifier: Apache-2.0
//! Devices and processes, looked up in /sys and /proc.

use crate::files::process_number;
use crate::limited::{read_beginning, read_text, RECORD};
use iolab_core::block::{Device, Process, World};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Maximum number of reported processes and of threads with a known process.
const LIMIT: usize = 1 << 16;
/// Maximum length of a command line in bytes.
const COMMAND: usize = 1024;

/// This machine.
#[derive(Debug)]
pub struct Machine {
    sys: PathBuf,
    proc: PathBuf,
    /// Requested devices; empty means all with a request queue that are not stacked on another one.
    wanted: Vec<u32>,
    excluded: HashSet<u32>,
    /// Process of threads with a recorded creation.
    made: HashMap<u32, u32>,
    reported: HashSet<u32>,
    /// Processes first seen: number, name, command line.
    pub fresh: Vec<(u32, String, String)>,
}

/// The kernel's number of a device.
pub fn number(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

impl Machine {
    /// This machine. I/O of `wanted` devices (empty: all with a request queue) is recorded, that of `excluded`
    /// processes is not.
    pub fn new(wanted: Vec<u32>, excluded: impl Iterator<Item = u32>) -> Self {
        Self {
            sys: PathBuf::from("/sys"),
            proc: PathBuf::from("/proc"),
            wanted,
            excluded: excluded.collect(),
            made: HashMap::new(),
            reported: HashSet::new(),
            fresh: Vec::new(),
        }
    }

    /// Directory of a device in /sys.
    fn directory(&self, number: u32) -> Option<PathBuf> {
        let link = self.sys.join(format!("dev/block/{}:{}", number >> 20, number & 0xf_ffff));
        std::fs::canonicalize(link).ok()
    }

    /// The disk of a partition, or the device itself; None if it does not exist.
    pub fn disk(&self, number: u32) -> Option<u32> {
        let directory = self.directory(number)?;
        if !directory.join("partition").exists() {
            return Some(number);
        }
        number_in(&directory.parent()?.join("dev"))
    }

    /// Name of a device.
    pub fn name(&self, number: u32) -> String {
        let directory = self.directory(number);
        let name = directory.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| format!("{}:{}", number >> 20, number & 0xf_ffff))
    }

    /// Whether a device has bios but no requests.
    pub fn has_bios_only(&self, number: u32) -> bool {
        self.directory(number)
            .is_some_and(|directory| directory.join("queue").exists() && !directory.join("mq").exists())
    }

    /// Name of the lower device that shows the same I/O.
    pub fn below(&self, number: u32) -> Option<String> {
        let directory = self.directory(number)?;
        if let Some(slave) = std::fs::read_dir(directory.join("slaves")).ok()?.flatten().next() {
            return Some(slave.file_name().to_string_lossy().into_owned());
        }
        let file = read_text(directory.join("loop/backing_file"), RECORD).ok()?;
        let device = nix::sys::stat::stat(file.trim_end()).ok()?.st_dev;
        let on = number_of(device);
        // a file system without its own device (tmpfs) shows the I/O nowhere else
        self.directory(on).map(|_| self.name(on))
    }

    /// Existing devices that are stacked on another one, with its name; not recorded by default.
    pub fn stacked(&self) -> Vec<(u32, String)> {
        let entries = std::fs::read_dir(self.sys.join("block")).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| number_in(&entry.path().join("dev")));
        let mut stacked: Vec<_> = numbers.filter_map(|number| Some((number, self.below(number)?))).collect();
        stacked.sort_unstable();
        stacked
    }

    /// A thread was created. `with` is the creating thread of the same process, None if it is a new process.
    pub fn made(&mut self, thread: u32, with: Option<u32>) {
        let pid = match with {
            None => thread,
            Some(with) => match self.made.get(&with).copied().or_else(|| self.process_of(with)) {
                Some(pid) => pid,
                None => return,
            },
        };
        if self.made.len() >= LIMIT {
            self.made.clear();
        }
        self.made.insert(thread, pid);
    }

    /// Read the process of every existing thread, because a thread may end before it is looked up.
    pub fn read_threads(&mut self) {
        let numbers = |directory: PathBuf| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        };
        for pid in numbers(self.proc.clone()) {
            for thread in numbers(self.proc.join(format!("{pid}/task"))).take(LIMIT - self.made.len().min(LIMIT)) {
                self.made.insert(thread, pid);
            }
        }
    }

    fn process_of(&self, thread: u32) -> Option<u32> {
        process_number(&read_beginning(self.proc.join(format!("{thread}/status")), RECORD).ok()?)
    }

    fn report(&mut self, pid: u32, name: &[u8]) {
        if self.reported.contains(&pid) || self.reported.len() >= LIMIT {
            return;
        }
        self.reported.insert(pid);
        let path = self.proc.join(format!("{pid}/cmdline"));
        let mut command = read_beginning(path, COMMAND).unwrap_or_default();
        while command.last() == Some(&0) {
            command.pop();
        }
        command.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        let text = |bytes: &[u8]| iolab_core::names::text(bytes);
        self.fresh.push((pid, text(name), text(&command)));
    }
}

/// `MAJOR:MINOR` in a file.
fn number_in(path: &Path) -> Option<u32> {
    let text = read_text(path, RECORD).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(number(major.parse().ok()?, minor.parse().ok()?))
}

/// The kernel's number of a device, from the number that programs see.
fn number_of(device: u64) -> u32 {
    number(nix::sys::stat::major(device) as u32, nix::sys::stat::minor(device) as u32)
}

impl World for Machine {
    fn device(&mut self, number: u32) -> Device {
        let wanted = if self.wanted.is_empty() { self.below(number).is_none() } else { self.wanted.contains(&number) };
        // bios of unrequested devices are not read
        let bios = self.has_bios_only(number);
        Device { name: self.name(number), wanted: wanted && (!bios || self.wanted.contains(&number)), bios }
    }

    fn process(&mut self, thread: u32, name: &[u8]) -> Process {
        let pid = self.made.get(&thread).copied().or_else(|| self.process_of(thread));
        let own = pid.filter(|&pid| pid != thread).and_then(|pid| {
            let mut name = read_beginning(self.proc.join(format!("{pid}/comm")), RECORD).ok()?;
            name.pop();
            Some(name)
        });
        // if the process of the thread ended, the thread's own name is used
        let name = own.unwrap_or_else(|| name.to_vec());
        if let Some(pid) = pid {
            self.report(pid, &name);
        }
        Process { pid, excluded: pid.is_some_and(|pid| self.excluded.contains(&pid)), name }
    }
}
