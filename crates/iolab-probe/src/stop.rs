// SPDX-License-Identifier: Apache-2.0
//! Reasons to stop: a signal, the end of standard input or a line `stop` on it, standard output closed.

use crate::failure::Failure;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::read;
use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum size in bytes of an incomplete line.
const LINE: usize = 64;

/// Waits for reasons to stop.
pub struct Stop {
    signals: SignalFd,
    line: RefCell<Vec<u8>>,
    input_failed: Cell<bool>,
    lease: Option<Duration>,
    last_input: Cell<Instant>,
}

impl Stop {
    /// Take over the signals. Call this before any thread is started, because threads inherit the signal mask.
    ///
    /// With a `lease`, silence of that length on standard input is also a reason to stop.
    pub fn listen(lease: Option<Duration>) -> Result<Self, Failure> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT]);
        let failed = |errno: Errno| Failure::not_possible(format!("signals cannot be handled: {errno}"));
        signals.thread_block().map_err(failed)?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(failed)?;
        Ok(Self {
            signals,
            line: RefCell::default(),
            input_failed: Cell::new(false),
            lease,
            last_input: Cell::new(Instant::now()),
        })
    }

    /// Wait up to this time for a reason to stop.
    pub fn wait(&self, milliseconds: u64) -> Result<Option<&'static str>, Failure> {
        if self.lease.is_some_and(|lease| self.last_input.get().elapsed() > lease) {
            return Ok(Some("lease over"));
        }
        let (input, output) = (std::io::stdin(), std::io::stdout());
        let mut files = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(output.as_fd(), PollFlags::empty()), // errors are always reported
        ];
        if !self.input_failed.get() {
            files.push(PollFd::new(input.as_fd(), PollFlags::POLLIN));
        }
        let timeout = PollTimeout::try_from(milliseconds.min(60_000) as i32).unwrap_or(PollTimeout::ZERO);
        match poll(&mut files, timeout) {
            Ok(0) | Err(Errno::EINTR) => return Ok(None),
            Ok(_) => {}
            Err(errno) => return Err(Failure::not_possible(format!("waiting failed: {errno}"))),
        }
        let came = |place: usize| files.get(place).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        if !came(0).is_empty() {
            return Ok(Some("signal"));
        }
        if came(1).intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) {
            return Ok(Some("output closed"));
        }
        if came(2).is_empty() {
            return Ok(None);
        }
        Ok(self.input(&input))
    }

    fn input(&self, input: &std::io::Stdin) -> Option<&'static str> {
        let mut bytes = [0; 256];
        match read(input.as_fd(), &mut bytes) {
            Ok(0) => Some("input closed"),
            Ok(length) => {
                self.last_input.set(Instant::now());
                let mut line = self.line.borrow_mut();
                for &byte in &bytes[..length] {
                    if byte == b'\n' {
                        if line.trim_ascii() == b"stop" {
                            return Some("stop");
                        }
                        line.clear();
                    } else if line.len() < LINE {
                        line.push(byte);
                    }
                }
                None
            }
            Err(Errno::EINTR | Errno::EAGAIN) => None,
            // an input that can't be read (closed at the start) gives no reason; signals and the output remain
            Err(_) => {
                self.input_failed.set(true);
                None
            }
        }
    }
}
