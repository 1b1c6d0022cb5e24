// SPDX-License-Identifier: Apache-2.0
//! `iolab-probe`: reads the trace rings and counters of the kernel, and writes frames to standard output. It is the
//! only part of iolab that runs as root. Its only sockets are two netlink sockets to the kernel's sock_diag. It starts no
//! program. It creates its tracefs instances, which it removes at the end, and a private mount of tracefs if tracefs is
//! not mounted.

mod args;
mod block;
mod capacity;
mod check;
mod clock;
mod counters;
mod counts;
mod failure;
mod fanotify;
mod fanotify_handle;
mod fanotify_names;
mod files;
mod files_mounts;
mod files_start;
mod instance;
mod kstats;
mod limited;
mod memory;
mod nfs;
mod nfs_mounts;
mod nfs_names;
mod output;
mod peers;
mod rings;
mod session;
mod smb_clients;
mod smb_mounts;
mod sock_diag;
mod source;
mod stop;
mod syscall;
mod syscall_record;
mod traced;
mod tracefs;
mod world;

use args::Command;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            eprintln!("iolab-probe: {message}");
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<(), Failure> {
    match args::parse(std::env::args_os().skip(1))? {
        Command::Help => {
            println!("{}", args::HELP);
            Ok(())
        }
        Command::Version => {
            println!("iolab-probe {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Check(settings) => {
            println!("{}", check::check(&settings));
            Ok(())
        }
        Command::Clean(settings) => {
            println!("{}", check::clean(&settings));
            Ok(())
        }
        Command::Record(settings) => {
            memory::map_large_blocks();
            session::run(&settings)
        }
    }
}
