// SPDX-License-Identifier: Apache-2.0
//! Takes over descriptors that were open before the first record, without a gap and without stale data.
//!
//! The tracepoints are enabled before /proc is read. A descriptor with a record during the read of its process is left
//! out, and read when it is used.

use super::record::{SeenDescriptor, SeenProcess};
use std::collections::{HashMap, VecDeque};

/// Initial state that is not taken over yet.
#[derive(Debug, Default)]
pub struct Start {
    waiting: VecDeque<SeenProcess>,
    ready_ns: u64,
    /// When a descriptor of a process was last used or changed.
    touched: HashMap<(u32, u32), u64>,
}

impl Start {
    /// Processes as read, all by `ready_ns`.
    pub fn new(mut processes: Vec<SeenProcess>, ready_ns: u64) -> Self {
        processes.sort_by_key(|process| process.until_ns);
        Self { waiting: processes.into(), ready_ns, touched: HashMap::new() }
    }

    /// The next process that was read by some time.
    pub fn next(&mut self, time_ns: u64) -> Option<SeenProcess> {
        if self.waiting.front()?.until_ns > time_ns {
            return None;
        }
        let process = self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.waiting.shrink_to_fit();
        }
        process
    }

    /// Whether all processes were read by some time.
    pub fn ready(&self, time_ns: u64) -> bool {
        time_ns >= self.ready_ns
    }

    /// A descriptor is in use from now on.
    pub fn enter(&mut self, pid: u32, number: u32, time_ns: u64) {
        self.note(pid, number, time_ns, u64::MAX);
    }

    /// The use or change ended.
    pub fn touch(&mut self, pid: u32, number: u32, time_ns: u64) {
        self.note(pid, number, time_ns, time_ns);
    }

    fn note(&mut self, pid: u32, number: u32, time_ns: u64, until_ns: u64) {
        if !self.waiting.is_empty() || !self.ready(time_ns) {
            self.touched.insert((pid, number), until_ns);
        } else if !self.touched.is_empty() {
            self.touched = HashMap::new();
        }
    }

    /// State of a descriptor from the read: None if it may have changed during the read.
    pub fn judge(&self, process: &SeenProcess, number: u32, seen: &SeenDescriptor) -> Option<Option<u64>> {
        match self.touched.get(&(process.pid, number)) {
            Some(&until_ns) if until_ns >= process.from_ns => None,
            _ => Some(seen.alone.then_some(seen.position)),
        }
    }

    /// Invalidate all reads.
    pub fn forget(&mut self) {
        self.waiting = VecDeque::new();
        self.touched = HashMap::new();
    }
}
