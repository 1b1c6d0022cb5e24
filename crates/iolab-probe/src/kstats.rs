// SPDX-License-Identifier: Apache-2.0
//! Counters of OpenZFS, from /proc/spl/kstat/zfs: ARC, intent log, and transaction groups of each pool.

use crate::limited::{read_text, TABLE};
use iolab_core::frames::samples::Samples;
use std::collections::HashMap;
use std::path::Path;

/// Directory of the OpenZFS kstats.
pub const PLACE: &str = "/proc/spl/kstat/zfs";
/// Numeric value types: KSTAT_DATA_INT32, _UINT32, _INT64 and _UINT64.
const NUMBERS: [&str; 4] = ["1", "2", "3", "4"];
/// Columns of a line of `txgs`.
const COLUMNS: usize = 12;
/// Sums over committed groups, with the column of each.
const SUMS: [(&str, usize); 9] = [
    ("dirty_bytes", 3),
    ("read_bytes", 4),
    ("written_bytes", 5),
    ("reads", 6),
    ("writes", 7),
    ("open_ns", 8),
    ("quiesce_ns", 9),
    ("wait_ns", 10),
    ("sync_ns", 11),
];

/// All numbers of a named kstat. The set differs by release; each keeps its kernel name.
pub fn named(text: &str, time_ns: i64, samples: &mut Samples) {
    // skip the line of the kstat and the titles
    for line in text.lines().skip(2) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, value] = words[..] else { continue };
        let number = value.parse::<i64>().ok().or_else(|| value.parse::<u64>().ok().map(|_| i64::MAX));
        if let (true, Some(number)) = (NUMBERS.contains(&kind), number) {
            samples.push(time_ns, b"", name.as_bytes(), number);
        }
    }
}

#[derive(Debug, Default)]
struct Pool {
    /// The newest committed group at the previous reading; None at the first reading.
    done: Option<u64>,
    groups: i64,
    sums: [i64; SUMS.len()],
}

/// Transaction groups: sums over those committed since the first reading, by pool.
#[derive(Debug, Default)]
pub struct Groups {
    pools: HashMap<String, Pool>,
}

impl Groups {
    /// Read every imported pool. Returns the number of groups that were missed.
    pub fn read(&mut self, place: &Path, time_ns: i64, samples: &mut Samples) -> u64 {
        let mut missed = 0;
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // a pool name begins with a letter, so that no name leads out of the directory
            let Ok(text) = read_text(entry.path().join("txgs"), TABLE) else { continue };
            missed += self.pools.entry(name.clone()).or_default().take(&text);
            self.pools[&name].push(&name, time_ns, samples);
        }
        missed
    }
}

impl Pool {
    /// Add newly committed groups. Returns the number of groups that were missed.
    fn take(&mut self, text: &str) -> u64 {
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut done: Vec<(u64, Vec<&str>)> = rows
            .filter(|words| words.len() == COLUMNS && words[2] == "C")
            .filter_map(|words| Some((words[0].parse().ok()?, words)))
            .collect();
        done.sort_by_key(|(txg, _)| *txg);
        let (Some(&(first, _)), Some(&(newest, _))) = (done.first(), done.last()) else { return 0 };
        let before = self.done.replace(newest);
        // first reading, or the pool was imported again: earlier groups are unknown
        let Some(before) = before.filter(|before| *before <= newest) else { return 0 };
        for (_, words) in done.iter().filter(|(txg, _)| *txg > before) {
            self.groups += 1;
            for (sum, (_, column)) in self.sums.iter_mut().zip(SUMS) {
                *sum = sum.saturating_add(words[column].parse::<i64>().unwrap_or(0).max(0));
            }
        }
        first.saturating_sub(before.saturating_add(1))
    }

    fn push(&self, name: &str, time_ns: i64, samples: &mut Samples) {
        samples.push(time_ns, name.as_bytes(), b"groups", self.groups);
        for (sum, (field, _)) in self.sums.iter().zip(SUMS) {
            samples.push(time_ns, name.as_bytes(), field.as_bytes(), *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str =
        "txg      birth            state ndirty       nread        nwritten     reads    writes   otime        \
                        qtime        wtime        stime\n";

    fn group(txg: u64, state: &str) -> String {
        format!("{txg} 1 {state} 100 200 300 4 5 5000 60 70 800\n")
    }

    #[test]
    fn only_numbers_are_kept_under_their_kernel_names() {
        let mut samples = Samples::default();
        let text = "9 1 0x01 3 4 5 6\nname type data\nhits 4 12\ngrew 3 -5\nlarge 4 18446744073709551615\nword 7 text\ntorn 4\n";
        named(text, 1, &mut samples);
        let payload = samples.payload("arcstats");
        let contains = |bytes: &[u8]| payload.windows(bytes.len()).any(|part| part == bytes);
        assert!(
            contains(b"hits")
                && contains(b"grew")
                && contains(&(-5i64).to_le_bytes())
                && contains(&i64::MAX.to_le_bytes())
        );
        assert!(!contains(b"word") && !contains(b"torn") && !contains(b"type"));
        named("", 1, &mut samples);
        assert!(samples.is_empty());
    }

    #[test]
    fn groups_committed_since_the_first_reading() {
        let mut pool = Pool::default();
        // some releases print the numbers of the kstat first
        let first = format!("21 0 0x01 7 8 9 10\n{HEAD}{}{}{}", group(7, "C"), group(8, "C"), group(9, "S"));
        assert_eq!((pool.take(&first), pool.groups), (0, 0));
        assert_eq!((pool.take(&first), pool.groups), (0, 0));
        let second = format!("{HEAD}{}{}{}", group(8, "C"), group(9, "C"), group(10, "O"));
        assert_eq!((pool.take(&second), pool.groups), (0, 1));
        assert_eq!(pool.sums, [100, 200, 300, 4, 5, 5000, 60, 70, 800]);
        // the kernel keeps two groups: 10 was dropped
        let third = format!("{HEAD}{}{}", group(11, "C"), group(12, "C"));
        assert_eq!((pool.take(&third), pool.groups), (1, 3));
        // another pool with the same name
        assert_eq!((pool.take(&format!("{HEAD}{}", group(4, "C"))), pool.groups), (0, 3));
        assert_eq!((pool.take(&format!("{HEAD}{}", group(5, "C"))), pool.groups), (0, 4));
        assert_eq!(pool.take(""), 0);
    }

    #[test]
    fn pools_are_directories_with_groups() {
        let place = std::env::temp_dir().join(format!("iolab-kstats-{}", std::process::id()));
        std::fs::create_dir_all(place.join("tank")).unwrap();
        std::fs::create_dir_all(place.join("empty")).unwrap();
        std::fs::write(place.join("arcstats"), "x").unwrap();
        std::fs::write(place.join("tank/txgs"), format!("{HEAD}{}", group(3, "C"))).unwrap();
        let mut samples = Samples::default();
        assert_eq!(Groups::default().read(&place, 1, &mut samples), 0);
        std::fs::remove_dir_all(&place).unwrap();
        let payload = samples.payload("txgs");
        let contains = |bytes: &[u8]| payload.windows(bytes.len()).any(|part| part == bytes);
        assert!(contains(b"tank") && contains(b"sync_ns") && !contains(b"empty"));
        assert_eq!(Groups::default().read(Path::new("/nowhere"), 1, &mut samples), 0);
        assert!(samples.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([0-9]{1,20}|C|O| |\n|x){0,80}") {
            let mut samples = Samples::default();
            named(&text, 0, &mut samples);
            let mut pool = Pool::default();
            pool.take(&text);
            pool.take(&text);
            prop_assert!(pool.groups == 0);
        }
    }
}
