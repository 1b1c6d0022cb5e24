// SPDX-License-Identifier: Apache-2.0
//! Sums of default maps for Python: `sum_maps` of `iolab._core`.

use iolab_core::map_sums::{self, Content, Key, Map, MapError, Wanted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A map: its content, or its file.
#[derive(FromPyObject)]
pub enum MapInput {
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// Group (uint32), column (int64), bucket and key (uint32), I/Os and time spent (int64) of each row,
/// and the keys.
type Columns<'py> = ([Bound<'py, PyBytes>; 6], Vec<Key>);

/// Sums of default maps. OSError if a file can't be opened; ValueError(index, reason) if a map
/// is damaged or unsupported.
#[pyfunction]
#[pyo3(signature = (maps, source, interval_ns, span, *, by, is_timed, threads))]
#[allow(clippy::too_many_arguments)] // the keywords of the Python function
pub fn sum_maps<'py>(
    py: Python<'py>,
    maps: Vec<(MapInput, u32)>,
    source: String,
    interval_ns: i64,
    span: (i64, i64),
    by: Vec<String>,
    is_timed: bool,
    threads: usize,
) -> PyResult<Columns<'py>> {
    if interval_ns <= 0 {
        return Err(PyValueError::new_err("the length of columns must be above 0"));
    }
    let is_by = |name: &str| by.iter().any(|field| field == name);
    let request = Wanted {
        source,
        interval_ns,
        from_ns: span.0,
        until_ns: span.1,
        by_bucket: is_by("index"),
        by_op: is_by("op"),
        by_device: is_by("device"),
        is_timed,
    };
    let maps: Vec<Map> = maps
        .into_iter()
        .map(|(input, group)| {
            let content = match input {
                MapInput::Bytes(bytes) => Content::Bytes(bytes),
                MapInput::File(path) => Content::File(path),
            };
            Map { content, group }
        })
        .collect();
    let sums = py.detach(|| map_sums::sum_maps(&maps, &request, threads)).map_err(|error| match error {
        MapError::Io(_, error) => PyErr::from(error),
        MapError::Unreadable(place, reason) => PyValueError::new_err((place, reason.0)),
    })?;
    let columns = [
        bytes_of(py, &sums.group, u32::to_le_bytes)?,
        bytes_of(py, &sums.column, i64::to_le_bytes)?,
        bytes_of(py, &sums.bucket, u32::to_le_bytes)?,
        bytes_of(py, &sums.key, u32::to_le_bytes)?,
        bytes_of(py, &sums.ios, i64::to_le_bytes)?,
        bytes_of(py, &sums.spent, i64::to_le_bytes)?,
    ];
    Ok((columns, sums.keys))
}

fn bytes_of<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * values.len(), |buffer| {
        for (place, &value) in buffer.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&bytes(value));
        }
        Ok(())
    })
}
