// SPDX-License-Identifier: Apache-2.0
//! File I/O from system calls: pairs entries and returns, and tracks descriptors, files and positions. Does no I/O
//! itself.
//!
//! A file has the path from the time of its open, whatever happens to it later. An offset is given if it is certain: an
//! argument of the call, or tracked from the open through every call that changed the position. If positions change
//! without a record (io_uring, descriptors received from other processes, 32-bit programs), they are not guessed; the
//! offset is omitted if this is detected. Calls on pipes, sockets, terminals and files of the kernel (proc, sys) are
//! omitted.

pub mod call;
pub mod descriptor;
pub mod follow;
pub mod horizon;
pub mod later;
pub mod names;
pub mod notice;
pub mod opens;
pub mod proc_reads;
pub mod proc_view;
pub mod record;
pub mod start;
pub mod tasks;
pub mod tracker;
pub mod uses;

pub use call::{Call, Traced, TRACED};
pub use record::{FileIo, Notice, Opened, Record, Seen, SeenDescriptor, SeenProcess, SeenTask, Timed, World};
pub use tracker::{Counts, Tracker};
