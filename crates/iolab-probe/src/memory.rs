// SPDX-License-Identifier: Apache-2.0
//! Memory of a process that runs for weeks: memory of a burst is returned to the system.
//!
//! Only for glibc. Other allocators return free memory without a call.

/// Blocks of at least this size in bytes are mapped separately. Frames of a busy second are larger.
#[cfg(target_env = "gnu")]
const LARGE: nix::libc::c_int = 128 << 10;
/// Maximum number of heaps. By default, each allocating thread has its own heap with free memory that no other thread
/// can use.
#[cfg(target_env = "gnu")]
const HEAPS: nix::libc::c_int = 2;

/// Return every large block to the system when it is freed. By default glibc raises the mapping threshold with every
/// freed block. Later blocks are then in the heap, which can't shrink below the names that are added after them.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn map_large_blocks() {
    // SAFETY: sets two numbers of the allocator; called before any other thread exists
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE);
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, HEAPS);
    }
}

/// Return the free pages of the heaps to the system.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn return_free_pages() {
    // SAFETY: takes the locks of the allocator and touches free memory alone
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn map_large_blocks() {}

#[cfg(not(target_env = "gnu"))]
pub fn return_free_pages() {}
