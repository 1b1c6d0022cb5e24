// SPDX-License-Identifier: Apache-2.0
//! The recorded system calls: which arguments are kept, and which need their return.

/// A system call, by the name in its tracepoints (`sys_enter_<name>`, `sys_exit_<name>`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the call of that name
pub enum Call {
    Read,
    Write,
    Pread64,
    Pwrite64,
    Readv,
    Writev,
    Preadv,
    Pwritev,
    Preadv2,
    Pwritev2,
    Fsync,
    Fdatasync,
    SyncFileRange,
    Fallocate,
    Sendfile64,
    CopyFileRange,
    Splice,
    Open,
    Openat,
    Openat2,
    OpenByHandleAt,
    Creat,
    Close,
    CloseRange,
    Dup,
    Dup2,
    Dup3,
    Fcntl,
    Ioctl,
    Lseek,
    Ftruncate,
    Truncate,
    Unshare,
    IoUringSetup,
    IoSetup,
}

/// How a call is traced.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// The call.
    pub call: Call,
    /// Its name.
    pub name: &'static str,
    /// Kept fields of the entry, in the order of the arguments of `Record::Enter`.
    pub fields: &'static [&'static str],
    /// Whether the return is needed.
    pub returns: bool,
    /// Filter on the entry for the kernel, so that other calls cause no record.
    pub filter: Option<&'static str>,
}

/// Maximum number of kept arguments.
pub const ARGUMENTS: usize = 4;

const fn traced(call: Call, name: &'static str, fields: &'static [&'static str], returns: bool) -> Traced {
    Traced { call, name, fields, returns, filter: None }
}

/// All recorded calls. `close` needs no return: the number is free whatever it returns. Of `ioctl` only the two
/// requests that set and clear close-on-exec are recorded, of `fcntl` those that duplicate or change a descriptor.
pub const TRACED: [Traced; 35] = [
    traced(Call::Read, "read", &["fd"], true),
    traced(Call::Write, "write", &["fd"], true),
    traced(Call::Pread64, "pread64", &["fd", "pos"], true),
    traced(Call::Pwrite64, "pwrite64", &["fd", "pos"], true),
    traced(Call::Readv, "readv", &["fd"], true),
    traced(Call::Writev, "writev", &["fd"], true),
    traced(Call::Preadv, "preadv", &["fd", "pos_l"], true),
    traced(Call::Pwritev, "pwritev", &["fd", "pos_l"], true),
    traced(Call::Preadv2, "preadv2", &["fd", "pos_l"], true),
    traced(Call::Pwritev2, "pwritev2", &["fd", "pos_l", "flags"], true),
    traced(Call::Fsync, "fsync", &["fd"], true),
    traced(Call::Fdatasync, "fdatasync", &["fd"], true),
    traced(Call::SyncFileRange, "sync_file_range", &["fd", "offset"], true),
    traced(Call::Fallocate, "fallocate", &["fd", "mode", "offset", "len"], true),
    traced(Call::Sendfile64, "sendfile64", &["in_fd", "offset", "out_fd"], true),
    traced(Call::CopyFileRange, "copy_file_range", &["fd_in", "off_in", "fd_out", "off_out"], true),
    traced(Call::Splice, "splice", &["fd_in", "off_in", "fd_out", "off_out"], true),
    traced(Call::Open, "open", &["flags"], true),
    traced(Call::Openat, "openat", &["flags"], true),
    traced(Call::Openat2, "openat2", &[], true),
    traced(Call::OpenByHandleAt, "open_by_handle_at", &["flags"], true),
    traced(Call::Creat, "creat", &[], true),
    traced(Call::Close, "close", &["fd"], false),
    traced(Call::CloseRange, "close_range", &["fd", "max_fd", "flags"], true),
    traced(Call::Dup, "dup", &["fildes"], true),
    traced(Call::Dup2, "dup2", &["oldfd", "newfd"], true),
    traced(Call::Dup3, "dup3", &["oldfd", "newfd", "flags"], true),
    Traced {
        // F_DUPFD, F_SETFD, F_SETFL, F_DUPFD_CLOEXEC
        filter: Some("cmd == 0 || cmd == 2 || cmd == 4 || cmd == 1030"),
        ..traced(Call::Fcntl, "fcntl", &["fd", "cmd", "arg"], true)
    },
    Traced {
        // FIONCLEX, FIOCLEX
        filter: Some("cmd == 0x5450 || cmd == 0x5451"),
        ..traced(Call::Ioctl, "ioctl", &["fd", "cmd"], false)
    },
    traced(Call::Lseek, "lseek", &["fd", "offset", "whence"], true),
    traced(Call::Ftruncate, "ftruncate", &["fd", "length"], true),
    traced(Call::Truncate, "truncate", &[], false),
    traced(Call::Unshare, "unshare", &["unshare_flags"], true),
    traced(Call::IoUringSetup, "io_uring_setup", &[], false),
    traced(Call::IoSetup, "io_setup", &[], false),
];

impl Call {
    /// Name of the call, as in events.
    pub fn name(self) -> &'static str {
        TRACED[self as usize].name
    }

    /// Whether it opens a descriptor from a path or handle.
    pub fn opens(self) -> bool {
        matches!(self, Call::Open | Call::Openat | Call::Openat2 | Call::OpenByHandleAt | Call::Creat)
    }

    /// Whether it makes a row if it is on a file.
    pub fn moves_data(self) -> bool {
        (self as usize) <= Call::Splice as usize
    }

    /// Whether recording needs this call: the kernel must have at least these tracepoints.
    pub fn needed(self) -> bool {
        matches!(self, Call::Read | Call::Write | Call::Openat | Call::Close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_calls() {
        for (index, traced) in TRACED.iter().enumerate() {
            assert_eq!(traced.call as usize, index, "{}", traced.name);
            assert!(traced.fields.len() <= ARGUMENTS);
        }
    }
}
