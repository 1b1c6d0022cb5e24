// SPDX-License-Identifier: Apache-2.0
//! Opening an object by its kernel handle.
//!
//! No safe wrapper has this call. It opens with `O_PATH` only: that reads nothing, wakes no device and causes no
//! fanotify report.

use iolab_core::syscall::notice::Handle;
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Maximum size of a handle in bytes (MAX_HANDLE_SZ).
const LIMIT: usize = 128;

/// `struct file_handle` with space for the longest handle.
#[repr(C)]
struct Room {
    head: libc::file_handle,
    bytes: [u8; LIMIT],
}

/// Open an object of the file system at `mount`.
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
    // bytes, all initialised; the kernel reads no more and keeps no reference. The descriptor of `mount` is open by its
    // type.
    let opened = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), pointer.cast(), libc::O_PATH | libc::O_CLOEXEC) };
    let opened = Errno::result(opened)?;
    // SAFETY: the call succeeded, so `opened` is a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}
