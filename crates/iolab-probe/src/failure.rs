// SPDX-License-Identifier: Apache-2.0
//! Why the probe ends: an exit code and one line of text.

/// The arguments are invalid.
pub const USAGE: u8 = 2;
/// The kernel denies permission.
pub const NOT_PERMITTED: u8 = 3;
/// This machine does not support it.
pub const NOT_POSSIBLE: u8 = 4;

/// An exit code and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    /// One line: what happened, where, what to do.
    pub message: String,
}

impl Failure {
    /// The arguments are invalid.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    /// The kernel denies permission.
    pub fn not_permitted(message: impl Into<String>) -> Self {
        Self { code: NOT_PERMITTED, message: message.into() }
    }

    /// This machine does not support it.
    pub fn not_possible(message: impl Into<String>) -> Self {
        Self { code: NOT_POSSIBLE, message: message.into() }
    }

    /// An error of the operating system at a path.
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.display();
        match error.kind() {
            ErrorKind::PermissionDenied => Self::not_permitted(format!(
                "{path}: not permitted; run as root; a kernel that is locked down (secure boot) permits no tracing"
            )),
            ErrorKind::NotFound => Self::not_possible(format!("{path}: no such file on this kernel")),
            _ => Self::not_possible(format!("{path}: {error}")),
        }
    }
}
