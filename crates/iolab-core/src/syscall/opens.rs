// SPDX-License-Identifier: Apache-2.0
//! Which notice of fanotify belongs to which open of a thread: by order and time, and only where there is no doubt.
//!
//! A thread opens one file after another, and notices stand in that order. Three things disturb it. Notices of the same file
//! that were not read yet become one, at the place of the first. Files of some file systems (proc) give none. And some have
//! no open in view: a program that is executed, an open that fails late. So opens and notices are aligned at the least cost,
//! and an open gets the choices of all alignments of that cost: one choice is an answer, several are a doubt for others to solve.

/// A successful open: its call's entry and return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Entry.
    pub from_ns: u64,
    /// Return.
    pub until_ns: u64,
    /// Asked for a directory (`O_DIRECTORY`).
    pub directory: bool,
    /// Asked to write or to make a file: not what is done to files of proc.
    pub writes: bool,
}

/// A notice: it came into being after `after_ns`, when the queue had been read empty, and was read by `before_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Not before this.
    pub after_ns: u64,
    /// Read by then; until then alike ones became one with it.
    pub before_ns: u64,
    /// Of a directory.
    pub directory: bool,
    /// Of a program that was executed.
    pub executed: bool,
    /// An open has had it already; later ones may have become one with it.
    pub spent: bool,
}

/// What an open may belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Notices, by index.
    pub notices: Vec<usize>,
    /// It may be one that gives no notice.
    pub silent: bool,
}

/// Cells of the table of costs at most; beyond, everything is in doubt (thousands of opens between two readings).
const CELLS: usize = 1 << 20;
const NEVER: u32 = u32::MAX / 4;

/// Choices of each open of one thread; opens and notices in order. All opens that returned by `horizon_ns` are given; notices
/// that were read later may belong to opens that are still to come.
pub fn align(opens: &[Span], notices: &[Window], horizon_ns: u64) -> Vec<Choice> {
    let mut choices = Vec::with_capacity(opens.len());
    let (mut open, mut notice) = (0, 0);
    while open < opens.len() {
        let (opens_end, notices_end) = stretch(opens, notices, open, notice);
        let part = &notices[notice..notices_end];
        for mut choice in align_part(&opens[open..opens_end], part, horizon_ns) {
            choice.notices.iter_mut().for_each(|index| *index += notice);
            choices.push(choice);
        }
        (open, notice) = (opens_end, notices_end);
    }
    choices
}

/// The next stretch that no call and no window crosses the end of.
fn stretch(opens: &[Span], notices: &[Window], open: usize, notice: usize) -> (usize, usize) {
    let (mut opens_end, mut notices_end) = (open, notice);
    // notices that were read before this open was entered belong to nothing that is in view
    let mut reach = opens[open].until_ns;
    loop {
        let before = (opens_end, notices_end);
        while opens_end < opens.len() && opens[opens_end].from_ns <= reach {
            reach = reach.max(opens[opens_end].until_ns);
            opens_end += 1;
        }
        while notices_end < notices.len() && notices[notices_end].after_ns <= reach {
            reach = reach.max(notices[notices_end].before_ns);
            notices_end += 1;
        }
        if (opens_end, notices_end) == before {
            return before;
        }
    }
}

fn fits(open: &Span, notice: &Window) -> bool {
    notice.after_ns < open.until_ns
        && open.from_ns < notice.before_ns
        && (notice.directory || !open.directory)
        && !(notice.directory && open.writes)
}

fn cost_of_match(notice: &Window) -> u32 {
    // a program is opened to be executed, and may have been opened by a call before
    if notice.executed || notice.spent {
        COST_OF_MERGE
    } else {
        0
    }
}

fn cost_of_silence(open: &Span) -> u32 {
    if open.writes {
        4
    } else {
        2
    }
}

fn cost_of_skip(notice: &Window) -> u32 {
    if notice.executed || notice.spent {
        0
    } else {
        3
    }
}

const COST_OF_MERGE: u32 = 2;

/// Notices, by index, that an open may have become one with: alike ones still waited when it was made.
fn mergeable(open: &Span, notices: &[Window]) -> std::ops::Range<usize> {
    // windows come in order, so those that meet a call stand together
    let first = notices.partition_point(|notice| notice.before_ns <= open.from_ns);
    let last = notices.partition_point(|notice| notice.after_ns < open.until_ns);
    first..last.max(first)
}

fn align_part(opens: &[Span], notices: &[Window], horizon_ns: u64) -> Vec<Choice> {
    let (rows, columns) = (opens.len() + 1, notices.len() + 1);
    if rows.saturating_mul(columns) > CELLS {
        return vec![Choice { notices: Vec::new(), silent: false }; opens.len()];
    }
    let ranges: Vec<_> = opens.iter().map(|open| mergeable(open, notices)).collect();
    let may_match = |i: usize, j: usize| ranges[i].contains(&j) && fits(&opens[i], &notices[j]);
    let may_merge = |i: usize, j: usize| ranges[i].start < j && !ranges[i].is_empty();
    let skip = |i: usize, j: usize| {
        let later = i + 1 == rows && notices[j].before_ns > horizon_ns;
        if later {
            0
        } else {
            cost_of_skip(&notices[j])
        }
    };
    // what the rest costs, from open i and notice j on
    let mut rest = vec![NEVER; rows * columns];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            let mut best = if i + 1 == rows && j + 1 == columns { 0 } else { NEVER };
            if j + 1 < columns {
                best = best.min(skip(i, j) + rest[i * columns + j + 1]);
            }
            if i + 1 < rows {
                let below = rest[(i + 1) * columns + j];
                best = best.min(cost_of_silence(&opens[i]) + below);
                if may_merge(i, j) {
                    best = best.min(COST_OF_MERGE + below);
                }
                if j + 1 < columns && may_match(i, j) {
                    best = best.min(cost_of_match(&notices[j]) + rest[(i + 1) * columns + j + 1]);
                }
            }
            rest[i * columns + j] = best;
        }
    }
    // walk every way of that cost, row by row: the columns at which open i may be met
    let mut reached = vec![false; columns];
    reached[0] = true;
    let mut choices = Vec::with_capacity(opens.len());
    for i in 0..opens.len() {
        let mut choice = Choice::default();
        let mut next = vec![false; columns];
        let mut merged = 0;
        for j in 0..columns {
            if !reached[j] {
                continue;
            }
            let here = rest[i * columns + j];
            let below = rest[(i + 1) * columns + j];
            if j + 1 < columns && skip(i, j) + rest[i * columns + j + 1] == here {
                reached[j + 1] = true;
            }
            if cost_of_silence(&opens[i]) + below == here {
                choice.silent = true;
                next[j] = true;
            }
            if may_merge(i, j) && COST_OF_MERGE + below == here {
                merged = j;
                next[j] = true;
            }
            if j + 1 < columns
                && may_match(i, j)
                && cost_of_match(&notices[j]) + rest[(i + 1) * columns + j + 1] == here
            {
                choice.notices.push(j);
                next[j + 1] = true;
            }
        }
        let alike = ranges[i].start..ranges[i].end.min(merged);
        choice.notices.extend(alike.filter(|&k| fits(&opens[i], &notices[k])));
        choice.notices.sort_unstable();
        choice.notices.dedup();
        choices.push(choice);
        reached = next;
    }
    choices
}

#[cfg(test)]
#[path = "opens_tests.rs"]
mod tests;
