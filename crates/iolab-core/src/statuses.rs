// SPDX-License-Identifier: Apache-2.0
//! Statuses of the sealed files of a directory: a recording has a hundred thousand after months.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const SUFFIX: &str = ".parquet";
const FEWEST_DIGITS: usize = 6;

/// A sealed file: the number in its name, inode, size in bytes, and modification time (ns).
pub type Status = (u64, u64, u64, i64);

/// The number in the name of a sealed file, such as `000123.parquet`.
fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() >= FEWEST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        digits.parse().ok()
    } else {
        None
    }
}

/// Statuses of the sealed files with numbers above `after`, in any order, and whether a file disappeared during the
/// call. A directory that does not exist has none.
///
/// # Errors
/// The system fails to list the directory or to read a status.
pub fn sealed_statuses(folder: &Path, after: u64) -> io::Result<(Vec<Status>, bool)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok((Vec::new(), false));
        }
        Err(error) => return Err(error),
    };
    let (mut statuses, mut has_vanished) = (Vec::new(), false);
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(number_of).filter(|&number| number > after) else {
            continue;
        };
        // relative to the directory, without following links
        let status = match entry.metadata() {
            Ok(status) if status.is_symlink() => fs::metadata(entry.path()),
            other => other,
        };
        match status {
            Ok(status) => {
                let changed_ns = status.ctime() * 1_000_000_000 + status.ctime_nsec();
                statuses.push((number, status.ino(), status.size(), changed_ns));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => has_vanished = true,
            Err(error) => return Err(error),
        }
    }
    Ok((statuses, has_vanished))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_with_numbers_are_found_and_others_are_not() {
        let folder = std::env::temp_dir().join(format!("iolab-statuses-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["000001.parquet", "000002.parquet", "1000000.parquet", "3.parquet", "00000x.parquet", "000004.tmp"]
        {
            fs::write(folder.join(name), name).unwrap();
        }
        symlink("000002.parquet", folder.join("000005.parquet")).unwrap();
        symlink("nothing", folder.join("000006.parquet")).unwrap();
        let (mut statuses, has_vanished) = sealed_statuses(&folder, 1).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        statuses.sort_unstable();
        let sizes: Vec<_> = statuses.iter().map(|&(number, _, size, _)| (number, size)).collect();
        assert_eq!(sizes, [(2, 14), (5, 14), (1_000_000, 15)]);
        assert_eq!(statuses[0].1, statuses[1].1);
        assert!(has_vanished);
        assert!(sealed_statuses(&folder, 0).unwrap().0.is_empty());
    }
}
