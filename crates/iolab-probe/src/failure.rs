// SPDX-License-Identifier: Apache-2.0
//! Why the probe ends: an exit code and one line.

/// What was asked for makes no sense.
pub const USAGE: u8 = 2;
/// The kernel does not permit it.
pub const NOT_PERMITTED: u8 = 3;
/// This machine cannot do it.
pub const NOT_POSSIBLE: u8 = 4;

/// An end with an exit code and words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// One line: what happened, where, what to do.
    pub words: String,
}

impl Failure {
    /// What was asked for makes no sense.
    pub fn usage(words: impl Into<String>) -> Self {
        Self { code: USAGE, words: words.into() }
    }

    /// The kernel does not permit it.
    pub fn not_permitted(words: impl Into<String>) -> Self {
        Self { code: NOT_PERMITTED, words: words.into() }
    }

    /// This machine cannot do it.
    pub fn not_possible(words: impl Into<String>) -> Self {
        Self { code: NOT_POSSIBLE, words: words.into() }
    }

    /// An operating system's error at a path.
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.display();
        match error.kind() {
            ErrorKind::PermissionDenied => Self::not_permitted(format!(
                "{path}: not permitted; run as root, and where the kernel is locked down (secure boot) tracing stays closed"
            )),
            ErrorKind::NotFound => Self::not_possible(format!("{path}: no such file on this kernel")),
            _ => Self::not_possible(format!("{path}: {error}")),
        }
    }
}
