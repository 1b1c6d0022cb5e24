// SPDX-License-Identifier: Apache-2.0
//! File I/O from system calls: entries and returns paired, descriptors followed to files and positions. No I/O of its own.
//!
//! A file bears the path that it had when it was opened, whatever becomes of it later. An offset is told where it is certain:
//! given by the call, or followed from the open through every call that moved the position since. What moves positions unseen
//! (io_uring, descriptors received from other processes, 32-bit programs) is not guessed at: where it is noticed, the offset
//! is left out. Calls on pipes, sockets, terminals and the kernel's own files (proc, sys) are left out altogether.

pub mod asked;
pub mod call;
pub mod descriptor;
pub mod follow;
pub mod horizon;
pub mod ids;
pub mod later;
pub mod names;
pub mod notice;
pub mod opens;
pub mod questions;
pub mod record;
pub mod start;
pub mod tasks;
pub mod tracker;
pub mod uses;

pub use call::{Call, Traced, TRACED};
pub use record::{FileIo, Notice, Opened, Record, Seen, SeenDescriptor, SeenProcess, SeenTask, Timed, World};
pub use tracker::{Counts, Tracker};
