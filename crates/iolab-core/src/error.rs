// SPDX-License-Identifier: Apache-2.0
//! The error of a trace that cannot be read: one line of text.

/// A trace that cannot be read as requested, with the reason in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError(pub String);

impl TraceError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// An operating system's error at a path.
    pub fn io(path: &str, error: &std::io::Error) -> Self {
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            std::io::ErrorKind::IsADirectory => "is a directory, not a trace".to_owned(),
            _ => error.to_string(),
        };
        Self(format!("{path}: {reason}"))
    }
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceError {}
