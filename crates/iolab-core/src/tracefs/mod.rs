// SPDX-License-Identifier: Apache-2.0
//! The kernel's trace ring buffers, as bytes: descriptions of events, raw pages, and the order of events of several
//! processors. Nothing in here opens a file.

pub mod format;
pub mod merge;
pub mod page;
