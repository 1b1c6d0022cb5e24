// SPDX-License-Identifier: Apache-2.0
//! Standard output, written by a separate thread, so that a slow reader delays neither the clock nor signals.

use iolab_core::frames::{frame, Kind};
use serde_json::Value;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of pending bytes. Above it, the rings are not read.
const WAITING: usize = 32 << 20;

/// Writer of frames.
pub struct Output {
    frames: Option<Sender<Vec<u8>>>,
    waiting: Arc<AtomicUsize>,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Output {
    /// Start the writer thread.
    pub fn start() -> Self {
        let (frames, receiver) = mpsc::channel::<Vec<u8>>();
        let (waiting, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (theirs, said) = (Arc::clone(&waiting), Arc::clone(&closed));
        let thread = std::thread::spawn(move || {
            let mut out = std::io::stdout().lock();
            for frame in receiver {
                let done = out.write_all(&frame).and_then(|()| out.flush());
                theirs.fetch_sub(frame.len(), Ordering::Relaxed);
                if done.is_err() {
                    said.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        Self { frames: Some(frames), waiting, closed, thread: Some(thread) }
    }

    /// Write a frame of columns.
    pub fn columns(&self, kind: Kind, payload: &[u8]) {
        let frame = frame(kind, payload);
        self.waiting.fetch_add(frame.len(), Ordering::Relaxed);
        if self.frames.as_ref().is_none_or(|frames| frames.send(frame).is_err()) {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Write a JSON frame.
    pub fn words(&self, kind: Kind, words: &Value) {
        self.columns(kind, words.to_string().as_bytes());
    }

    /// Number of pending bytes.
    pub fn backlog(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the maximum of pending bytes is reached.
    pub fn is_full(&self) -> bool {
        self.backlog() > WAITING
    }

    /// Whether the reader closed the pipe.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Wait until all frames are written, up to a timeout: a stuck reader must not block the probe.
    pub fn finish(mut self, patience: Duration) {
        drop(self.frames.take());
        let end = Instant::now() + patience;
        while self.backlog() > 0 && !self.is_closed() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.backlog() == 0 || self.is_closed() {
            if let Some(thread) = self.thread.take() {
                // a panic in the thread has already printed its message
                let _ = thread.join();
            }
        }
    }
}
