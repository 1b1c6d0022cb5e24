// SPDX-License-Identifier: Apache-2.0
//! Memory of a process that runs for weeks: what a burst needed goes back to the system afterwards.
//!
//! glibc alone is asked. Other allocators return free memory by themselves.

/// Bytes of a block from which on it is mapped on its own. Frames of a busy second are larger.
#[cfg(target_env = "gnu")]
const LARGE: nix::libc::c_int = 128 << 10;
/// Heaps at most. Each thread that allocates would have its own, with free memory that the others cannot use.
#[cfg(target_env = "gnu")]
const HEAPS: nix::libc::c_int = 2;

/// Return every large block to the system when it is freed. By default glibc raises the size from which it maps blocks with
/// every block freed; later ones then lie in the heap, which cannot shrink below the names that are added after them.
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
