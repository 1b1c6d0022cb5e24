// SPDX-License-Identifier: Apache-2.0
//! From records of tracepoints to file I/O.
//!
//! Records are gathered and worked on once per round: by then fanotify has been read too, so every open in view has its
//! notice, and all opens of a thread can be looked at together.

use super::call::{Call, ARGUMENTS};
use super::descriptor::{Entry, Objects};
use super::later::Later;
use super::names::{Namer, Naming};
use super::record::{comm, FileIo, Notice, Opened, Record, SeenDescriptor, SeenProcess, Timed, World};
use super::start::Start;
use super::tasks::{Pending, Tasks, Use};
use super::{descriptor::flag, uses};
use std::collections::HashSet;
use std::rc::Rc;

/// Records of a round at most; `Tracker::full` says when to end a round early.
const ROUND: usize = 1 << 16;
/// Records for which room is kept between rounds; the room of a burst is released.
const KEPT_RECORDS: usize = 1 << 12;

/// A process of which I/O was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenName {
    /// Process number.
    pub pid: u32,
    /// Command name.
    pub process: Vec<u8>,
    /// When it was first seen, on the monotonic clock.
    pub first_ns: u64,
}

/// What could not be told, since the last time it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os on files whose name could not be found out.
    pub unknown_names: u64,
    /// Calls on files whose return was not seen.
    pub unpaired: u64,
}

/// Follows the machine's tasks, descriptors and positions.
#[derive(Debug, Default)]
pub struct Tracker {
    round: Vec<Timed>,
    tasks: Tasks,
    objects: Objects,
    namer: Namer,
    start: Start,
    excluded: HashSet<u32>,
    counts: Counts,
    seen: Vec<SeenName>,
    rounds: u64,
    /// Descriptors without a name that were asked for again in this round.
    asked: HashSet<(u32, u32)>,
}

impl Tracker {
    /// A tracker that tells nothing of the I/O of some processes.
    pub fn new(excluded: impl IntoIterator<Item = u32>) -> Self {
        Self { excluded: excluded.into_iter().collect(), ..Self::default() }
    }

    /// Processes as they were at the start, looked at after the tracepoints were on; I/O is told from `ready_ns` on.
    pub fn start(&mut self, processes: Vec<SeenProcess>, ready_ns: u64) {
        self.start = Start::new(processes, ready_ns);
    }

    /// A record, in order of time.
    pub fn record(&mut self, record: Timed) {
        self.round.push(record);
    }

    /// A notice of fanotify, in the order in which it was read.
    pub fn notice(&mut self, notice: Notice) {
        self.namer.notice(notice);
    }

    /// Whether the round should end, so that memory stays flat.
    pub fn full(&self) -> bool {
        self.round.len() >= ROUND
    }

    /// What could not be told since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Processes of which I/O was seen for the first time since the last call.
    pub fn take_seen(&mut self) -> Vec<SeenName> {
        std::mem::take(&mut self.seen)
    }

    /// Work on what was gathered. Notices of everything up to its last record have been given.
    pub fn round(&mut self, world: &mut dyn World, tell: &mut dyn FnMut(&FileIo)) {
        let round = std::mem::take(&mut self.round);
        let namings = self.namer.align(&round);
        let mut namings = namings.into_iter().peekable();
        self.rounds += 1;
        self.asked.clear();
        let later = Later::new(&round);
        for (index, record) in round.iter().enumerate() {
            self.adopt(record.time_ns);
            let naming = namings.next_if(|(at, _)| *at == index).map(|(_, naming)| naming);
            self.apply(record, naming, &mut Asked { world, later: &later, index }, tell);
        }
        self.round = round;
        self.round.clear();
        self.round.shrink_to(KEPT_RECORDS);
        if self.tasks.too_many() {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.counts.unpaired += self.tasks.forget();
        self.objects = Objects::default();
        self.start.forget();
    }

    fn adopt(&mut self, time_ns: u64) {
        while let Some(process) = self.start.next(time_ns) {
            let table = self.tasks.adopt(&process);
            let mut table = table.borrow_mut();
            if process.hidden {
                table.hide();
            }
            for (number, seen) in &process.descriptors {
                if let Some(position) = self.start.judge(&process, *number, seen) {
                    table.meet(*number, seen, position, &mut self.objects);
                }
            }
        }
    }

    fn apply(&mut self, timed: &Timed, naming: Option<Naming>, asked: &mut Asked, tell: &mut dyn FnMut(&FileIo)) {
        let Timed { time_ns, task, record } = *timed;
        match record {
            Record::Enter { call, args } => self.enter(time_ns, task, call, args, asked),
            Record::Exit { call, returned } => self.exit(time_ns, task, (call, returned), naming, asked, tell),
            Record::Fork { child, flags, comm } => self.tasks.fork(task, child, flags, comm, time_ns, asked.world),
            Record::Exec { before } => self.tasks.exec(task, before, time_ns, asked.world),
            Record::End => {
                if let Some(pending) = self.tasks.end(task) {
                    self.abandon(&pending);
                }
            }
            Record::Rename { task, comm } => self.tasks.rename(task, comm),
            Record::Lost => self.forget(),
        }
    }

    fn enter(&mut self, time_ns: u64, task: u32, call: Call, args: [u64; ARGUMENTS], asked: &mut Asked) {
        let Some(thread) = self.tasks.thread(task, time_ns, asked.world) else { return };
        let (pid, table) = (thread.pid, Rc::clone(&thread.table));
        let mut table = table.borrow_mut();
        match call {
            Call::Close => {
                table.close(args[0] as u32);
                self.start.touch(pid, args[0] as u32, time_ns);
                return;
            }
            Call::Ioctl => return table.set_close_on_exec(args[0] as u32, args[1] == 0x5451),
            Call::IoUringSetup | Call::IoSetup => return table.hide(),
            Call::Truncate => return self.objects.cut(),
            _ => {}
        }
        let numbers = uses::numbers(call, &args);
        let mut used = [None, None];
        for (index, number) in numbers.into_iter().enumerate() {
            let Some(number) = number else { continue };
            self.start.enter(pid, number, time_ns);
            match table.get(number) {
                None | Some(Entry::Unsure(..)) if self.start.ready(time_ns) => {
                    if matches!(table.get(number), Some(Entry::Unsure(round)) if *round == self.rounds) {
                        continue;
                    }
                    // never opened in view: received from another process, or no file at all
                    match asked.descriptor(&mut self.tasks, pid, number) {
                        Some(seen) => {
                            table.meet(number, &SeenDescriptor { alone: false, ..seen }, None, &mut self.objects);
                        }
                        // what could not be told now may be told later: a file is not left out for good
                        None => table.set(number, Entry::Unsure(self.rounds)),
                    }
                }
                Some(Entry::File { description, .. }) if description.file.seen.path.is_none() => {
                    // its open was in doubt; it may be asked for as long as it is open
                    let description = Rc::clone(description);
                    if self.asked.insert((pid, number)) {
                        if let Some(seen) = asked.descriptor(&mut self.tasks, pid, number) {
                            table.name(number, &seen, &description, &mut self.objects);
                        }
                    }
                }
                _ => {}
            }
            if let Some(Entry::File { description, .. }) = table.get(number) {
                used[index] = Some(uses::begin(call, &args, Rc::clone(description), index == 1));
            }
        }
        let pending = Pending { call, args, from_ns: time_ns, uses: used };
        let Some(thread) = self.tasks.known(task) else { return };
        if let Some(left) = thread.pending.replace(pending) {
            self.abandon(&left);
        }
    }

    /// A call whose return was not seen.
    fn abandon(&mut self, pending: &Pending) {
        for used in pending.uses.iter().flatten() {
            uses::finish(pending, used, None);
            self.counts.unpaired += u64::from(uses::operation(pending, used).is_some());
        }
    }

    fn exit(
        &mut self,
        time_ns: u64,
        task: u32,
        (call, returned): (Call, i64),
        naming: Option<Naming>,
        asked: &mut Asked,
        tell: &mut dyn FnMut(&FileIo),
    ) {
        let Some(thread) = self.tasks.known(task) else { return };
        let Some(pending) = thread.pending.take() else { return };
        let pid = thread.pid;
        if pending.call != call {
            return self.abandon(&pending);
        }
        for used in pending.uses.iter().flatten() {
            let offset = uses::finish(&pending, used, Some(returned));
            if used.writes && used.description.file.seen.identity.is_none() {
                // it may be any file: no end that is followed elsewhere holds
                self.objects.cut();
            }
            self.tell(&pending, used, offset, (time_ns, task, pid, returned), tell);
        }
        for number in uses::numbers(call, &pending.args).into_iter().flatten() {
            self.start.touch(pid, number, time_ns);
        }
        if returned >= 0 {
            self.change(time_ns, task, &pending, returned as u32, naming, asked);
        }
    }

    /// What a successful call did to the table of its task.
    fn change(
        &mut self,
        time_ns: u64,
        task: u32,
        pending: &Pending,
        number: u32,
        naming: Option<Naming>,
        asked: &mut Asked,
    ) {
        let Some(thread) = self.tasks.known(task) else { return };
        let (pid, table) = (thread.pid, Rc::clone(&thread.table));
        let args = &pending.args;
        let (first, second) = (args[0] as u32, args[1] as u32);
        let mut table = table.borrow_mut();
        match pending.call {
            call if call.opens() => {
                let all_watched = asked.world.all_watched();
                let ask = || asked.descriptor(&mut self.tasks, pid, number);
                let (opened, flags) = self.namer.decide(naming, pending, all_watched, ask);
                if matches!(&opened, Opened::File(seen) if seen.identity.is_none()) {
                    self.objects.cut();
                }
                table.open(number, opened, flags, &mut self.objects);
            }
            Call::Dup => table.duplicate(first, number, false),
            Call::Dup2 if first != second => table.duplicate(first, number, false),
            Call::Dup3 => table.duplicate(first, number, args[2] as u32 & flag::CLOSE_ON_EXEC != 0),
            Call::Fcntl => match args[1] {
                0 => table.duplicate(first, number, false),
                1030 => table.duplicate(first, number, true),
                2 => return table.set_close_on_exec(first, args[2] & 1 != 0),
                _ => {
                    // F_SETFL: of what concerns positions only O_APPEND can be changed
                    if let Some(Entry::File { description, .. }) = table.get(first) {
                        let mut state = description.state.borrow_mut();
                        state.flags =
                            state.flags.map(|flags| (flags & !flag::APPEND) | (args[2] as u32 & flag::APPEND));
                        state.end.lose();
                    }
                    return;
                }
            },
            Call::CloseRange => {
                if args[2] & 2 != 0 {
                    drop(table);
                    self.tasks.unshare(task);
                    let Some(thread) = self.tasks.known(task) else { return };
                    return close_range(&mut thread.table.borrow_mut(), args);
                }
                return close_range(&mut table, args);
            }
            Call::Unshare if args[0] & 0x400 != 0 => {
                drop(table);
                return self.tasks.unshare(task);
            }
            _ => return,
        }
        self.start.touch(pid, number, time_ns);
    }

    fn tell(
        &mut self,
        pending: &Pending,
        used: &Use,
        offset: Option<u64>,
        (time_ns, thread, pid, returned): (u64, u32, u32, i64),
        tell: &mut dyn FnMut(&FileIo),
    ) {
        let Some(op) = uses::operation(pending, used) else { return };
        let seen = &used.description.file.seen;
        if !seen.asked || !self.start.ready(pending.from_ns) || self.excluded.contains(&pid) {
            return;
        }
        self.counts.unknown_names += u64::from(seen.path.is_none());
        let Some(process) = self.tasks.process(pid) else { return };
        if !process.told {
            process.told = true;
            self.seen.push(SeenName { pid, process: comm(&process.comm).to_vec(), first_ns: process.first_ns });
        }
        tell(&FileIo {
            time_ns,
            latency_ns: time_ns.saturating_sub(pending.from_ns),
            offset,
            size: uses::size(pending, op, returned),
            op,
            process: comm(&process.comm),
            pid,
            thread,
            file: seen.path.as_deref(),
            mount: seen.mount.as_deref(),
            error: (returned < 0).then(|| error_name(returned.unsigned_abs())),
            call: pending.call.name(),
        });
    }
}

/// What may be asked of the machine at a record of a round.
struct Asked<'a> {
    world: &'a mut dyn World,
    later: &'a Later,
    index: usize,
}

impl Asked<'_> {
    /// What /proc shows of a descriptor, unless that is of something else by now.
    fn descriptor(&mut self, tasks: &mut Tasks, pid: u32, number: u32) -> Option<SeenDescriptor> {
        let Self { world, later, index } = self;
        let shares = |task: u32| match tasks.known(task) {
            Some(thread) => thread.pid == pid,
            // one that was not met yet: that it may share the table is believed where nobody can tell
            None => !later.is_apart(task) && world.task(task).is_none_or(|(other, _)| other == pid),
        };
        if later.anew(*index, number, shares) {
            return None;
        }
        world.descriptor(pid, number)
    }
}

/// A number without a name here is an error all the same.
fn error_name(number: u64) -> &'static str {
    u32::try_from(number).ok().and_then(crate::errno::name).unwrap_or("EUNKNOWN")
}

fn close_range(table: &mut super::descriptor::Table, args: &[u64; ARGUMENTS]) {
    let (first, last) = (args[0] as u32, args[1] as u32);
    if args[2] & 4 != 0 {
        table.close_range_on_exec(first, last);
    } else {
        table.close_range(first, last);
    }
}

#[cfg(test)]
#[path = "tracker_model.rs"]
mod model;
#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
