// SPDX-License-Identifier: Apache-2.0
//! Processes and threads: names and descriptor tables.

use super::call::{Call, ARGUMENTS};
use super::descriptor::{Description, Table};
use super::record::{Comm, SeenProcess, SeenTask, World};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Flags of clone.
pub(super) const SHARES_FILES: u64 = 0x400;
const SHARES_PROCESS: u64 = 0x10000;

/// Maximum number of tasks. Ends are missed only in losses, after which all tasks are dropped, so this is a last
/// resort.
const LIMIT: usize = 1 << 18;

/// How a call uses a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From the position, which changes.
    Position,
    /// At the end of the file; the position moves there.
    End,
    /// At the end of the file; the position stays (`pwrite` with `O_APPEND`).
    EndOnly,
    /// At an explicit offset, if known.
    At(Option<u64>),
    /// Sets the position (`lseek`).
    Seek,
    /// Sets the end (`ftruncate`).
    Cut,
}

/// A call in flight on a file.
#[derive(Debug)]
pub struct Use {
    /// The description.
    pub description: Rc<Description>,
    /// The position.
    pub place: Place,
    /// Whether it writes there (for calls on two files).
    pub writes: bool,
}

/// A call that has not returned.
#[derive(Debug)]
pub struct Pending {
    /// The call.
    pub call: Call,
    /// Arguments.
    pub args: [u64; ARGUMENTS],
    /// Time of entry.
    pub from_ns: u64,
    /// Its files: none, one or two.
    pub uses: [Option<Use>; 2],
}

/// A task.
#[derive(Debug)]
pub struct Thread {
    /// Process.
    pub pid: u32,
    /// Descriptor table.
    pub table: Rc<RefCell<Table>>,
    /// Call in flight.
    pub pending: Option<Pending>,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Command name of the first thread.
    pub comm: Comm,
    /// Table of its threads, except those with their own table.
    pub table: Rc<RefCell<Table>>,
    /// Time when it was first seen.
    pub first_ns: u64,
    /// Time of its creation or exec; 0 if this was not recorded.
    began_ns: u64,
    /// Whether it was reported.
    pub reported: bool,
    threads: u32,
}

/// All tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    threads: HashMap<u32, Thread>,
    processes: HashMap<u32, Process>,
    /// Processes with an io_uring; kept after all else is dropped.
    rings: HashSet<u32>,
}

impl Tasks {
    /// A task, read from /proc if unknown. Returns None if it ended.
    pub fn thread(&mut self, task: u32, time_ns: u64, world: &mut dyn World) -> Option<&mut Thread> {
        if !self.threads.contains_key(&task) {
            // an earlier task may have had the same number
            let SeenTask { pid, comm, .. } = world.task(task).filter(|seen| seen.began_ns <= time_ns)?;
            self.meet(task, pid, comm, time_ns);
        }
        self.threads.get_mut(&task)
    }

    /// A known task.
    pub fn known(&mut self, task: u32) -> Option<&mut Thread> {
        self.threads.get_mut(&task)
    }

    /// A known process.
    pub fn process(&mut self, pid: u32) -> Option<&mut Process> {
        self.processes.get_mut(&pid)
    }

    /// Whether /proc shows a table under the number of a task.
    pub fn owns(&self, task: u32, table: &Rc<RefCell<Table>>) -> bool {
        self.threads.get(&task).is_some_and(|thread| Rc::ptr_eq(&thread.table, table))
    }

    /// The number under which /proc shows the table of a task: its process, unless the first thread has another table.
    pub fn owner(&self, task: u32, table: &Rc<RefCell<Table>>) -> u32 {
        self.threads.get(&task).map(|thread| thread.pid).filter(|&pid| self.owns(pid, table)).unwrap_or(task)
    }

    fn meet(&mut self, task: u32, pid: u32, comm: Comm, time_ns: u64) {
        let table = self.processes.get(&pid).map_or_else(Rc::default, |process| Rc::clone(&process.table));
        if self.rings.contains(&pid) {
            table.borrow_mut().hide();
        }
        self.add(task, pid, comm, table, time_ns);
    }

    /// A process has an io_uring: it changes positions and opens files without a record.
    pub fn hide(&mut self, pid: u32, table: &mut Table) {
        self.rings.insert(pid);
        table.hide();
    }

    fn add(&mut self, task: u32, pid: u32, comm: Comm, table: Rc<RefCell<Table>>, time_ns: u64) {
        // a reused number: the end of the previous task was not recorded
        self.end(task);
        let fresh =
            || Process { comm, table: Rc::clone(&table), first_ns: time_ns, began_ns: 0, reported: false, threads: 0 };
        self.processes.entry(pid).or_insert_with(fresh).threads += 1;
        self.threads.insert(task, Thread { pid, table, pending: None });
    }

    /// A process that existed at the start. Its table is the one tracked since. Returns None if the process or its
    /// program started during the read.
    pub fn adopt(&mut self, seen: &SeenProcess) -> Option<Rc<RefCell<Table>>> {
        if self.processes.get(&seen.pid).is_some_and(|process| process.began_ns >= seen.from_ns) {
            return None;
        }
        for &task in &seen.threads {
            if self.threads.get(&task).is_none_or(|thread| thread.pid != seen.pid) {
                self.meet(task, seen.pid, seen.comm, seen.until_ns);
            }
        }
        self.processes.get(&seen.pid).map(|process| Rc::clone(&process.table))
    }

    /// A task created another one.
    pub fn fork(&mut self, parent: u32, child: u32, flags: u64, comm: Comm, time_ns: u64, world: &mut dyn World) {
        let (pid, table) = match self.thread(parent, time_ns, world) {
            Some(thread) => (Some(thread.pid), Rc::clone(&thread.table)),
            None => (None, Rc::default()),
        };
        let table = if flags & SHARES_FILES != 0 { table } else { Rc::new(RefCell::new(table.borrow().clone())) };
        let own = if flags & SHARES_PROCESS != 0 { pid.unwrap_or(child) } else { child };
        if own == child {
            self.end_process(child);
        }
        self.add(child, own, comm, table, time_ns);
        if let Some(process) = self.processes.get_mut(&own).filter(|_| own == child) {
            process.began_ns = time_ns;
        }
    }

    /// A task executes another program: its other threads end, its descriptors become private, and some are closed.
    pub fn exec(&mut self, task: u32, before: u32, time_ns: u64, world: &mut dyn World) {
        if before != task {
            self.end(task);
            if let Some(thread) = self.threads.remove(&before) {
                self.threads.insert(task, thread);
            }
        }
        let Some(thread) = self.thread(task, time_ns, world) else { return };
        let table = Rc::new(RefCell::new(thread.table.borrow().after_exec()));
        thread.table = Rc::clone(&table);
        thread.pending = None;
        let pid = thread.pid;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.table = table;
            process.threads = 1;
            // another program is another line in the list of processes
            process.reported = false;
            process.first_ns = time_ns;
            process.began_ns = time_ns;
        }
        // an io_uring does not survive exec
        self.rings.remove(&pid);
    }

    /// A thread has its own descriptors from now on.
    pub fn unshare(&mut self, task: u32) {
        if let Some(thread) = self.threads.get_mut(&task) {
            let own = thread.table.borrow().clone();
            thread.table = Rc::new(RefCell::new(own));
        }
    }

    /// A task was renamed; the name of the first thread is that of the process.
    pub fn rename(&mut self, task: u32, comm: Comm) {
        if let Some(process) = self.processes.get_mut(&task) {
            process.comm = comm;
        }
    }

    /// A task ended. Returns its call in flight.
    pub fn end(&mut self, task: u32) -> Option<Pending> {
        let thread = self.threads.remove(&task)?;
        if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                self.rings.remove(&thread.pid);
                self.processes.remove(&thread.pid);
            }
        }
        thread.pending
    }

    fn end_process(&mut self, pid: u32) {
        if self.processes.remove(&pid).is_some() {
            self.rings.remove(&pid);
            self.threads.retain(|_, thread| thread.pid != pid);
        }
    }

    /// Drop all tasks. Returns the number of calls on files in flight.
    pub fn forget(&mut self) -> u64 {
        let on_file = |thread: &&Thread| thread.pending.as_ref().is_some_and(|pending| pending.uses[0].is_some());
        let in_flight = self.threads.values().filter(on_file).count() as u64;
        self.threads.clear();
        self.processes.clear();
        in_flight
    }

    /// Whether the maximum is exceeded.
    pub fn too_many(&self) -> bool {
        self.threads.len() > LIMIT
    }

    /// Number of known tasks.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}

/// Whether several threads use a table: the process and one thread hold a reference each.
pub fn is_shared(table: &Rc<RefCell<Table>>) -> bool {
    Rc::strong_count(table) > 2
}
