// SPDX-License-Identifier: Apache-2.0
//! Detects the type and columns of a fio log from its name and first lines, with assumptions.

use super::fio_log::{Layout, Value};
use super::head_lines;
use crate::number::unsigned;

/// Means of windows below this cannot be nanoseconds.
const NO_NANOSECONDS: u64 = 150;

const NS_ASSUMED: &str =
    "latency in ns, as fio writes it since 3.0: the log doesn't say its version (of fio 2: --format fio-lat-us, \
                          or --columns time:ms,latency:us,op,size:bytes)";

/// Type of the values by file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `_lat`, `_clat`, `_slat`.
    Latency,
    /// `_bw`.
    Bandwidth,
    /// `_iops`.
    Iops,
}

/// Type of the values by the name of a log.
pub fn kind_of_name(name: &str) -> Option<Kind> {
    let stem = name.strip_suffix(".log")?;
    // since fio 2.2 the job number is in between
    let stem = stem
        .rsplit_once('.')
        .filter(|(_, job)| job.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(stem, |parts| parts.0);
    match stem.rsplit_once('_').map_or(stem, |parts| parts.1) {
        "lat" | "clat" | "slat" => Some(Kind::Latency),
        "bw" => Some(Kind::Bandwidth),
        "iops" => Some(Kind::Iops),
        _ => None,
    }
}

/// Properties of the first lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    columns: usize,
    rows: Vec<Vec<Option<u64>>>,
    spaced: bool,
}

impl Sample {
    /// The first lines, if most of them are comma-separated integers with the same number of columns.
    pub fn of(head: &[u8]) -> Option<Self> {
        let mut all = 0;
        let mut spaced = 0;
        let mut rows: Vec<Vec<Option<u64>>> = Vec::new();
        for line in head_lines(head, 1000) {
            all += 1;
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
            let numbers: Vec<Option<u64>> = fields.iter().map(|field| unsigned(field)).collect();
            let plain =
                |field: &[u8]| field.strip_prefix(b"0x").is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            let good = numbers
                .iter()
                .zip(&fields)
                .enumerate()
                .all(|(at, (number, field))| number.is_some() || (at >= 4 && plain(field)));
            if good && (2..=8).contains(&fields.len()) {
                spaced += usize::from(line.windows(2).filter(|pair| pair == b", ").count() == fields.len() - 1);
                rows.push(numbers);
            }
        }
        let columns = most_common(rows.iter().map(Vec::len))?;
        rows.retain(|row| row.len() == columns);
        (2 * rows.len() > all).then(|| Self { columns, spaced: spaced * 2 > rows.len(), rows })
    }

    fn most(&self, holds: impl Fn(&[Option<u64>]) -> bool) -> bool {
        self.rows.iter().filter(|row| holds(row)).count() * 10 >= self.rows.len() * 9
    }

    /// Whether lines look like those of fio; `None` if they may be any table of numbers.
    pub fn looks_like_fio(&self) -> Option<bool> {
        if self.columns < 4 {
            return if self.spaced { None } else { Some(false) };
        }
        let (direction, _) = self.places();
        let directions = self.most(|row| row[direction].is_some_and(|code| code <= 5));
        Some(self.spaced && directions)
    }

    /// Columns of direction and block size: after one or two values.
    fn places(&self) -> (usize, usize) {
        // with two values, the third column is a maximum, at least the mean before it, and the fourth is a direction
        let small = |at: usize| self.most(|row| row[at].is_some_and(|code| code <= 5));
        if self.columns > 4 && !small(2) && small(3) {
            (3, 4)
        } else {
            (2, 3)
        }
    }

    /// Whether each line is the mean of a window.
    pub fn is_averaged(&self) -> bool {
        let (_, size) = self.places();
        self.columns > size && self.most(|row| row[size] == Some(0))
    }

    /// Whether all values are 1, as in an IOPS log with a line per I/O.
    fn all_ones(&self) -> bool {
        self.rows.len() >= 3 && self.rows.iter().all(|row| row[1] == Some(1))
    }

    /// The layout, and its assumptions.
    pub fn layout(&self, value: Value) -> Layout {
        let (_, size) = self.places();
        let two_values = size == 4;
        let after = self.columns.saturating_sub(size + 1);
        let column = size + 1;
        // a column after the size is a priority if it is hexadecimal or never exceeds 1, else an offset
        let priority = || self.most(|row| row[column].is_none_or(|number| number <= 1));
        let offset = match after {
            0 => false,
            1 => !priority(),
            2 => self.most(|row| row[column].is_some()) && !self.issue_time_after_priority(column),
            _ => true,
        };
        Layout { value, columns: self.columns, two_values, offset }
    }

    /// Priority and issue time (fio 3.37 and later, `log_issue_time`) without an offset: the last column is large and
    /// increases.
    fn issue_time_after_priority(&self, column: usize) -> bool {
        self.most(|row| {
            row[column].is_none_or(|number| number <= 1) && row[column + 1].is_some_and(|number| number > 1_000_000)
        })
    }

    /// Whether values of a latency log without a priority column can only be microseconds, as before fio 3.0. As
    /// nanoseconds, on average fewer than 1 in 200 I/Os would be in flight (Little's law).
    fn is_microseconds(&self) -> bool {
        let (Some(first), Some(last)) = (self.rows.first(), self.rows.last()) else { return false };
        let (Some(first), Some(last)) = (first[0], last[0]) else { return false };
        let span_ns = u128::from(last.saturating_sub(first)) * 1_000_000;
        let sum: u128 = self.rows.iter().filter_map(|row| row[1]).map(u128::from).sum();
        self.columns <= 4 && !self.is_averaged() && self.rows.len() >= 100 && span_ns > 0 && sum * 200 < span_ns
    }

    /// Whether the means of windows, without a priority column, are shorter than any system call if they are
    /// nanoseconds.
    fn is_too_small_for_ns(&self) -> bool {
        let mut values: Vec<u64> = self.rows.iter().filter_map(|row| row[1]).collect();
        values.sort_unstable();
        self.is_averaged()
            && !self.is_of_fio_3()
            && values.get(values.len() / 2).is_some_and(|&median| median < NO_NANOSECONDS)
    }

    /// Whether there are columns of fio 3.19 and later: a priority next to the offset or in hexadecimal, or two values.
    fn is_of_fio_3(&self) -> bool {
        let (_, size) = self.places();
        let hexadecimal = self.rows.iter().any(|row| row.iter().skip(size + 1).any(Option::is_none));
        size == 4 || self.columns > size + 2 || hexadecimal
    }

    /// Name of the format of a file with this name, with its assumptions.
    pub fn format(&self, name: &str) -> (&'static str, Option<String>) {
        match kind_of_name(name) {
            Some(Kind::Bandwidth) => ("fio-bw", None),
            Some(Kind::Iops) => ("fio-iops", None),
            Some(Kind::Latency) if self.is_microseconds() => (
                "fio-lat-us",
                Some("latency in us, as fio before 3.0 wrote it: in ns almost no I/O would be in flight (--format fio-lat says ns)".into()),
            ),
            Some(Kind::Latency) if self.is_too_small_for_ns() => (
                "fio-lat-us",
                Some("latency in us, as fio before 3.0 wrote it: no I/O takes so few ns (--format fio-lat says ns)".into()),
            ),
            Some(Kind::Latency) if self.is_of_fio_3() => ("fio-lat", None),
            Some(Kind::Latency) => ("fio-lat", Some(NS_ASSUMED.into())),
            None if self.all_ones() => ("fio-iops", Some("an IOPS log, because every value is 1".into())),
            None => ("fio-lat", Some("a latency log in ns: only a name such as x_lat.1.log shows the type of fio's values".into())),
        }
    }
}

fn most_common(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::new();
    lengths.for_each(|length| *counts.entry(length).or_insert(0) += 1);
    counts.into_iter().max_by_key(|entry: &(usize, usize)| entry.1).map(|entry| entry.0)
}
