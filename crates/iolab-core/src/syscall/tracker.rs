// SPDX-License-Identifier: Apache-2.0
//! From records of tracepoints to file I/O.
//!
//! Records are gathered and worked on once per round: by then fanotify has been read too, so every open in view has its
//! notice, and all opens of a thread can be looked at together.

use super::asked::Asked;
use super::call::{Call, ARGUMENTS};
use super::descriptor::{Description, Entry, Guess, Objects, Standing, Table, Why};
use super::horizon::Horizon;
use super::names::{agrees, flags_of, is_same, nameless, settle, Namer, Naming};
use super::questions::{refute, Question, Questions, Row};
use super::record::{comm, FileIo, Notice, Opened, Record, SeenDescriptor, SeenProcess, Timed, World};
use super::start::Start;
use super::tasks::{is_shared, Pending, Tasks, Use};
use super::{descriptor::flag, uses};
use std::cell::{OnceCell, RefCell};
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

/// What could not be known, since the last request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os on files without a name, by `Why`.
    pub unknown_names: [u64; WHYS],
    /// Calls on files of which the return was not seen.
    pub unpaired: u64,
    /// Calls on descriptors that changed before anything showed whether they were files.
    pub unsure: u64,
}

/// Reasons for which a file has no name.
pub const WHYS: usize = Why::Directory as usize + 1;

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
    horizon: Horizon,
    questions: Questions,
    /// Records are taken until here: what /proc shows from then on cannot be confirmed.
    ended: bool,
    /// Up to this time everything was followed.
    done_ns: u64,
    /// Records at which a round ends early.
    limit: usize,
}

impl Tracker {
    /// A tracker that tells nothing of the I/O of some processes.
    pub fn new(excluded: impl IntoIterator<Item = u32>) -> Self {
        Self { excluded: excluded.into_iter().collect(), ..Self::default() }
    }

    /// Processes as they were at the start, looked at after the tracepoints were on; I/O is told from `ready_ns` on.
    pub fn start(&mut self, processes: Vec<SeenProcess>, ready_ns: u64) {
        self.namer.blind(0, ready_ns);
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

    /// The queue of notices was empty at some times, and no notice came between them.
    pub fn quiet(&mut self, from_ns: u64, until_ns: u64) {
        self.horizon.quiet(from_ns, until_ns);
    }

    /// Records of some time are missing, and it is not known which of those that wait follow them.
    pub fn damaged(&mut self) {
        let (first, last) =
            (self.round.first().map(|timed| timed.time_ns), self.round.last().map(|timed| timed.time_ns));
        for (time_ns, place) in [(first, 0), (last, self.round.len() + 1)] {
            let time_ns = time_ns.unwrap_or(self.done_ns);
            self.round.insert(place, Timed { time_ns, task: 0, record: Record::Lost });
        }
        self.namer.blind(self.done_ns, last.unwrap_or(self.done_ns));
    }

    /// No record is taken from this time on.
    pub fn end(&mut self, time_ns: u64) {
        self.ended = true;
        self.namer.blind(time_ns, u64::MAX);
    }

    /// Up to which time all I/O was handed over, where some waits.
    pub fn waits_since_ns(&self) -> Option<u64> {
        let unfollowed = (!self.round.is_empty()).then_some(self.done_ns);
        unfollowed.into_iter().chain(self.questions.since_ns()).min()
    }

    /// Whether the round should end, so that memory stays flat.
    pub fn full(&self) -> bool {
        self.round.len() >= self.limit.max(ROUND)
    }

    /// What could not be told since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Processes of which I/O was seen for the first time since the last call.
    pub fn take_seen(&mut self) -> Vec<SeenName> {
        std::mem::take(&mut self.seen)
    }

    /// Work on what was gathered. All records up to `until_ns` were given, and all notices of opens that returned by then.
    /// The youngest records wait for the next round where their opens cannot be told from later ones.
    pub fn round(&mut self, until_ns: u64, world: &mut dyn World, tell: &mut dyn FnMut(&FileIo)) {
        let mut round = std::mem::take(&mut self.round);
        let Some(horizon_ns) = self.horizon.choose(&round, until_ns, round.len() >= ROUND) else {
            self.limit = round.len() + ROUND / 2;
            self.round = round;
            return;
        };
        let cut = round.partition_point(|timed| timed.time_ns <= horizon_ns);
        let namings = self.align(&round[..cut], horizon_ns);
        let mut namings = namings.into_iter().peekable();
        self.rounds += 1;
        self.asked.clear();
        let later = OnceCell::new();
        for (index, record) in round[..cut].iter().enumerate() {
            self.confirm(record.time_ns, tell);
            self.adopt(record.time_ns);
            let naming = namings.next_if(|(at, _)| *at == index).map(|(_, naming)| naming);
            self.apply(record, naming, &mut Asked { world, later: &later, round: &round, index }, tell);
        }
        self.done_ns = self.done_ns.max(horizon_ns);
        self.confirm(horizon_ns, tell);
        round.drain(..cut);
        round.shrink_to(KEPT_RECORDS);
        self.limit = round.len() + ROUND / 2;
        self.round = round;
        if self.tasks.too_many() || self.questions.too_many() {
            self.forget(tell);
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
            // one that was made in this round may share a ring that was made in it
            None => !makers.is_empty(),
        })
    }

    /// Settle the questions of which all records up to their answers were followed.
    fn confirm(&mut self, until_ns: u64, tell: &mut dyn FnMut(&FileIo)) {
        let mut settled = false;
        while let Some(question) = self.questions.next(until_ns) {
            settled = true;
            let Question { owner, table, number, description, seen, .. } = question;
            let same = self.tasks.owns(owner, &table) && table.borrow().has(number, &description);
            if !same {
                refute(&description);
                continue;
            }
            description.standing.set(Standing::Settled);
            let doubt = description.doubt.borrow().clone();
            match settle(doubt.as_deref().unwrap_or(&[]), &seen.opened) {
                Some(Opened::File(seen)) if description.is_nameless() => {
                    description.identify(self.objects.file(seen));
                }
                Some(Opened::Other) => {
                    description.standing.set(Standing::Other);
                    table.borrow_mut().set(number, Entry::Other);
                }
                Some(Opened::File(_)) | None => {}
            }
            description.guess.set(Guess::None);
        }
        if settled {
            self.release(tell);
        }
    }

    fn release(&mut self, tell: &mut dyn FnMut(&FileIo)) {
        for (mut row, description) in self.questions.released() {
            match (description.standing.get(), description.guess.get()) {
                (Standing::Other, _) => continue,
                (Standing::Refuted, Guess::File) => {
                    self.counts.unsure += 1;
                    continue;
                }
                (Standing::Refuted, Guess::Flags) => row.offset = None,
                _ => {}
            }
            self.emit(&row, Some(&description), tell);
        }
    }

    fn forget(&mut self, tell: &mut dyn FnMut(&FileIo)) {
        self.questions.refute_all();
        self.release(tell);
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
            Record::Lost => self.forget(tell),
        }
    }

    fn enter(&mut self, time_ns: u64, task: u32, call: Call, args: [u64; ARGUMENTS], asked: &mut Asked) {
        let Some(thread) = self.tasks.thread(task, time_ns, asked.world) else { return };
        let (pid, shared, table) = (thread.pid, is_shared(&thread.table), Rc::clone(&thread.table));
        match call {
            Call::Close => {
                table.borrow_mut().close(args[0] as u32);
                self.start.touch(pid, args[0] as u32, time_ns);
                return;
            }
            Call::Ioctl => return table.borrow_mut().set_close_on_exec(args[0] as u32, args[1] == 0x5451),
            Call::IoUringSetup | Call::IoSetup => return self.tasks.hide(pid, &mut table.borrow_mut()),
            Call::Truncate => return self.objects.cut(),
            // from here on other threads may meet either file
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
            self.look_up(time_ns, task, pid, &table, number, asked);
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

    /// Ask for a number that is used, where it is not known what it stands for.
    fn look_up(
        &mut self,
        time_ns: u64,
        task: u32,
        pid: u32,
        table: &Rc<RefCell<Table>>,
        number: u32,
        asked: &mut Asked,
    ) {
        let described = match table.borrow().get(number) {
            None => None,
            Some(Entry::Unsure(round)) if *round == self.rounds => return,
            Some(Entry::Unsure(_)) => None,
            Some(Entry::Other) => return,
            Some(Entry::File { description, .. }) => {
                let open = description.is_nameless() && description.standing.get() != Standing::Asked;
                // its open was in doubt; it may be asked for as long as it is open
                if !open || !self.asked.insert((pid, number)) {
                    return;
                }
                Some(Rc::clone(description))
            }
        };
        if let Some(description) = described {
            return self.ask(task, number, &description, asked);
        }
        if !self.start.ready(time_ns) {
            return;
        }
        // never opened in view: received from another process, or no file at all
        let seen = if self.ended { None } else { asked.descriptor(&mut self.tasks, task, number) };
        let (entry, question) = match seen {
            Some(SeenDescriptor { opened: Opened::Other, .. }) => (Entry::Other, None),
            Some(seen) => {
                let file = self.objects.file(nameless(&[]));
                let shared = SeenDescriptor { alone: false, ..seen.clone() };
                let description = Description::met(file, &shared, None, table.borrow().hidden);
                let close_on_exec = Some(seen.flags & flag::CLOSE_ON_EXEC != 0);
                (Entry::File { description: Rc::clone(&description), close_on_exec }, Some((description, seen)))
            }
            // what could not be known now may be known later: a file is not left out for good
            None => (Entry::Unsure(self.rounds), None),
        };
        table.borrow_mut().set(number, entry);
        if let Some((description, seen)) = question {
            let asked_ns = asked.world.now_ns();
            let (owner, table) = (self.tasks.owner(task, table), Rc::clone(table));
            self.questions.ask(Question { owner, table, number, description, seen, asked_ns }, Guess::File);
        }
    }

    /// Ask for the file of a description without a name, or without flags.
    fn ask(&mut self, task: u32, number: u32, description: &Rc<Description>, asked: &mut Asked) {
        let Some(seen) = (if self.ended { None } else { asked.descriptor(&mut self.tasks, task, number) }) else {
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
                let is_possible = |doubt: &Rc<[Opened]>| doubt.iter().any(|one| is_same(one, &seen.opened));
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
        let asked_ns = asked.world.now_ns();
        let description = Rc::clone(description);
        self.questions.ask(Question { owner, table, number, description, seen, asked_ns }, guess);
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
        let table = is_shared(&thread.table).then(|| Rc::clone(&thread.table));
        let numbers = uses::numbers(call, &pending.args);
        for (used, number) in pending.uses.iter().zip(numbers) {
            let (Some(used), Some(number)) = (used, number) else { continue };
            let offset = uses::finish(&pending, used, Some(returned));
            // another thread may have put another file there before the call looked
            let is_raced = table.as_ref().is_some_and(|table| !table.borrow().has(number, &used.description));
            if is_raced {
                let mut state = used.description.state.borrow_mut();
                state.position.lose();
                state.end.lose();
            }
            if used.writes && (is_raced || used.description.file().seen.identity.is_none()) {
                // it may be any file: no end that is followed elsewhere holds
                self.objects.cut();
            }
            self.tell(&pending, used, (offset, is_raced), (time_ns, task, pid, returned), tell);
        }
        for number in numbers.into_iter().flatten() {
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
        if pending.call.opens() {
            self.open(task, pending, number, naming, asked);
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

    /// A call opened something.
    fn open(&mut self, task: u32, pending: &Pending, number: u32, naming: Option<Naming>, asked: &mut Asked) {
        let flags = flags_of(pending.call, pending.args[0]);
        let (opened, doubt): (Opened, Option<Rc<[Opened]>>) = match naming {
            _ if flags.is_some_and(|flags| flags & flag::PATH != 0) => (Opened::Other, None),
            Some(Naming::Certain(opened)) => {
                let doubt = matches!(opened, Opened::File(_)).then(|| Rc::from([opened.clone()]));
                (opened, doubt)
            }
            // the kernel's own files alone give no notices
            Some(Naming::Doubt(candidates)) if candidates.is_empty() && asked.world.all_watched() => {
                (Opened::Other, None)
            }
            None if asked.world.all_watched() => (Opened::Other, None),
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
            self.ask(task, number, &description, asked);
        }
    }

    fn tell(
        &mut self,
        pending: &Pending,
        used: &Use,
        (offset, is_raced): (Option<u64>, bool),
        (time_ns, thread, pid, returned): (u64, u32, u32, i64),
        tell: &mut dyn FnMut(&FileIo),
    ) {
        let Some(op) = uses::operation(pending, used) else { return };
        if !self.start.ready(pending.from_ns) || self.excluded.contains(&pid) {
            return;
        }
        let description = &used.description;
        if description.standing.get() == Standing::Other {
            return;
        }
        let waits = description.standing.get() == Standing::Asked && !is_raced;
        if !waits && !is_raced && !description.file().seen.asked {
            return;
        }
        let Some(process) = self.tasks.process(pid) else { return };
        if !process.told {
            process.told = true;
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
            self.questions.hold(row, Rc::clone(description));
        } else {
            self.emit(&row, (!is_raced).then_some(description), tell);
        }
    }

    /// Hand an I/O over; without a description it is on an unknown file.
    fn emit(&mut self, row: &Row, description: Option<&Rc<Description>>, tell: &mut dyn FnMut(&FileIo)) {
        let file = description.map(|description| description.file());
        let seen = file.as_ref().map(|file| &file.seen);
        if seen.is_some_and(|seen| !seen.asked) {
            return;
        }
        if seen.is_none_or(|seen| seen.path.is_none()) {
            let why = description.map_or(Why::Raced, |description| description.why.get());
            self.counts.unknown_names[why as usize] += 1;
        }
        tell(&FileIo {
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
