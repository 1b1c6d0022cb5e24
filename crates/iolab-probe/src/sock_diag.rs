// SPDX-License-Identifier: Apache-2.0
//! Byte counts of TCP connections from the kernel (sock_diag(7)): of open connections and of connections that end.

use nix::errno::Errno;
use nix::sys::socket::{
    bind, recv, send, setsockopt, socket, sockopt, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol,
    SockType,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;
/// Types of netlink messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST and NLM_F_DUMP.
const ALL: u16 = 0x301;
/// The attribute with `struct tcp_info`.
const INFO: u16 = 2;
/// Offsets in `tcp_info` of the bytes acknowledged by the peer and the bytes received, since Linux 4.1.
const ACKED: usize = 120;
const RECEIVED: usize = 128;
/// States in which a connection has counts: not listening, closed, or a pending request.
const STATES: u32 = !(1 << 6 | 1 << 7 | 1 << 10 | 1 << 12);
/// Multicast groups that report ended TCP connections, over IPv4 and IPv6.
const ENDED: u32 = 1 << 0 | 1 << 2;
const HEADER: usize = 16;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;
/// Twice the maximum size of an answer.
const BUFFER: usize = 1 << 16;
/// Receive buffer for a few thousand connections that end within a second.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A connection with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Unique number of the connection, never reused.
    pub cookie: u64,
    /// Address of the peer; an IPv4-mapped address becomes IPv4.
    pub peer: IpAddr,
    /// Bytes acknowledged by the peer, and bytes received, since the connection was established.
    pub bytes: [u64; 2],
}

/// Two netlink sockets, in the network namespace in which they were opened.
#[derive(Debug)]
pub struct SockDiag {
    queries: OwnedFd,
    /// None if the kernel does not report ended connections.
    ended: Option<OwnedFd>,
    buffer: Vec<u8>,
}

fn netlink() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)
}

fn listening() -> Result<OwnedFd, Errno> {
    let ended = netlink()?;
    // only root may exceed the usual limit
    let _ = setsockopt(&ended, sockopt::RcvBufForce, &RECEIVE_BUFFER)
        .or_else(|_| setsockopt(&ended, sockopt::RcvBuf, &RECEIVE_BUFFER));
    bind(ended.as_raw_fd(), &NetlinkAddr::new(0, ENDED))?;
    Ok(ended)
}

impl SockDiag {
    /// Open the sockets.
    pub fn open() -> io::Result<Self> {
        let queries = netlink()?;
        // the kernel answers at once, or there is an error
        setsockopt(&queries, sockopt::ReceiveTimeout, &TimeVal::seconds(1))?;
        Ok(Self { queries, ended: listening().ok(), buffer: vec![0; BUFFER] })
    }

    /// All open connections.
    pub fn connections(&mut self, mut take: impl FnMut(Connection)) -> io::Result<()> {
        for family in [INET, INET6] {
            send(self.queries.as_raw_fd(), &request(family), MsgFlags::empty())?;
            loop {
                let length = recv(self.queries.as_raw_fd(), &mut self.buffer, MsgFlags::empty())?;
                match messages(&self.buffer[..length], &mut take) {
                    End::Open => {}
                    End::Done => break,
                    // no IPv6 support
                    End::Refused(_) if family == INET6 => break,
                    End::Refused(code) => return Err(io::Error::from_raw_os_error(code)),
                }
            }
        }
        Ok(())
    }

    /// Ended connections since the last call, with their final counts. Returns false if reports were lost because the
    /// buffer was full.
    pub fn ended(&mut self, mut take: impl FnMut(Connection)) -> bool {
        let Some(ended) = &self.ended else { return true };
        let mut is_complete = true;
        loop {
            match recv(ended.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => {
                    messages(&self.buffer[..length], &mut take);
                }
                Err(Errno::ENOBUFS) => is_complete = false,
                Err(Errno::EINTR) => {}
                Err(_) => return is_complete,
            }
        }
    }
}

/// `struct inet_diag_req_v2` with its header: all connections of a family, with `tcp_info`.
fn request(family: u8) -> [u8; HEADER + 56] {
    let mut bytes = [0; HEADER + 56];
    bytes[..4].copy_from_slice(&((HEADER + 56) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&ALL.to_ne_bytes());
    bytes[HEADER..HEADER + 3].copy_from_slice(&[family, TCP, 1 << (INFO - 1)]);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Open,
    Done,
    Refused(i32),
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// All messages of an answer.
fn messages(mut bytes: &[u8], take: &mut impl FnMut(Connection)) -> End {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let Some(body) = bytes.get(HEADER..length as usize) else { break };
        match kind as u16 {
            DONE => return End::Done,
            ERROR => return End::Refused(u32_at(body, 0).map_or(0, |code| (code as i32).wrapping_neg())),
            BY_FAMILY => {
                if let Some(connection) = connection(body) {
                    take(connection);
                }
            }
            _ => {}
        }
        bytes = bytes.get((length as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    End::Open
}

/// A connection from `struct inet_diag_msg` and its attributes; None if it has no counts.
fn connection(body: &[u8]) -> Option<Connection> {
    let address = body.get(24..40)?;
    let peer = match body[0] {
        INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&address[..4]).ok()?)),
        INET6 => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)).to_canonical(),
        _ => return None,
    };
    let cookie = u64_at(body, 44)?;
    let mut rest = body.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let value = rest.get(4..length)?;
        if kind == usize::from(INFO) {
            return Some(Connection { cookie, peer, bytes: [u64_at(value, ACKED)?, u64_at(value, RECEIVED)?] });
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn body(family: u8, address: &[u8], cookie: u64, info: usize) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE];
        bytes[0] = family;
        bytes[24..24 + address.len()].copy_from_slice(address);
        bytes[44..52].copy_from_slice(&cookie.to_ne_bytes());
        bytes.extend(attribute(8, &[0]));
        let mut tcp = vec![0; info];
        for (at, value) in [(ACKED, 11u64), (RECEIVED, 22)] {
            if let Some(place) = tcp.get_mut(at..at + 8) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
        }
        bytes.extend(attribute(INFO, &tcp));
        bytes
    }

    #[test]
    fn answers_of_the_kernel() {
        let mapped: [u8; 16] = "::ffff:10.0.0.2".parse::<Ipv6Addr>().unwrap().octets();
        let plain: [u8; 16] = "fe80::1".parse::<Ipv6Addr>().unwrap().octets();
        let mut answer = message(BY_FAMILY, &body(INET, &[10, 0, 0, 1], 7, 232));
        answer.extend(message(BY_FAMILY, &body(INET6, &mapped, 8, 136)));
        answer.extend(message(BY_FAMILY, &body(INET6, &plain, 9, 136)));
        // a message of a kernel before 4.1, and a closed connection: neither has counts
        answer.extend(message(BY_FAMILY, &body(INET, &[10, 0, 0, 3], 9, 104)));
        answer.extend(message(BY_FAMILY, &[0; MESSAGE]));
        let mut connections = Vec::new();
        assert_eq!(messages(&answer, &mut |connection| connections.push(connection)), End::Open);
        let values: Vec<_> = connections
            .iter()
            .map(|connection| (connection.cookie, connection.peer.to_string(), connection.bytes))
            .collect();
        let bytes = [11, 22];
        assert_eq!(
            values,
            [(7, "10.0.0.1".into(), bytes), (8, "10.0.0.2".into(), bytes), (9, "fe80::1".into(), bytes)]
        );
        assert_eq!(messages(&message(DONE, &[0; 4]), &mut |_| ()), End::Done);
        assert_eq!(messages(&message(ERROR, &(-2i32).to_ne_bytes()), &mut |_| ()), End::Refused(2));
    }

    impl SockDiag {
        /// A reader that fails: not a socket.
        pub fn broken() -> Self {
            Self { queries: std::fs::File::open("/dev/null").unwrap().into(), ended: None, buffer: vec![0; BUFFER] }
        }
    }

    proptest! {
        #[test]
        fn damaged_answers_end(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), at in 0usize..400, with: u8) {
            messages(&bytes, &mut |_| ());
            bytes = message(BY_FAMILY, &body(INET, &[1, 2, 3, 4], 1, 232));
            let place = at % bytes.len();
            bytes[place] = with;
            let mut count = 0;
            messages(&bytes, &mut |_| count += 1);
            prop_assert!(count <= bytes.len() / HEADER);
            messages(&bytes[..place], &mut |_| ());
        }
    }

    #[test]
    fn connections_of_this_machine_and_their_end() {
        let Ok(mut diag) = SockDiag::open() else { return eprintln!("skipped: no sock_diag here") };
        if diag.connections(|_| ()).is_err() {
            return eprintln!("skipped: the kernel has no inet_diag");
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 5000]).unwrap();
        far.read_exact(&mut [0; 5000]).unwrap();
        let mut connections = Vec::new();
        diag.connections(|connection| connections.push(connection)).unwrap();
        let moved = |connections: &[Connection], way: usize| {
            connections
                .iter()
                .find(|connection| connection.peer.is_loopback() && connection.bytes[way] / 10 == 500)
                .map(|connection| connection.cookie)
        };
        let (sender, receiver) = (moved(&connections, 0).unwrap(), moved(&connections, 1).unwrap());
        assert_ne!(sender, receiver);
        drop((near, far));
        if diag.ended.is_none() {
            return eprintln!("skipped: the kernel does not report ended connections");
        }
        let mut ended = Vec::new();
        for _ in 0..100 {
            assert!(diag.ended(|connection| ended.push(connection)));
            if [sender, receiver].iter().all(|cookie| ended.iter().any(|connection| connection.cookie == *cookie)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the kernel did not report all ended connections: {ended:?}");
    }
}
