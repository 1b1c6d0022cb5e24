// SPDX-License-Identifier: Apache-2.0
//! Matches fanotify notices with the opens of a thread: a match is certain only if no other order of events is
//! possible.
//!
//! Properties of the opens and notices of one thread:
//!
//! - Every *required* notice was caused by an open of its own, within the call, and the queue keeps their order.
//! - An open may have no notice of its own. Files of some file systems (proc) cause none, notices can be lost, and
//!   pending notices of the same file are merged at the position of the first.
//! - A notice that is not required may have no recorded call: of a program that is executed, of a call with lost
//!   records, of an io_uring, or of an open in an earlier round.
//!
//! An assignment gives each required notice an open, in order. Among all assignments, a notice has an earliest and a
//! latest open. If both are the same, every possible history gives that open that notice: its name is certain. All
//! other opens are ambiguous, and are resolved by other means.

use std::rc::Rc;

/// A successful open: entry and return of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Entry.
    pub from_ns: u64,
    /// Return; `u64::MAX` if it is not recorded yet.
    pub until_ns: u64,
    /// The caller required a directory (`O_DIRECTORY`).
    pub directory: bool,
    /// The caller wanted to write or create a file, which no directory allows.
    pub writes: bool,
}

/// A notice: created after `after_ns`, when the queue was empty, and read by `before_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Earliest time.
    pub after_ns: u64,
    /// Time of reading; until then, equal notices were merged into it.
    pub before_ns: u64,
    /// Whether it is of a directory.
    pub directory: bool,
    /// Whether it may have no recorded call.
    pub optional: bool,
}

/// The possible notices of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This notice, by index, in every possible history.
    Certain(usize),
    /// One of these, by index, or no notice.
    Doubt(Rc<[usize]>),
}

/// The clocks of records and notices differ by less than this.
const SKEW_NS: u64 = 2_000;

/// Choices of each open of one thread; opens and notices in order. Opens without a recorded return may have no notice
/// yet.
pub fn align(opens: &[Span], notices: &[Window]) -> Vec<Choice> {
    let mut choices = Vec::with_capacity(opens.len());
    let (mut open, mut notice) = (0, 0);
    while open < opens.len() {
        let (opens_end, notices_end) = stretch(opens, notices, open, notice);
        align_part(&opens[open..opens_end], notices, notice..notices_end, &mut choices);
        (open, notice) = (opens_end, notices_end);
    }
    choices
}

fn starts_by(notice: &Window, time_ns: u64) -> bool {
    notice.after_ns <= time_ns.saturating_add(SKEW_NS)
}

fn ends_after(notice: &Window, time_ns: u64) -> bool {
    notice.before_ns.saturating_add(SKEW_NS) >= time_ns
}

/// The next span whose end no call and no window crosses.
fn stretch(opens: &[Span], notices: &[Window], open: usize, notice: usize) -> (usize, usize) {
    let (mut opens_end, mut notices_end) = (open, notice);
    let mut reach = opens[open].until_ns;
    loop {
        let before = (opens_end, notices_end);
        while opens_end < opens.len() && opens[opens_end].from_ns <= reach.saturating_add(SKEW_NS) {
            reach = reach.max(opens[opens_end].until_ns);
            opens_end += 1;
        }
        while notices_end < notices.len() && starts_by(&notices[notices_end], reach) {
            reach = reach.max(notices[notices_end].before_ns);
            notices_end += 1;
        }
        if (opens_end, notices_end) == before {
            return before;
        }
    }
}

fn fits(open: &Span, notice: &Window) -> bool {
    starts_by(notice, open.until_ns)
        && ends_after(notice, open.from_ns)
        && (notice.directory || !open.directory)
        && !(notice.directory && open.writes)
}

fn align_part(opens: &[Span], notices: &[Window], part: std::ops::Range<usize>, choices: &mut Vec<Choice>) {
    // notices that were read before the entry of the first open belong to no recorded open
    let first = part.clone().find(|&index| ends_after(&notices[index], opens[0].from_ns)).unwrap_or(part.end);
    let fitting = first..part.end;
    let required: Vec<usize> = fitting.clone().filter(|&index| !notices[index].optional).collect();
    let earliest = assign(&required, opens.iter().enumerate(), notices);
    let latest = assign(&reversed(&required), opens.iter().enumerate().rev(), notices);
    let doubt: Rc<[usize]> = fitting.collect();
    let base = choices.len();
    choices.extend(opens.iter().map(|_| Choice::Doubt(Rc::clone(&doubt))));
    // no assignment: an event was not recorded, and nothing is certain
    let (Some(earliest), Some(latest)) = (earliest, latest) else { return };
    for ((&notice, &open), &last) in required.iter().zip(&earliest).zip(latest.iter().rev()) {
        if open == last {
            choices[base + open] = Choice::Certain(notice);
        }
    }
}

fn reversed(indices: &[usize]) -> Vec<usize> {
    indices.iter().rev().copied().collect()
}

/// Assigns each notice the first possible open, in order: no order-preserving assignment gives any of them an earlier
/// one.
fn assign<'a>(
    required: &[usize],
    opens: impl Iterator<Item = (usize, &'a Span)>,
    notices: &[Window],
) -> Option<Vec<usize>> {
    let mut opens = opens;
    required.iter().map(|&index| opens.find(|(_, open)| fits(open, &notices[index])).map(|(open, _)| open)).collect()
}

#[cfg(test)]
#[path = "opens_tests.rs"]
mod tests;
