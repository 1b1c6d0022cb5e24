// SPDX-License-Identifier: Apache-2.0
//! Results read from /proc, and the I/O that waits for their confirmation.
//!
//! /proc shows a descriptor at the time of the read, which is later than the record that caused the read. A result is
//! valid only if the descriptor was the same open file all the time. This is known after all records up to the read
//! were processed: the number must still have the same description, in the same table. Until then the I/O waits.

use super::descriptor::{Description, Guess, ReadState, Table, Why};
use super::record::{Comm, SeenDescriptor};
use crate::event::Op;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A record may be older than a read of /proc even if its clock is later by up to this time.
const MARGIN_NS: u64 = 10_000;
/// Maximum number of unconfirmed I/Os.
const MOST_WAITING: usize = 1 << 17;

/// A result that is not confirmed yet.
#[derive(Debug)]
pub struct ProcRead {
    /// Process or thread that was read.
    pub owner: u32,
    /// Its descriptor table.
    pub table: Rc<RefCell<Table>>,
    /// The number in it.
    pub number: u32,
    /// The state of the number.
    pub description: Rc<Description>,
    /// The result from /proc.
    pub seen: SeenDescriptor,
    /// Latest time of the read.
    pub read_ns: u64,
}

/// A finished call on a file, without the file.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Return.
    pub time_ns: u64,
    /// From entry to return.
    pub latency_ns: u64,
    /// First byte in the file.
    pub offset: Option<u64>,
    /// Bytes moved.
    pub size: Option<u64>,
    /// Operation.
    pub op: Op,
    /// Command name of the process.
    pub comm: Comm,
    /// Process number.
    pub pid: u32,
    /// Thread number.
    pub thread: u32,
    /// Name of the error.
    pub error: Option<&'static str>,
    /// Name of the call.
    pub call: &'static str,
}

/// Results and I/O that wait.
#[derive(Debug, Default)]
pub struct ProcReads {
    unconfirmed: VecDeque<ProcRead>,
    waiting_ios: Vec<(Row, Rc<Description>)>,
}

impl ProcReads {
    /// Add a result, in order of time.
    pub fn add(&mut self, read: ProcRead, guess: Guess) {
        read.description.read_state.set(ReadState::Pending);
        read.description.guess.set(guess);
        self.unconfirmed.push_back(read);
    }

    /// Add I/O on a description with a pending result.
    pub fn add_io(&mut self, row: Row, description: Rc<Description>) {
        self.waiting_ios.push((row, description));
    }

    /// Whether the maximum of unconfirmed I/Os is reached.
    pub fn too_many(&self) -> bool {
        self.waiting_ios.len() >= MOST_WAITING
    }

    /// Return time of the oldest unconfirmed I/O.
    pub fn since_ns(&self) -> Option<u64> {
        self.waiting_ios.iter().map(|(row, _)| row.time_ns).min()
    }

    /// The next result that all records up to a time confirm or refute.
    pub fn next(&mut self, until_ns: u64) -> Option<ProcRead> {
        let is_complete = self.unconfirmed.front()?.read_ns.saturating_add(MARGIN_NS) < until_ns;
        if is_complete {
            self.unconfirmed.pop_front()
        } else {
            None
        }
    }

    /// Invalidate all results.
    pub fn refute_all(&mut self) {
        self.unconfirmed.drain(..).for_each(|read| refute(&read.description));
    }

    /// I/O that no longer waits.
    pub fn released(&mut self) -> Vec<(Row, Rc<Description>)> {
        if self.waiting_ios.iter().all(|(_, description)| description.read_state.get() == ReadState::Pending) {
            return Vec::new();
        }
        let is_pending = |(_, description): &(Row, Rc<Description>)| description.read_state.get() == ReadState::Pending;
        let (waiting_ios, released) = std::mem::take(&mut self.waiting_ios).into_iter().partition(is_pending);
        self.waiting_ios = waiting_ios;
        released
    }
}

/// The result may be from another open.
pub fn refute(description: &Description) {
    description.read_state.set(ReadState::Refuted);
    description.why.set(Why::Reused);
}
