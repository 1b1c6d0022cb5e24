// SPDX-License-Identifier: Apache-2.0
//! Input and output of the tracker: tracepoint records, notices of opens, state from /proc, and file I/O.

use super::call::{Call, ARGUMENTS};
use super::opens::Window;
use crate::event::Op;

/// A command name as in the kernel: up to 15 bytes, padded with zeroes.
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
        /// The call.
        call: Call,
        /// Its kept arguments, in the order of `Traced::fields`.
        args: [u64; ARGUMENTS],
    },
    /// A call returned.
    Exit {
        /// The call.
        call: Call,
        /// Its result; negative values are error numbers.
        returned: i64,
    },
    /// The task created another one (`task_newtask`).
    Fork {
        /// Number of the new task.
        child: u32,
        /// Flags of clone: what the tasks share.
        flags: u64,
        /// Command name of the new task.
        comm: Comm,
    },
    /// The task executes another program (`sched_process_exec`).
    Exec {
        /// Previous task number: a thread other than the first takes over the number of the first.
        before: u32,
    },
    /// The task ends (`sched_process_exit`).
    End,
    /// A task was renamed (`task_rename`).
    Rename {
        /// The task.
        task: u32,
        /// The new name.
        comm: Comm,
    },
    /// Records were lost at this point.
    Lost,
}

/// A record with its time and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Monotonic clock.
    pub time_ns: u64,
    /// Task (thread) number.
    pub task: u32,
    /// The record.
    pub record: Record,
}

/// A file that was opened or is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path at the time of the open; None if unknown.
    pub path: Option<Vec<u8>>,
    /// Mount point of its file system.
    pub mount: Option<Vec<u8>>,
    /// Device and inode number, if known.
    pub identity: Option<(u64, u64)>,
    /// Whether its I/O is requested (`--mount`).
    pub requested: bool,
}

/// The opened object.
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
    /// Time and kind.
    pub window: Window,
    /// Opened object.
    pub opened: Opened,
}

/// A descriptor as /proc shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDescriptor {
    /// Open object.
    pub opened: Opened,
    /// Flags of open.
    pub flags: u32,
    /// Its position.
    pub position: u64,
    /// Whether no other descriptor of any process may share its position.
    pub alone: bool,
}

/// A task as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Number of its process.
    pub pid: u32,
    /// Command name of its process.
    pub comm: Comm,
    /// Latest possible start time: earlier records may be of another task with the same number.
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
    /// Its descriptors of files.
    pub descriptors: Vec<(u32, SeenDescriptor)>,
    /// Whether it has an io_uring, which changes positions without a record.
    pub hidden: bool,
    /// Start of the read.
    pub from_ns: u64,
    /// End of the read.
    pub until_ns: u64,
}

/// State of the machine that the tracker reads.
pub trait World {
    /// Reads a descriptor of a process or thread. Returns None if it is unknown.
    fn descriptor(&mut self, task: u32, descriptor: u32) -> Option<SeenDescriptor>;
    /// Reads a running task.
    fn task(&mut self, task: u32) -> Option<SeenTask>;
    /// Current monotonic time, not before any previous result.
    fn now_ns(&self) -> u64;
    /// Whether opens without a notice are of kernel file systems (proc), because all others are watched.
    fn all_watched(&self) -> bool;
}

/// A finished call on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIo<'a> {
    /// Return, on the monotonic clock.
    pub time_ns: u64,
    /// From entry to return.
    pub latency_ns: u64,
    /// Offset of the first byte in the file; None if it is not certain.
    pub offset: Option<u64>,
    /// Number of bytes transferred; None for errors and syncs.
    pub size: Option<u64>,
    /// Operation.
    pub op: Op,
    /// Command name of the process.
    pub process: &'a [u8],
    /// Process number.
    pub pid: u32,
    /// Thread number.
    pub thread: u32,
    /// Path of the file at the time of its open.
    pub file: Option<&'a [u8]>,
    /// Mount point of its file system.
    pub mount: Option<&'a [u8]>,
    /// Name of the error.
    pub error: Option<&'static str>,
    /// Name of the call.
    pub call: &'static str,
}
