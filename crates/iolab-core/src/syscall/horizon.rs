// SPDX-License-Identifier: Apache-2.0
//! End of the time in which opens and notices can be compared: a time that no notice and no call of open crosses.
//!
//! A notice that is read after the last record may be of an open that has no record yet. So a round ends at a time at
//! which the queue of notices was empty and no open was in progress; younger records wait for the next round.

use super::record::{Record, Timed};
use std::collections::{HashMap, VecDeque};

/// Maximum time that records wait.
const PATIENCE_NS: u64 = 250_000_000;
/// An open that returned this long before or after is not in progress: the clocks of records and notices differ by
/// less.
const SKEW_NS: u64 = 2_000;
/// Maximum number of stored times with an empty queue.
const KEPT: usize = 1 << 14;

/// Times at which the queue of notices was empty.
#[derive(Debug, Default)]
pub struct Horizon {
    /// Spans between such times without a notice, in order.
    quiet: VecDeque<(u64, u64)>,
    is_watched: bool,
}

impl Horizon {
    /// The queue was empty at both times, without a notice in between.
    pub fn quiet(&mut self, from_ns: u64, until_ns: u64) {
        self.is_watched = true;
        if self.quiet.len() >= KEPT {
            self.quiet.pop_front();
        }
        self.quiet.push_back((from_ns, until_ns));
    }

    /// The end of a round for pending records up to `until_ns`. Returns None if they should wait for the next round;
    /// with `is_full` they do not wait longer.
    pub fn choose(&mut self, records: &[Timed], until_ns: u64, is_full: bool) -> Option<u64> {
        if !self.is_watched || until_ns == u64::MAX {
            return Some(until_ns);
        }
        let first_ns = records.first().map_or(until_ns, |first| first.time_ns);
        let chosen = self.choose_quiet(&busy(records), first_ns, until_ns);
        if chosen.is_none() && !is_full && until_ns.saturating_sub(first_ns) < PATIENCE_NS {
            return None;
        }
        let chosen_ns = chosen.unwrap_or_else(|| {
            let latest = self.quiet.iter().rev().find(|&&(from, _)| from <= until_ns);
            latest.map(|&(_, until)| until.min(until_ns)).filter(|&time_ns| time_ns > first_ns).unwrap_or(until_ns)
        });
        while self.quiet.len() > 1 && self.quiet[1].0 <= chosen_ns {
            self.quiet.pop_front();
        }
        Some(chosen_ns)
    }

    fn choose_quiet(&self, busy: &[(u64, u64)], first_ns: u64, until_ns: u64) -> Option<u64> {
        for &(from, until) in self.quiet.iter().rev().filter(|&&(from, _)| from <= until_ns) {
            let mut time_ns = until.min(until_ns);
            if time_ns < first_ns {
                break;
            }
            // the last time in the span without an open in progress
            let before = busy.partition_point(|&(busy_from, _)| busy_from <= time_ns);
            if let Some(&(busy_from, busy_until)) = before.checked_sub(1).and_then(|last| busy.get(last)) {
                if busy_until >= time_ns {
                    time_ns = busy_from.saturating_sub(1);
                }
            }
            if time_ns >= from {
                return Some(time_ns).filter(|&time_ns| time_ns >= first_ns);
            }
        }
        None
    }
}

/// Spans with an open in progress, extended on both sides by the difference of the clocks; ordered and disjoint.
fn busy(records: &[Timed]) -> Vec<(u64, u64)> {
    let mut busy: Vec<(u64, u64)> = Vec::new();
    let mut under_way: HashMap<u32, u64> = HashMap::new();
    let mut from_ns = 0;
    let mut close = |from: u64, until: u64| {
        let (from, until) = (from.saturating_sub(SKEW_NS), until.saturating_add(SKEW_NS));
        match busy.last_mut() {
            Some(last) if last.1 >= from => last.1 = until,
            _ => busy.push((from, until)),
        }
    };
    for timed in records {
        match timed.record {
            Record::Enter { call, .. } if call.opens() => {
                if under_way.is_empty() {
                    from_ns = timed.time_ns;
                }
                under_way.insert(timed.task, timed.time_ns);
            }
            Record::Exit { call, .. } if !call.opens() => {}
            Record::Exit { .. } | Record::End if under_way.remove(&timed.task).is_some() && under_way.is_empty() => {
                close(from_ns, timed.time_ns);
            }
            Record::Lost if !under_way.is_empty() => {
                under_way.clear();
                close(from_ns, timed.time_ns);
            }
            _ => {}
        }
    }
    if !under_way.is_empty() {
        close(from_ns, u64::MAX - SKEW_NS);
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::super::call::Call;
    use super::*;

    const MS: u64 = 1_000_000;

    fn opens(spans: &[(u64, u64)]) -> Vec<Timed> {
        let call = Call::Openat;
        let mut records: Vec<Timed> = Vec::new();
        for (task, &(from, until)) in spans.iter().enumerate() {
            let timed = |time: u64, record| Timed { time_ns: time * MS, task: task as u32, record };
            records.push(timed(from, Record::Enter { call, args: [0; 4] }));
            records.push(timed(until, Record::Exit { call, returned: 3 }));
        }
        records.sort_by_key(|timed| timed.time_ns);
        records
    }

    fn chosen(quiet: &[(u64, u64)], spans: &[(u64, u64)], until: u64, is_full: bool) -> Option<u64> {
        let mut horizon = Horizon::default();
        quiet.iter().for_each(|&(from, until)| horizon.quiet(from * MS, until * MS));
        horizon.choose(&opens(spans), until * MS, is_full).map(|time_ns| time_ns.div_ceil(MS))
    }

    #[test]
    fn a_round_ends_where_the_queue_was_empty_and_no_open_under_way() {
        let quiet = [(10, 10), (20, 20), (30, 30)];
        assert_eq!(chosen(&quiet, &[(11, 12), (21, 22)], 35, false), Some(30));
        assert_eq!(chosen(&quiet, &[(11, 12), (29, 31)], 35, false), Some(20));
        assert_eq!(chosen(&quiet, &[(11, 12), (29, 31), (19, 21)], 35, false), None, "it waits");
        assert_eq!(chosen(&quiet, &[(11, 12), (29, 31), (19, 21)], 35, true), Some(30), "not when there is no room");
        assert_eq!(chosen(&quiet, &[(11, 12), (29, 400), (19, 350)], 900, false), Some(30), "nor for long");
        assert_eq!(chosen(&[(10, 50)], &[(11, 12), (38, 60)], 45, false), Some(38), "until the open began");
        assert_eq!(chosen(&quiet, &[(11, 12)], 15, false), None, "notices after the last record may be of later opens");
    }

    #[test]
    fn without_notices_nothing_waits() {
        assert_eq!(chosen(&[], &[(1, 9)], 5, false), Some(5));
    }
}
