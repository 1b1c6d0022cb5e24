// SPDX-License-Identifier: Apache-2.0
//! Descriptors, what they describe, and where each description's position is.
//!
//! As in the kernel: a table (shared by threads) maps numbers to descriptions (shared by dup and fork), and each description
//! is of a file. A number that is in no table is not known to be of a file; it is asked for once, when it is first used.

use super::call::ARGUMENTS;
use super::follow::Follow;
use super::ids::ById;
use super::record::{Opened, Seen, SeenDescriptor};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Flags of open, alike on x86-64, arm64 and riscv64 unless said otherwise.
pub mod flag {
    #![allow(missing_docs)]
    pub const ACCESS: u32 = 3;
    pub const WRITE_ONLY: u32 = 1;
    pub const CREATE: u32 = 0o100;
    pub const EXCLUSIVE: u32 = 0o200;
    pub const TRUNCATE: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const DIRECTORY: u32 = if cfg!(target_arch = "aarch64") { 0o40000 } else { 0o200000 };
    pub const CLOSE_ON_EXEC: u32 = 0o2000000;
    pub const PATH: u32 = 0o10000000;
    /// A file without a name (`O_TMPFILE`), without the flag of a directory that the caller gives as well.
    pub const TEMPORARY: u32 = 0o20000000;
}

/// The file behind every open of it, while any is known.
#[derive(Debug, Default)]
pub struct Object {
    /// Descriptions that may write.
    writers: Cell<u32>,
    /// Grows whenever another writer may have changed the size.
    changes: Cell<u64>,
    cuts: Rc<Cell<u64>>,
}

impl Object {
    fn changes(&self) -> u64 {
        self.changes.get() + self.cuts.get()
    }
}

/// A file as one open named it.
#[derive(Debug)]
pub struct File {
    /// What was seen of it.
    pub seen: Seen,
    object: Rc<Object>,
}

/// All files that are open, by identity.
#[derive(Debug, Default)]
pub struct Objects {
    known: HashMap<(u64, u64), Weak<Object>>,
    cuts: Rc<Cell<u64>>,
}

impl Objects {
    fn object(&mut self, identity: Option<(u64, u64)>) -> Rc<Object> {
        let fresh = || Rc::new(Object { cuts: Rc::clone(&self.cuts), ..Object::default() });
        let Some(identity) = identity else { return fresh() };
        if let Some(object) = self.known.get(&identity).and_then(Weak::upgrade) {
            return object;
        }
        if self.known.len() >= 1024 && self.known.len() == self.known.capacity() {
            self.known.retain(|_, object| object.strong_count() > 0);
        }
        let object = fresh();
        self.known.insert(identity, Rc::downgrade(&object));
        object
    }

    /// Some file was cut by its path, which is not seen: no end that was followed holds.
    pub fn cut(&mut self) {
        self.cuts.set(self.cuts.get() + 1);
    }

    /// A file of which an open is seen.
    pub fn file(&mut self, seen: Seen) -> Rc<File> {
        Rc::new(File { object: self.object(seen.identity), seen })
    }
}

/// What moves with a description.
#[derive(Debug, Default)]
pub struct State {
    /// Flags of open; none when they could not be seen (openat2).
    pub flags: Option<u32>,
    /// Position of reads and writes.
    pub position: Follow,
    /// End of the file, as far as this description's appends tell it.
    pub end: Follow,
    /// Positions may be moved by something that is not seen.
    pub hidden: bool,
    changes: u64,
}

/// Why a file has no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// More than one order of events explains the notices, and /proc could not be asked in time.
    #[default]
    Order,
    /// The descriptor was closed or opened again while /proc was read.
    Reused,
    /// Another thread closed or replaced the descriptor during the call.
    Raced,
    /// The directory was renamed or deleted before its path was read.
    Directory,
}

/// What was taken from /proc and is not confirmed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guess {
    /// Nothing.
    #[default]
    None,
    /// Flags.
    Flags,
    /// That it is a file at all.
    File,
}

/// Whether /proc was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// No question is open.
    #[default]
    Settled,
    /// An answer waits for its confirmation.
    Asked,
    /// The answer may be of another open.
    Refuted,
    /// It is no regular file or block device.
    Other,
}

/// An open file description.
#[derive(Debug)]
pub struct Description {
    file: RefCell<Rc<File>>,
    /// What moves.
    pub state: RefCell<State>,
    /// What it may be of, where its open left a doubt.
    pub doubt: RefCell<Option<Rc<[Opened]>>>,
    /// Why its file has no name.
    pub why: Cell<Why>,
    /// What is not confirmed.
    pub guess: Cell<Guess>,
    /// Whether it is asked for.
    pub standing: Cell<Standing>,
    writes: bool,
}

impl Description {
    fn new(file: Rc<File>, flags: Option<u32>, position: Option<u64>, end: Option<u64>, hidden: bool) -> Rc<Self> {
        let writes = flags.is_none_or(|flags| flags & flag::ACCESS != 0 || flags & flag::TRUNCATE != 0);
        let state = State { flags, position: Follow::new(position), end: Follow::new(end), hidden, changes: 0 };
        let why = Cell::new(if file.seen.identity.is_some() { Why::Directory } else { Why::Order });
        let description = Self {
            file: RefCell::new(file),
            state: RefCell::new(state),
            doubt: RefCell::default(),
            why,
            guess: Cell::default(),
            standing: Cell::default(),
            writes,
        };
        description.enlist();
        Rc::new(description)
    }

    /// One that a call opened just now: at the file's start, and at its end too where the call emptied or made it.
    pub fn opened(file: Rc<File>, flags: Option<u32>, hidden: bool) -> Rc<Self> {
        let fresh = flags.is_some_and(|flags| {
            flags & flag::TRUNCATE != 0 || flags & (flag::CREATE | flag::EXCLUSIVE) == flag::CREATE | flag::EXCLUSIVE
        });
        let end = (fresh && file.object.writers.get() == 0).then_some(0);
        Self::new(file, flags, Some(0), end, hidden)
    }

    /// One that is open already.
    pub fn met(file: Rc<File>, seen: &SeenDescriptor, position: Option<u64>, hidden: bool) -> Rc<Self> {
        Self::new(file, Some(seen.flags), position, None, hidden || !seen.alone)
    }

    /// Its file.
    pub fn file(&self) -> Rc<File> {
        Rc::clone(&self.file.borrow())
    }

    /// Its file has no name so far.
    pub fn is_nameless(&self) -> bool {
        self.file.borrow().seen.path.is_none()
    }

    /// Its file is known from now on.
    pub fn identify(&self, file: Rc<File>) {
        self.delist();
        *self.file.borrow_mut() = file;
        self.enlist();
        self.state.borrow_mut().end.lose();
    }

    fn enlist(&self) {
        let file = self.file.borrow();
        let (object, mut state) = (&file.object, self.state.borrow_mut());
        if self.writes {
            object.writers.set(object.writers.get() + 1);
            if object.writers.get() > 1 || state.flags.is_none_or(|flags| flags & flag::TRUNCATE != 0) {
                object.changes.set(object.changes.get() + 1);
            }
        }
        state.changes = object.changes();
    }

    fn delist(&self) {
        if self.writes {
            let file = self.file.borrow();
            file.object.writers.set(file.object.writers.get().saturating_sub(1));
        }
    }

    /// The end of the file is not known any more where another writer came since.
    pub fn check_end(&self, state: &mut State) {
        let file = self.file.borrow();
        let changes = file.object.changes();
        // a file that is not known may be one that others write
        let unknown = file.seen.identity.is_none();
        if unknown || file.object.writers.get() > 1 || changes != state.changes {
            state.end.lose();
            state.changes = changes;
        }
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        self.delist();
    }
}

/// What a number stands for.
#[derive(Clone, Debug)]
pub enum Entry {
    /// An open file.
    File {
        /// Its description.
        description: Rc<Description>,
        /// Whether exec closes it; none when that could not be seen.
        close_on_exec: Option<bool>,
    },
    /// Known to be none (a pipe, a socket, a terminal).
    Other,
    /// It could not be told in the round of that number; to be asked for again in another.
    Unsure(u64),
}

/// A table of descriptors.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: ById<Entry>,
    /// A ring of io_uring or a context of libaio was made: positions move unseen.
    pub hidden: bool,
}

impl Table {
    /// What a number stands for, where that is known.
    pub fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(&number)
    }

    /// A number stands for something from now on.
    pub fn set(&mut self, number: u32, entry: Entry) {
        self.entries.insert(number, entry);
    }

    /// It stands for nothing that is known.
    pub fn close(&mut self, number: u32) {
        self.entries.remove(&number);
    }

    /// close_range(2) with its arguments.
    pub fn close_range_call(&mut self, args: &[u64; ARGUMENTS]) {
        let (first, last) = (args[0] as u32, args[1] as u32);
        if args[2] & 4 != 0 {
            self.close_range_on_exec(first, last);
        } else {
            self.close_range(first, last);
        }
    }

    /// All numbers of a range.
    pub fn close_range(&mut self, first: u32, last: u32) {
        self.entries.retain(|number, _| !(first..=last).contains(number));
    }

    /// All numbers of a range are closed by exec.
    pub fn close_range_on_exec(&mut self, first: u32, last: u32) {
        for (number, entry) in &mut self.entries {
            if let (true, Entry::File { close_on_exec, .. }) = ((first..=last).contains(number), entry) {
                *close_on_exec = Some(true);
            }
        }
    }

    /// Copy a number to another; what is not known stays so.
    pub fn duplicate(&mut self, from: u32, to: u32, on_exec: bool) {
        match self.entries.get(&from).cloned() {
            Some(Entry::File { description, .. }) => {
                self.set(to, Entry::File { description, close_on_exec: Some(on_exec) });
            }
            Some(entry @ (Entry::Other | Entry::Unsure(_))) => self.set(to, entry),
            None => self.close(to),
        }
    }

    /// Whether exec closes a number.
    pub fn set_close_on_exec(&mut self, number: u32, on_exec: bool) {
        if let Some(Entry::File { close_on_exec, .. }) = self.entries.get_mut(&number) {
            *close_on_exec = Some(on_exec);
        }
    }

    /// What another program finds open. Numbers of which it is not known are asked for again.
    pub fn after_exec(&self) -> Table {
        let kept = |entry: &Entry| match entry {
            Entry::File { close_on_exec: Some(on_exec), .. } => !on_exec,
            Entry::File { description, close_on_exec: None } => {
                // the other program may have it, and then moves the position that other tables share
                description.state.borrow_mut().hidden = true;
                false
            }
            Entry::Other | Entry::Unsure(_) => false,
        };
        let entries = self.entries.iter().filter(|(_, entry)| kept(entry));
        // rings of io_uring do not survive an exec
        Table { entries: entries.map(|(&number, entry)| (number, entry.clone())).collect(), hidden: false }
    }

    /// Positions of everything in it move unseen from now on.
    pub fn hide(&mut self) {
        self.hidden = true;
        for entry in self.entries.values() {
            if let Entry::File { description, .. } = entry {
                description.state.borrow_mut().hidden = true;
            }
        }
    }

    /// How many numbers are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Put what was opened at a number. Gives its description, where it is a file.
    pub fn open(
        &mut self,
        number: u32,
        opened: Opened,
        flags: Option<u32>,
        objects: &mut Objects,
    ) -> Option<Rc<Description>> {
        let Opened::File(seen) = opened else {
            self.set(number, Entry::Other);
            return None;
        };
        let description = Description::opened(objects.file(seen), flags, self.hidden);
        let close_on_exec = flags.map(|flags| flags & flag::CLOSE_ON_EXEC != 0);
        self.set(number, Entry::File { description: Rc::clone(&description), close_on_exec });
        Some(description)
    }

    /// Whether a number stands for a description.
    pub fn has(&self, number: u32, description: &Rc<Description>) -> bool {
        matches!(self.get(number), Some(Entry::File { description: known, .. }) if Rc::ptr_eq(known, description))
    }

    /// Put what /proc shows at a number.
    pub fn meet(&mut self, number: u32, seen: &SeenDescriptor, position: Option<u64>, objects: &mut Objects) {
        let entry = match &seen.opened {
            Opened::Other => Entry::Other,
            Opened::File(file) => Entry::File {
                description: Description::met(objects.file(file.clone()), seen, position, self.hidden),
                close_on_exec: Some(seen.flags & flag::CLOSE_ON_EXEC != 0),
            },
        };
        self.set(number, entry);
    }
}
