// SPDX-License-Identifier: Apache-2.0
//! Conditions for events: equality of names, ranges of numbers.

use crate::error::TraceError;
use crate::event::{Dimension, Event, Op, DIMENSIONS};
use crate::names::Names;

/// Half-open range of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low: i128,
    high: Option<i128>,
}

impl Range {
    fn parse(key: &str, word: &str) -> Result<Self, TraceError> {
        let bad =
            || TraceError::new(format!("{key}={word}: a range is LOW..HIGH in plain whole numbers (ns or bytes)"));
        let number = |text: &str| text.parse::<i64>().map(i128::from).map_err(|_| bad());
        let (low, high) = match word.split_once("..") {
            Some((low, high)) => {
                let low = if low.is_empty() { i128::MIN } else { number(low)? };
                (low, if high.is_empty() { None } else { Some(number(high)?) })
            }
            None => (number(word)?, Some(number(word)? + 1)),
        };
        Ok(Self { low, high })
    }

    fn holds(self, value: i128) -> bool {
        self.low <= value && self.high.is_none_or(|high| value < high)
    }
}

/// Conditions. All must hold; of the words of a condition, one is sufficient.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    ops: Option<Vec<Op>>,
    names: Vec<(Dimension, Vec<String>)>,
    wanted: [Option<Vec<u32>>; DIMENSIONS],
    time: Vec<Range>,
    latency: Vec<Range>,
    offset: Vec<Range>,
    size: Vec<Range>,
    active: bool,
}

impl Filter {
    /// The filter for conditions given as (key, words).
    pub fn new<'a>(conditions: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Result<Self, TraceError> {
        let mut filter = Self::default();
        for (key, words) in conditions {
            if words.is_empty() {
                continue;
            }
            filter.active = true;
            let ranges = || words.iter().map(|word| Range::parse(key, word)).collect::<Result<Vec<_>, _>>();
            match key {
                "op" => filter.ops = Some(words.iter().map(|word| op(word)).collect::<Result<_, _>>()?),
                "time" => filter.time = ranges()?,
                "latency" => filter.latency = ranges()?,
                "offset" => filter.offset = ranges()?,
                "size" => filter.size = ranges()?,
                _ => match Dimension::ALL.into_iter().find(|dimension| dimension.name() == key) {
                    Some(dimension) => filter.names.push((dimension, words.to_vec())),
                    None => {
                        return Err(TraceError::new(format!(
                            "no condition on {key:?}; conditions: op, device, process, file, job, client, time, latency, offset, size"
                        )))
                    }
                },
            }
        }
        Ok(filter)
    }

    /// Whether there are conditions.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Intern the names of the conditions before all others, so that no limit of names can drop them.
    pub fn bind(&mut self, names: &mut Names) {
        for (dimension, words) in &self.names {
            let wanted = words.iter().map(|word| names.intern(*dimension, &crate::names::bytes_of(word))).collect();
            self.wanted[*dimension as usize] = Some(wanted);
        }
    }

    /// Whether an event meets the conditions.
    #[inline(always)]
    pub fn passes(&self, event: &Event) -> bool {
        // a copy: without conditions the event need not be in memory
        !self.active || self.holds(event)
    }

    #[inline(never)]
    fn holds(&self, event: &Event) -> bool {
        self.ops.as_ref().is_none_or(|ops| ops.contains(&event.op))
            && self.wanted.iter().zip(event.keys).all(|(wanted, key)| match (wanted, key) {
                (None, _) => true,
                (Some(wanted), Some(key)) => wanted.contains(&key),
                (Some(_), None) => false,
            })
            && within(&self.time, Some(i128::from(event.time_ns)))
            && within(&self.latency, event.latency_ns.map(i128::from))
            && within(&self.offset, event.offset_bytes.map(i128::from))
            && within(&self.size, event.size_bytes.map(i128::from))
    }
}

fn op(word: &str) -> Result<Op, TraceError> {
    Op::of_name(word).ok_or_else(|| {
        TraceError::new(format!("no operation {word:?}; operations: read, write, trim, flush, sync, other"))
    })
}

fn within(ranges: &[Range], value: Option<i128>) -> bool {
    ranges.is_empty() || value.is_some_and(|value| ranges.iter().any(|range| range.holds(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(conditions: &[(&str, &[&str])]) -> Result<Filter, TraceError> {
        let owned: Vec<(&str, Vec<String>)> = conditions
            .iter()
            .map(|(key, words)| (*key, words.iter().map(|word| (*word).to_owned()).collect()))
            .collect();
        Filter::new(owned.iter().map(|(key, words)| (*key, words.as_slice())))
    }

    #[test]
    fn conditions_hold_together_and_words_apart() {
        let mut names = Names::default();
        let mut filter =
            filter(&[("op", &["read", "trim"]), ("device", &["sda"]), ("latency", &["10..20", "99"])]).unwrap();
        filter.bind(&mut names);
        let sda = names.intern(Dimension::Device, b"sda");
        let sdb = names.intern(Dimension::Device, b"sdb");
        let event = |op, device, latency| {
            let mut event = Event::at(0, op);
            event.keys[Dimension::Device as usize] = device;
            event.latency_ns = latency;
            event
        };
        assert!(filter.passes(&event(Op::Read, Some(sda), Some(10))));
        assert!(filter.passes(&event(Op::Trim, Some(sda), Some(99))));
        assert!(!filter.passes(&event(Op::Write, Some(sda), Some(10))));
        assert!(!filter.passes(&event(Op::Read, Some(sdb), Some(10))));
        assert!(!filter.passes(&event(Op::Read, None, Some(10))));
        assert!(!filter.passes(&event(Op::Read, Some(sda), Some(20))), "the end is not included");
        assert!(!filter.passes(&event(Op::Read, Some(sda), None)));
    }

    #[test]
    fn open_ends_and_no_condition() {
        let mut event = Event::at(-5, Op::Read);
        event.size_bytes = Some(u64::MAX);
        assert!(filter(&[]).unwrap().passes(&event));
        assert!(filter(&[("size", &["4096.."]), ("time", &["..0"])]).unwrap().passes(&event));
        assert!(!filter(&[("size", &["..4096"])]).unwrap().passes(&event));
    }

    #[test]
    fn invalid_conditions_are_refused() {
        for (key, word) in [("colour", "red"), ("op", "jump"), ("latency", "10ms..20ms"), ("size", "")] {
            assert!(filter(&[(key, &[word])]).is_err(), "{key}={word}");
        }
    }
}
