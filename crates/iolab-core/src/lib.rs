// SPDX-License-Identifier: Apache-2.0
//! Fast loops over bytes and events. They need no Python and no privilege.
//!
//! `readers` turns bytes into events, one file per format. `scan` runs a reader over a file, on several threads if
//! lines are independent. Sinks reduce events: `heatmap`, `summary`, `batch`.

pub mod batch;
pub mod block;
pub mod cells;
pub mod columns;
pub mod digest;
pub mod errno;
pub mod error;
pub mod event;
pub mod filter;
pub mod fio_bins;
pub mod frames;
pub mod grid;
pub mod heatmap;
pub mod histogram;
pub mod input;
pub mod ledger;
pub mod linear;
pub mod lines;
pub mod log2;
pub mod map_sums;
pub mod names;
pub mod nfs;
pub mod number;
pub mod pairing;
pub mod readers;
pub mod scan;
pub mod statuses;
pub mod summary;
pub mod syscall;
mod thrift;
pub mod trace;
pub mod tracefs;
