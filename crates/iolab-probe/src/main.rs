// SPDX-License-Identifier: Apache-2.0
//! `iolab-probe`: reads the kernel's trace rings and counters, writes frames to standard output. The one part of iolab that
//! runs as root: it opens no socket but one to the kernel's own counts of connections, starts no program, and makes nothing but
//! its own tracefs instances, which go with it, and a mount of tracefs that it alone sees where there is none.

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
        Err(Failure { code, words }) => {
            eprintln!("iolab-probe: {words}");
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
