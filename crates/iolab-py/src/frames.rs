// SPDX-License-Identifier: Apache-2.0
//! Frames for Python: `FrameReader` of `iolab._core`.

use iolab_core::error::TraceError;
use iolab_core::frames::events::{Events, COLUMNS};
use iolab_core::frames::reader::{Frame, Reader};
use iolab_core::frames::{samples, Kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Reads the frames of the probe from a stream of bytes.
#[pyclass]
#[derive(Default)]
pub struct FrameReader {
    reader: Reader,
}

#[pymethods]
impl FrameReader {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Add bytes. Returns the frames that are complete.
    fn feed<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let reader = &mut self.reader;
        let frames = py.detach(|| reader.feed(data)).map_err(|error| PyValueError::new_err(error.0))?;
        let out = PyList::empty(py);
        for frame in frames {
            out.append(match frame {
                Frame::Events(events) => of_events(py, &events)?,
                Frame::Samples(samples) => of_samples(py, &samples)?,
                Frame::Words(kind, json) => of_words(py, kind, &json).inspect_err(|error| {
                    self.reader.refuse(TraceError::new(error.value(py).to_string()));
                })?,
            })?;
        }
        Ok(out)
    }

    /// Bytes of an incomplete frame.
    fn unfinished(&self) -> usize {
        self.reader.unfinished()
    }
}

fn of_events<'py>(py: Python<'py>, events: &Events) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("kind", Kind::Events.name())?;
    out.set_item("source", &events.source)?;
    out.set_item("rows", events.rows)?;
    for (column, read) in COLUMNS.iter().zip(&events.columns) {
        out.set_item(column.name, PyBytes::new(py, &read.values))?;
        if column.nullable {
            out.set_item(format!("{}_valid", column.name), PyBytes::new(py, &read.valid))?;
        }
        if column.named {
            out.set_item(format!("{}_names", column.name), &read.names)?;
            out.set_item(format!("{}_restarted", column.name), read.restarted)?;
        }
    }
    let buckets: Vec<u8> = events.latency_bucket.iter().flat_map(|bucket| bucket.to_le_bytes()).collect();
    out.set_item("latency_bucket", PyBytes::new(py, &buckets))?;
    Ok(out)
}

fn of_samples<'py>(py: Python<'py>, samples: &samples::Read) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("kind", Kind::Samples.name())?;
    out.set_item("source", &samples.source)?;
    out.set_item("rows", samples.rows)?;
    let [objects, fields] = &samples.ids;
    for (name, values) in
        [("time_ns", &samples.time_ns), ("object", objects), ("field", fields), ("value", &samples.value)]
    {
        out.set_item(name, PyBytes::new(py, values))?;
    }
    let [objects, fields] = &samples.names;
    out.set_item("object_names", objects)?;
    out.set_item("field_names", fields)?;
    Ok(out)
}

/// Parses JSON with Python's `json.loads`; errors become ValueError.
fn of_words<'py>(py: Python<'py>, kind: Kind, json: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let read = py.import("json")?.call_method1("loads", (PyBytes::new(py, json),));
    let words = read.and_then(|words| words.cast_into::<PyDict>().map_err(PyErr::from));
    let words = words
        .map_err(|_| PyValueError::new_err(format!("a frame of kind {} that is not a JSON object", kind.name())))?;
    // the `kind` of a loss becomes `loss_kind`, because `kind` is that of the frame
    if let Some(own) = words.get_item("kind")? {
        words.set_item(format!("{}_kind", kind.name()), own)?;
    }
    words.set_item("kind", kind.name())?;
    Ok(words)
}
