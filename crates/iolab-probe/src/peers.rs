// SPDX-License-Identifier: Apache-2.0
//! What moved between this machine and each of its peers, from the counts of connections that come and go.

use crate::counts::{put, Counts};
use crate::sock_diag::{Connection, SockDiag};
use iolab_core::frames::samples::Samples;
use std::collections::HashMap;
use std::net::IpAddr;

/// The object whose counts are those of all peers that are too many to be told apart.
pub const OTHERS: &str = "others";
/// Peers that are told apart.
const MOST_PEERS: usize = 4096;
/// Connections that are remembered; those that are no longer listed and did not end go beyond it.
const MOST_CONNECTIONS: usize = 1 << 17;
const FIELDS: [&str; 2] = ["sent_bytes", "received_bytes"];

#[derive(Debug)]
struct Known {
    place: Option<usize>,
    bytes: [u64; 2],
    seen: u64,
}

/// Counts by peer.
#[derive(Debug, Default)]
pub struct Peers {
    places: HashMap<IpAddr, usize>,
    peers: Vec<(String, Counts<2>)>,
    others: [u64; 2],
    connections: HashMap<u64, Known>,
    /// How many readings there were.
    round: u64,
    /// When the previous one was.
    before_ns: Option<i64>,
}

impl Peers {
    /// A connection as it is now; what it moved before the first reading does not count.
    fn take(&mut self, connection: Connection) {
        let first = self.round == 0;
        let known = self.connections.get(&connection.cookie);
        let old = known.map_or(if first { connection.bytes } else { [0, 0] }, |known| known.bytes);
        let mut place = known.and_then(|known| known.place);
        if connection.bytes != old {
            let number = *place.get_or_insert_with(|| self.place(connection.peer));
            let totals = self.peers.get_mut(number).map_or(&mut self.others, |(_, counts)| &mut counts.now);
            let moved = connection.bytes.iter().zip(old);
            for (total, (now, old)) in totals.iter_mut().zip(moved) {
                *total += now.saturating_sub(old);
            }
        }
        let known = Known { place, bytes: connection.bytes, seen: self.round };
        self.connections.insert(connection.cookie, known);
    }

    /// A connection that ended.
    fn end(&mut self, connection: Connection) {
        self.take(connection);
        self.connections.remove(&connection.cookie);
    }

    /// The peer's place; one past the end for those that are not told apart.
    fn place(&mut self, peer: IpAddr) -> usize {
        if let Some(place) = self.places.get(&peer) {
            return *place;
        }
        if self.peers.len() >= MOST_PEERS {
            return usize::MAX;
        }
        self.peers.push((peer.to_string(), Counts::new([0, 0])));
        self.places.insert(peer, self.peers.len() - 1);
        self.peers.len() - 1
    }

    /// Readings of all peers that moved something of late; of one that had been left out, the reading before as well.
    fn push(&mut self, time_ns: i64, samples: &mut Samples) {
        // shows that the peers were read, where none of them moves anything
        put(OTHERS, &FIELDS, &self.others, time_ns, samples);
        for (name, counts) in &mut self.peers {
            counts.push(name, &FIELDS, self.before_ns, time_ns, samples);
        }
        self.round += 1;
        self.before_ns = Some(time_ns);
        if self.connections.len() > MOST_CONNECTIONS {
            let round = self.round;
            self.connections.retain(|_, known| known.seen + 1 >= round);
        }
    }

    /// Take a reading. False where connections ended and their last bytes are not known; an error where nothing could be read.
    pub fn read(&mut self, diag: &mut SockDiag, time_ns: i64, samples: &mut Samples) -> std::io::Result<bool> {
        let mut whole = diag.ended(|connection| self.end(connection));
        diag.connections(|connection| self.take(connection))?;
        // those that ended meanwhile may stand in the list no more
        whole &= diag.ended(|connection| self.end(connection));
        self.push(time_ns, samples);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::QUIET;
    use iolab_core::frames::reader::{Frame, Reader};
    use iolab_core::frames::{frame, Kind};

    fn connection(cookie: u64, peer: u8, bytes: [u64; 2]) -> Connection {
        Connection { cookie, peer: IpAddr::from([10, 0, 0, peer]), bytes }
    }

    /// (time, object, bytes sent) of a reading.
    fn reading(peers: &mut Peers, time_ns: i64) -> Vec<(i64, String, i64)> {
        let mut samples = Samples::default();
        peers.push(time_ns, &mut samples);
        let frames = Reader::default().feed(&frame(Kind::Samples, &samples.payload("tcp"))).unwrap();
        let [Frame::Samples(read)] = &frames[..] else { panic!() };
        let number = |of: &[u8], row: usize| u32::from_le_bytes(of[row * 4..][..4].try_into().unwrap()) as usize;
        let whole = |of: &[u8], row: usize| i64::from_le_bytes(of[row * 8..][..8].try_into().unwrap());
        (0..read.rows)
            .filter(|row| read.names[1][number(&read.ids[1], *row)] == "sent_bytes")
            .map(|row| {
                (whole(&read.time_ns, row), read.names[0][number(&read.ids[0], row)].clone(), whole(&read.value, row))
            })
            .collect()
    }

    fn told(time: i64, name: &str, value: i64) -> (i64, String, i64) {
        (time, name.into(), value)
    }

    #[test]
    fn what_was_moved_before_does_not_count_and_what_ended_does() {
        let mut peers = Peers::default();
        peers.take(connection(1, 1, [1000, 50]));
        assert_eq!(reading(&mut peers, 10), [told(10, OTHERS, 0)]);
        peers.take(connection(1, 1, [1500, 50]));
        peers.take(connection(2, 1, [7, 0]));
        assert_eq!(reading(&mut peers, 20)[1..], [told(10, "10.0.0.1", 0), told(20, "10.0.0.1", 507)]);
        peers.end(connection(2, 1, [9, 0]));
        // lived between two readings
        peers.end(connection(3, 1, [100, 0]));
        assert_eq!(reading(&mut peers, 30)[1..], [told(30, "10.0.0.1", 609)]);
        // is known no more, and would be another one
        assert_eq!(peers.connections.len(), 1);
    }

    #[test]
    fn a_quiet_peer_is_left_out_until_it_moves_something() {
        let mut peers = Peers::default();
        reading(&mut peers, 0);
        peers.take(connection(1, 1, [10, 0]));
        reading(&mut peers, 1);
        for time in 2..2 + i64::from(QUIET) - 1 {
            assert_eq!(reading(&mut peers, time)[1..], [told(time, "10.0.0.1", 10)]);
        }
        assert_eq!(reading(&mut peers, 50), [told(50, OTHERS, 0)]);
        peers.take(connection(1, 1, [15, 0]));
        assert_eq!(reading(&mut peers, 51)[1..], [told(50, "10.0.0.1", 10), told(51, "10.0.0.1", 15)]);
    }

    #[test]
    fn peers_beyond_the_most_are_summed() {
        let mut peers = Peers::default();
        reading(&mut peers, 0);
        for number in 0..MOST_PEERS as u32 + 3 {
            peers.take(Connection {
                cookie: u64::from(number),
                peer: IpAddr::from(number.to_be_bytes()),
                bytes: [5, 0],
            });
        }
        let found = reading(&mut peers, 1);
        assert_eq!((found.len(), &found[0]), (1 + 2 * MOST_PEERS, &told(1, OTHERS, 15)));
        peers.take(Connection {
            cookie: u64::from(MOST_PEERS as u32 + 1),
            peer: IpAddr::from([9, 9, 9, 9]),
            bytes: [6, 0],
        });
        assert_eq!(reading(&mut peers, 2)[0], told(2, OTHERS, 16));
    }
}
