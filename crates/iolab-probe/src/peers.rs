// SPDX-License-Identifier: Apache-2.0
//! Bytes between this machine and each of its peers, from the counts of TCP connections.

use crate::counts::{put, Counts};
use crate::sock_diag::{Connection, SockDiag};
use iolab_core::frames::samples::Samples;
use std::collections::HashMap;
use std::net::IpAddr;

/// The object with the counts of all peers beyond the maximum.
pub const OTHERS: &str = "others";
/// Number of peers that are counted separately.
const MOST_PEERS: usize = 4096;
/// Maximum number of cached connections. Beyond it, those that are no longer listed are dropped.
const MOST_CONNECTIONS: usize = 1 << 17;
const FIELDS: [&str; 2] = ["sent_bytes", "received_bytes"];

#[derive(Debug)]
struct Previous {
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
    connections: HashMap<u64, Previous>,
    /// Number of readings so far.
    round: u64,
    /// Time of the previous reading.
    before_ns: Option<i64>,
}

impl Peers {
    /// Take the current counts of a connection. Bytes before the first reading do not count.
    fn take(&mut self, connection: Connection) {
        let first = self.round == 0;
        let previous = self.connections.get(&connection.cookie);
        let old = previous.map_or(if first { connection.bytes } else { [0, 0] }, |previous| previous.bytes);
        let mut place = previous.and_then(|previous| previous.place);
        if connection.bytes != old {
            let number = *place.get_or_insert_with(|| self.place(connection.peer));
            let totals = self.peers.get_mut(number).map_or(&mut self.others, |(_, counts)| &mut counts.now);
            let moved = connection.bytes.iter().zip(old);
            for (total, (now, old)) in totals.iter_mut().zip(moved) {
                *total += now.saturating_sub(old);
            }
        }
        let previous = Previous { place, bytes: connection.bytes, seen: self.round };
        self.connections.insert(connection.cookie, previous);
    }

    /// Take the final counts of a connection that ended.
    fn end(&mut self, connection: Connection) {
        self.take(connection);
        self.connections.remove(&connection.cookie);
    }

    /// Index of a peer; usize::MAX if it is not counted separately.
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

    /// Push the counts of all recently active peers; after a pause of a peer, its previous reading comes first.
    fn push(&mut self, time_ns: i64, samples: &mut Samples) {
        // shows that the peers were read even if no count changed
        put(OTHERS, &FIELDS, &self.others, time_ns, samples);
        for (name, counts) in &mut self.peers {
            counts.push(name, &FIELDS, self.before_ns, time_ns, samples);
        }
        self.round += 1;
        self.before_ns = Some(time_ns);
        if self.connections.len() > MOST_CONNECTIONS {
            let round = self.round;
            self.connections.retain(|_, previous| previous.seen + 1 >= round);
        }
    }

    /// Take a reading. Returns false if connections ended and their last bytes are unknown.
    pub fn read(&mut self, diag: &mut SockDiag, time_ns: i64, samples: &mut Samples) -> std::io::Result<bool> {
        let mut is_complete = diag.ended(|connection| self.end(connection));
        diag.connections(|connection| self.take(connection))?;
        // connections that ended since the first call may no longer be listed
        is_complete &= diag.ended(|connection| self.end(connection));
        self.push(time_ns, samples);
        Ok(is_complete)
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

    /// Samples of a reading: (time, object, bytes sent).
    fn reading(peers: &mut Peers, time_ns: i64) -> Vec<(i64, String, i64)> {
        let mut samples = Samples::default();
        peers.push(time_ns, &mut samples);
        let frames = Reader::default().feed(&frame(Kind::Samples, &samples.payload("tcp"))).unwrap();
        let [Frame::Samples(read)] = &frames[..] else { panic!() };
        let number = |of: &[u8], row: usize| u32::from_le_bytes(of[row * 4..][..4].try_into().unwrap()) as usize;
        let integer = |of: &[u8], row: usize| i64::from_le_bytes(of[row * 8..][..8].try_into().unwrap());
        (0..read.rows)
            .filter(|row| read.names[1][number(&read.ids[1], *row)] == "sent_bytes")
            .map(|row| {
                (
                    integer(&read.time_ns, row),
                    read.names[0][number(&read.ids[0], row)].clone(),
                    integer(&read.value, row),
                )
            })
            .collect()
    }

    fn sample(time: i64, name: &str, value: i64) -> (i64, String, i64) {
        (time, name.into(), value)
    }

    #[test]
    fn bytes_before_the_first_reading_do_not_count_and_those_of_ended_connections_do() {
        let mut peers = Peers::default();
        peers.take(connection(1, 1, [1000, 50]));
        assert_eq!(reading(&mut peers, 10), [sample(10, OTHERS, 0)]);
        peers.take(connection(1, 1, [1500, 50]));
        peers.take(connection(2, 1, [7, 0]));
        assert_eq!(reading(&mut peers, 20)[1..], [sample(10, "10.0.0.1", 0), sample(20, "10.0.0.1", 507)]);
        peers.end(connection(2, 1, [9, 0]));
        // existed only between two readings
        peers.end(connection(3, 1, [100, 0]));
        assert_eq!(reading(&mut peers, 30)[1..], [sample(30, "10.0.0.1", 609)]);
        // was removed: a new connection with this cookie is another one
        assert_eq!(peers.connections.len(), 1);
    }

    #[test]
    fn an_idle_peer_is_left_out() {
        let mut peers = Peers::default();
        reading(&mut peers, 0);
        peers.take(connection(1, 1, [10, 0]));
        reading(&mut peers, 1);
        for time in 2..2 + i64::from(QUIET) - 1 {
            assert_eq!(reading(&mut peers, time)[1..], [sample(time, "10.0.0.1", 10)]);
        }
        assert_eq!(reading(&mut peers, 50), [sample(50, OTHERS, 0)]);
        peers.take(connection(1, 1, [15, 0]));
        assert_eq!(reading(&mut peers, 51)[1..], [sample(50, "10.0.0.1", 10), sample(51, "10.0.0.1", 15)]);
    }

    #[test]
    fn peers_beyond_the_maximum_are_summed() {
        let mut peers = Peers::default();
        reading(&mut peers, 0);
        for number in 0..MOST_PEERS as u32 + 3 {
            peers.take(Connection {
                cookie: u64::from(number),
                peer: IpAddr::from(number.to_be_bytes()),
                bytes: [5, 0],
            });
        }
        let samples = reading(&mut peers, 1);
        assert_eq!((samples.len(), &samples[0]), (1 + 2 * MOST_PEERS, &sample(1, OTHERS, 15)));
        peers.take(Connection {
            cookie: u64::from(MOST_PEERS as u32 + 1),
            peer: IpAddr::from([9, 9, 9, 9]),
            bytes: [6, 0],
        });
        assert_eq!(reading(&mut peers, 2)[0], sample(2, OTHERS, 16));
    }
}
