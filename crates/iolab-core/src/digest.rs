// SPDX-License-Identifier: Apache-2.0
//! Checksums of whole files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// CRC-32 (that of zlib) of a file's content, and its bytes.
pub fn crc32_of_file(path: &Path) -> std::io::Result<(u32, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    // what fits into the second cache is read and summed at the speed of memory
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
