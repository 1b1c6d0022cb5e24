// SPDX-License-Identifier: Apache-2.0
//! Readings that are not lines of a file: free space of file systems on local devices, and the speed of network links.

use crate::files_mounts::Mounts;
use crate::limited::{read_text, RECORD};
use iolab_core::frames::samples::Samples;
use nix::sys::statvfs::statvfs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Kinds of file systems that are read: those on local devices, which answer at once. A network file system may hang.
const LOCAL: [&str; 12] =
    ["bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "ntfs3", "vfat", "xfs", "zfs"];

/// Size and free space of each file system, in bytes, by mount point.
pub fn file_systems(time_ns: i64, samples: &mut Samples) {
    for mount in Mounts::own().one_of_each() {
        if !LOCAL.contains(&mount.kind.as_str()) {
            continue;
        }
        let Ok(status) = statvfs(&mount.path) else { continue };
        let values = [
            ("size_bytes", status.blocks()),
            ("free_bytes", status.blocks_free()),
            ("available_bytes", status.blocks_available()),
        ];
        for (field, blocks) in values {
            let bytes = i64::try_from(blocks.saturating_mul(status.fragment_size())).unwrap_or(i64::MAX);
            samples.push(time_ns, mount.path.as_os_str().as_bytes(), field.as_bytes(), bytes);
        }
    }
}

/// The speed of each network link that has one, in Mbit/s; `place` is /sys/class/net.
pub fn links(place: &Path, time_ns: i64, samples: &mut Samples) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        // reading a link that is down or virtual fails or gives -1
        let Ok(text) = read_text(entry.path().join("speed"), RECORD) else { continue };
        if let Some(speed) = text.trim().parse::<i64>().ok().filter(|speed| *speed > 0) {
            samples.push(time_ns, entry.file_name().as_bytes(), b"speed_mbit", speed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_a_speed() {
        let place = std::env::temp_dir().join(format!("iolab-links-{}", std::process::id()));
        for (name, speed) in [("eth0", "10000\n"), ("down", "-1\n"), ("odd", "fast\n")] {
            std::fs::create_dir_all(place.join(name)).unwrap();
            std::fs::write(place.join(name).join("speed"), speed).unwrap();
        }
        std::fs::create_dir_all(place.join("lo")).unwrap();
        let mut samples = Samples::default();
        links(&place, 1, &mut samples);
        std::fs::remove_dir_all(&place).unwrap();
        let payload = samples.payload("network");
        let holds = |word: &[u8]| payload.windows(word.len()).any(|part| part == word);
        assert!(holds(b"eth0") && holds(b"speed_mbit") && holds(&10_000i64.to_le_bytes()));
        assert!(!holds(b"down") && !holds(b"odd") && !holds(b"lo"));
        assert!(samples.is_empty());
        links(Path::new("/nowhere"), 1, &mut samples);
        assert!(samples.is_empty());
    }
}
