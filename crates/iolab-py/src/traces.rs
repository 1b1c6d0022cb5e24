// SPDX-License-Identifier: Apache-2.0
//! Traces for Python: `trace_*` of `iolab._core`.

use iolab_core::batch::{Batch, Column};
use iolab_core::error::TraceError;
use iolab_core::event::{Dimension, Op, DIMENSIONS};
use iolab_core::filter::Filter;
use iolab_core::grid::Grid;
use iolab_core::heatmap::{self, HeatMap, Scale, Spec, Weight, Y};
use iolab_core::readers::Work;
use iolab_core::scan::{scan, Scanned};
use iolab_core::summary::{Distribution, Summary};
use iolab_core::trace::{self, Trace};
use iolab_core::{fio_bins, input};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of names of a dimension in a summary.
const LARGEST: usize = 20;

type Where = Option<BTreeMap<String, Vec<String>>>;

fn value_error(error: TraceError) -> PyErr {
    PyValueError::new_err(error.0)
}

fn filter(conditions: &Where) -> PyResult<Filter> {
    let conditions = conditions.iter().flatten().map(|(key, words)| (key.as_str(), words.as_slice()));
    Filter::new(conditions).map_err(value_error)
}

/// Runs `work` without the interpreter lock on a separate thread, so that Ctrl-C works even while that thread
/// waits for a pipe.
fn run_interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, TraceError> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, mut finished) = mpsc::channel();
    let thread_stop = Arc::clone(&stop);
    std::thread::spawn(move || {
        // after a signal there is no receiver
        let _ = done.send(work(&thread_stop));
    });
    loop {
        let (result, receiver) = py.detach(move || (finished.recv_timeout(Duration::from_millis(100)), finished));
        finished = receiver;
        match result {
            Ok(result) => return result.map_err(value_error),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the native reader panicked: this is a defect of iolab"))
            }
        }
        if let Err(signal) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            return Err(signal);
        }
    }
}

/// Adds the counts of the reader.
fn put_ledger<S>(out: &Bound<'_, PyDict>, scanned: &Scanned<S>, trace: &Trace) -> PyResult<()> {
    let ledger = &scanned.work.ledger;
    out.set_item("format", trace.format)?;
    out.set_item("averaged", trace.averaged)?;
    out.set_item("assumptions", &trace.assumptions)?;
    out.set_item("damaged", ledger.damaged)?;
    out.set_item("damaged_examples", ledger.examples(&scanned.lines_of_block))?;
    out.set_item("losses", ledger.losses)?;
    out.set_item("unpaired", ledger.unpaired)
}

/// Names of the formats that can be read.
#[pyfunction]
pub fn trace_formats() -> Vec<&'static str> {
    trace::FORMATS.to_vec()
}

/// Names of the operations, by their code.
#[pyfunction]
pub fn trace_ops() -> Vec<&'static str> {
    Op::ALL.map(Op::name).to_vec()
}

/// Format of the trace at `path`, None if it is unknown.
#[pyfunction]
pub fn trace_detect(py: Python<'_>, path: &str) -> PyResult<Option<&'static str>> {
    if path == "-" {
        return Err(PyValueError::new_err(
            "the format of standard input cannot be detected beforehand: input that is read cannot be read again",
        ));
    }
    let format = py.detach(|| input::open(path).map(|input| trace::detect(&input.head, &input.name)));
    format.map_err(value_error)
}

/// Summary of a trace, in one pass.
#[pyfunction]
#[pyo3(signature = (path, format=None, columns=None, r#where=None))]
pub fn trace_summary<'py>(
    py: Python<'py>,
    path: String,
    format: Option<String>,
    columns: Option<String>,
    r#where: Where,
) -> PyResult<Bound<'py, PyDict>> {
    let filter = filter(&r#where)?;
    let (trace, mut scanned) = run_interruptible(py, move |stop| {
        let mut trace = Trace::open(&path, format.as_deref(), columns.as_deref())?;
        let scanned = scan(&mut trace, |work| Summary::new(filter.clone(), work), None, stop)?;
        let seen = scanned.sink.events + scanned.sink.skipped;
        trace.refuse_unread(seen, &scanned.work.ledger, &scanned.lines_of_block)?;
        Ok((trace, scanned))
    })?;
    let out = PyDict::new(py);
    put_ledger(&out, &scanned, &trace)?;
    let backwards = scanned.sink.backwards();
    let (summary, names) = (&scanned.sink, &scanned.work.names);
    out.set_item("events", summary.events)?;
    out.set_item("skipped_by_filter", summary.skipped)?;
    out.set_item("first_ns", summary.span.map(|span| span.0))?;
    out.set_item("last_ns", summary.span.map(|span| span.1))?;
    out.set_item("backwards", backwards)?;
    out.set_item("has", summary.has())?;
    out.set_item("bits", fio_bins::FIO_BITS)?;
    let (ops, of_op) = (PyDict::new(py), PyDict::new(py));
    for op in Op::ALL.into_iter().filter(|&op| summary.ops[op as usize] > 0) {
        ops.set_item(op.name(), summary.ops[op as usize])?;
        if let Some(percentiles) = percentiles(py, &summary.latency_of_op[op as usize])? {
            of_op.set_item(op.name(), percentiles)?;
        }
    }
    out.set_item("ops", ops)?;
    let (keys, distinct, other, by) = (PyDict::new(py), PyDict::new(py), PyDict::new(py), PyDict::new(py));
    by.set_item("op", of_op)?;
    for dimension in Dimension::ALL {
        let largest = summary.largest(dimension, names, LARGEST);
        let latencies = PyDict::new(py);
        for (name, _, latency) in &largest {
            if let Some(percentiles) = latency.map(|latency| percentiles(py, latency)).transpose()?.flatten() {
                latencies.set_item(name, percentiles)?;
            }
        }
        by.set_item(dimension.name(), latencies)?;
        keys.set_item(dimension.name(), largest.into_iter().map(|(name, count, _)| (name, count)).collect::<Vec<_>>())?;
        distinct.set_item(dimension.name(), summary.distinct(dimension))?;
        other.set_item(dimension.name(), summary.other(dimension, names))?;
    }
    out.set_item("keys", keys)?;
    out.set_item("distinct", distinct)?;
    out.set_item("other", other)?;
    out.set_item("latency_by", by)?;
    let (all, means) = (PyDict::new(py), PyDict::new(py));
    for (name, distribution) in [("latency", &summary.latency), ("size", &summary.size)] {
        if let (Some(percentiles), Some(mean)) = (percentiles(py, distribution)?, distribution.mean()) {
            percentiles.del_item("count")?;
            all.set_item(name, percentiles)?;
            means.set_item(name, mean)?;
        }
    }
    out.set_item("percentiles", all)?;
    out.set_item("mean", means)?;
    Ok(out)
}

fn percentiles<'py>(py: Python<'py>, distribution: &Distribution) -> PyResult<Option<Bound<'py, PyDict>>> {
    if distribution.count() == 0 {
        return Ok(None);
    }
    let out = PyDict::new(py);
    out.set_item("count", distribution.count())?;
    for (name, value) in distribution.percentiles() {
        out.set_item(name, value)?;
    }
    Ok(Some(out))
}

/// Histograms of `y` per interval of time, directly from the trace.
#[pyfunction]
#[pyo3(signature = (path, y, *, format=None, columns=None, r#where=None, bits=3, interval_ns=None, columns_wanted=400, y_low=None,
    y_high=None, linear_buckets=None, weight="count"))]
#[allow(clippy::too_many_arguments)] // the keywords of the Python function
pub fn trace_heatmap<'py>(
    py: Python<'py>,
    path: String,
    y: &str,
    format: Option<String>,
    columns: Option<String>,
    r#where: Where,
    bits: u32,
    interval_ns: Option<i64>,
    columns_wanted: u32,
    y_low: Option<u64>,
    y_high: Option<u64>,
    linear_buckets: Option<u32>,
    weight: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let filter = filter(&r#where)?;
    let default = Spec::new(Y::of_name(y).map_err(value_error)?);
    let spec = Spec {
        bits,
        interval_ns,
        columns_wanted,
        low: y_low,
        high: y_high,
        linear_buckets: linear_buckets.or(default.linear_buckets),
        weight: Weight::of_name(weight).map_err(value_error)?,
        ..default
    };
    spec.check().map_err(value_error)?;
    let (trace, map, scanned) = run_interruptible(py, move |stop| {
        let mut trace = Trace::open(&path, format.as_deref(), columns.as_deref())?;
        let (map, scanned) = heatmap::heatmap(&mut trace, &spec, &filter, None, stop)?;
        trace.refuse_unread(map.tally.seen(), &scanned.work.ledger, &scanned.lines_of_block)?;
        Ok((trace, map, scanned))
    })?;
    let out = PyDict::new(py);
    put_ledger(&out, &scanned, &trace)?;
    put_map(py, &out, &map)?;
    Ok(out)
}

fn put_map(py: Python<'_>, out: &Bound<'_, PyDict>, map: &HeatMap) -> PyResult<()> {
    out.set_item("t0_ns", map.t0_ns)?;
    out.set_item("interval_ns", map.interval_ns)?;
    out.set_item("column_count", map.column_count)?;
    match map.scale {
        Scale::Log(grid) => {
            out.set_item("grid", "log")?;
            out.set_item("bits", grid.bits())?;
        }
        Scale::Linear { low, width, buckets } => {
            out.set_item("grid", "linear")?;
            out.set_item("low", low)?;
            out.set_item("width", width)?;
            out.set_item("buckets", buckets)?;
        }
    }
    out.set_item("column", bytes(py, &map.column, |value| value.to_le_bytes()))?;
    out.set_item("index", bytes(py, &map.index, |value| value.to_le_bytes()))?;
    out.set_item("count", bytes(py, &map.count, |value| value.to_le_bytes()))?;
    out.set_item("events", map.tally.events)?;
    out.set_item("outside", map.tally.outside)?;
    out.set_item("without_y", map.tally.without_y)?;
    out.set_item("skipped_by_filter", map.tally.skipped)
}

fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    little: impl Fn(T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &values.iter().flat_map(|&value| little(value)).collect::<Vec<u8>>())
}

/// The events of a trace, in batches.
#[pyclass]
pub struct TraceEvents {
    trace: Mutex<Trace>, // never locked; makes the class Send and Sync
    work: Work,
    batch: Batch,
    batch_rows: usize,
    ended: bool,
    /// Rows returned so far.
    rows: u64,
    /// Number of names of each dimension that were already returned.
    returned_names: [usize; DIMENSIONS],
}

/// Returns the events in batches, in the order of the trace.
#[pyfunction]
#[pyo3(signature = (path, format=None, columns=None, r#where=None, batch=65536))]
pub fn trace_events(
    py: Python<'_>,
    path: &str,
    format: Option<&str>,
    columns: Option<&str>,
    r#where: Where,
    batch: usize,
) -> PyResult<TraceEvents> {
    let filter = filter(&r#where)?;
    let trace = py.detach(|| Trace::open(path, format, columns)).map_err(value_error)?;
    let mut work = Work::default();
    let events = Batch::new(filter, &mut work);
    Ok(TraceEvents {
        trace: Mutex::new(trace),
        work,
        batch: events,
        batch_rows: batch.max(1),
        ended: false,
        rows: 0,
        returned_names: [0; DIMENSIONS],
    })
}

#[pymethods]
impl TraceEvents {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        while !self.ended && self.batch.rows() < self.batch_rows {
            let Self { trace, work, batch, .. } = self;
            let trace = trace.get_mut().map_err(|_| PyRuntimeError::new_err("an earlier batch failed"))?;
            let more = py.detach(|| trace.step(work, batch));
            self.ended = !more.map_err(|error| PyValueError::new_err(format!("reading failed: {error}")))?;
            py.check_signals()?;
        }
        self.rows += self.batch.rows() as u64;
        if self.ended {
            let trace = self.trace.get_mut().map_err(|_| PyRuntimeError::new_err("an earlier batch failed"))?;
            trace.refuse_unread(self.rows + self.batch.skipped, &self.work.ledger, &[]).map_err(value_error)?;
            if self.batch.rows() == 0 {
                return Ok(None);
            }
        }
        let out = self.columns(py)?;
        self.batch.clear();
        Ok(Some(out))
    }
}

impl TraceEvents {
    fn columns<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        let batch = &self.batch;
        out.set_item("rows", batch.rows())?;
        out.set_item("time_ns", bytes(py, &batch.time_ns, |value| value.to_le_bytes()))?;
        out.set_item("op", PyBytes::new(py, &batch.op))?;
        out.set_item("count", bytes(py, &batch.count, |value| value.to_le_bytes()))?;
        for (name, Column { values, valid }) in ["latency_ns", "offset_bytes", "size_bytes"].iter().zip(&batch.values) {
            out.set_item(*name, bytes(py, values, |value| value.to_le_bytes()))?;
            out.set_item(format!("{name}_valid"), PyBytes::new(py, valid))?;
        }
        let grid = Grid::new(fio_bins::FIO_BITS).expect("6 bits are offered");
        // with 6 bits the indices of all 64-bit values stay below 4096
        out.set_item(
            "latency_bucket",
            bytes(py, &batch.values[0].values, |value| (grid.index(value) as u16).to_le_bytes()),
        )?;
        for (dimension, Column { values, valid }) in Dimension::ALL.into_iter().zip(&batch.keys) {
            let name = dimension.name();
            out.set_item(name, bytes(py, values, |value| value.to_le_bytes()))?;
            out.set_item(format!("{name}_valid"), PyBytes::new(py, valid))?;
            let table = self.work.names.table(dimension);
            let returned = &mut self.returned_names[dimension as usize];
            let new = (*returned..table.len()).map(|id| iolab_core::names::text(table.name(id as u32)));
            out.set_item(format!("{name}_names"), PyList::new(py, new.collect::<Vec<_>>())?)?;
            *returned = table.len();
        }
        let ledger = &self.work.ledger;
        out.set_item("damaged", ledger.damaged)?;
        out.set_item("losses", ledger.losses)?;
        out.set_item("unpaired", ledger.unpaired)?;
        out.set_item("skipped_by_filter", batch.skipped)?;
        let trace = self.trace.get_mut().map_err(|_| PyRuntimeError::new_err("an earlier batch failed"))?;
        out.set_item("format", trace.format)?;
        out.set_item("averaged", trace.averaged)?;
        out.set_item("assumptions", &trace.assumptions)?;
        Ok(out)
    }
}
