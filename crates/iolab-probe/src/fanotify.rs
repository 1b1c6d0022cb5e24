// SPDX-License-Identifier: Apache-2.0
//! Opened files as reported by fanotify, for their names.
//!
//! Reports have handles instead of descriptors. So no file is opened, no mount is kept busy, and the name is that at
//! the time of the open. A thread reads the reports at once, for two reasons: pending reports of the same file are
//! merged, and the path of a directory that is removed soon after can still be read.

use crate::clock::monotonic_ns;
use crate::fanotify_names::Names;
use crate::files_mounts::{Mount, Mounts};
use iolab_core::syscall::notice::{mask, parse};
use iolab_core::syscall::opens::Window;
use iolab_core::syscall::Notice;
use nix::errno::Errno;
use nix::fcntl::{readlink, AT_FDCWD};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use nix::unistd::{gettid, read};
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Handles of objects and of their directories, with names (`FAN_REPORT_FID | FAN_REPORT_DIR_FID | FAN_REPORT_NAME`);
/// `nix` has no constants for them.
const HANDLES_AND_NAMES: u32 = 0x200 | 0x400 | 0x800;
/// PID namespace of the first process.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";
const BUFFER: usize = 256 << 10;
/// Above this number of readings in 0.1 s, the thread pauses between readings.
const OFTEN: u32 = 500;
const PAUSE: Duration = Duration::from_micros(100);

/// The queue of reports and the notices made from them.
struct Drain {
    queue: OwnedFd,
    group: Arc<Fanotify>,
    buffer: Vec<u8>,
    names: Names,
    notices: Vec<Notice>,
    /// When the queue was last empty.
    empty_ns: u64,
    /// Spans of time from one empty queue to the next, without a report in between.
    quiet: Vec<(u64, u64)>,
    /// Tasks of this process that open files in order to read names.
    own: Vec<i32>,
    /// File systems without notices, by device number and kind.
    refused: HashSet<(u64, String)>,
    unwatched: Vec<String>,
    words: Vec<String>,
}

/// A watch over all file systems.
pub struct Watch {
    drain: Arc<Mutex<Drain>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A group that reports handles, names and threads, with an unlimited queue.
///
/// # Errors
/// The kernel refuses, or this is not the first PID namespace: in another one, task numbers of reports differ from
/// those of /proc.
pub fn open_group() -> Result<Fanotify, Errno> {
    if readlink("/proc/self/ns/pid").is_ok_and(|namespace| namespace != FIRST_PROCESS_NAMESPACE) {
        return Err(Errno::ENOTSUP);
    }
    let flags = InitFlags::FAN_CLASS_NOTIF
        | InitFlags::FAN_CLOEXEC
        | InitFlags::FAN_NONBLOCK
        | InitFlags::FAN_UNLIMITED_QUEUE
        | InitFlags::FAN_UNLIMITED_MARKS
        | InitFlags::FAN_REPORT_TID
        | InitFlags::from_bits_retain(HANDLES_AND_NAMES);
    Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC)
}

impl Watch {
    /// Start watching. `requested` has the device numbers of the file systems to record. All file systems are watched,
    /// because an open on one must not be taken for an open on another.
    pub fn start(requested: Option<Vec<u64>>) -> Result<Self, Errno> {
        let group = Arc::new(open_group()?);
        let queue = group.as_fd().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
        let mut drain = Drain {
            queue,
            group,
            buffer: vec![0; BUFFER],
            names: Names::new(requested),
            notices: Vec::new(),
            empty_ns: monotonic_ns(),
            quiet: Vec::new(),
            own: vec![gettid().as_raw()],
            refused: HashSet::new(),
            unwatched: Vec::new(),
            words: Vec::new(),
        };
        drain.mark();
        let (drain, stop) = (Arc::new(Mutex::new(drain)), Arc::new(AtomicBool::new(false)));
        let (theirs, ended) = (Arc::clone(&drain), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("opens".into()).spawn(move || read_loop(&theirs, &ended));
        Ok(Self { drain, stop, thread: Some(thread.map_err(|_| Errno::EAGAIN)?) })
    }

    /// Read pending reports, to record when the queue was empty.
    pub fn read(&self) {
        lock(&self.drain).read();
    }

    /// All notices so far, and the spans of time without a report.
    pub fn take(&self) -> (Vec<Notice>, Vec<(u64, u64)>) {
        let mut drain = lock(&self.drain);
        drain.read();
        (std::mem::take(&mut drain.notices), std::mem::take(&mut drain.quiet))
    }

    /// Whether all file systems with data are watched.
    pub fn is_complete(&self) -> bool {
        lock(&self.drain).unwatched.is_empty()
    }

    /// Notes since the last call.
    pub fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.drain).words)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // the thread reads `stop` several times a second; a panic in it has already printed its message
            let _ = thread.join();
        }
    }
}

fn lock(drain: &Mutex<Drain>) -> MutexGuard<'_, Drain> {
    drain.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Read reports as they arrive, and watch new mounts.
fn read_loop(drain: &Mutex<Drain>, stop: &AtomicBool) {
    let queue = {
        let mut drain = lock(drain);
        drain.own.push(gettid().as_raw());
        drain.queue.try_clone()
    };
    let (Ok(queue), Ok(mounts)) = (queue, File::open("/proc/self/mountinfo")) else { return };
    let (mut started, mut readings) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let mut watched =
            [PollFd::new(queue.as_fd(), PollFlags::POLLIN), PollFd::new(mounts.as_fd(), PollFlags::POLLPRI)];
        if !matches!(poll(&mut watched, PollTimeout::from(100u8)), Ok(1..)) {
            continue;
        }
        let mounted = watched[1].revents().is_some_and(|events| events.contains(PollFlags::POLLPRI));
        let mut drain = lock(drain);
        if mounted {
            drain.mark();
        }
        drain.read();
        drop(drain);
        readings += 1;
        if started.elapsed() > Duration::from_millis(100) {
            (started, readings) = (Instant::now(), 0);
        } else if readings > OFTEN {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drain {
    /// Watch all mounts. Known ones are marked again: since the last mark, a file system may have been unmounted and
    /// its device number reused.
    fn mark(&mut self) {
        let mounts = Mounts::own();
        let mask = MaskFlags::FAN_OPEN | MaskFlags::FAN_OPEN_EXEC | MaskFlags::FAN_MOVED_FROM | MaskFlags::FAN_ONDIR;
        let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
        let unique = mounts.one_of_each();
        let key = |mount: &Mount| (mount.device, mount.kind.clone());
        self.refused.retain(|refused| unique.iter().any(|mount| key(mount) == *refused));
        let mut watched = Vec::new();
        for mount in unique {
            if self.refused.contains(&key(mount)) {
                continue;
            }
            let why = if mount.answers_at_once() {
                match self.group.mark(flags, mask, AT_FDCWD, Some(&mount.path)) {
                    Ok(()) => {
                        watched.push(mount);
                        continue;
                    }
                    Err(error) => error.desc(),
                }
            } else {
                // marking asks the file system for its numbers: without an answer, it would wait forever
                "another machine or a process serves it"
            };
            self.refused.insert(key(mount));
            if !mount.is_of_the_kernel() {
                let place = mount.path.display().to_string();
                self.words.push(format!(
                    "opens on {place} ({}) cannot be watched ({why}): names of files there come from /proc alone",
                    mount.kind
                ));
                self.unwatched.push(place);
            }
        }
        self.names.watch(&watched);
    }

    /// Read until the queue is empty.
    fn read(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let me = gettid().as_raw();
        if !self.own.contains(&me) {
            self.own.push(me);
        }
        let (first, mut is_quiet) = (self.notices.len(), true);
        self.names.begin();
        loop {
            let before_ns = monotonic_ns();
            match read(&self.queue, &mut buffer) {
                Ok(0) | Err(Errno::EAGAIN) => {
                    match self.quiet.last_mut().filter(|_| is_quiet) {
                        Some(last) => last.1 = before_ns,
                        None => self.quiet.push((if is_quiet { self.empty_ns } else { before_ns }, before_ns)),
                    }
                    self.empty_ns = before_ns;
                    break;
                }
                Ok(length) => {
                    is_quiet = false;
                    self.take(&buffer[..length], monotonic_ns());
                }
                Err(Errno::EINTR) => {}
                Err(error) => {
                    self.words.push(format!("reading the names of opened files failed: {}", error.desc()));
                    break;
                }
            }
        }
        if self.names.end() {
            self.notices[first..].iter_mut().for_each(|notice| self.names.review(&mut notice.opened));
        }
        self.buffer = buffer;
    }

    fn take(&mut self, bytes: &[u8], read_ns: u64) {
        let (names, notices, own, after_ns) = (&mut self.names, &mut self.notices, &self.own, self.empty_ns);
        let mut overflow = false;
        let parsed = parse(bytes, |raw| {
            overflow |= raw.mask & mask::OVERFLOW != 0;
            if raw.mask & mask::MOVED_FROM != 0 && raw.mask & mask::DIRECTORY != 0 {
                names.directory_moved(&raw);
            }
            if raw.mask & mask::OPEN == 0 || own.contains(&raw.task) {
                return;
            }
            let window = Window {
                after_ns,
                before_ns: read_ns,
                directory: raw.mask & mask::DIRECTORY != 0,
                // an executed program is opened without a call of open
                optional: raw.mask & mask::OPEN_EXEC != 0,
            };
            notices.push(Notice { task: raw.task as u32, window, opened: names.opened(&raw) });
        });
        if parsed.is_err() || overflow {
            self.words.push("some names of opened files were lost: fanotify's queue was damaged or full".to_owned());
        }
    }
}
