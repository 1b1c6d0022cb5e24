// SPDX-License-Identifier: Apache-2.0
//! The file of each open: from fanotify notices, and from /proc if they are ambiguous.

use super::call::Call;
use super::descriptor::flag;
use super::opens::{align, Choice, Span};
use super::record::{Notice, Opened, Record, Seen, SeenDescriptor, Timed};
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum number of notices that wait for their open.
const LIMIT: usize = 1 << 17;
/// Maximum age of a notice, relative to the newest, if there are too many.
const OLD_NS: u64 = 2_000_000_000;

/// Errors of an open that the kernel returns before it creates a notice: ENOENT, ENXIO, EACCES, EEXIST, ENODEV,
/// ENOTDIR, EISDIR, ENFILE, EMFILE, ELOOP.
const EARLY_ERRORS: [i64; 10] = [2, 6, 13, 17, 19, 20, 21, 23, 24, 40];

/// The possible files of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// This file, for certain.
    Certain(Opened),
    /// One of these, or a file without a notice.
    Doubt(Rc<[Opened]>),
}

/// Notices and opens that are not matched yet.
#[derive(Debug, Default)]
pub struct Namer {
    in_flight: HashMap<u32, (u64, Option<u32>)>,
    notices: HashMap<u32, Vec<Notice>>,
    waiting: usize,
    /// Records are missing between these times.
    blind: Vec<(u64, u64)>,
    /// Records are missing from this time to the next record.
    blind_from: Option<u64>,
}

/// Requested flags of an open; None if they are not arguments.
pub fn flags_of(call: Call, first_argument: u64) -> Option<u32> {
    match call {
        Call::Open | Call::Openat | Call::OpenByHandleAt => Some(first_argument as u32),
        Call::Creat => Some(flag::WRITE_ONLY | flag::CREATE | flag::TRUNCATE),
        _ => None,
    }
}

fn span(from_ns: u64, until_ns: u64, flags: Option<u32>) -> Span {
    let has = |bits: u32| flags.is_some_and(|flags| flags & bits != 0);
    Span {
        from_ns,
        until_ns,
        // O_TMPFILE contains the bit of O_DIRECTORY
        directory: has(flag::DIRECTORY) && !has(flag::TEMPORARY),
        writes: has(flag::ACCESS | flag::CREATE | flag::TRUNCATE | flag::TEMPORARY),
    }
}

/// Whether a call of open with this result may have caused a notice.
fn may_have_notice(flags: Option<u32>, returned: i64) -> bool {
    if returned >= 0 {
        return flags.is_none_or(|flags| flags & flag::PATH == 0);
    }
    // if truncation failed, the file was already opened
    flags.is_none_or(|flags| flags & flag::TRUNCATE != 0) && !EARLY_ERRORS.contains(&-returned)
}

/// Opens of a task: the index of the return of each, unless it failed or has not returned.
#[derive(Default)]
struct Opens {
    spans: Vec<Span>,
    indices: Vec<Option<usize>>,
}

impl Namer {
    /// Add a notice, in the order of the queue.
    pub fn notice(&mut self, notice: Notice) {
        if self.waiting >= LIMIT {
            let old = notice.window.before_ns.saturating_sub(OLD_NS);
            self.retain(|_, notice| notice.window.before_ns > old);
            if self.waiting >= LIMIT {
                self.retain(|_, _| false);
            }
        }
        self.waiting += 1;
        self.notices.entry(notice.task).or_default().push(notice);
    }

    /// Records between two times are missing: notices of that time may have no recorded open.
    pub fn blind(&mut self, from_ns: u64, until_ns: u64) {
        self.blind.push((from_ns, until_ns));
    }

    fn retain(&mut self, keep: impl Fn(u32, &Notice) -> bool) {
        self.waiting = 0;
        self.notices.retain(|&task, notices| {
            notices.retain(|notice| keep(task, notice));
            self.waiting += notices.len();
            !notices.is_empty()
        });
    }

    /// The possible files of each open of a round up to `until_ns`, by the index of its return, ascending. `has_ring`
    /// says which tasks may open files without a call.
    pub fn align(
        &mut self,
        round: &[Timed],
        until_ns: u64,
        mut has_ring: impl FnMut(u32) -> bool,
    ) -> Vec<(usize, Naming)> {
        let mut opens = self.opens(round);
        for (task, &(from_ns, flags)) in &self.in_flight {
            if self.notices.contains_key(task) {
                let opens = opens.entry(*task).or_default();
                opens.spans.push(span(from_ns, u64::MAX, flags));
                opens.indices.push(None);
            }
        }
        let mut namings = Vec::new();
        let mut kept = HashMap::new();
        for (task, opens) in opens {
            let notices = self.notices.get(&task).map_or(&[][..], |notices| &notices[..]);
            let notices = &notices[..notices.partition_point(|notice| notice.window.after_ns < until_ns)];
            let ring = !notices.is_empty() && has_ring(task);
            let windows: Vec<_> = notices
                .iter()
                .map(|notice| {
                    let mut window = notice.window;
                    let blind = self.blind.iter().copied().chain(self.blind_from.map(|from_ns| (from_ns, u64::MAX)));
                    let meets = |(from, until)| window.after_ns <= until && window.before_ns >= from;
                    let is_later = window.before_ns > until_ns;
                    window.optional |= ring || is_later || { blind }.any(meets);
                    window
                })
                .collect();
            let mut candidates: Option<Candidates> = None;
            for (choice, index) in align(&opens.spans, &windows).into_iter().zip(&opens.indices) {
                match (choice, *index) {
                    (Choice::Certain(notice), Some(index)) => {
                        namings.push((index, Naming::Certain(notices[notice].opened.clone())));
                    }
                    (Choice::Certain(notice), None) => {
                        kept.insert(task, notice);
                    }
                    (Choice::Doubt(numbers), Some(index)) => {
                        if !candidates.as_ref().is_some_and(|(known, _)| Rc::ptr_eq(known, &numbers)) {
                            candidates = Some((Rc::clone(&numbers), distinct(&numbers, notices)));
                        }
                        let opened = candidates.as_ref().map_or_else(|| Rc::from([]), |(_, opened)| Rc::clone(opened));
                        namings.push((index, Naming::Doubt(opened)));
                    }
                    (Choice::Doubt(_), None) => {}
                }
            }
        }
        for (task, notices) in &mut self.notices {
            for (index, notice) in notices.iter_mut().enumerate() {
                // it may already have its open, unless it is later or certainly of the call in flight
                notice.window.optional |= notice.window.after_ns < until_ns && kept.get(task) != Some(&index);
            }
        }
        let in_flight = std::mem::take(&mut self.in_flight);
        self.retain(|task, notice| {
            let needed_from = in_flight.get(&task).map_or(until_ns, |&(from_ns, _)| from_ns.min(until_ns));
            notice.window.before_ns >= needed_from
        });
        self.in_flight = in_flight;
        self.blind.retain(|&(_, blind_until)| blind_until >= until_ns);
        namings.sort_unstable_by_key(|&(index, _)| index);
        namings
    }

    fn opens(&mut self, round: &[Timed]) -> HashMap<u32, Opens> {
        let mut opens: HashMap<u32, Opens> = HashMap::new();
        if let Some((from_ns, first)) = self.blind_from.zip(round.first()) {
            self.blind_from = None;
            self.blind(from_ns, first.time_ns);
        }
        for (index, timed) in round.iter().enumerate() {
            match timed.record {
                Record::Enter { call, args } if call.opens() => {
                    self.in_flight.insert(timed.task, (timed.time_ns, flags_of(call, args[0])));
                }
                Record::Exit { call, returned } if call.opens() => {
                    let Some((from_ns, flags)) = self.in_flight.remove(&timed.task) else { continue };
                    if may_have_notice(flags, returned) {
                        let opens = opens.entry(timed.task).or_default();
                        opens.spans.push(span(from_ns, timed.time_ns, flags));
                        opens.indices.push((returned >= 0).then_some(index));
                    }
                }
                Record::End => {
                    self.in_flight.remove(&timed.task);
                }
                Record::Lost => {
                    self.in_flight.clear();
                    let before = round[..index].last().map_or(0, |before| before.time_ns);
                    let from_ns = before.min(timed.time_ns);
                    match round[index + 1..].iter().find(|after| after.record != Record::Lost) {
                        Some(after) => self.blind(from_ns, after.time_ns),
                        None => self.blind_from = Some(self.blind_from.map_or(from_ns, |earlier| earlier.min(from_ns))),
                    }
                }
                _ => {}
            }
        }
        opens
    }
}

/// Notices of a span of time by index, and their files.
type Candidates = (Rc<[usize]>, Rc<[Opened]>);

fn distinct(numbers: &[usize], notices: &[Notice]) -> Rc<[Opened]> {
    let mut opened: Vec<Opened> = Vec::new();
    for &number in numbers {
        if !opened.contains(&notices[number].opened) {
            opened.push(notices[number].opened.clone());
        }
        if opened.len() > CANDIDATES {
            break;
        }
    }
    opened.into()
}

/// Maximum number of candidates; an open with more has no name.
const CANDIDATES: usize = 64;

/// The file of an ambiguous open, by what /proc showed of its descriptor while it was the same open. Returns None if it
/// remains ambiguous.
pub fn settle(candidates: &[Opened], seen: &Opened) -> Option<Opened> {
    if candidates.len() > CANDIDATES {
        return None;
    }
    let mut same = candidates.iter().filter(|candidate| is_same(candidate, seen));
    match (same.next(), same.next()) {
        // the name from the time of the open, though the file may have been renamed since
        (Some(Opened::File(Seen { path: None, .. })), None) => Some(seen.clone()),
        (Some(candidate), None) => Some(candidate.clone()),
        // inode numbers of deleted files are reused: the path must match too
        (Some(_), Some(_)) => candidates.contains(seen).then(|| seen.clone()),
        (None, _) => Some(seen.clone()),
    }
}

/// Whether a notice and /proc may show the same file.
pub fn is_same(candidate: &Opened, seen: &Opened) -> bool {
    match (candidate, seen) {
        (Opened::File(candidate), Opened::File(seen)) => match (candidate.identity, seen.identity) {
            (Some(candidate), Some(seen)) => candidate == seen,
            // deleted before its inode number was read: only the path can be compared
            _ => candidate.path.is_some() && candidate.path == seen.path,
        },
        _ => false,
    }
}

/// Whether flags in /proc may be those of an open.
pub fn agrees(seen: &SeenDescriptor, flags: u32) -> bool {
    (seen.flags ^ flags) & (flag::ACCESS | flag::APPEND) == 0
}

/// A file with only the properties that all candidates share.
pub fn nameless(candidates: &[Opened]) -> Seen {
    let files: Vec<&Seen> = candidates
        .iter()
        .filter_map(|candidate| if let Opened::File(seen) = candidate { Some(seen) } else { None })
        .collect();
    let mount = files.first().and_then(|first| first.mount.clone());
    let mount = mount.filter(|mount| files.iter().all(|seen| seen.mount.as_ref() == Some(mount)));
    let requested = files.is_empty() || files.iter().any(|seen| seen.requested);
    Seen { path: None, mount, identity: None, requested }
}
