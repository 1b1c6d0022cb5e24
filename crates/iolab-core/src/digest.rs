// SPDX-License-Identifier: Apache-2.0
//! Checksums of bytes and whole files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// CRC-32 (that of zlib) of bytes; `value` is the CRC-32 of the preceding bytes.
pub fn crc32(data: &[u8], value: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(value);
    hasher.update(data);
    hasher.finalize()
}

/// CRC-32 (that of zlib) of the content of a file, and its size in bytes.
pub fn crc32_of_file(path: &Path) -> std::io::Result<(u32, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    // a block that fits into the second-level cache is read and summed at the speed of memory
    let mut block = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok((hasher.finalize(), bytes)),
            Ok(read) => {
                hasher.update(&block[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_checksum_of_the_whole() {
        // the check value of CRC-32 (ISO 3309)
        assert_eq!(crc32(b"123456789", 0), 0xcbf4_3926);
        assert_eq!(crc32(b"6789", crc32(b"12345", 0)), 0xcbf4_3926);
        assert_eq!(crc32(b"", 0xcbf4_3926), 0xcbf4_3926);
    }
}
