// SPDX-License-Identifier: Apache-2.0
//! Mount point and files of tracefs.

use crate::failure::Failure;
use crate::limited::TABLE;
use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The mount point of tracefs, if this process may read it. If tracefs is not mounted, root mounts it in a private
/// namespace. Call this before any thread is started.
pub fn find(said: Option<&Path>) -> Result<PathBuf, Failure> {
    let places = said.map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |place| vec![place.to_path_buf()]);
    let mut refused = None;
    for place in &places {
        match std::fs::read_dir(place.join("events")) {
            Ok(_) => return Ok(place.clone()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => refused = Some((place.clone(), error)),
            Err(_) => {}
        }
    }
    if let Some((place, error)) = refused {
        return Err(Failure::io(&place, &error));
    }
    if said.is_none() {
        if !nix::unistd::geteuid().is_root() {
            return Err(Failure::not_permitted("recording needs root; run it with sudo"));
        }
        let failed = match mount_for_us(Path::new(PLACES[0])) {
            Ok(place) => return Ok(place),
            Err(error) => error,
        };
        return Err(Failure::not_possible(format!(
            "tracefs is not mounted, and could not be mounted for this process alone ({}): this kernel was built without tracing, \
             or a container forbids it; mount it outside (mount -t tracefs tracefs {})",
            failed.desc(),
            PLACES[0]
        )));
    }
    Err(Failure::not_possible(format!(
        "tracefs is not mounted at {}",
        places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
    )))
}

/// The existing mount point of tracefs; does not mount it.
pub fn mounted(said: Option<&Path>) -> Option<PathBuf> {
    let places = said.map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |place| vec![place.to_path_buf()]);
    places.into_iter().find(|place| place.join("instances").is_dir())
}

/// Mount tracefs in a private mount namespace: the machine does not change, and the mount ends with the process.
fn mount_for_us(place: &Path) -> Result<PathBuf, Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing: Option<&str> = None;
    // mounts of this namespace are not propagated; new mounts of the machine still appear here
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_SLAVE, nothing)?;
    // the kernel has an empty directory for it; before 4.1 only that of debugfs
    let places = [place, Path::new("/sys/kernel/debug")];
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let mut last = Errno::ENOENT;
    for place in places {
        match mount(Some("tracefs"), place, Some("tracefs"), flags, nothing) {
            Ok(()) => return Ok(place.to_path_buf()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A file of a tracepoint in tracefs.
pub fn event_file(tracefs: &Path, group: &str, name: &str, file: &str) -> PathBuf {
    tracefs.join("events").join(group).join(name).join(file)
}

/// Read a small text file. Some tracefs files return only one read's data, so the buffer must be large.
pub fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::io(path, &error);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let (mut text, mut part) = (Vec::new(), vec![0; 1 << 16]);
    while text.len() < TABLE {
        match std::io::Read::read(&mut file, &mut part).map_err(failed)? {
            0 => break,
            bytes => text.extend_from_slice(&part[..bytes]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Write a word to a file of the kernel.
pub fn write(path: &Path, word: &str) -> Result<(), Failure> {
    // opened without O_CREAT: a missing file means a missing feature
    let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(|error| Failure::io(path, &error))?;
    std::io::Write::write_all(&mut file, word.as_bytes()).map_err(|error| Failure::io(path, &error))
}
