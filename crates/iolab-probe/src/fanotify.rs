// SPDX-License-Identifier: Apache-2.0
//! Opens of files, as fanotify tells them, for their names.
//!
//! Records bear handles, not descriptors: nothing is opened on anybody's behalf, no mount is kept busy, and the name is that of
//! the moment of opening. A thread reads them as they come, for two reasons: records of the same file that wait become one, and
//! a directory that is removed soon after can still be asked for its path.

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

/// Handles of objects and of their directories, with names (`FAN_REPORT_FID | FAN_REPORT_DIR_FID | FAN_REPORT_NAME`), which
/// the wrapper has no words for.
const HANDLES_AND_NAMES: u32 = 0x200 | 0x400 | 0x800;
/// Name space of process numbers of the kernel's first process.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";
const BUFFER: usize = 256 << 10;
/// Readings in a tenth of a second beyond which a pause is made between them.
const OFTEN: u32 = 500;
const PAUSE: Duration = Duration::from_micros(100);

/// The queue of records, and what they are turned into.
struct Drain {
    queue: OwnedFd,
    group: Arc<Fanotify>,
    buffer: Vec<u8>,
    names: Names,
    notices: Vec<Notice>,
    /// When the queue was empty last.
    empty_ns: u64,
    /// From one time at which it was empty to another, without a record between them.
    quiet: Vec<(u64, u64)>,
    /// Tasks of this process that open files for these questions.
    own: Vec<i32>,
    /// File systems that give no notices, by device number and kind.
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

/// A group that reports handles, names and threads without a limit on its queue.
///
/// # Errors
/// The kernel refuses, or this is not the first namespace of processes: there a report has another number for a task than /proc.
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
    /// Begin to watch. `asked` are the device numbers of the file systems whose I/O is asked for; all are watched, as an open
    /// on one must not be taken for an open on another.
    pub fn start(asked: Option<Vec<u64>>) -> Result<Self, Errno> {
        let group = Arc::new(open_group()?);
        let queue = group.as_fd().try_clone_to_owned().map_err(|_| Errno::EMFILE)?;
        let mut drain = Drain {
            queue,
            group,
            buffer: vec![0; BUFFER],
            names: Names::new(asked),
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
        let thread = std::thread::Builder::new().name("opens".into()).spawn(move || follow(&theirs, &ended));
        Ok(Self { drain, stop, thread: Some(thread.map_err(|_| Errno::EAGAIN)?) })
    }

    /// Read what waits, so that it is known when the queue was empty.
    pub fn read(&self) {
        lock(&self.drain).read();
    }

    /// All records of opens so far, and the times at which the queue was empty.
    pub fn take(&self) -> (Vec<Notice>, Vec<(u64, u64)>) {
        let mut drain = lock(&self.drain);
        drain.read();
        (std::mem::take(&mut drain.notices), std::mem::take(&mut drain.quiet))
    }

    /// Whether opens on every file system that holds data are told.
    pub fn is_complete(&self) -> bool {
        lock(&self.drain).unwatched.is_empty()
    }

    /// What is worth a note since the last call.
    pub fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.drain).words)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // it looks at `stop` several times a second; a panic in there has said its words already
            let _ = thread.join();
        }
    }
}

fn lock(drain: &Mutex<Drain>) -> MutexGuard<'_, Drain> {
    drain.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Read records as they come, and watch what is mounted meanwhile.
fn follow(drain: &Mutex<Drain>, stop: &AtomicBool) {
    let queue = {
        let mut drain = lock(drain);
        drain.own.push(gettid().as_raw());
        drain.queue.try_clone()
    };
    let (Ok(queue), Ok(mounts)) = (queue, File::open("/proc/self/mountinfo")) else { return };
    let (mut since, mut readings) = (Instant::now(), 0);
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
        if since.elapsed() > Duration::from_millis(100) {
            (since, readings) = (Instant::now(), 0);
        } else if readings > OFTEN {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drain {
    /// Watch what is mounted. What is watched already is marked again: between two looks a file system may have been unmounted,
    /// and its device number given to another one.
    fn mark(&mut self) {
        let mounts = Mounts::of("self");
        let mask = MaskFlags::FAN_OPEN | MaskFlags::FAN_OPEN_EXEC | MaskFlags::FAN_MOVED_FROM | MaskFlags::FAN_ONDIR;
        let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
        let chosen = mounts.one_of_each();
        let key = |mount: &Mount| (mount.device, mount.kind.clone());
        self.refused.retain(|refused| chosen.iter().any(|mount| key(mount) == *refused));
        let mut watched = Vec::new();
        for mount in chosen {
            if self.refused.contains(&key(mount)) {
                continue;
            }
            let Err(error) = self.group.mark(flags, mask, AT_FDCWD, Some(&mount.path)) else {
                watched.push(mount);
                continue;
            };
            self.refused.insert(key(mount));
            if !mount.is_of_the_kernel() {
                let place = mount.path.display().to_string();
                self.words.push(format!(
                    "opens on {place} ({}) cannot be watched ({}): names of files there come from /proc alone",
                    mount.kind,
                    error.desc()
                ));
                self.unwatched.push(place);
            }
        }
        self.names.watch(&watched);
    }

    /// Read until nothing waits.
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
        let whole = parse(bytes, |raw| {
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
                // a program is opened to be executed, without a call of open
                optional: raw.mask & mask::OPEN_EXEC != 0,
            };
            notices.push(Notice { task: raw.task as u32, window, opened: names.opened(&raw) });
        });
        if whole.is_err() || overflow {
            self.words.push("some names of opened files were lost: fanotify's queue was damaged or full".to_owned());
        }
    }
}
