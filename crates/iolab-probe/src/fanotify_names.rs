// SPDX-License-Identifier: Apache-2.0
//! From the kernel's handles to paths and kinds of files, each asked for once as far as memory goes.

use crate::fanotify_handle;
use crate::files_mounts::Mount;
use iolab_core::syscall::notice::{mask, Handle, RawNotice};
use iolab_core::syscall::{Opened, Seen};
use nix::fcntl::{open, readlink, OFlag};
use nix::sys::stat::{fstat, FileStat, Mode, SFlag};
use nix::sys::statvfs::statvfs;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Directories and objects that are remembered at most; then they are asked for again.
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

/// Names of file systems, directories and objects.
pub struct Names {
    /// By the number that handles bear.
    file_systems: HashMap<[u8; 8], Mount>,
    /// Open only while a batch is worked on: a mount in use could not be unmounted.
    open: HashMap<[u8; 8], Option<OwnedFd>>,
    directories: HashMap<Key, Option<Vec<u8>>>,
    objects: HashMap<Key, Kind>,
    /// Device numbers that are asked for; none is all.
    asked: Option<Vec<u64>>,
}

impl Names {
    /// Nothing known yet.
    pub fn new(asked: Option<Vec<u64>>) -> Self {
        let (file_systems, open) = (HashMap::new(), HashMap::new());
        Self { file_systems, open, directories: HashMap::new(), objects: HashMap::new(), asked }
    }

    /// A file system that is watched.
    pub fn watched(&mut self, mount: &Mount) {
        if let Ok(status) = statvfs(&mount.path) {
            // the C library puts both halves of the kernel's number into one
            self.file_systems.insert(status.filesystem_id().to_ne_bytes(), mount.clone());
        }
        self.directories.clear();
    }

    /// Directories have other paths from now on.
    pub fn directory_moved(&mut self) {
        self.directories.clear();
    }

    /// A batch is done: let go of the mounts.
    pub fn rest(&mut self) {
        self.open.clear();
    }

    /// What was opened.
    pub fn opened(&mut self, raw: &RawNotice<'_>) -> Opened {
        let Some(directory) = raw.directory.filter(|_| raw.mask & mask::DIRECTORY == 0) else { return Opened::Other };
        let Some(mount) = self.file_systems.get(&directory.file_system) else {
            return Opened::File(Seen { path: None, mount: None, identity: None, asked: self.asked.is_none() });
        };
        if mount.is_of_the_kernel() {
            return Opened::Other;
        }
        let (device, at) = (mount.device, mount.path.as_os_str().as_bytes().to_vec());
        // an object that is gone by now was most likely a regular file: others are seldom removed so quickly
        let identity = match raw.object.and_then(|object| self.kind(&object)) {
            Some(Kind::Other) => return Opened::Other,
            Some(Kind::File(identity)) => Some(identity),
            None => None,
        };
        let asked =
            self.asked.as_ref().is_none_or(|asked| asked.contains(&identity.map_or(device, |(device, _)| device)));
        let path = self.directory(&directory).map(|mut path| {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(raw.name);
            path
        });
        Opened::File(Seen { path, mount: Some(at), identity, asked })
    }

    fn at(&mut self, handle: &Handle<'_>) -> Option<OwnedFd> {
        let mount = self.file_systems.get(&handle.file_system)?;
        let place = self.open.entry(handle.file_system).or_insert_with(|| {
            open(
                &mount.path,
                OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK,
                Mode::empty(),
            )
            .ok()
        });
        fanotify_handle::open(place.as_ref()?.as_fd(), handle).ok()
    }

    fn directory(&mut self, handle: &Handle<'_>) -> Option<Vec<u8>> {
        let key = key(handle);
        if let Some(known) = self.directories.get(&key) {
            return known.clone();
        }
        let path = self.at(handle).and_then(|opened| path_of(&opened));
        if self.directories.len() >= LIMIT {
            self.directories.clear();
        }
        self.directories.insert(key, path.clone());
        path
    }

    fn kind(&mut self, handle: &Handle<'_>) -> Option<Kind> {
        let key = key(handle);
        if let Some(&known) = self.objects.get(&key) {
            return Some(known);
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

/// Whether it is a regular file or a block device.
pub fn is_file(status: &FileStat) -> bool {
    let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
    kind == SFlag::S_IFREG || kind == SFlag::S_IFBLK
}

/// Path of what a descriptor of our own is of; without the kernel's remark where it is deleted.
fn path_of(opened: &OwnedFd) -> Option<Vec<u8>> {
    let path = readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()).as_str()).ok()?.into_vec();
    if path.first() != Some(&b'/') {
        return None;
    }
    let gone = fstat(opened).is_ok_and(|status| status.st_nlink == 0);
    Some(without_remark(path, gone))
}

/// A path without the remark that the kernel adds to those of deleted files.
pub fn without_remark(mut path: Vec<u8>, deleted: bool) -> Vec<u8> {
    const REMARK: &[u8] = b" (deleted)";
    if deleted && path.ends_with(REMARK) {
        path.truncate(path.len() - REMARK.len());
    }
    path
}
