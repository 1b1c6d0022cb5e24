// SPDX-License-Identifier: Apache-2.0
//! Paths and kinds of files by kernel handle, cached.

use crate::fanotify_handle;
use crate::files_mounts::Mount;
use iolab_core::syscall::notice::{mask, Handle, RawNotice};
use iolab_core::syscall::{Opened, Seen};
use nix::fcntl::{open, readlink, OFlag};
use nix::sys::stat::{fstat, stat, FileStat, Mode, SFlag};
use nix::sys::statvfs::{fstatvfs, statvfs};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Maximum number of cached directories and of cached objects.
const LIMIT: usize = 1 << 14;

type Key = ([u8; 8], i32, Box<[u8]>);

fn key(handle: &Handle<'_>) -> Key {
    (handle.file_system, handle.kind, handle.bytes.into())
}

#[derive(Clone, Copy)]
enum Kind {
    /// A regular file or block device: its device and inode number.
    File((u64, u64)),
    Other,
}

/// Path of a directory.
struct Directory {
    path: Option<Vec<u8>>,
    /// Batch in which it was read.
    read_in: u64,
    /// Batch in which it was last used.
    used_in: u64,
}

/// Names of file systems, directories and objects.
pub struct Names {
    /// By file system ID in handles. Copies of a file system may have the same ID.
    file_systems: HashMap<[u8; 8], Vec<Mount>>,
    /// Open during a batch only: a mount that is in use can't be unmounted.
    open: HashMap<[u8; 8], Option<OwnedFd>>,
    directories: HashMap<Key, Directory>,
    objects: HashMap<Key, Kind>,
    /// Device numbers of the requested file systems; None means all.
    requested: Option<Vec<u64>>,
    batch: u64,
    /// File systems on which directories were renamed in this batch.
    moved: HashSet<[u8; 8]>,
    /// Paths of directories in this batch that may be from before or after an open.
    uncertain: HashSet<Vec<u8>>,
}

impl Names {
    /// Empty caches.
    pub fn new(requested: Option<Vec<u64>>) -> Self {
        Self {
            file_systems: HashMap::new(),
            open: HashMap::new(),
            directories: HashMap::new(),
            objects: HashMap::new(),
            requested,
            batch: 0,
            moved: HashSet::new(),
            uncertain: HashSet::new(),
        }
    }

    /// Set the file systems that are watched from now on.
    pub fn watch(&mut self, mounts: &[&Mount]) {
        self.file_systems.clear();
        let devices: HashSet<u64> = mounts.iter().map(|mount| mount.device).collect();
        for mount in mounts {
            // the path of a hidden mount leads to the mount that hides it
            let leads_to = |device: u64| device != mount.device && devices.contains(&device);
            if stat(&mount.path).is_ok_and(|status| leads_to(status.st_dev)) {
                continue;
            }
            if let Ok(status) = statvfs(&mount.path) {
                // the C library combines both halves of the kernel's ID
                let number = status.filesystem_id().to_ne_bytes();
                self.file_systems.entry(number).or_default().push((*mount).clone());
            }
        }
        self.directories.clear();
        self.objects.clear();
    }

    /// A directory was renamed during this batch.
    pub fn directory_moved(&mut self, raw: &RawNotice<'_>) {
        self.moved.extend(raw.directory.map(|directory| directory.file_system));
    }

    /// Start a batch. It ends when the queue is empty.
    pub fn begin(&mut self) {
        self.batch += 1;
    }

    /// End a batch: close the mounts and drop the paths on file systems with renamed directories. Returns whether paths
    /// of this batch are uncertain; `review` removes them.
    ///
    /// Pending reports of the same object are merged at the position of the first, so the order of opens and renames in
    /// a batch is unknown. The path of a directory is certain if it was the same before and after the batch.
    pub fn end(&mut self) -> bool {
        self.uncertain.clear();
        if !self.moved.is_empty() {
            let directories = std::mem::take(&mut self.directories);
            for (key, Directory { path, read_in, used_in }) in directories {
                if !self.moved.contains(&key.0) {
                    self.directories.insert(key, Directory { path, read_in, used_in });
                } else if let Some(path) = path.filter(|_| used_in == self.batch) {
                    let (file_system, kind, bytes) = (key.0, key.1, &key.2);
                    let now = self.at(&Handle { file_system, kind, bytes }).and_then(|opened| path_of(&opened));
                    if read_in == self.batch || now.as_ref() != Some(&path) {
                        self.uncertain.insert(path);
                    }
                }
            }
            self.moved.clear();
        }
        self.open.clear();
        !self.uncertain.is_empty()
    }

    /// Remove the name of an object opened in this batch if the name is uncertain.
    pub fn review(&self, opened: &mut Opened) {
        let Opened::File(seen) = opened else { return };
        let is_uncertain = |path: &Vec<u8>| {
            let length = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            self.uncertain.contains(&path[..length.max(1)])
        };
        seen.path = seen.path.take().filter(|path| !is_uncertain(path));
    }

    /// What the report says was opened.
    pub fn opened(&mut self, raw: &RawNotice<'_>) -> Opened {
        if raw.mask & mask::DIRECTORY != 0 {
            return Opened::Other;
        }
        // an object without a parent directory is identified by its own handle
        let place = raw.directory.or(raw.object);
        let mounts = place.and_then(|place| self.file_systems.get(&place.file_system));
        let [mount] = mounts.map_or(&[][..], |mounts| &mounts[..]) else {
            // copies of a file system have the same ID: the copy is unknown
            return Opened::File(Seen { path: None, mount: None, identity: None, requested: true });
        };
        if mount.is_of_the_kernel() {
            return Opened::Other;
        }
        let (device, at) = (mount.device, mount.path.as_os_str().as_bytes().to_vec());
        // a deleted object was probably a regular file: others are seldom deleted so soon
        let identity = match raw.object.and_then(|object| self.kind(&object)) {
            Some(Kind::Other) => return Opened::Other,
            Some(Kind::File(identity)) => Some(identity),
            None => None,
        };
        let requested = self
            .requested
            .as_ref()
            .is_none_or(|requested| requested.contains(&identity.map_or(device, |(device, _)| device)));
        let path = raw.directory.and_then(|directory| self.directory(&directory)).map(|mut path| {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(raw.name);
            path
        });
        Opened::File(Seen { path, mount: Some(at), identity, requested })
    }

    fn at(&mut self, handle: &Handle<'_>) -> Option<OwnedFd> {
        let [mount] = &self.file_systems.get(&handle.file_system)?[..] else { return None };
        let place = self.open.entry(handle.file_system).or_insert_with(|| {
            let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
            let opened = open(&mount.path, flags, Mode::empty()).ok()?;
            // another file system may be mounted there by now
            let number = fstatvfs(&opened).ok()?.filesystem_id().to_ne_bytes();
            (number == handle.file_system).then_some(opened)
        });
        fanotify_handle::open(place.as_ref()?.as_fd(), handle).ok()
    }

    fn directory(&mut self, handle: &Handle<'_>) -> Option<Vec<u8>> {
        let key = key(handle);
        if let Some(cached) = self.directories.get_mut(&key) {
            cached.used_in = self.batch;
            return cached.path.clone();
        }
        let path = self.at(handle).and_then(|opened| path_of(&opened));
        // entries of this batch are needed until its end
        if self.directories.len() >= LIMIT {
            self.directories.retain(|_, directory| directory.used_in == self.batch);
        }
        let directory = Directory { path: path.clone(), read_in: self.batch, used_in: self.batch };
        self.directories.insert(key, directory);
        path
    }

    fn kind(&mut self, handle: &Handle<'_>) -> Option<Kind> {
        let key = key(handle);
        if let Some(&cached) = self.objects.get(&key) {
            return Some(cached);
        }
        let status = self.at(handle).and_then(|opened| fstat(&opened).ok())?;
        let kind = if is_file(&status) { Kind::File((status.st_dev, status.st_ino)) } else { Kind::Other };
        if self.objects.len() >= LIMIT {
            self.objects.clear();
        }
        self.objects.insert(key, kind);
        Some(kind)
    }
}

/// Whether the status is that of a regular file or a block device.
pub fn is_file(status: &FileStat) -> bool {
    let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
    kind == SFlag::S_IFREG || kind == SFlag::S_IFBLK
}

/// Path of an open descriptor, without the suffix for deleted files.
fn path_of(opened: &OwnedFd) -> Option<Vec<u8>> {
    let path = readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()).as_str()).ok()?.into_vec();
    if path.first() != Some(&b'/') {
        return None;
    }
    let is_deleted = fstat(opened).is_ok_and(|status| status.st_nlink == 0);
    Some(without_suffix(path, is_deleted))
}

/// A path without the suffix that the kernel appends if the file was deleted.
pub fn without_suffix(mut path: Vec<u8>, deleted: bool) -> Vec<u8> {
    const SUFFIX: &[u8] = b" (deleted)";
    if deleted && path.ends_with(SUFFIX) {
        path.truncate(path.len() - SUFFIX.len());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_hidden_mount_is_not_a_copy_of_its_cover() {
        let path = PathBuf::from("/");
        let mount = |device| Mount { id: 1, device, root: path.clone(), path: path.clone(), kind: "ext4".into() };
        let visible = mount(stat(&path).unwrap().st_dev);
        let hidden = mount(visible.device + 1);
        let mut names = Names::new(None);
        names.watch(&[&hidden, &visible]);
        let cached: Vec<_> = names.file_systems.values().collect();
        assert_eq!(cached.len(), 1);
        assert_eq!(cached[0].iter().map(|mount| mount.device).collect::<Vec<_>>(), [visible.device]);
        // a subvolume has its own device number, which no mount has
        names.watch(&[&hidden]);
        assert_eq!(names.file_systems.values().map(Vec::len).sum::<usize>(), 1);
    }
}
