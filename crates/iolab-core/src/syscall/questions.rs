// SPDX-License-Identifier: Apache-2.0
//! Answers of /proc, and the I/O that waits for them to be confirmed.
//!
//! /proc shows a descriptor as it is when it is read, which is later than the record that raised the question. An answer holds
//! only where the descriptor was the same open file all the time. That is known when all records up to the answer were
//! followed: the number must still stand for the same description, in the same table. Until then the I/O waits.

use super::descriptor::{Description, Guess, Standing, Table, Why};
use super::record::{Comm, SeenDescriptor};
use crate::event::Op;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Records that are younger than an answer by less may be of the time before it.
const MARGIN_NS: u64 = 10_000;
/// I/O that waits at most.
const HELD: usize = 1 << 17;

/// An answer that is not confirmed yet.
#[derive(Debug)]
pub struct Question {
    /// Process or thread that was asked for.
    pub owner: u32,
    /// Its table.
    pub table: Rc<RefCell<Table>>,
    /// The number in it.
    pub number: u32,
    /// What the number stood for.
    pub description: Rc<Description>,
    /// What /proc showed.
    pub seen: SeenDescriptor,
    /// When, at the latest.
    pub asked_ns: u64,
}

/// A finished call on a file, but for the file.
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

/// Answers and I/O that wait.
#[derive(Debug, Default)]
pub struct Questions {
    waiting: VecDeque<Question>,
    held: Vec<(Row, Rc<Description>)>,
}

impl Questions {
    /// An answer, in the order in which they were given.
    pub fn ask(&mut self, question: Question, guess: Guess) {
        question.description.standing.set(Standing::Asked);
        question.description.guess.set(guess);
        self.waiting.push_back(question);
    }

    /// I/O on a description that is asked for.
    pub fn hold(&mut self, row: Row, description: Rc<Description>) {
        self.held.push((row, description));
    }

    /// Whether more waits than may.
    pub fn too_many(&self) -> bool {
        self.held.len() >= HELD
    }

    /// When the oldest I/O that waits returned.
    pub fn since_ns(&self) -> Option<u64> {
        self.held.iter().map(|(row, _)| row.time_ns).min()
    }

    /// The next answer that all records up to a time confirm or refute.
    pub fn next(&mut self, until_ns: u64) -> Option<Question> {
        let is_due = self.waiting.front()?.asked_ns.saturating_add(MARGIN_NS) < until_ns;
        if is_due {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Nothing that was answered holds any more.
    pub fn refute_all(&mut self) {
        self.waiting.drain(..).for_each(|question| refute(&question.description));
    }

    /// I/O that waits no longer.
    pub fn released(&mut self) -> Vec<(Row, Rc<Description>)> {
        if self.held.iter().all(|(_, description)| description.standing.get() == Standing::Asked) {
            return Vec::new();
        }
        let is_asked = |(_, description): &(Row, Rc<Description>)| description.standing.get() == Standing::Asked;
        let (held, released) = std::mem::take(&mut self.held).into_iter().partition(is_asked);
        self.held = held;
        released
    }
}

/// The answer may be of another open.
pub fn refute(description: &Description) {
    description.standing.set(Standing::Refuted);
    description.why.set(Why::Reused);
}
