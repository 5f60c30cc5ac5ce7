//! TCP: what the kernel's trace events tell to the instant, and what it tells of connections when asked.
//!
//! A record of a retransmission may cover several segments of a packet that offload keeps together. How many is known where
//! the connection's own count says so: it grew by as much as there are records, or there is one record. Else it is left out.
//! A connection counts on while it is asked, so records of that very moment wait for the next look.

mod connection_filter;
pub(crate) mod sock_diag;

use super::sample::{Monitor, Round, Step};
use crate::kernel_trace::{Ends, Happened, Kernel, What};
use crate::watch::{Config, Ports, Seen};
use connection_filter::Whose;
use sock_diag::{Diag, Info, Socket};
use stackline_events::{Keyword, Tape, Value, clock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Most connections told of in one look.
const MOST_CONNECTIONS: usize = 512;
/// Most records that wait until it is known whose they are; the oldest are given up.
const MOST_UNKNOWN: usize = 1 << 16;
/// As many looks they wait: by then a connection of ours was seen, unless it was gone before the first.
const LOOKS: u8 = 10;
/// Most connections whose view of loss is remembered.
const MOST_VIEWS: usize = 1 << 16;
/// Most retransmissions of a connection that wait for their number of segments.
const MOST_OPEN: usize = 1_000;
/// The states in which a sender believes that something is lost, in the kernel's order.
const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// A connection as it was told last.
struct Told {
    at_ns: u64,
    info: Info,
    receive_queue_bytes: u32,
    /// Its count of retransmissions up to which those are settled.
    settled: u64,
}

/// A retransmission that waits for its number of segments.
struct Again {
    at_ns: u64,
    ends: Ends,
    cause: String,
    segments: Option<u64>,
    /// Whether nothing more will be known of it.
    settled: bool,
}

/// The monitor.
pub(crate) struct Tcp {
    whose: Whose,
    follow: Arc<Mutex<Ports>>,
    diag: Option<Diag>,
    kernel: Option<Kernel>,
    absent: BTreeMap<String, String>,
    /// Records drained and not looked at yet.
    happened: Vec<(u64, Happened)>,
    /// Those whose connection may turn out to be ours, and how often that was looked at.
    unknown: Vec<(u8, u64, Happened)>,
    again: Vec<Again>,
    /// What the sender of each connection believes, and since when.
    congestion: HashMap<Ends, (u64, u8)>,
    told: HashMap<u64, Told>,
    lost: u64,
    /// When it looked last; `None` before the first look.
    looked_ns: Option<u64>,
    unattributed: u64,
    left_out: u64,
    /// Records of connections that never turned out to be ours.
    given_up: u64,
}

impl Tcp {
    pub(crate) fn start(config: &Config, follow: Arc<Mutex<Ports>>) -> Self {
        let whose = Whose::new(&config.connections);
        let mut absent = BTreeMap::new();
        let diag = Diag::open().map_err(|reason| absent.insert("connections".into(), reason)).ok();
        let kernel = match config.kernel {
            true => Kernel::start(&whose.fixed_ports()),
            false => Err("not asked for".into()),
        };
        let kernel = match kernel {
            Ok((kernel, missing)) => {
                absent.extend(missing);
                Some(kernel)
            }
            Err(reason) => {
                let instead = "connections are asked now and then: TCP_INFO tells of intervals, not of instants";
                absent.insert("kernel".into(), format!("{reason}; {instead}"));
                None
            }
        };
        let (happened, unknown, again) = (Vec::new(), Vec::new(), Vec::new());
        let (congestion, told) = (HashMap::new(), HashMap::new());
        let (lost, looked_ns, unattributed, left_out, given_up) = (0, None, 0, 0, 0);
        Self {
            whose,
            follow,
            diag,
            kernel,
            absent,
            happened,
            unknown,
            again,
            congestion,
            told,
            lost,
            looked_ns,
            unattributed,
            left_out,
            given_up,
        }
    }

    fn take_ports(&mut self) {
        let ports = std::mem::take(&mut *self.follow.lock().unwrap_or_else(PoisonError::into_inner));
        if ports == Ports::default() {
            return;
        }
        self.whose.follow(ports);
        if let Some(kernel) = &self.kernel
            && let Err(reason) = kernel.follow(&self.whose.fixed_ports())
        {
            self.absent.insert("kernel/filter".into(), reason);
        }
    }

    /// Tells of what the kernel recorded.
    fn tell_happened(&mut self, tape: &mut Tape) {
        let waited = std::mem::take(&mut self.unknown);
        let fresh = std::mem::take(&mut self.happened).into_iter().map(|(at_ns, happened)| (0, at_ns, happened));
        for (looks, at_ns, happened) in waited.into_iter().chain(fresh) {
            match happened.ends {
                Some(ends) if self.whose.is_ours(&ends) => self.tell_one(at_ns, &happened.what, Some(ends), tape),
                _ if happened.what == What::Established => {}
                Some(_) if looks < LOOKS => self.unknown.push((looks + 1, at_ns, happened)),
                Some(_) => self.given_up += 1,
                None if self.whose.machine => self.tell_one(at_ns, &happened.what, None, tape),
                None => self.unattributed += 1,
            }
        }
        let crowded = self.unknown.len().saturating_sub(MOST_UNKNOWN);
        self.given_up += self.unknown.drain(..crowded).count() as u64;
    }

    /// Remembers what a connection's sender believes.
    fn believe(&mut self, ends: Ends, at_ns: u64, state: u8) {
        if self.congestion.len() >= MOST_VIEWS {
            self.congestion.clear();
        }
        self.congestion.insert(ends, (at_ns, state));
    }

    fn tell_one(&mut self, at_ns: u64, what: &What, ends: Option<Ends>, tape: &mut Tape) {
        static STATE: Keyword = Keyword::new("TCP_STATE");
        static DROP: Keyword = Keyword::new("TCP_DROP");
        static FULL: Keyword = Keyword::new("TCP_RCVQ_FULL");
        static RESET: Keyword = Keyword::new("TCP_RESET");
        match (what, ends) {
            (What::Retransmit { handshake, error }, Some(ends)) => {
                let mut cause = cause(*handshake, self.congestion.get(&ends).map(|(_, state)| *state)).to_owned();
                if let Some(error) = error {
                    cause += &format!(", not sent: error {error}");
                }
                self.again.push(Again { at_ns, ends, cause, segments: None, settled: false });
            }
            (What::Congestion(state), Some(at)) => {
                self.believe(at, at_ns, *state);
                let name = STATES.get(usize::from(*state)).copied().unwrap_or("unknown");
                tell(tape, &STATE, at_ns, Value::Text(name), ends);
            }
            (What::Drop { reason }, _) => tell(tape, &DROP, at_ns, Value::Text(reason), ends),
            (What::QueueFull { queued }, _) => tell(tape, &FULL, at_ns, (*queued).into(), ends),
            (What::Reset { reason }, _) => tell(tape, &RESET, at_ns, Value::Text(reason), ends),
            // What an older connection of these ports believed is not this one's.
            (What::Established, Some(ends)) => drop(self.congestion.remove(&ends)),
            (What::Established | What::Retransmit { .. } | What::Congestion(_), _) => {}
        }
    }

    /// Tells of every connection something happened to since it was told of.
    fn tell_connections(&mut self, sockets: &[Socket], at_ns: u64, tape: &mut Tape) {
        self.left_out = self.left_out.max(sockets.len().saturating_sub(MOST_CONNECTIONS) as u64);
        let mut kept = HashMap::with_capacity(sockets.len().min(MOST_CONNECTIONS));
        for socket in sockets.iter().take(MOST_CONNECTIONS) {
            let Some(info) = socket.info else { continue };
            let before = self.told.remove(&socket.cookie);
            if !self.congestion.contains_key(&socket.ends) {
                self.believe(socket.ends, at_ns, info.congestion_state);
            }
            let (earlier_ns, earlier) = match (&before, self.looked_ns) {
                (Some(told), _) => (told.at_ns, told.info),
                // It was made since the last look.
                (None, Some(looked_ns)) => (looked_ns, Info::default()),
                (None, None) => (at_ns, info),
            };
            let settled = before.as_ref().map_or(earlier.retransmits, |told| told.settled);
            let grew = info.retransmits.saturating_sub(settled);
            let settled = if settle(&mut self.again, &socket.ends, at_ns, grew) { info.retransmits } else { settled };
            let receive_queue_bytes = socket.receive_queue_bytes;
            let quiet = before
                .as_ref()
                .is_some_and(|told| told.info == info && told.receive_queue_bytes == receive_queue_bytes);
            let told_ns = if quiet { earlier_ns } else { at_ns };
            if told_ns > earlier_ns {
                tell_info(Step { at_ns, interval_ns: at_ns - earlier_ns }, socket, &earlier, &info, tape);
            }
            kept.insert(socket.cookie, Told { at_ns: told_ns, info, receive_queue_bytes, settled });
        }
        // Of a connection that is gone nothing more will be known. One may have come since it was asked.
        let there: BTreeSet<&Ends> = sockets.iter().map(|socket| &socket.ends).collect();
        self.congestion.retain(|ends, (since_ns, _)| *since_ns > at_ns || there.contains(ends));
        for again in self.again.iter_mut().filter(|again| again.at_ns <= at_ns) {
            again.settled |= !there.contains(&again.ends);
        }
        self.told = kept;
        self.looked_ns = Some(at_ns);
    }

    /// Tells of retransmissions that are settled, or of all.
    fn tell_again(&mut self, all: bool, tape: &mut Tape) {
        static AGAIN: Keyword = Keyword::new("TCP_RETRANSMIT");
        let (now, later) = std::mem::take(&mut self.again).into_iter().partition(|again| all || again.settled);
        self.again = later;
        for Again { at_ns, ends, cause, segments, .. } in now {
            let (local, remote) = (ends.local.to_string(), ends.remote.to_string());
            let mut data = [Value::Absent; 8];
            data[4..].copy_from_slice(&[
                Value::Text(&cause),
                segments.into(),
                Value::Text(&local),
                Value::Text(&remote),
            ]);
            tape.push(AGAIN.id(), at_ns, &data);
        }
    }

    fn drain(&mut self) -> Result<(), String> {
        let Some(kernel) = &mut self.kernel else { return Ok(()) };
        let mut new = Vec::new();
        match kernel.drain(&mut new) {
            Ok(lost) => self.lost += lost,
            Err(reason) => {
                self.kernel = None;
                self.absent.insert("kernel".into(), reason);
            }
        }
        self.happened.append(&mut new);
        Ok(())
    }
}

impl Monitor for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn costs(&self) -> &'static str {
        "kernel"
    }

    fn between(&mut self) -> Result<(), String> {
        self.drain()
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        let at_ns = clock::now_ns();
        // Asked before the rings are drained: what a connection counted is in the records then.
        let sockets = self.diag.as_mut().map_or(Ok(Vec::new()), Diag::sockets);
        self.drain()?;
        self.take_ports();
        let asked = sockets.map(|mut sockets| {
            // Before its records are looked at, so that they are known to be ours.
            self.whose.learn(&mut sockets);
            sockets
        });
        self.tell_happened(round.tape);
        match asked {
            Ok(sockets) => self.tell_connections(&sockets, at_ns, round.tape),
            Err(reason) => {
                self.diag = None;
                self.absent.insert("connections".into(), reason);
            }
        }
        let all = self.diag.is_none();
        self.tell_again(all, round.tape);
        if self.lost > 0 {
            static LOST: Keyword = Keyword::new("EVENTS_LOST");
            round.tape.push(LOST.id(), at_ns, &[Value::from(std::mem::take(&mut self.lost))]);
        }
        Ok(())
    }

    fn finish(&mut self, round: &mut Round<'_>, seen: &mut Seen) {
        self.tell_again(true, round.tape);
        seen.absent.append(&mut self.absent);
        if self.left_out > 0 {
            let most = MOST_CONNECTIONS;
            seen.notes.push(format!("TCP_INFO tells of {most} connections at once; {} were left out", self.left_out));
        }
        if self.given_up > 0 {
            seen.notes.push(format!(
                "{} records of TCP name connections that are not ours, as far as was seen of them, and are left out",
                self.given_up
            ));
        }
        if self.unattributed > 0 {
            seen.notes.push(format!(
                "{} drops on this machine name no connection and are left out: they may be anybody's",
                self.unattributed
            ));
        }
    }
}

/// Why data was sent again, by what the sender believed: it does so before it sends.
fn cause(handshake: bool, state: Option<u8>) -> &'static str {
    match state {
        _ if handshake => "handshake",
        Some(LOSS) => "timeout",
        Some(RECOVERY) => "fast",
        // A probe of the end of what was sent is the one that goes out without a belief.
        _ => "probe",
    }
}

/// Settles how many segments the retransmissions of a connection cover, whose count was asked for at a moment and had grown
/// by so many; false when they have to wait for the next look. Those behind the moment may be in the count or not.
fn settle(again: &mut [Again], ends: &Ends, asked_ns: u64, grew: u64) -> bool {
    let mut open: Vec<&mut Again> = again.iter_mut().filter(|again| again.ends == *ends && !again.settled).collect();
    let counted = open.iter().filter(|again| again.at_ns <= asked_ns).count();
    let records = open.len();
    let each = match counted {
        0 => return records == 0,
        _ if counted as u64 == grew => Some(1),
        // With records in doubt, as many as it grew by may be counted in full.
        _ if records > counted && grew <= records as u64 && records < MOST_OPEN => return false,
        1 if records == 1 => Some(grew).filter(|grew| *grew > 0),
        _ => None,
    };
    for again in &mut open[..counted] {
        again.segments = each;
        again.settled = true;
    }
    true
}

fn tell(tape: &mut Tape, keyword: &Keyword, at_ns: u64, what: Value<'_>, ends: Option<Ends>) {
    let (local, remote) = (ends.map(|ends| ends.local.to_string()), ends.map(|ends| ends.remote.to_string()));
    let mut data = [Value::Absent; 7];
    data[4] = what;
    data[5] = local.as_deref().map_or(Value::Absent, Value::Text);
    data[6] = remote.as_deref().map_or(Value::Absent, Value::Text);
    tape.push(keyword.id(), at_ns, &data);
}

fn tell_info(step: Step, socket: &Socket, before: &Info, now: &Info, tape: &mut Tape) {
    static TCP_INFO: Keyword = Keyword::new("TCP_INFO");
    let (local, remote) = (socket.ends.local.to_string(), socket.ends.remote.to_string());
    let grew =
        |before: Option<u64>, now: Option<u64>| Value::from(now.map(|now| now.saturating_sub(before.unwrap_or(0))));
    let data = [
        Value::Absent,
        Value::Text(&local),
        Value::Text(&remote),
        now.cwnd_bytes.into(),
        now.in_flight_bytes.into(),
        now.rtt_ns.into(),
        now.retransmits.saturating_sub(before.retransmits).into(),
        grew(before.busy_ns, now.busy_ns),
        grew(before.rwnd_limited_ns, now.rwnd_limited_ns),
        grew(before.sndbuf_limited_ns, now.sndbuf_limited_ns),
        now.unsent_bytes.into(),
        socket.receive_queue_bytes.into(),
        now.send_window_bytes.into(),
        now.mss_bytes.into(),
        grew(before.acked_bytes, now.acked_bytes),
    ];
    step.tell(tape, &TCP_INFO, &data);
}

#[cfg(test)]
mod tests {
    use super::super::sample::lines;
    use super::*;
    use crate::watch::{Connections, Ports};

    fn ends(local: &str, remote: &str) -> Ends {
        Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn tcp() -> (Tcp, Ends) {
        let ports = Ports { local: [5_001].into(), ..Ports::default() };
        let config = Config { kernel: false, connections: Connections::Ports(ports), ..Config::of("khons") };
        let tcp = Tcp::start(&config, Arc::default());
        assert!(tcp.absent["kernel"].contains("intervals, not of instants"));
        (tcp, ends("127.0.0.1:5001", "127.0.0.1:40000"))
    }

    fn happened(what: What, ends: Ends) -> Happened {
        Happened { what, ends: Some(ends), socket: None }
    }

    fn socket(ends: Ends, cookie: u64, info: Info) -> Socket {
        Socket { ends, state: 1, inode: 1, cookie, receive_queue_bytes: 0, info: Some(info) }
    }

    const AGAIN: What = What::Retransmit { handshake: false, error: None };

    #[test]
    fn a_retransmission_has_the_cause_its_sender_believed_in() {
        let (mut tcp, ours) = tcp();
        let mut tape = Tape::default();
        tcp.happened = vec![
            (10, happened(AGAIN, ours)),
            (20, happened(What::Congestion(RECOVERY), ours)),
            (21, happened(AGAIN, ours)),
            (30, happened(What::Congestion(LOSS), ours)),
            (31, happened(What::Retransmit { handshake: false, error: Some(105) }, ours)),
            (40, happened(What::Drop { reason: "socket_rcvbuff".into() }, ends("127.0.0.1:9", "127.0.0.1:8"))),
        ];
        tcp.tell_happened(&mut tape);
        tcp.tell_again(false, &mut tape);
        tcp.tell_again(true, &mut tape);
        let ends = "127.0.0.1:5001;127.0.0.1:40000";
        assert_eq!(
            lines(&tape),
            [
                format!("TCP_STATE ;;;;recovery;{ends}"),
                format!("TCP_STATE ;;;;loss;{ends}"),
                format!("TCP_RETRANSMIT ;;;;probe;;{ends}"),
                format!("TCP_RETRANSMIT ;;;;fast;;{ends}"),
                format!("TCP_RETRANSMIT ;;;;timeout, not sent: error 105;;{ends}"),
            ]
        );
        assert_eq!(tcp.unknown.len(), 1, "another's, as far as is known");
    }

    fn settled(moments: &[u64], grew: u64) -> (bool, Vec<Option<u64>>) {
        let ours = ends("127.0.0.1:5001", "127.0.0.1:40000");
        let other = ends("127.0.0.1:5001", "127.0.0.1:40001");
        let record = |at_ns, ends| Again { at_ns, ends, cause: "fast".into(), segments: None, settled: false };
        let mut again: Vec<Again> = moments.iter().map(|at_ns| record(*at_ns, ours)).collect();
        again.push(record(1, other));
        let done = settle(&mut again, &ours, 10, grew);
        assert!(!again.pop().unwrap().settled, "another connection's");
        assert!(again.iter().all(|again| again.settled == (done && again.at_ns <= 10)));
        (done, again.iter().map(|again| again.segments).collect())
    }

    #[test]
    fn segments_are_counted_where_the_connection_says_how_many() {
        assert_eq!(settled(&[1, 2], 2), (true, vec![Some(1), Some(1)]));
        assert_eq!(settled(&[1], 4), (true, vec![Some(4)]), "one packet that offload kept together");
        assert_eq!(settled(&[1, 2], 5), (true, vec![None, None]), "five segments in two packets");
        assert_eq!(settled(&[1, 11], 1), (true, vec![Some(1), None]), "the second came later");
        assert_eq!(settled(&[1, 11], 2), (false, vec![None, None]), "two of the first, or one of each");
        assert_eq!(settled(&[1, 11], 3), (true, vec![None, None]));
        assert_eq!(settled(&[11], 1), (false, vec![None]));
        assert_eq!(settled(&[], 3), (true, vec![]));
    }

    #[test]
    fn a_connection_that_is_gone_settles_what_waits() {
        let (mut tcp, ours) = tcp();
        let mut tape = Tape::default();
        tcp.again = vec![Again { at_ns: 1, ends: ours, cause: "fast".into(), segments: None, settled: false }];
        tcp.tell_connections(&[], 10, &mut tape);
        tcp.tell_again(false, &mut tape);
        assert_eq!(lines(&tape), ["TCP_RETRANSMIT ;;;;fast;;127.0.0.1:5001;127.0.0.1:40000"]);
    }

    #[test]
    fn connections_tell_of_what_they_did_since_they_were_told_of() {
        let (mut tcp, ours) = tcp();
        let mut tape = Tape::default();
        let first = Info { acked_bytes: Some(100), mss_bytes: 1_448, retransmits: 3, ..Info::default() };
        let later = Info { acked_bytes: Some(900), retransmits: 5, busy_ns: Some(4), ..first };
        tcp.tell_connections(&[socket(ours, 7, first)], 10, &mut tape);
        tcp.tell_connections(&[socket(ours, 7, first)], 20, &mut tape);
        assert!(lines(&tape).is_empty(), "nothing happened to it");
        tcp.tell_connections(&[socket(ours, 7, later), socket(ours, 9, first)], 30, &mut tape);
        let ends = "127.0.0.1:5001;127.0.0.1:40000";
        assert_eq!(
            lines(&tape),
            [
                format!("TCP_INFO 20;;{ends};0;0;0;2;4;;;;0;;1448;800"),
                format!("TCP_INFO 10;;{ends};0;0;0;3;;;;;0;;1448;100"),
            ],
            "the second was made in between"
        );
    }

    #[test]
    fn ports_told_of_later_are_ours_from_the_start() {
        let (mut tcp, _) = tcp();
        let late = ends("127.0.0.1:6000", "127.0.0.1:40000");
        let mut tape = Tape::default();
        tcp.happened = vec![(10, happened(What::Reset { reason: "received".into() }, late))];
        tcp.tell_happened(&mut tape);
        assert!(lines(&tape).is_empty());
        tcp.follow.lock().unwrap().local.insert(6_000);
        tcp.look(&mut Round { tape: &mut tape }).unwrap();
        assert_eq!(lines(&tape), ["TCP_RESET ;;;;received;127.0.0.1:6000;127.0.0.1:40000"]);
    }

    #[test]
    fn strangers_are_given_up_after_some_looks_and_counted() {
        let (mut tcp, ours) = tcp();
        let mut tape = Tape::default();
        let stranger = ends("127.0.0.1:9", "127.0.0.1:8");
        tcp.happened = (0..=MOST_UNKNOWN as u64).map(|at| (at, happened(AGAIN, stranger))).collect();
        tcp.tell_happened(&mut tape);
        assert_eq!((tcp.unknown.len(), tcp.given_up), (MOST_UNKNOWN, 1), "the oldest went");
        tcp.happened = vec![(70_000, happened(What::Drop { reason: "socket_rcvbuff".into() }, ours))];
        (0..LOOKS).for_each(|_| tcp.tell_happened(&mut tape));
        assert_eq!((tcp.unknown.len(), tcp.given_up), (0, MOST_UNKNOWN as u64 + 1));
        assert_eq!(lines(&tape).len(), 1, "ours has its place: {:?}", lines(&tape));
        let mut seen = Seen::default();
        tcp.finish(&mut Round { tape: &mut tape }, &mut seen);
        assert!(seen.notes[0].starts_with("65537 records"), "{:?}", seen.notes);
    }

    #[test]
    fn what_a_sender_believed_goes_with_its_connection() {
        let (mut tcp, ours) = tcp();
        let mut tape = Tape::default();
        tcp.happened = vec![(10, happened(What::Congestion(LOSS), ours))];
        tcp.tell_happened(&mut tape);
        tcp.tell_connections(&[], 5, &mut tape);
        assert_eq!(tcp.congestion.get(&ours), Some(&(10, LOSS)), "it came after they were asked");
        tcp.tell_connections(&[socket(ours, 7, Info { congestion_state: LOSS, ..Info::default() })], 20, &mut tape);
        assert_eq!(tcp.congestion.len(), 1);
        tcp.happened = vec![(30, happened(What::Established, ours)), (31, happened(AGAIN, ours))];
        tcp.tell_happened(&mut tape);
        assert_eq!(tcp.again[0].cause, "probe", "another connection of the same ports");
        tcp.tell_connections(&[], 40, &mut tape);
        assert!(tcp.congestion.is_empty());
    }
}
