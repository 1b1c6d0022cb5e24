// SPDX-License-Identifier: Apache-2.0
//! Taking over what was open before the first record, without a gap and without trusting what changed meanwhile.
//!
//! The tracepoints are on before /proc is read. A descriptor that a record touched while its process was looked at is left
//! out, to be asked for when it is used.

use super::record::{SeenDescriptor, SeenProcess};
use std::collections::{HashMap, VecDeque};

/// What is still to be taken over.
#[derive(Debug, Default)]
pub struct Start {
    waiting: VecDeque<SeenProcess>,
    ready_ns: u64,
    /// When a descriptor of a process was last used or changed.
    touched: HashMap<(u32, u32), u64>,
}

impl Start {
    /// Processes as they were looked at, all by `ready_ns`.
    pub fn new(mut processes: Vec<SeenProcess>, ready_ns: u64) -> Self {
        processes.sort_by_key(|process| process.until_ns);
        Self { waiting: processes.into(), ready_ns, touched: HashMap::new() }
    }

    /// The next process that had been looked at by some time.
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

    /// Whether everything was looked at by some time.
    pub fn ready(&self, time_ns: u64) -> bool {
        time_ns >= self.ready_ns
    }

    /// A descriptor is in use from now on.
    pub fn enter(&mut self, pid: u32, number: u32, time_ns: u64) {
        self.note(pid, number, time_ns, u64::MAX);
    }

    /// It was used or changed, and that is over.
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

    /// What to make of a descriptor that was looked at: its position, or nothing where it may have changed meanwhile.
    pub fn judge(&self, process: &SeenProcess, number: u32, seen: &SeenDescriptor) -> Option<Option<u64>> {
        match self.touched.get(&(process.pid, number)) {
            Some(&until_ns) if until_ns >= process.from_ns => None,
            _ => Some(seen.alone.then_some(seen.position)),
        }
    }

    /// Nothing that was looked at holds any more.
    pub fn forget(&mut self) {
        self.waiting = VecDeque::new();
        self.touched = HashMap::new();
    }
}
