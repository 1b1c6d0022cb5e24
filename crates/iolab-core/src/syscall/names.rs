// SPDX-License-Identifier: Apache-2.0
//! Which file each open was of: notices of fanotify, and /proc where they leave a doubt.

use super::call::Call;
use super::descriptor::flag;
use super::opens::{align, Span};
use super::record::{Notice, Opened, Record, Seen, SeenDescriptor, Timed};
use super::tasks::Pending;
use std::collections::HashMap;

/// Notices that wait for their open at most.
const LIMIT: usize = 1 << 17;
/// How much older than the newest a notice may be when there are too many.
const OLD_NS: u64 = 2_000_000_000;

/// What an open may have been of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    candidates: Vec<Opened>,
    silent: bool,
}

/// Notices and opens that wait for each other.
#[derive(Debug, Default)]
pub struct Namer {
    in_flight: HashMap<u32, (u64, Option<u32>)>,
    notices: HashMap<u32, Vec<Notice>>,
    waiting: usize,
}

/// Flags that an open was asked for; none where they are not in its arguments.
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
        directory: has(flag::DIRECTORY),
        writes: has(flag::ACCESS | flag::CREATE | flag::TRUNCATE),
    }
}

impl Namer {
    /// A notice, in the order in which it was read.
    pub fn notice(&mut self, notice: Notice) {
        if self.waiting >= LIMIT {
            let old = notice.window.before_ns.saturating_sub(OLD_NS);
            self.retain(|notice| notice.window.before_ns > old);
            if self.waiting >= LIMIT {
                self.retain(|_| false);
            }
        }
        self.waiting += 1;
        self.notices.entry(notice.task).or_default().push(notice);
    }

    fn retain(&mut self, keep: impl Fn(&Notice) -> bool) {
        self.waiting = 0;
        self.notices.retain(|_, notices| {
            notices.retain(&keep);
            self.waiting += notices.len();
            !notices.is_empty()
        });
    }

    /// What each open of a round may have been of, by the index of its return; in ascending order.
    pub fn align(&mut self, round: &[Timed]) -> Vec<(usize, Naming)> {
        let mut opens: HashMap<u32, Vec<(usize, Span)>> = HashMap::new();
        for (index, timed) in round.iter().enumerate() {
            match timed.record {
                Record::Enter { call, args } if call.opens() => {
                    self.in_flight.insert(timed.task, (timed.time_ns, flags_of(call, args[0])));
                }
                Record::Exit { call, returned } if call.opens() => {
                    let Some((from_ns, flags)) = self.in_flight.remove(&timed.task) else { continue };
                    if returned >= 0 && flags.is_none_or(|flags| flags & flag::PATH == 0) {
                        opens.entry(timed.task).or_default().push((index, span(from_ns, timed.time_ns, flags)));
                    }
                }
                Record::End => {
                    self.in_flight.remove(&timed.task);
                }
                Record::Lost => self.in_flight.clear(),
                _ => {}
            }
        }
        let mut namings = Vec::new();
        let last_ns = round.last().map_or(0, |last| last.time_ns);
        for (task, opens) in opens {
            let mut none = Vec::new();
            let notices = self.notices.get_mut(&task).unwrap_or(&mut none);
            let spans: Vec<Span> = opens.iter().map(|&(_, span)| span).collect();
            let windows: Vec<_> = notices.iter().map(|notice| notice.window).collect();
            let until_ns = self.in_flight.get(&task).map_or(last_ns, |&(from_ns, _)| from_ns.min(last_ns));
            for (choice, (index, _)) in align(&spans, &windows, until_ns).into_iter().zip(opens) {
                let mut candidates: Vec<Opened> = Vec::new();
                for notice in choice.notices {
                    // what an open in a later round may still be merged into is no longer due to one
                    notices[notice].window.spent = true;
                    if !candidates.contains(&notices[notice].opened) {
                        candidates.push(notices[notice].opened.clone());
                    }
                }
                namings.push((index, Naming { candidates, silent: choice.silent }));
            }
        }
        if !round.is_empty() {
            let in_flight = std::mem::take(&mut self.in_flight);
            self.retain(|notice| {
                let needed_from = in_flight.get(&notice.task).map_or(last_ns, |&(from_ns, _)| from_ns.min(last_ns));
                notice.window.before_ns > needed_from
            });
            self.in_flight = in_flight;
        }
        namings.sort_unstable_by_key(|&(index, _)| index);
        namings
    }

    /// What an open was of, and its flags as far as they are known. `ask` looks at the descriptor in /proc.
    pub fn decide(
        &self,
        naming: Option<Naming>,
        pending: &Pending,
        all_watched: bool,
        ask: impl FnOnce() -> Option<SeenDescriptor>,
    ) -> (Opened, Option<u32>) {
        let flags = flags_of(pending.call, pending.args[0]);
        if flags.is_some_and(|flags| flags & flag::PATH != 0) {
            return (Opened::Other, flags);
        }
        let Naming { mut candidates, mut silent } = naming.unwrap_or(Naming { candidates: Vec::new(), silent: true });
        if silent && all_watched {
            if !candidates.contains(&Opened::Other) {
                candidates.push(Opened::Other);
            }
            silent = candidates.len() == 1; // of proc: certain, unless something else is possible
            if silent {
                return (Opened::Other, flags);
            }
        }
        if let ([one], false, Some(_)) = (&candidates[..], silent, flags) {
            return (one.clone(), flags);
        }
        // a doubt, or flags that are not in the arguments: ask, and believe only what agrees with what is known
        let seen = ask().filter(|seen| flags.is_none_or(|flags| agree(seen, flags)));
        let known = seen.as_ref().and_then(|seen| candidates.iter().find(|one| same(one, &seen.opened)));
        match (known, seen.as_ref()) {
            (Some(known), Some(seen)) => (known.clone(), flags.or(Some(seen.flags))),
            (None, Some(seen)) if silent || candidates.is_empty() => (seen.opened.clone(), flags.or(Some(seen.flags))),
            _ => match &candidates[..] {
                [one] if !silent => (one.clone(), flags),
                _ => (nameless(&candidates), flags),
            },
        }
    }
}

fn agree(seen: &SeenDescriptor, flags: u32) -> bool {
    (seen.flags ^ flags) & (flag::ACCESS | flag::APPEND) == 0
}

fn same(one: &Opened, other: &Opened) -> bool {
    match (one, other) {
        (Opened::Other, Opened::Other) => true,
        (Opened::File(one), Opened::File(other)) if one.identity.is_some() && other.identity.is_some() => {
            one.identity == other.identity
        }
        (Opened::File(one), Opened::File(other)) => one.path.is_some() && one.path == other.path,
        _ => false,
    }
}

/// A file of which no more is known than what all candidates have in common.
fn nameless(candidates: &[Opened]) -> Opened {
    let files: Vec<&Seen> =
        candidates.iter().filter_map(|one| if let Opened::File(seen) = one { Some(seen) } else { None }).collect();
    let mount = files.first().and_then(|first| first.mount.clone());
    let mount = mount.filter(|mount| files.iter().all(|seen| seen.mount.as_ref() == Some(mount)));
    let asked = files.is_empty() || files.iter().any(|seen| seen.asked);
    Opened::File(Seen { path: None, mount, identity: None, asked })
}
