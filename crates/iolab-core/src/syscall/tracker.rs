// SPDX-License-Identifier: Apache-2.0
//! Turns tracepoint records into file I/O.
//!
//! Records are collected and processed once per round. By then fanotify has been read too, so every recorded open has
//! its notice, and all opens of a thread can be evaluated together.

use super::call::{Call, ARGUMENTS};
use super::descriptor::{Description, Entry, Guess, Objects, ReadState, Table, Why};
use super::horizon::Horizon;
use super::names::{agrees, flags_of, is_same, nameless, settle, Namer, Naming};
use super::proc_reads::{refute, ProcRead, ProcReads, Row};
use super::proc_view::ProcView;
use super::record::{comm, FileIo, Notice, Opened, Record, SeenDescriptor, SeenProcess, Timed, World};
use super::start::Start;
use super::tasks::{is_shared, Pending, Tasks, Use};
use super::{descriptor::flag, uses};
use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

/// Maximum number of records of a round; `Tracker::full` says when to end a round early.
const ROUND: usize = 1 << 16;
/// Capacity for records that is kept between rounds; more is released.
const KEPT_RECORDS: usize = 1 << 12;

/// A process with I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenName {
    /// Process number.
    pub pid: u32,
    /// Command name.
    pub process: Vec<u8>,
    /// When it was first seen, on the monotonic clock.
    pub first_ns: u64,
}

/// Data that could not be determined since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os on files without a name, by `Why`.
    pub unknown_names: [u64; WHYS],
    /// Calls on files without a recorded return.
    pub unpaired: u64,
    /// Calls on descriptors that changed before they were known to be files.
    pub unsure: u64,
}

/// Number of reasons for a missing name.
pub const WHYS: usize = Why::Directory as usize + 1;

/// Tracks tasks, descriptors and positions.
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
    /// Descriptors without a name that were read again in this round.
    reread: HashSet<(u32, u32)>,
    /// Descriptors that /proc did not show in this round; read again in a later round.
    unreadable: HashSet<(u32, u32)>,
    horizon: Horizon,
    reads: ProcReads,
    /// End of the records: results of later reads of /proc cannot be confirmed.
    ended: bool,
    /// All records up to this time were processed.
    done_ns: u64,
    /// Number of records at which a round ends early.
    limit: usize,
}

impl Tracker {
    /// A tracker that omits the I/O of some processes.
    pub fn new(excluded: impl IntoIterator<Item = u32>) -> Self {
        Self { excluded: excluded.into_iter().collect(), ..Self::default() }
    }

    /// Processes at the start, read after the tracepoints were enabled; I/O is reported from `ready_ns` on.
    pub fn start(&mut self, processes: Vec<SeenProcess>, ready_ns: u64) {
        self.namer.blind(0, ready_ns);
        self.start = Start::new(processes, ready_ns);
    }

    /// Add a record, in order of time.
    pub fn record(&mut self, record: Timed) {
        self.round.push(record);
    }

    /// Add a notice of fanotify, in the order of the queue.
    pub fn notice(&mut self, notice: Notice) {
        self.namer.notice(notice);
    }

    /// The queue of notices was empty at both times, without a notice in between.
    pub fn quiet(&mut self, from_ns: u64, until_ns: u64) {
        self.horizon.quiet(from_ns, until_ns);
    }

    /// Records are missing at an unknown time: pending records may be before or after the gap.
    pub fn damaged(&mut self) {
        let (first, last) =
            (self.round.first().map(|timed| timed.time_ns), self.round.last().map(|timed| timed.time_ns));
        for (time_ns, place) in [(first, 0), (last, self.round.len() + 1)] {
            let time_ns = time_ns.unwrap_or(self.done_ns);
            self.round.insert(place, Timed { time_ns, task: 0, record: Record::Lost });
        }
        self.namer.blind(self.done_ns, last.unwrap_or(self.done_ns));
    }

    /// No record is added after this time.
    pub fn end(&mut self, time_ns: u64) {
        self.ended = true;
        self.namer.blind(time_ns, u64::MAX);
    }

    /// All I/O up to this time was delivered; None if no I/O is pending.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let unfollowed = (!self.round.is_empty()).then_some(self.done_ns);
        unfollowed.into_iter().chain(self.reads.since_ns()).min()
    }

    /// Whether the round should end, so that memory stays bounded.
    pub fn full(&self) -> bool {
        self.round.len() >= self.limit.max(ROUND)
    }

    /// Counts since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Processes with their first I/O since the last call.
    pub fn take_seen(&mut self) -> Vec<SeenName> {
        std::mem::take(&mut self.seen)
    }

    /// Process the collected records. All records up to `until_ns` were added, and all notices of opens that returned
    /// by then. The youngest records wait for the next round if their opens depend on later ones.
    pub fn round(&mut self, until_ns: u64, world: &mut dyn World, emit_io: &mut dyn FnMut(&FileIo)) {
        let mut round = std::mem::take(&mut self.round);
        let Some(horizon_ns) = self.horizon.choose(&round, until_ns, round.len() >= ROUND) else {
            self.limit = round.len() + ROUND / 2;
            self.round = round;
            return;
        };
        let cut = round.partition_point(|timed| timed.time_ns <= horizon_ns);
        let namings = self.align(&round[..cut], horizon_ns);
        let mut namings = namings.into_iter().peekable();
        self.reread.clear();
        self.unreadable = HashSet::new();
        let later = OnceCell::new();
        for (index, record) in round[..cut].iter().enumerate() {
            self.confirm(record.time_ns, emit_io);
            self.adopt(record.time_ns);
            let naming = namings.next_if(|(at, _)| *at == index).map(|(_, naming)| naming);
            self.apply(record, naming, &mut ProcView { world, later: &later, round: &round, index }, emit_io);
        }
        self.done_ns = self.done_ns.max(horizon_ns);
        self.confirm(horizon_ns, emit_io);
        round.drain(..cut);
        round.shrink_to(KEPT_RECORDS);
        self.limit = round.len() + ROUND / 2;
        self.round = round;
        if self.tasks.too_many() || self.reads.too_many() {
            self.forget(emit_io);
        }
    }

    fn align(&mut self, round: &[Timed], horizon_ns: u64) -> Vec<(usize, Naming)> {
        let Self { namer, tasks, .. } = self;
        let makes_ring = |timed: &&Timed| matches!(timed.record, Record::Enter { call: Call::IoUringSetup, .. });
        let makers: Vec<u32> = round.iter().filter(makes_ring).map(|timed| timed.task).collect();
        let tables: Vec<_> =
            makers.iter().filter_map(|&task| tasks.known(task).map(|thread| Rc::clone(&thread.table))).collect();
        namer.align(round, horizon_ns, |task| match tasks.known(task) {
            Some(thread) => thread.table.borrow().hidden || tables.iter().any(|table| Rc::ptr_eq(table, &thread.table)),
            // a task created in this round may share an io_uring created in it
            None => !makers.is_empty(),
        })
    }

    /// Evaluate results after all records up to their time were processed.
    fn confirm(&mut self, until_ns: u64, emit_io: &mut dyn FnMut(&FileIo)) {
        let mut settled = false;
        while let Some(read) = self.reads.next(until_ns) {
            settled = true;
            let ProcRead { owner, table, number, description, seen, .. } = read;
            let same = self.tasks.owns(owner, &table) && table.borrow().has(number, &description);
            if !same {
                refute(&description);
                continue;
            }
            description.read_state.set(ReadState::Settled);
            let doubt = description.doubt.borrow().clone();
            match settle(doubt.as_deref().unwrap_or(&[]), &seen.opened) {
                Some(Opened::File(seen)) if description.is_nameless() => {
                    description.identify(self.objects.file(seen));
                }
                Some(Opened::Other) => {
                    description.read_state.set(ReadState::Other);
                    table.borrow_mut().set(number, Entry::Other);
                }
                Some(Opened::File(_)) | None => {}
            }
            description.guess.set(Guess::None);
        }
        if settled {
            self.release(emit_io);
        }
    }

    fn release(&mut self, emit_io: &mut dyn FnMut(&FileIo)) {
        for (mut row, description) in self.reads.released() {
            match (description.read_state.get(), description.guess.get()) {
                (ReadState::Other, _) => continue,
                (ReadState::Refuted, Guess::Flags) => row.offset = None,
                _ => {}
            }
            self.emit(&row, Some(&description), emit_io);
        }
    }

    fn forget(&mut self, emit_io: &mut dyn FnMut(&FileIo)) {
        self.reads.refute_all();
        self.release(emit_io);
        self.counts.unpaired += self.tasks.forget();
        self.objects = Objects::default();
        self.start.forget();
    }

    fn adopt(&mut self, time_ns: u64) {
        while let Some(process) = self.start.next(time_ns) {
            let Some(table) = self.tasks.adopt(&process) else { continue };
            let mut table = table.borrow_mut();
            if process.hidden {
                self.tasks.hide(process.pid, &mut table);
            }
            for (number, seen) in &process.descriptors {
                if let Some(position) = self.start.judge(&process, *number, seen) {
                    table.meet(*number, seen, position, &mut self.objects);
                }
            }
        }
    }

    fn apply(&mut self, timed: &Timed, naming: Option<Naming>, proc: &mut ProcView, emit_io: &mut dyn FnMut(&FileIo)) {
        let Timed { time_ns, task, record } = *timed;
        match record {
            Record::Enter { call, args } => self.enter(time_ns, task, call, args, proc),
            Record::Exit { call, returned } => self.exit(time_ns, task, (call, returned), naming, proc, emit_io),
            Record::Fork { child, flags, comm } => self.tasks.fork(task, child, flags, comm, time_ns, proc.world),
            Record::Exec { before } => self.tasks.exec(task, before, time_ns, proc.world),
            Record::End => {
                if let Some(pending) = self.tasks.end(task) {
                    self.abandon(&pending);
                }
            }
            Record::Rename { task, comm } => self.tasks.rename(task, comm),
            Record::Lost => self.forget(emit_io),
        }
    }

    fn enter(&mut self, time_ns: u64, task: u32, call: Call, args: [u64; ARGUMENTS], proc: &mut ProcView) {
        let Some(thread) = self.tasks.thread(task, time_ns, proc.world) else { return };
        let (pid, shared, table) = (thread.pid, is_shared(&thread.table), Rc::clone(&thread.table));
        match call {
            Call::Close => {
                table.borrow_mut().close(args[0] as u32);
                self.unreadable.remove(&(pid, args[0] as u32));
                self.start.touch(pid, args[0] as u32, time_ns);
                return;
            }
            Call::Ioctl => return table.borrow_mut().set_close_on_exec(args[0] as u32, args[1] == 0x5451),
            Call::IoUringSetup | Call::IoSetup => return self.tasks.hide(pid, &mut table.borrow_mut()),
            Call::Truncate => return self.objects.cut(),
            // other threads may use either file from here on
            Call::Dup2 | Call::Dup3 if args[0] != args[1] && shared => {
                table.borrow_mut().close(args[1] as u32);
            }
            _ => {}
        }
        let numbers = uses::numbers(call, &args);
        let mut used = [None, None];
        for (index, number) in numbers.into_iter().enumerate() {
            let Some(number) = number else { continue };
            self.start.enter(pid, number, time_ns);
            self.look_up(time_ns, task, pid, &table, number, proc);
            if let Some(Entry::File { description, .. }) = table.borrow().get(number) {
                used[index] = Some(uses::begin(call, &args, Rc::clone(description), index == 1));
            }
        }
        let pending = Pending { call, args, from_ns: time_ns, uses: used };
        let Some(thread) = self.tasks.known(task) else { return };
        if let Some(left) = thread.pending.replace(pending) {
            self.abandon(&left);
        }
    }

    /// Read a used number from /proc if its state is unknown.
    fn look_up(
        &mut self,
        time_ns: u64,
        task: u32,
        pid: u32,
        table: &Rc<RefCell<Table>>,
        number: u32,
        proc: &mut ProcView,
    ) {
        let described = match table.borrow().get(number) {
            None => None,
            Some(Entry::Other) => return,
            Some(Entry::File { description, .. }) => {
                let open = description.is_nameless() && description.read_state.get() != ReadState::Pending;
                // its open was ambiguous; it may be read while it is open
                if !open || !self.reread.insert((pid, number)) {
                    return;
                }
                Some(Rc::clone(description))
            }
        };
        if let Some(description) = described {
            return self.read_file(task, number, &description, proc);
        }
        if !self.start.ready(time_ns) || self.unreadable.contains(&(pid, number)) {
            return;
        }
        // no recorded open: received from another process, or not a file
        let seen = if self.ended { None } else { proc.descriptor(&mut self.tasks, task, number) };
        let (entry, read) = match seen {
            Some(SeenDescriptor { opened: Opened::Other, .. }) => (Entry::Other, None),
            Some(seen) => {
                let file = self.objects.file(nameless(&[]));
                let shared = SeenDescriptor { alone: false, ..seen.clone() };
                let description = Description::met(file, &shared, None, table.borrow().hidden);
                let close_on_exec = Some(seen.flags & flag::CLOSE_ON_EXEC != 0);
                (Entry::File { description: Rc::clone(&description), close_on_exec }, Some((description, seen)))
            }
            // unknown now, maybe known later: a file is not excluded permanently
            // it is not stored in the table: a program may use any number that is not open
            None => {
                self.unreadable.insert((pid, number));
                return;
            }
        };
        table.borrow_mut().set(number, entry);
        if let Some((description, seen)) = read {
            let read_ns = proc.world.now_ns();
            let (owner, table) = (self.tasks.owner(task, table), Rc::clone(table));
            self.reads.add(ProcRead { owner, table, number, description, seen, read_ns }, Guess::File);
        }
    }

    /// Read the file of a description without a name or flags.
    fn read_file(&mut self, task: u32, number: u32, description: &Rc<Description>, proc: &mut ProcView) {
        let Some(seen) = (if self.ended { None } else { proc.descriptor(&mut self.tasks, task, number) }) else {
            return;
        };
        let Some(thread) = self.tasks.known(task) else { return };
        let table = Rc::clone(&thread.table);
        let owner = self.tasks.owner(task, &table);
        let mut state = description.state.borrow_mut();
        let mut guess = description.guess.get();
        match state.flags {
            Some(flags) if !agrees(&seen, flags) => return,
            Some(_) => {}
            None => {
                let doubt = description.doubt.borrow();
                let is_possible = |doubt: &Rc<[Opened]>| doubt.iter().any(|candidate| is_same(candidate, &seen.opened));
                if !description.is_nameless() && !doubt.as_ref().is_some_and(is_possible) {
                    return;
                }
                if matches!(seen.opened, Opened::File(_)) {
                    state.flags = Some(seen.flags);
                    guess = Guess::Flags;
                }
            }
        }
        drop(state);
        let read_ns = proc.world.now_ns();
        let description = Rc::clone(description);
        self.reads.add(ProcRead { owner, table, number, description, seen, read_ns }, guess);
    }

    /// A call without a recorded return.
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
        proc: &mut ProcView,
        emit_io: &mut dyn FnMut(&FileIo),
    ) {
        let Some(thread) = self.tasks.known(task) else { return };
        let Some(pending) = thread.pending.take() else { return };
        let pid = thread.pid;
        if pending.call != call {
            return self.abandon(&pending);
        }
        let table = is_shared(&thread.table).then(|| Rc::clone(&thread.table));
        let numbers = uses::numbers(call, &pending.args);
        for (used, number) in pending.uses.iter().zip(numbers) {
            let (Some(used), Some(number)) = (used, number) else { continue };
            let offset = uses::finish(&pending, used, Some(returned));
            // another thread may have put another file there before the call used it
            let is_raced = table.as_ref().is_some_and(|table| !table.borrow().has(number, &used.description));
            if is_raced {
                let mut state = used.description.state.borrow_mut();
                state.position.lose();
                state.end.lose();
            }
            if used.writes && (is_raced || used.description.file().seen.identity.is_none()) {
                // it may be any file: no tracked end is valid
                self.objects.cut();
            }
            self.report(&pending, used, (offset, is_raced), (time_ns, task, pid, returned), emit_io);
        }
        for number in numbers.into_iter().flatten() {
            self.start.touch(pid, number, time_ns);
        }
        if returned >= 0 {
            self.change(time_ns, task, &pending, returned as u32, naming, proc);
        }
    }

    /// Changes of the descriptor table by a successful call.
    fn change(
        &mut self,
        time_ns: u64,
        task: u32,
        pending: &Pending,
        number: u32,
        naming: Option<Naming>,
        proc: &mut ProcView,
    ) {
        let Some(thread) = self.tasks.known(task) else { return };
        let (pid, table) = (thread.pid, Rc::clone(&thread.table));
        let args = &pending.args;
        let (first, second) = (args[0] as u32, args[1] as u32);
        if pending.call.opens() {
            self.open(task, pending, number, naming, proc);
            return self.start.touch(pid, number, time_ns);
        }
        let mut table = table.borrow_mut();
        match pending.call {
            Call::Dup => table.duplicate(first, number, false),
            Call::Dup2 if first != second => table.duplicate(first, number, false),
            Call::Dup3 => table.duplicate(first, number, args[2] as u32 & flag::CLOSE_ON_EXEC != 0),
            Call::Fcntl => match args[1] {
                0 => table.duplicate(first, number, false),
                1030 => table.duplicate(first, number, true),
                2 => return table.set_close_on_exec(first, args[2] & 1 != 0),
                _ => {
                    // F_SETFL: of the flags that affect positions, only O_APPEND can change
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
                    return thread.table.borrow_mut().close_range_call(args);
                }
                return table.close_range_call(args);
            }
            Call::Unshare if args[0] & 0x400 != 0 => {
                drop(table);
                return self.tasks.unshare(task);
            }
            _ => return,
        }
        self.start.touch(pid, number, time_ns);
    }

    /// A call opened a file.
    fn open(&mut self, task: u32, pending: &Pending, number: u32, naming: Option<Naming>, proc: &mut ProcView) {
        let flags = flags_of(pending.call, pending.args[0]);
        let (opened, doubt): (Opened, Option<Rc<[Opened]>>) = match naming {
            _ if flags.is_some_and(|flags| flags & flag::PATH != 0) => (Opened::Other, None),
            Some(Naming::Certain(opened)) => {
                let doubt = matches!(opened, Opened::File(_)).then(|| Rc::from([opened.clone()]));
                (opened, doubt)
            }
            // only files of kernel file systems cause no notices
            Some(Naming::Doubt(candidates)) if candidates.is_empty() && proc.world.all_watched() => {
                (Opened::Other, None)
            }
            None if proc.world.all_watched() => (Opened::Other, None),
            Some(Naming::Doubt(candidates)) => (Opened::File(nameless(&candidates)), Some(candidates)),
            None => (Opened::File(nameless(&[])), None),
        };
        if matches!(&opened, Opened::File(seen) if seen.identity.is_none()) {
            self.objects.cut();
        }
        let Some(thread) = self.tasks.known(task) else { return };
        let Some(description) = thread.table.borrow_mut().open(number, opened, flags, &mut self.objects) else {
            return;
        };
        if description.is_nameless() || flags.is_none() {
            *description.doubt.borrow_mut() = doubt;
            self.read_file(task, number, &description, proc);
        }
    }

    fn report(
        &mut self,
        pending: &Pending,
        used: &Use,
        (offset, is_raced): (Option<u64>, bool),
        (time_ns, thread, pid, returned): (u64, u32, u32, i64),
        emit_io: &mut dyn FnMut(&FileIo),
    ) {
        let Some(op) = uses::operation(pending, used) else { return };
        if !self.start.ready(pending.from_ns) || self.excluded.contains(&pid) {
            return;
        }
        let description = &used.description;
        if description.read_state.get() == ReadState::Other {
            return;
        }
        let waits = description.read_state.get() == ReadState::Pending && !is_raced;
        if !waits && !is_raced && !description.file().seen.requested {
            return;
        }
        let Some(process) = self.tasks.process(pid) else { return };
        if !process.reported {
            process.reported = true;
            self.seen.push(SeenName { pid, process: comm(&process.comm).to_vec(), first_ns: process.first_ns });
        }
        let row = Row {
            time_ns,
            latency_ns: time_ns.saturating_sub(pending.from_ns),
            offset: offset.filter(|_| !is_raced),
            size: uses::size(pending, op, returned),
            op,
            comm: process.comm,
            pid,
            thread,
            error: (returned < 0).then(|| crate::errno::name_or_unknown(returned.unsigned_abs())),
            call: pending.call.name(),
        };
        if waits {
            self.reads.add_io(row, Rc::clone(description));
        } else {
            self.emit(&row, (!is_raced).then_some(description), emit_io);
        }
    }

    /// Deliver an I/O; without a description, its file is unknown.
    fn emit(&mut self, row: &Row, description: Option<&Rc<Description>>, emit_io: &mut dyn FnMut(&FileIo)) {
        if description.is_some_and(|description| description.is_unsure()) {
            self.counts.unsure += 1;
            return;
        }
        let file = description.map(|description| description.file());
        let seen = file.as_ref().map(|file| &file.seen);
        if seen.is_some_and(|seen| !seen.requested) {
            return;
        }
        if seen.is_none_or(|seen| seen.path.is_none()) {
            let why = description.map_or(Why::Raced, |description| description.why.get());
            self.counts.unknown_names[why as usize] += 1;
        }
        emit_io(&FileIo {
            time_ns: row.time_ns,
            latency_ns: row.latency_ns,
            offset: row.offset,
            size: row.size,
            op: row.op,
            process: comm(&row.comm),
            pid: row.pid,
            thread: row.thread,
            file: seen.and_then(|seen| seen.path.as_deref()),
            mount: seen.and_then(|seen| seen.mount.as_deref()),
            error: row.error,
            call: row.call,
        });
    }
}

#[cfg(test)]
#[path = "tracker_model.rs"]
mod model;
#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
