// SPDX-License-Identifier: Apache-2.0
//! What the tracker takes and gives: records of tracepoints, notices of opens, what is seen in /proc, and file I/O.

use super::call::{Call, ARGUMENTS};
use super::opens::Window;
use crate::event::Op;

/// A command name, as the kernel keeps it: at most 15 bytes, the rest zero.
pub type Comm = [u8; 16];

/// The bytes of a command name.
pub fn comm(name: &Comm) -> &[u8] {
    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
}

/// A record of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A call was entered.
    Enter {
        /// Which.
        call: Call,
        /// Its kept arguments, in the order of `Traced::fields`.
        args: [u64; ARGUMENTS],
    },
    /// It returned.
    Exit {
        /// Which.
        call: Call,
        /// What it returned: negative is an error number.
        returned: i64,
    },
    /// The task made another one (`task_newtask`).
    Fork {
        /// Its number.
        child: u32,
        /// Flags of clone: which things both share.
        flags: u64,
        /// Its command name.
        comm: Comm,
    },
    /// The task runs another program (`sched_process_exec`).
    Exec {
        /// Its number before, as a thread that is not the first takes over the first one's.
        before: u32,
    },
    /// The task ends (`sched_process_exit`).
    End,
    /// A task has another command name (`task_rename`).
    Rename {
        /// Which task.
        task: u32,
        /// Its name from now on.
        comm: Comm,
    },
    /// Records were lost here.
    Lost,
}

/// A record with its time and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Monotonic clock.
    pub time_ns: u64,
    /// Task (thread) number.
    pub task: u32,
    /// What happened.
    pub record: Record,
}

/// A file that was opened, or is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its path when it was opened; none where that could not be found out.
    pub path: Option<Vec<u8>>,
    /// Mount point of its file system.
    pub mount: Option<Vec<u8>>,
    /// Device and inode number, where known.
    pub identity: Option<(u64, u64)>,
    /// Whether its I/O is asked for (`--mount`).
    pub asked: bool,
}

/// What was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A regular file or a block device.
    File(Seen),
    /// Anything else: a directory, a character device, a pipe.
    Other,
}

/// A notice of fanotify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Task that opened.
    pub task: u32,
    /// When, and what kind.
    pub window: Window,
    /// What.
    pub opened: Opened,
}

/// A descriptor as /proc shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDescriptor {
    /// What it is of.
    pub opened: Opened,
    /// Flags of open.
    pub flags: u32,
    /// Its position.
    pub position: u64,
    /// Whether no other descriptor of any process can share its position.
    pub alone: bool,
}

/// A task as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Number of its process.
    pub pid: u32,
    /// Command name of its process.
    pub comm: Comm,
    /// It began before this time: earlier records may be of another task of the same number.
    pub began_ns: u64,
}

/// A process as /proc shows it at the start.
#[derive(Clone, Debug)]
pub struct SeenProcess {
    /// Process number.
    pub pid: u32,
    /// Its command name.
    pub comm: Comm,
    /// Its threads.
    pub threads: Vec<u32>,
    /// Its descriptors that are files; others are left out.
    pub descriptors: Vec<(u32, SeenDescriptor)>,
    /// Whether it has a ring of io_uring, which moves positions unseen.
    pub hidden: bool,
    /// Looked at not before.
    pub from_ns: u64,
    /// Looked at until.
    pub until_ns: u64,
}

/// What the tracker asks of the machine while it works.
pub trait World {
    /// A descriptor of a process or of one thread, as it is now; none when it cannot be known.
    fn descriptor(&mut self, task: u32, descriptor: u32) -> Option<SeenDescriptor>;
    /// A task that still lives.
    fn task(&mut self, task: u32) -> Option<SeenTask>;
    /// The time on the monotonic clock, not before any answer so far.
    fn now_ns(&self) -> u64;
    /// Whether opens without a notice are of files of the kernel's own (proc), as all other file systems are watched.
    fn all_watched(&self) -> bool;
}

/// One finished call on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIo<'a> {
    /// Return, on the monotonic clock.
    pub time_ns: u64,
    /// From entry to return.
    pub latency_ns: u64,
    /// First byte in the file; none when it is not known for certain.
    pub offset: Option<u64>,
    /// Bytes moved; none for errors and syncs.
    pub size: Option<u64>,
    /// Operation.
    pub op: Op,
    /// Command name of the process.
    pub process: &'a [u8],
    /// Process number.
    pub pid: u32,
    /// Thread number.
    pub thread: u32,
    /// Path that the file had when it was opened.
    pub file: Option<&'a [u8]>,
    /// Mount point of its file system.
    pub mount: Option<&'a [u8]>,
    /// Name of the error.
    pub error: Option<&'static str>,
    /// Name of the call.
    pub call: &'static str,
}
