// SPDX-License-Identifier: Apache-2.0
//! Reads of small files with a limit, which holds while the file is read.
//!
//! The size of many files in /proc is chosen by the process that they describe: any user can give a process a command
//! line of 4 GiB (`PR_SET_MM_MAP`), or a mount namespace with 100,000 mounts. `clippy.toml` refuses unlimited reads.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maximum size in bytes of a file of the kernel that is needed as a whole: counters of thousands of devices, tables of
/// mounts and of connections.
pub const TABLE: usize = 16 << 20;
/// Maximum size in bytes of what is read of a file that describes one task or descriptor, or has one value.
pub const RECORD: usize = 4096;

/// The beginning of a file, up to a limit in bytes.
pub fn read_beginning(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    beginning(File::open(path)?, limit)
}

/// A whole file.
///
/// # Errors
/// `FileTooLarge` if it has more bytes than the limit.
pub fn read_whole(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    let bytes = beginning(File::open(path)?, limit + 1)?;
    if bytes.len() > limit {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The same as text; bytes that are not UTF-8 are replaced.
pub fn read_text(path: impl AsRef<Path>, limit: usize) -> io::Result<String> {
    let bytes = read_whole(path, limit)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Lines of a file up to a limit in bytes; a line that the limit cuts is left out.
pub fn read_lines(path: impl AsRef<Path>, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = read_beginning(path, limit)?;
    if bytes.len() == limit {
        bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    }
    Ok(bytes)
}

/// The beginning of an open file, from its position.
pub fn beginning(file: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(limit.min(RECORD));
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file without an end, which fails a test that reads more of it than allowed.
    struct Endless {
        read: usize,
        allowed: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.read += buffer.len();
            assert!(self.read <= self.allowed, "{} bytes are read of at most {}", self.read, self.allowed);
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        for limit in [0, 1, RECORD, 1 << 20] {
            let bytes = beginning(Endless { read: 0, allowed: limit }, limit).unwrap();
            assert_eq!(bytes.len(), limit);
            assert!(bytes.capacity() <= 2 * limit + 64, "{}", bytes.capacity());
        }
        assert_eq!(read_beginning("/dev/zero", 100).unwrap(), [0; 100]);
        assert_eq!(read_whole("/dev/zero", 100).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_file_is_whole_up_to_the_limit_and_a_cut_line_is_left_out() {
        let path = std::env::temp_dir().join(format!("iolab-limited-{}", std::process::id()));
        std::fs::write(&path, b"one\ntwo\xff\n").unwrap();
        assert_eq!(read_text(&path, 9).unwrap(), "one\ntwo\u{fffd}\n");
        assert!(read_text(&path, 8).is_err());
        assert_eq!(read_lines(&path, 100).unwrap(), b"one\ntwo\xff\n");
        assert_eq!(read_lines(&path, 8).unwrap(), b"one\n");
        assert_eq!(read_lines(&path, 3).unwrap(), b"");
        std::fs::remove_file(&path).unwrap();
        assert!(read_whole(&path, 9).is_err());
    }
}
