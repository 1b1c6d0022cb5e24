// SPDX-License-Identifier: Apache-2.0
//! What is mounted where, and which of it holds files of the kernel's own.

use nix::sys::stat::makedev;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// File systems whose files are the kernel's words, not data.
const OF_THE_KERNEL: [&str; 22] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u32,
    /// Device number, as files have it.
    pub device: u64,
    /// Which directory of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub path: PathBuf,
    /// Kind of the file system.
    pub kind: String,
}

impl Mount {
    /// Whether its files are the kernel's own.
    pub fn is_of_the_kernel(&self) -> bool {
        OF_THE_KERNEL.contains(&self.kind.as_str())
    }
}

/// All mounts that a process sees.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    all: HashMap<u32, Mount>,
}

impl Mounts {
    /// Those of a process (`self`, or a number).
    pub fn of(process: &str) -> Self {
        std::fs::read(format!("/proc/{process}/mountinfo")).map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    /// The mounts of a text of that form.
    pub fn parse(text: &[u8]) -> Self {
        let mounts = text.split(|&byte| byte == b'\n').filter_map(mount);
        Self { all: mounts.map(|mount| (mount.id, mount)).collect() }
    }

    /// A mount by its number.
    pub fn get(&self, id: u32) -> Option<&Mount> {
        self.all.get(&id)
    }

    /// The mount that a path is on.
    pub fn containing(&self, path: &Path) -> Option<&Mount> {
        let above = self.all.values().filter(|mount| path.starts_with(&mount.path));
        above.max_by_key(|mount| (mount.path.as_os_str().len(), mount.id))
    }

    /// Where something is mounted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.values().map(|mount| mount.path.as_path())
    }

    /// One mount of each file system: where all of it is mounted, if anywhere, and there the one with the shortest path.
    pub fn one_of_each(&self) -> Vec<&Mount> {
        let mut best: HashMap<u64, &Mount> = HashMap::new();
        let rank = |mount: &Mount| (mount.root != Path::new("/"), mount.path.as_os_str().len(), mount.id);
        for mount in self.all.values() {
            let held = best.entry(mount.device).or_insert(mount);
            if rank(mount) < rank(held) {
                *held = mount;
            }
        }
        let mut chosen: Vec<&Mount> = best.into_values().collect();
        chosen.sort_by_key(|mount| mount.id);
        chosen
    }
}

/// A line: `id parent major:minor root path options [optional]... - kind source options`.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ');
    let mut text = || std::str::from_utf8(words.next()?).ok();
    let id = text()?.parse().ok()?;
    let (major, minor) = {
        text()?;
        text()?
    }
    .split_once(':')?;
    let device = makedev(major.parse().ok()?, minor.parse().ok()?);
    let (root, path) = (unescaped(words.next()?), unescaped(words.next()?));
    let kind = words.skip_while(|word| *word != b"-").nth(1)?;
    Some(Mount { id, device, root, path, kind: String::from_utf8_lossy(kind).into_owned() })
}

/// The kernel writes spaces and the like as `\040`.
pub fn unescaped(word: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let digits =
            after.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match digits {
            Some(digits) => {
                bytes.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_odd_ones_left() {
        let text = b"22 27 0:21 / /proc rw,relatime - proc proc rw\n\
            36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n\
            40 35 98:0 / /whole/of/it rw - ext3 /dev/root rw\nnonsense\n41 35 x:0 / / rw - ext4 d rw\n\n";
        let mounts = Mounts::parse(text);
        assert_eq!(mounts.all.len(), 3);
        assert_eq!(mounts.get(36).unwrap().path, Path::new("/mnt 2"));
        assert_eq!(mounts.get(36).unwrap().device, makedev(98, 0));
        let chosen: Vec<u32> = mounts.one_of_each().iter().map(|mount| mount.id).collect();
        assert_eq!(chosen, [22, 40], "a whole file system rather than a part of it");
        assert!(mounts.get(22).unwrap().is_of_the_kernel() && !mounts.get(40).unwrap().is_of_the_kernel());
    }

    #[test]
    fn the_running_kernel_is_understood() {
        // in a chroot, "/" need not be a mount point; /proc is one wherever this file can be read
        let mounts = Mounts::of("self");
        let chosen = mounts.one_of_each();
        assert!(chosen.iter().any(|mount| mount.kind == "proc" && mount.is_of_the_kernel()));
        assert!(chosen.iter().all(|mount| mount.path.is_absolute()));
    }
}
