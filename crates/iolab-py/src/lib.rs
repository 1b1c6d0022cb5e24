// SPDX-License-Identifier: Apache-2.0
//! `iolab._core`: converts types and errors; the work is done in `iolab-core`.

mod frames;
mod maps;
mod traces;

use iolab_core::{digest, fio_bins, grid, histogram, log2, statuses};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn grid_of(bits: u32) -> PyResult<grid::Grid> {
    grid::Grid::new(bits).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn check(indices: &[u32], counts: &[u64]) -> PyResult<()> {
    if indices.len() != counts.len() {
        return Err(PyValueError::new_err("indices and counts differ in number"));
    }
    if !indices.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(PyValueError::new_err("indices must be ascending"));
    }
    Ok(())
}

/// Native core of iolab.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use frames::FrameReader;
    #[pymodule_export]
    use maps::sum_maps;
    #[pymodule_export]
    use traces::{trace_detect, trace_events, trace_formats, trace_heatmap, trace_ops, trace_summary, TraceEvents};

    /// Version of the native core; the import fails if the version of the Python package differs.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Bits per octave of fio's own latency histogram.
    #[pyfunction]
    fn fio_bits() -> u32 {
        fio_bins::FIO_BITS
    }

    /// Grid index of a value.
    #[pyfunction]
    fn grid_index(value: u64, bits: u32) -> PyResult<u32> {
        Ok(grid_of(bits)?.index(value))
    }

    /// Smallest and largest value (inclusive) of a bucket.
    #[pyfunction]
    fn grid_bounds(index: u32, bits: u32) -> PyResult<(u64, u64)> {
        let grid = grid_of(bits)?;
        Ok((grid.lower(index), grid.upper(index)))
    }

    /// Converts fio's json+ bins (nanoseconds, count) to ascending indices and counts on fio's grid.
    #[pyfunction]
    fn take_over_fio_bins(bins: Vec<(u64, u64)>) -> (Vec<u32>, Vec<u64>) {
        fio_bins::take_over(bins)
    }

    /// CRC-32 (that of zlib) of bytes; `value` is the CRC-32 of the preceding bytes.
    #[pyfunction]
    #[pyo3(signature = (data, value = 0))]
    fn crc32(data: &[u8], value: u32) -> u32 {
        digest::crc32(data, value)
    }

    /// CRC-32 (that of zlib) of the content of a file, and its size in bytes. OSError if it can't be read.
    #[pyfunction]
    fn crc32_of_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<(u32, u64)> {
        Ok(py.detach(|| digest::crc32_of_file(&path))?)
    }

    /// Statuses of the sealed files of a directory with numbers above `after`, by number (inode, size,
    /// modification time in ns), and whether a file disappeared during the call. OSError if it can't be read.
    #[pyfunction]
    fn sealed_statuses(py: Python<'_>, folder: std::path::PathBuf, after: u64) -> PyResult<(Bound<'_, PyDict>, bool)> {
        let (statuses, has_vanished) = py.detach(|| statuses::sealed_statuses(&folder, after))?;
        let by_number = PyDict::new(py);
        for (number, inode, size, changed_ns) in statuses {
            by_number.set_item(number, (inode, size, changed_ns))?;
        }
        Ok((by_number, has_vanished))
    }

    /// Values at the quantiles (0 to 1) of counts on a grid; None if there are no counts.
    #[pyfunction]
    fn quantiles(indices: Vec<u32>, counts: Vec<u64>, quantiles: Vec<f64>, bits: u32) -> PyResult<Vec<Option<u64>>> {
        check(&indices, &counts)?;
        if quantiles.iter().any(|q| !(0.0..=1.0).contains(q)) {
            return Err(PyValueError::new_err("a quantile must be from 0 to 1"));
        }
        let grid = grid_of(bits)?;
        Ok(quantiles.iter().map(|&q| grid::quantile(grid, &indices, &counts, q)).collect())
    }

    /// Converts a histogram from the grid of `bits` to the grid of `fewer_bits`.
    #[pyfunction]
    fn coarsen(indices: Vec<u32>, counts: Vec<u64>, bits: u32, fewer_bits: u32) -> PyResult<(Vec<u32>, Vec<u64>)> {
        check(&indices, &counts)?;
        if fewer_bits > bits {
            return Err(PyValueError::new_err("a bucket cannot be divided: fewer bits are needed, not more"));
        }
        Ok(histogram::coarsen(grid_of(bits)?, &indices, &counts, grid_of(fewer_bits)?))
    }

    /// Converts power-of-two counts to the grid of 0 bits.
    #[pyfunction]
    fn take_over_log2(counts: Vec<u64>) -> PyResult<(Vec<u32>, Vec<u64>)> {
        log2::take_over(&counts).ok_or_else(|| PyValueError::new_err("64-bit values have at most 64 powers of two"))
    }
}
