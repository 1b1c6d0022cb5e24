// SPDX-License-Identifier: Apache-2.0
//! A model of the descriptors of a kernel, and the view of a tracer.

use super::super::call::Call;
use super::super::descriptor::flag;
use super::super::opens::Window;
use super::super::record::{Comm, Notice, Opened, Record, Seen, SeenDescriptor, SeenTask, Timed, World};
use std::collections::{BTreeMap, HashMap};

pub const FILES: usize = 4;
/// A file of proc: it can be opened, and causes no notice.
pub const SILENT: usize = FILES;
pub const PIPE: usize = FILES + 1;

/// Time between two events.
pub const STEP_NS: u64 = 100_000;

/// Generation of a file with a reused number, and the number of its renames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    pub generation: usize,
    pub renamed: usize,
}

#[derive(Clone, Debug)]
pub struct Open {
    pub file: usize,
    pub name: Name,
    pub position: u64,
    pub flags: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Truth {
    pub file: usize,
    pub name: Name,
    pub offset: u64,
    pub size: u64,
    pub pid: u32,
    /// Uses a descriptor with `O_APPEND`: its position depends on a size that may be unknown.
    pub append: bool,
}

/// Processes (task number = process number), their descriptors, and the view of a tracer.
#[derive(Default)]
pub struct Kernel {
    pub now: u64,
    pub tables: BTreeMap<u32, BTreeMap<u32, (usize, bool)>>,
    pub opens: Vec<Open>,
    pub sizes: [u64; PIPE + 1],
    pub records: Vec<Timed>,
    pub unread: Vec<(u32, usize, Name)>,
    pub names: [Name; PIPE + 1],
    pub read_ns: u64,
    /// Times at which the queue of notices was empty.
    pub quiet: Vec<(u64, u64)>,
    /// Notices are lost, and descriptors are passed without a record.
    pub is_rough: bool,
    pub notices: Vec<Notice>,
    pub truths: HashMap<u64, Truth>,
    pub next_pid: u32,
}

pub fn name(text: &str) -> Comm {
    let mut comm = [0; 16];
    comm[..text.len()].copy_from_slice(text.as_bytes());
    comm
}

pub fn path(file: usize, name: Name) -> String {
    match name {
        Name { generation: 0, renamed: 0 } => format!("/f{file}"),
        Name { generation, renamed } => format!("/f{file}.{generation}.{renamed}"),
    }
}

fn seen(file: usize, name: Name) -> Seen {
    Seen {
        path: Some(path(file, name).into_bytes()),
        mount: Some(b"/".to_vec()),
        identity: Some((1, file as u64)),
        requested: true,
    }
}

pub fn opened(file: usize, name: Name) -> Opened {
    if file < FILES {
        Opened::File(seen(file, name))
    } else {
        Opened::Other
    }
}

impl Kernel {
    pub fn new() -> Self {
        let mut kernel = Self { now: 10 * STEP_NS, next_pid: 101, ..Self::default() };
        kernel.tables.insert(100, BTreeMap::new());
        // created after the start of recording; descriptors at the start have their own test
        kernel.record(1, Record::Fork { child: 100, flags: 0, comm: name("first") });
        kernel
    }

    pub fn record(&mut self, task: u32, record: Record) -> u64 {
        self.now += STEP_NS;
        self.records.push(Timed { time_ns: self.now, task, record });
        self.now
    }

    pub fn call(&mut self, task: u32, call: Call, args: [u64; 4], returned: i64) -> u64 {
        self.record(task, Record::Enter { call, args });
        self.record(task, Record::Exit { call, returned })
    }

    pub fn free(&self, pid: u32) -> u32 {
        (3..).find(|number| !self.tables[&pid].contains_key(number)).unwrap()
    }

    pub fn open(&mut self, pid: u32, file: usize, flags: u32) {
        let number = self.free(pid);
        self.record(pid, Record::Enter { call: Call::Openat, args: [u64::from(flags), 0, 0, 0] });
        let name = self.names[file];
        if file != SILENT && !self.unread.contains(&(pid, file, name)) {
            self.unread.push((pid, file, name));
        }
        self.record(pid, Record::Exit { call: Call::Openat, returned: i64::from(number) });
        if flags & flag::TRUNCATE != 0 {
            self.sizes[file] = 0;
        }
        self.opens.push(Open { file, name, position: 0, flags });
        let open = self.opens.len() - 1;
        self.tables.get_mut(&pid).unwrap().insert(number, (open, flags & flag::CLOSE_ON_EXEC != 0));
    }

    pub fn pipe(&mut self, pid: u32) {
        self.opens.push(Open { file: PIPE, name: Name::default(), position: 0, flags: 2 });
        let (number, open) = (self.free(pid), self.opens.len() - 1);
        self.tables.get_mut(&pid).unwrap().insert(number, (open, false));
    }

    pub fn set_close_on_exec(&mut self, pid: u32, number: u32, on_exec: bool) {
        self.call(pid, Call::Fcntl, [number.into(), 2, on_exec.into(), 0], 0);
        self.tables.get_mut(&pid).unwrap().get_mut(&number).unwrap().1 = on_exec;
    }

    pub fn data(&mut self, pid: u32, number: u32, call: Call, at: u64, bytes: u64) {
        let Some(&(index, _)) = self.tables[&pid].get(&number) else { return };
        let open = self.opens[index].clone();
        let writes = matches!(call, Call::Write | Call::Pwrite64);
        if writes && open.flags & flag::ACCESS == 0 {
            self.call(pid, call, [number.into(), at, 0, 0], -9);
            return;
        }
        let append = writes && open.flags & flag::APPEND != 0;
        let explicit = matches!(call, Call::Pread64 | Call::Pwrite64);
        let offset = if append {
            self.sizes[open.file]
        } else if explicit {
            at
        } else {
            open.position
        };
        let size = if writes { bytes } else { bytes.min(self.sizes[open.file].saturating_sub(offset)) };
        let time = self.call(pid, call, [number.into(), at, 0, 0], size as i64);
        if writes {
            self.sizes[open.file] = self.sizes[open.file].max(offset + size);
        }
        if !explicit && (size > 0 || !append) {
            self.opens[index].position = offset + size;
        }
        self.truths.insert(
            time,
            Truth { file: open.file, name: open.name, offset, size, pid, append: open.flags & flag::APPEND != 0 },
        );
    }

    pub fn read_notices(&mut self) {
        self.now += STEP_NS;
        let before_ns = self.now;
        self.now += STEP_NS;
        let was_empty = self.unread.is_empty();
        for (task, file, name) in self.unread.drain(..) {
            let is_lost = self.is_rough && (before_ns / STEP_NS + file as u64).is_multiple_of(11);
            if !is_lost {
                let window = Window { after_ns: self.read_ns, before_ns, directory: false, optional: false };
                self.notices.push(Notice { task, window, opened: opened(file, name) });
            }
        }
        self.quiet.push((if was_empty { self.read_ns } else { self.now }, self.now));
        self.read_ns = self.now;
    }

    /// After the last close it is deleted, and another file gets its number.
    fn replace(&mut self, file: usize) {
        let is_open = |&(open, _): &(usize, bool)| self.opens[open].file == file;
        if !self.tables.values().any(|table| table.values().any(is_open)) {
            self.sizes[file] = 0;
            self.names[file] = Name { generation: self.names[file].generation + 1, renamed: 0 };
        }
    }

    /// Current name of the file of a description.
    fn current(&self, open: &Open) -> Name {
        let latest = self.names[open.file];
        if latest.generation == open.name.generation {
            latest
        } else {
            open.name
        }
    }

    pub fn step(&mut self, (process, action, first, second): (usize, u8, u8, u16)) {
        let pids: Vec<u32> = self.tables.keys().copied().collect();
        let pid = pids[process % pids.len()];
        let numbers: Vec<u32> = self.tables[&pid].keys().copied().collect();
        let number = numbers.get(first as usize % numbers.len().max(1)).copied();
        let bytes = u64::from(second % 5000);
        match (action % 19, number) {
            (0 | 1, _) => {
                let flags = [0, 1, 2, 1 | flag::APPEND, 2 | flag::TRUNCATE | flag::APPEND, 1 | flag::TRUNCATE]
                    [second as usize % 6];
                let on_exec = if first & 1 != 0 { flag::CLOSE_ON_EXEC } else { 0 };
                let file = first as usize % (FILES + 1);
                self.open(pid, file, if file == SILENT { 0 } else { flags | flag::CREATE } | on_exec);
            }
            (2, _) if second % 4 == 0 => self.pipe(pid),
            (3, Some(number)) => {
                self.record(pid, Record::Enter { call: Call::Close, args: [number.into(), 0, 0, 0] });
                self.tables.get_mut(&pid).unwrap().remove(&number);
            }
            (4, Some(number)) => {
                let to = 3 + u32::from(second % 8);
                self.call(pid, Call::Dup2, [number.into(), to.into(), 0, 0], to.into());
                if to != number {
                    let (open, _) = self.tables[&pid][&number];
                    self.tables.get_mut(&pid).unwrap().insert(to, (open, false));
                }
            }
            (5, _) if self.tables.len() < 5 => {
                let child = self.next_pid;
                self.next_pid += 1;
                self.record(pid, Record::Fork { child, flags: 0, comm: name("child") });
                let copy = self.tables[&pid].clone();
                self.tables.insert(child, copy);
            }
            (6, _) if second % 3 == 0 => {
                self.record(pid, Record::Exec { before: pid });
                self.tables.get_mut(&pid).unwrap().retain(|_, &mut (_, on_exec)| !on_exec);
            }
            (7, _) if self.tables.len() > 1 && second % 3 == 0 => {
                self.record(pid, Record::End);
                self.tables.remove(&pid);
            }
            (8, Some(number)) => {
                let (open, _) = self.tables[&pid][&number];
                if self.opens[open].file < FILES {
                    let (whence, at) =
                        if second % 2 == 0 { (0, bytes) } else { (2, self.sizes[self.opens[open].file]) };
                    self.call(
                        pid,
                        Call::Lseek,
                        [number.into(), if whence == 0 { bytes } else { 0 }, whence, 0],
                        at as i64,
                    );
                    self.opens[open].position = at;
                }
            }
            (9 | 10, Some(number)) => self.data(pid, number, Call::Write, 0, bytes),
            (11 | 12, Some(number)) => self.data(pid, number, Call::Read, 0, bytes),
            (13, Some(number)) => self.data(pid, number, Call::Pwrite64, u64::from(second), 100),
            (14, Some(number)) => self.data(pid, number, Call::Pread64, u64::from(second), 100),
            (15, Some(number)) => self.set_close_on_exec(pid, number, second % 2 == 1),
            (16, Some(number)) if self.is_rough => {
                let to = pids[second as usize % pids.len()];
                let (open, _) = self.tables[&pid][&number];
                let free = self.free(to);
                self.tables.get_mut(&to).unwrap().insert(free, (open, false));
            }
            (17, _) => self.replace(first as usize % FILES),
            (18, _) => self.names[first as usize % FILES].renamed += 1,
            _ => {}
        }
    }
}

impl World for Kernel {
    fn now_ns(&self) -> u64 {
        self.now
    }

    fn descriptor(&mut self, pid: u32, number: u32) -> Option<SeenDescriptor> {
        let &(open, on_exec) = self.tables.get(&pid)?.get(&number)?;
        let open = &self.opens[open];
        // the kernel stores close-on-exec by number
        let flags = (open.flags & !flag::CLOSE_ON_EXEC) | if on_exec { flag::CLOSE_ON_EXEC } else { 0 };
        Some(SeenDescriptor {
            opened: opened(open.file, self.current(open)),
            flags,
            position: open.position,
            alone: false,
        })
    }

    fn task(&mut self, task: u32) -> Option<SeenTask> {
        self.tables.contains_key(&task).then(|| SeenTask { pid: task, comm: name("first"), began_ns: 0 })
    }

    fn all_watched(&self) -> bool {
        true
    }
}

/// Process 100 has two numbers of a file with an ambiguous open, and executes a program, which closes the opened
/// number.
pub fn in_doubt(kernel: &mut Kernel) {
    // three notices for four opens
    [0, 2, 1].into_iter().for_each(|file| kernel.open(100, file, 2));
    kernel.open(100, 1, 2 | flag::CLOSE_ON_EXEC);
    kernel.call(100, Call::Dup2, [6, 9, 0, 0], 9);
    let (open, _) = kernel.tables[&100][&6];
    kernel.record(100, Record::Exec { before: 100 });
    let table = kernel.tables.get_mut(&100).unwrap();
    table.insert(9, (open, false));
    table.remove(&6);
}

/// A process forks, with its descriptors.
pub fn fork(kernel: &mut Kernel, pid: u32, child: u32) {
    kernel.record(pid, Record::Fork { child, flags: 0, comm: name("child") });
    kernel.tables.insert(child, kernel.tables[&pid].clone());
}
