//! Where tracefs is, and what it says.

use crate::failure::Failure;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The directory of tracefs, where it is mounted and open to us.
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
    if !nix::unistd::geteuid().is_root() && said.is_none() {
        return Err(Failure::not_permitted("recording needs root; run it with sudo"));
    }
    Err(Failure::not_possible(format!(
        "tracefs is not mounted at {}; mount it (mount -t tracefs tracefs /sys/kernel/tracing), or this kernel was built without tracing",
        places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
    )))
}

/// A tracepoint's own file in tracefs.
pub fn event_file(tracefs: &Path, group: &str, name: &str, file: &str) -> PathBuf {
    tracefs.join("events").join(group).join(name).join(file)
}

/// Read a small text file. Some files of tracefs give what fits one call and then end, so the call must be large.
pub fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::io(path, &error);
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let (mut text, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match std::io::Read::read(&mut file, &mut part).map_err(failed)? {
            0 => break,
            bytes => text.extend_from_slice(&part[..bytes]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Write a word into a file of the kernel.
pub fn write(path: &Path, word: &str) -> Result<(), Failure> {
    // opened without creating: a file that is absent is a feature that is absent
    let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(|error| Failure::io(path, &error))?;
    std::io::Write::write_all(&mut file, word.as_bytes()).map_err(|error| Failure::io(path, &error))
}
