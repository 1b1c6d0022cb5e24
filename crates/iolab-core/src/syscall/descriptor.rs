// SPDX-License-Identifier: Apache-2.0
//! Descriptors, open file descriptions, and their positions.
//!
//! As in the kernel: a table (shared by threads) maps numbers to descriptions (shared by dup and fork), and each
//! description has a file. A number that is not in the table is unknown; it is read from /proc once, when it is first
//! used.

use super::call::ARGUMENTS;
use super::follow::Follow;
use super::record::{Opened, Seen, SeenDescriptor};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Flags of open, the same on x86-64, arm64 and riscv64 except where noted.
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
    /// Flag of an unnamed file (`O_TMPFILE`), without `O_DIRECTORY`, which the caller sets too.
    pub const TEMPORARY: u32 = 0o20000000;
}

/// State of a file, shared by all its descriptions.
#[derive(Debug, Default)]
pub struct Object {
    /// Number of descriptions that may write.
    writers: Cell<u32>,
    /// Incremented when another writer may have changed the size.
    changes: Cell<u64>,
    cuts: Rc<Cell<u64>>,
}

impl Object {
    fn changes(&self) -> u64 {
        self.changes.get() + self.cuts.get()
    }
}

/// A file as named by one open.
#[derive(Debug)]
pub struct File {
    /// The file.
    pub seen: Seen,
    object: Rc<Object>,
}

/// All open files, by identity.
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

    /// A file was truncated by path, which is not recorded: no tracked end is valid.
    pub fn cut(&mut self) {
        self.cuts.set(self.cuts.get() + 1);
    }

    /// A file was opened.
    pub fn file(&mut self, seen: Seen) -> Rc<File> {
        Rc::new(File { object: self.object(seen.identity), seen })
    }
}

/// State of a description.
#[derive(Debug, Default)]
pub struct State {
    /// Flags of open; None if unknown (openat2).
    pub flags: Option<u32>,
    /// Position of reads and writes.
    pub position: Follow,
    /// End of the file, as known from the appends of this description.
    pub end: Follow,
    /// Positions may change without a record.
    pub hidden: bool,
    changes: u64,
}

/// Why a file has no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// Several orders of events explain the notices, and /proc could not be read in time.
    #[default]
    Order,
    /// The descriptor was closed or reopened while /proc was read.
    Reused,
    /// Another thread closed or replaced the descriptor during the call.
    Raced,
    /// The directory was renamed or deleted before its path was read.
    Directory,
}

/// Unconfirmed data from /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guess {
    /// Nothing.
    #[default]
    None,
    /// Flags.
    Flags,
    /// Whether it is a file.
    File,
}

/// State of the read of /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadState {
    /// No read is pending.
    #[default]
    Settled,
    /// A result waits for its confirmation.
    Pending,
    /// The result may be from another open.
    Refuted,
    /// Not a regular file or block device.
    Other,
}

/// An open file description.
#[derive(Debug)]
pub struct Description {
    file: RefCell<Rc<File>>,
    /// Position and flags.
    pub state: RefCell<State>,
    /// Candidates for the file, if its open was ambiguous.
    pub doubt: RefCell<Option<Rc<[Opened]>>>,
    /// Why the file has no name.
    pub why: Cell<Why>,
    /// Unconfirmed data.
    pub guess: Cell<Guess>,
    /// State of the read of /proc.
    pub read_state: Cell<ReadState>,
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
            read_state: Cell::default(),
            writes,
        };
        description.enlist();
        Rc::new(description)
    }

    /// A description that a call has just opened: position 0, and end 0 if the call truncated or created the file.
    pub fn opened(file: Rc<File>, flags: Option<u32>, hidden: bool) -> Rc<Self> {
        let fresh = flags.is_some_and(|flags| {
            flags & flag::TRUNCATE != 0 || flags & (flag::CREATE | flag::EXCLUSIVE) == flag::CREATE | flag::EXCLUSIVE
        });
        let end = (fresh && file.object.writers.get() == 0).then_some(0);
        Self::new(file, flags, Some(0), end, hidden)
    }

    /// A description that is already open.
    pub fn met(file: Rc<File>, seen: &SeenDescriptor, position: Option<u64>, hidden: bool) -> Rc<Self> {
        Self::new(file, Some(seen.flags), position, None, hidden || !seen.alone)
    }

    /// The file.
    pub fn file(&self) -> Rc<File> {
        Rc::clone(&self.file.borrow())
    }

    /// Whether the file has no name yet.
    pub fn is_nameless(&self) -> bool {
        self.file.borrow().seen.path.is_none()
    }

    /// Whether it is known to be a file only from a read of /proc that was refuted: it may be a pipe.
    pub fn is_unsure(&self) -> bool {
        self.read_state.get() == ReadState::Refuted && self.guess.get() == Guess::File
    }

    /// Set the file.
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

    /// The end of the file becomes unknown if another writer may have changed it.
    pub fn check_end(&self, state: &mut State) {
        let file = self.file.borrow();
        let changes = file.object.changes();
        // an unknown file may have other writers
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

/// State of a descriptor number.
#[derive(Clone, Debug)]
pub enum Entry {
    /// An open file.
    File {
        /// The description.
        description: Rc<Description>,
        /// Whether exec closes it; None if unknown.
        close_on_exec: Option<bool>,
    },
    /// Not a file (a pipe, a socket, a terminal).
    Other,
}

/// A table of descriptors.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: HashMap<u32, Entry>,
    /// An io_uring or a libaio context exists: positions change without a record.
    pub hidden: bool,
}

impl Table {
    /// State of a number, if known.
    pub fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(&number)
    }

    /// Set the state of a number.
    pub fn set(&mut self, number: u32, entry: Entry) {
        self.entries.insert(number, entry);
    }

    /// Remove a number.
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

    /// Close a range of numbers.
    pub fn close_range(&mut self, first: u32, last: u32) {
        self.entries.retain(|number, _| !(first..=last).contains(number));
    }

    /// Set close-on-exec for a range of numbers.
    pub fn close_range_on_exec(&mut self, first: u32, last: u32) {
        for (number, entry) in &mut self.entries {
            if let (true, Entry::File { close_on_exec, .. }) = ((first..=last).contains(number), entry) {
                *close_on_exec = Some(true);
            }
        }
    }

    /// Copy a number to another; an unknown number stays unknown.
    pub fn duplicate(&mut self, from: u32, to: u32, on_exec: bool) {
        match self.entries.get(&from).cloned() {
            Some(Entry::File { description, .. }) => {
                self.set(to, Entry::File { description, close_on_exec: Some(on_exec) });
            }
            Some(Entry::Other) => self.set(to, Entry::Other),
            None => self.close(to),
        }
    }

    /// Set whether exec closes a number.
    pub fn set_close_on_exec(&mut self, number: u32, on_exec: bool) {
        if let Some(Entry::File { close_on_exec, .. }) = self.entries.get_mut(&number) {
            *close_on_exec = Some(on_exec);
        }
    }

    /// Copy of the table for an executed program. Numbers with unknown close-on-exec are read again.
    pub fn after_exec(&self) -> Table {
        let kept = |entry: &Entry| match entry {
            Entry::File { close_on_exec: Some(on_exec), .. } => !on_exec,
            Entry::File { description, close_on_exec: None } => {
                // the new program may have it, and then changes a position that other tables share
                description.state.borrow_mut().hidden = true;
                false
            }
            Entry::Other => false,
        };
        let entries = self.entries.iter().filter(|(_, entry)| kept(entry));
        // an io_uring does not survive exec
        Table { entries: entries.map(|(&number, entry)| (number, entry.clone())).collect(), hidden: false }
    }

    /// All positions in the table change without a record from now on.
    pub fn hide(&mut self) {
        self.hidden = true;
        for entry in self.entries.values() {
            if let Entry::File { description, .. } = entry {
                description.state.borrow_mut().hidden = true;
            }
        }
    }

    /// Number of known descriptors.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Set an opened file at a number. Returns its description if it is a file.
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

    /// Whether a number has this description.
    pub fn has(&self, number: u32, description: &Rc<Description>) -> bool {
        matches!(self.get(number), Some(Entry::File { description: known, .. }) if Rc::ptr_eq(known, description))
    }

    /// Set the state from /proc at a number.
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
