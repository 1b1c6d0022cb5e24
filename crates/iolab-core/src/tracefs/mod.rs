// SPDX-License-Identifier: Apache-2.0
//! The kernel's trace ring buffers as bytes: formats of events, raw pages, and the order of events of several
//! processors. Opens no files.

pub mod format;
pub mod merge;
pub mod page;
