// SPDX-License-Identifier: Apache-2.0
//! Processes and threads: who has which name and which table of descriptors.

use super::call::{Call, ARGUMENTS};
use super::descriptor::{Description, Table};
use super::ids::ById;
use super::record::{Comm, SeenProcess, SeenTask, World};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// Flags of clone.
pub(super) const SHARES_FILES: u64 = 0x400;
const SHARES_PROCESS: u64 = 0x10000;

/// Tasks that are known at most; ends are never missed but for losses, after which all are forgotten, so this is a last resort.
const LIMIT: usize = 1 << 18;

/// How a call uses a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From the position, which moves.
    Position,
    /// At the end of the file, moving the position there.
    End,
    /// At the end of the file, the position stays (`pwrite` with `O_APPEND`).
    EndOnly,
    /// At a place of its own, where it is told.
    At(Option<u64>),
    /// It sets the position (`lseek`).
    Seek,
    /// It sets the end (`ftruncate`).
    Cut,
}

/// A call in flight on a file.
#[derive(Debug)]
pub struct Use {
    /// Of what.
    pub description: Rc<Description>,
    /// Where.
    pub place: Place,
    /// Whether it puts data there (for calls on two files).
    pub writes: bool,
}

/// A call that has not returned.
#[derive(Debug)]
pub struct Pending {
    /// Which.
    pub call: Call,
    /// Its arguments.
    pub args: [u64; ARGUMENTS],
    /// Its entry.
    pub from_ns: u64,
    /// What it uses: none, one or two files.
    pub uses: [Option<Use>; 2],
}

/// A task.
#[derive(Debug)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its table.
    pub table: Rc<RefCell<Table>>,
    /// Its call in flight.
    pub pending: Option<Pending>,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Command name of its first thread.
    pub comm: Comm,
    /// Table of its threads, but for those that went their own way.
    pub table: Rc<RefCell<Table>>,
    /// First seen.
    pub first_ns: u64,
    /// When it was made, or began the program that it runs; 0 where that was not in view.
    began_ns: u64,
    /// Already told of.
    pub told: bool,
    threads: u32,
}

/// All tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    threads: ById<Thread>,
    processes: ById<Process>,
    /// Processes with a ring of io_uring: known even after all else was forgotten.
    rings: HashSet<u32>,
}

impl Tasks {
    /// A task, asked for where it is not known; none where it is gone.
    pub fn thread(&mut self, task: u32, time_ns: u64, world: &mut dyn World) -> Option<&mut Thread> {
        if !self.threads.contains_key(&task) {
            // an earlier task may have had the same number
            let SeenTask { pid, comm, .. } = world.task(task).filter(|seen| seen.began_ns <= time_ns)?;
            self.meet(task, pid, comm, time_ns);
        }
        self.threads.get_mut(&task)
    }

    /// A task, where it is known.
    pub fn known(&mut self, task: u32) -> Option<&mut Thread> {
        self.threads.get_mut(&task)
    }

    /// A process, where it is known.
    pub fn process(&mut self, pid: u32) -> Option<&mut Process> {
        self.processes.get_mut(&pid)
    }

    /// Whether /proc shows a table by the number of a task.
    pub fn owns(&self, task: u32, table: &Rc<RefCell<Table>>) -> bool {
        self.threads.get(&task).is_some_and(|thread| Rc::ptr_eq(&thread.table, table))
    }

    /// The number by which /proc shows the table of a task: of its process, unless the first thread has another table.
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

    /// A process has a ring of io_uring: it moves positions and opens files unseen.
    pub fn hide(&mut self, pid: u32, table: &mut Table) {
        self.rings.insert(pid);
        table.hide();
    }

    fn add(&mut self, task: u32, pid: u32, comm: Comm, table: Rc<RefCell<Table>>, time_ns: u64) {
        // a number in use anew: the end of the one before was not seen
        self.end(task);
        let fresh =
            || Process { comm, table: Rc::clone(&table), first_ns: time_ns, began_ns: 0, told: false, threads: 0 };
        self.processes.entry(pid).or_insert_with(fresh).threads += 1;
        self.threads.insert(task, Thread { pid, table, pending: None });
    }

    /// A process that was there at the start. Its table stays the one that was followed since; none where the process or its
    /// program began while it was looked at.
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

    /// A task made another.
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

    /// A task runs another program: the other threads are gone, descriptors are its own, some closed.
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
            process.told = false;
            process.first_ns = time_ns;
            process.began_ns = time_ns;
        }
        // rings do not survive it
        self.rings.remove(&pid);
    }

    /// A thread has descriptors of its own from now on.
    pub fn unshare(&mut self, task: u32) {
        if let Some(thread) = self.threads.get_mut(&task) {
            let own = thread.table.borrow().clone();
            thread.table = Rc::new(RefCell::new(own));
        }
    }

    /// A task has another name; that of its first thread is the process's.
    pub fn rename(&mut self, task: u32, comm: Comm) {
        if let Some(process) = self.processes.get_mut(&task) {
            process.comm = comm;
        }
    }

    /// A task ends. Gives its call in flight.
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

    /// All are forgotten. Gives how many calls on files were in flight.
    pub fn forget(&mut self) -> u64 {
        let on_file = |thread: &&Thread| thread.pending.as_ref().is_some_and(|pending| pending.uses[0].is_some());
        let in_flight = self.threads.values().filter(on_file).count() as u64;
        self.threads.clear();
        self.processes.clear();
        in_flight
    }

    /// Whether there are more than can be.
    pub fn too_many(&self) -> bool {
        self.threads.len() > LIMIT
    }

    /// How many tasks are known.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}

/// Whether several threads use a table: besides the process, one thread has it.
pub fn is_shared(table: &Rc<RefCell<Table>>) -> bool {
    Rc::strong_count(table) > 2
}
