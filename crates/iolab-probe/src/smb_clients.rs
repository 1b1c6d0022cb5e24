// SPDX-License-Identifier: Apache-2.0
//! Clients of Samba: it has one process per connection; the peer of that process's socket is the client.

use crate::limited::{read_lines, TABLE};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the server's processes.
const PROCESS: &[u8] = b"smbd";
/// Usual ports of SMB: direct, and over NetBIOS. Another port counts if a process listens on it.
const PORTS: [u16; 2] = [445, 139];
/// Maximum number of cached processes; beyond it, the cache is cleared.
const MOST: usize = 1 << 14;
/// Maximum number of descriptors to read per process.
const DESCRIPTORS: usize = 1 << 14;
/// Time after which a PID may have been reused.
const FRESH: Duration = Duration::from_secs(10);
/// States of a connection in /proc/net/tcp.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";
/// Exists while the kernel's SMB server is loaded.
const KERNEL_SERVER: &str = "/sys/class/ksmbd-control";
const KERNEL_SERVER_UNSEEN: &str = "SMB: the kernel's server (ksmbd) is loaded; it makes no system calls and has no tracepoints, so its operations are not in file.ops and smb.ops; its disk I/O is in block (processes kworker), its bytes by client in counters (ip.bytes[peer])";

/// What is not recorded of the kernel's SMB server, if it is loaded.
pub fn kernel_server() -> Option<String> {
    kernel_server_at(Path::new(KERNEL_SERVER))
}

fn kernel_server_at(path: &Path) -> Option<String> {
    path.exists().then(|| KERNEL_SERVER_UNSEEN.to_owned())
}

/// Clients by process number.
#[derive(Debug)]
pub struct SmbClients {
    proc: PathBuf,
    cache: HashMap<u32, (Option<IpAddr>, Instant)>,
}

impl Default for SmbClients {
    fn default() -> Self {
        Self { proc: "/proc".into(), cache: HashMap::new() }
    }
}

impl SmbClients {
    /// The client of a process. None if the process is not a Samba process, has no client, or ended before it was read.
    pub fn client(&mut self, pid: u32, process: &[u8]) -> Option<IpAddr> {
        if process != PROCESS {
            return None;
        }
        let cached = self.cache.get(&pid).copied();
        if let Some((client, time)) = cached {
            if time.elapsed() < FRESH {
                return client;
            }
        }
        // records of calls of an ended process may still arrive
        let ended = cached.and_then(|(client, _)| client);
        let client = look(&self.proc.join(pid.to_string())).unwrap_or(ended);
        if self.cache.len() >= MOST {
            self.cache.clear();
        }
        self.cache.insert(pid, (client, Instant::now()));
        client
    }
}

/// The address of the only client of a process. None if it ended or has no client or several.
///
/// A client connects to an SMB port or to another port on which the server listens. The process also opens connections
/// itself, for example to a domain controller: these have other local ports.
fn look(process: &Path) -> Option<Option<IpAddr>> {
    let links = std::fs::read_dir(process.join("fd")).ok()?.flatten().take(DESCRIPTORS);
    let inodes: HashSet<u64> = links
        .filter_map(|entry| {
            let link = std::fs::read_link(entry.path()).ok()?;
            link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect();
    let texts: Vec<String> = ["net/tcp", "net/tcp6"]
        .iter()
        .map(|name| String::from_utf8(read_lines(process.join(name), TABLE).unwrap_or_default()).unwrap_or_default())
        .collect();
    let sockets: Vec<Socket> = texts.iter().flat_map(|text| text.lines()).filter_map(socket).collect();
    let listening = sockets.iter().filter(|socket| socket.state == LISTENING).map(|socket| socket.port);
    let ports: HashSet<u16> = listening.chain(PORTS).collect();
    let mut clients: HashSet<IpAddr> = sockets
        .iter()
        .filter(|socket| socket.state == ESTABLISHED && inodes.contains(&socket.inode) && ports.contains(&socket.port))
        .map(|socket| socket.remote)
        .collect();
    // the connections of one process (multichannel) may have several clients: then the client of a call is unknown
    Some(if clients.len() == 1 { clients.drain().next() } else { None })
}

/// A line of /proc/net/tcp or tcp6.
struct Socket<'a> {
    /// The local port.
    port: u16,
    remote: IpAddr,
    state: &'a str,
    inode: u64,
}

fn socket(line: &str) -> Option<Socket<'_>> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    let inode = words.nth(5)?.parse().ok()?;
    Some(Socket { port: address(local)?.1, remote: address(remote)?.0, state, inode })
}

/// Decodes `0100007F:01BD`: 32-bit words in native byte order, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (words, port) = text.split_once(':')?;
    if !words.is_ascii() || !matches!(words.len(), 8 | 32) {
        return None;
    }
    let mut bytes = Vec::with_capacity(16);
    for place in (0..words.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(&words[place..place + 8], 16).ok()?.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::V4(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?)).to_canonical(),
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn word(bytes: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(bytes))
    }

    fn line(local: &str, remote: &str, state: &str, inode: u64) -> String {
        format!(
            "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 100\n"
        )
    }

    fn place(name: &str, files: &[(&str, String)], sockets: &[u64]) -> SmbClients {
        let proc = std::env::temp_dir().join(format!("iolab-smb-{name}-{}", std::process::id()));
        let process = proc.join("7");
        std::fs::create_dir_all(process.join("fd")).unwrap();
        std::fs::create_dir_all(process.join("net")).unwrap();
        for (name, text) in files {
            std::fs::write(process.join(name), format!("{HEAD}{text}")).unwrap();
        }
        for (number, inode) in sockets.iter().enumerate() {
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), process.join(format!("fd/{number}"))).unwrap();
        }
        std::os::unix::fs::symlink("/dev/null", process.join("fd/99")).unwrap();
        SmbClients { proc, cache: HashMap::new() }
    }

    #[test]
    fn the_client_is_at_the_other_end_of_the_socket() {
        let (server, client) = (format!("{}:01BD", word([10, 0, 0, 1])), format!("{}:C350", word([10, 0, 0, 7])));
        let other = format!("{}:C351", word([10, 0, 0, 8]));
        let text = [
            line(&server, &format!("{}:0000", word([0; 4])), "0A", 50),
            line(&server, &other, "01", 51),
            line(&server, &client, "01", 52),
            // to a domain controller
            line(&other, &format!("{}:0185", word([10, 0, 0, 9])), "01", 53),
        ];
        let mut clients = place("v4", &[("net/tcp", text.concat())], &[50, 52, 53]);
        assert_eq!(clients.client(7, b"smbd"), Some("10.0.0.7".parse().unwrap()));
        assert_eq!(clients.client(7, b"fio"), None);
        assert_eq!(clients.client(8, b"smbd"), None);
        // after it ended, its calls still arrive
        std::fs::remove_dir_all(&clients.proc).unwrap();
        assert_eq!(clients.client(7, b"smbd"), Some("10.0.0.7".parse().unwrap()));
        clients.cache.get_mut(&7).unwrap().1 = Instant::now().checked_sub(FRESH).unwrap();
        assert_eq!(clients.client(7, b"smbd"), Some("10.0.0.7".parse().unwrap()));
        // another process has the same PID
        let mut clients = SmbClients { cache: clients.cache, ..place("v4", &[("net/tcp", String::new())], &[50]) };
        clients.cache.get_mut(&7).unwrap().1 = Instant::now().checked_sub(FRESH).unwrap();
        assert_eq!(clients.client(7, b"smbd"), None);
        std::fs::remove_dir_all(&clients.proc).unwrap();
    }

    #[test]
    fn the_kernels_server_is_named_while_it_is_loaded() {
        let class = std::env::temp_dir().join(format!("iolab-ksmbd-{}", std::process::id()));
        assert_eq!(kernel_server_at(&class), None);
        std::fs::create_dir(&class).unwrap();
        let words = kernel_server_at(&class).unwrap();
        assert!(["ksmbd", "smb.ops", "block", "ip.bytes[peer]"].iter().all(|word| words.contains(word)));
        assert!(!words.contains('\n'));
        std::fs::remove_dir(&class).unwrap();
    }

    #[test]
    fn another_port_counts_while_the_server_listens_there() {
        let (server, client) = (format!("{}:1162", word([127, 0, 0, 1])), format!("{}:C350", word([10, 0, 0, 7])));
        let listener = line(&server, &format!("{}:0000", word([0; 4])), "0A", 50);
        let connection = line(&server, &client, "01", 52);
        let mut clients = place("port", &[("net/tcp", listener + &connection)], &[52]);
        assert_eq!(clients.client(7, b"smbd"), Some("10.0.0.7".parse().unwrap()));
        std::fs::remove_dir_all(&clients.proc).unwrap();
        let mut clients = place("no-port", &[("net/tcp", connection)], &[52]);
        assert_eq!(clients.client(7, b"smbd"), None);
        std::fs::remove_dir_all(&clients.proc).unwrap();
    }

    #[test]
    fn ipv4_within_ipv6_and_several_clients() {
        let mapped = format!("{}{}{}{}", word([0; 4]), word([0; 4]), word([0, 0, 0xff, 0xff]), word([10, 0, 0, 7]));
        let real = format!("{}{}{}{}", word([0xfd, 0, 0, 0]), word([0; 4]), word([0; 4]), word([0, 0, 0, 7]));
        let text = line(&format!("{mapped}:01BD"), &format!("{mapped}:C350"), "01", 1);
        let mut clients = place("mapped", &[("net/tcp6", text.clone())], &[1, 2]);
        assert_eq!(clients.client(7, b"smbd"), Some("10.0.0.7".parse().unwrap()));
        std::fs::remove_dir_all(&clients.proc).unwrap();
        let both = text + &line(&format!("{real}:01BD"), &format!("{real}:C350"), "01", 2);
        let mut clients = place("both", &[("net/tcp6", both)], &[1, 2]);
        assert_eq!(clients.client(7, b"smbd"), None);
        std::fs::remove_dir_all(&clients.proc).unwrap();
        assert_eq!(address(&format!("{real}:008B")), Some(("fd00::7".parse().unwrap(), 139)));
    }

    proptest! {
        #[test]
        fn any_line_is_read(text in "([0-9A-F]{8}:|[0-9A-F]{32}:|01BD|01| |é|[^\n]){0,24}") {
            socket(&text);
            address(&text);
        }
    }
}
