// SPDX-License-Identifier: Apache-2.0
//! Opening an object by the kernel's handle for it.
//!
//! The one call in the probe that no safe wrapper offers. It opens with `O_PATH` alone: that reads nothing, wakes no device
//! and makes no notice of its own.

use iolab_core::syscall::notice::Handle;
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of a handle at most, by the kernel's own limit.
const LIMIT: usize = 128;

/// `struct file_handle` with room for the longest handle.
#[repr(C)]
struct Room {
    head: libc::file_handle,
    bytes: [u8; LIMIT],
}

/// Open an object of the file system that `mount` is on.
#[allow(unsafe_code)]
pub fn open(mount: BorrowedFd<'_>, handle: &Handle<'_>) -> Result<OwnedFd, Errno> {
    if handle.bytes.len() > LIMIT {
        return Err(Errno::EINVAL);
    }
    let head = libc::file_handle { handle_bytes: handle.bytes.len() as u32, handle_type: handle.kind, f_handle: [] };
    let mut room = Room { head, bytes: [0; LIMIT] };
    room.bytes[..handle.bytes.len()].copy_from_slice(handle.bytes);
    let pointer: *mut Room = &mut room;
    // SAFETY: `pointer` is to a live `file_handle` followed, without padding (repr(C), bytes last), by `handle_bytes` <= LIMIT
    // bytes, all initialised; the kernel reads that much and keeps nothing. The descriptor of `mount` is open by its type.
    let opened = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), pointer.cast(), libc::O_PATH | libc::O_CLOEXEC) };
    let opened = Errno::result(opened)?;
    // SAFETY: the call succeeded, so `opened` is a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}
