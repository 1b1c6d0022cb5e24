//! The loops of iolab over bytes and events. No Python, no privilege, no study in here.

pub mod fio_bins;
pub mod grid;
