//! Two ends over a path that loses, repeats and delays: what is sent arrives once and in order, whatever happens; and how it is done.

use super::connection::{PupConnection, PupReceived, PupState};
use super::options::PupOptions;
use super::packet::{PupPacket, PupPacketKind, PupPort};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt::Write as _;
use proptest::prelude::*;
use stackline_core::time::{Duration, Instant};

const LISTENS: PupPort = PupPort {
    network: 0,
    host: 0,
    socket: 1,
};
const DELAY: Duration = Duration(10_000_000);

/// What a path does to its packets, by their number: it loses, repeats or delays them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Passes,
    Lost,
    Twice,
    Late,
}

struct Lab {
    now: Instant,
    ends: [Option<PupConnection>; 2],
    options: PupOptions,
    in_transit: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    fates: Vec<Fate>,
    log: String,
}

impl Lab {
    fn new(options: PupOptions, fates: &[Fate]) -> Self {
        let own = PupPort {
            socket: 100,
            ..LISTENS
        };
        let first = PupConnection::connect(Instant(0), options, 0xffff_fff0, own, LISTENS);
        Self {
            now: Instant(0),
            ends: [Some(first), None],
            options,
            in_transit: BTreeMap::new(),
            sent: 0,
            fates: fates.to_vec(),
            log: String::new(),
        }
    }

    fn end(&mut self, side: usize) -> &mut PupConnection {
        self.ends[side].as_mut().expect("it is there")
    }

    /// Everything that leaves now.
    fn flush(&mut self) {
        for side in 0..2 {
            while let Some(bytes) = self.ends[side].as_mut().and_then(|end| end.poll(self.now)) {
                let fate = self
                    .fates
                    .get(self.sent as usize)
                    .copied()
                    .unwrap_or(Fate::Passes);
                let packet = PupPacket::read(&bytes).expect("what is sent is a packet");
                let id = packet.id.wrapping_sub(0xffff_fff0);
                let arrow = if side == 0 { "->" } else { "<-" };
                let note = if fate == Fate::Passes {
                    String::new()
                } else {
                    format!(" {fate:?}")
                };
                writeln!(
                    self.log,
                    "{} ms {arrow} {:?} {id} of {}{note}",
                    self.now.0 / 1_000_000,
                    packet.kind,
                    packet.data.len()
                )
                .expect("a string takes it");
                let arrivals: &[u64] = match fate {
                    Fate::Passes => &[1],
                    Fate::Lost => &[],
                    Fate::Twice => &[1, 2],
                    Fate::Late => &[7],
                };
                for delays in arrivals {
                    self.in_transit.insert(
                        (self.now + Duration(DELAY.0 * delays), self.sent),
                        (1 - side, bytes.clone()),
                    );
                }
                self.sent += 1;
            }
        }
    }

    /// Goes on until nothing is due before that.
    fn until(&mut self, until: Instant) {
        loop {
            self.flush();
            let arrival = self.in_transit.keys().next().map(|(at, _)| *at);
            let timers = self
                .ends
                .iter()
                .flatten()
                .filter_map(PupConnection::deadline)
                .min();
            let Some(next) = arrival
                .into_iter()
                .chain(timers)
                .min()
                .filter(|at| *at <= until)
            else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self
                .in_transit
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                let (side, bytes) = entry.remove();
                self.arrive(side, &bytes);
            }
        }
        self.now = until;
    }

    fn arrive(&mut self, side: usize, bytes: &[u8]) {
        let packet = PupPacket::read(bytes).expect("it was one");
        if let Some(end) = &mut self.ends[side] {
            return end.handle(self.now, &packet);
        }
        let own = PupPort {
            socket: 200,
            ..LISTENS
        };
        self.ends[side] = PupConnection::accept(self.now, self.options, own, &packet);
    }
}

fn ms(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

/// All that can be read; marks as their number in brackets.
fn read(end: &mut PupConnection) -> String {
    let mut all = String::new();
    loop {
        match end.receive(1000) {
            PupReceived::Data(data) => all.push_str(&String::from_utf8_lossy(&data)),
            PupReceived::Mark(kind) => all.push_str(&format!("[{kind}]")),
            PupReceived::End => {
                all.push_str("END");
                return all;
            }
            PupReceived::Nothing => return all,
        }
    }
}

#[test]
fn a_mark_finds_its_place_behind_a_full_buffer() {
    let options = PupOptions {
        packet: 4,
        send_buffer: 8,
        receive_buffer: 4,
        ..PupOptions::default()
    };
    let mut lab = Lab::new(options, &[]);
    lab.until(ms(30));
    assert_eq!(lab.end(0).send(b"abcdefghij"), 8);
    lab.end(0).interrupt(7);
    lab.end(0).mark(1);
    lab.until(ms(100));
    assert_eq!(lab.end(1).take_interrupt(), Some(7));
    let mut all = String::new();
    for time in 2..20 {
        all.push_str(&read(lab.end(1)));
        lab.until(ms(time * 1000));
    }
    assert_eq!(all, "abcdefgh[1]");
}

#[test]
fn a_window_of_four_packets_brings_four_in_a_round_trip() {
    let options = PupOptions {
        packet: 4,
        receive_buffer: 16,
        send_buffer: 160,
        ..PupOptions::default()
    };
    let mut lab = Lab::new(options, &[]);
    lab.until(ms(20));
    assert_eq!(lab.end(0).send(&[b'a'; 160]), 160);
    let mut came = 0;
    let done = (20..1000).find(|time| {
        lab.until(ms(*time));
        came += lab.ends[1].as_mut().map_or(0, |end| read(end).len());
        came == 160
    });
    // One packet is allowed at first; of the other 39 four come each 20 ms, the first of them at 50 ms.
    assert_eq!(done, Some(50 + 9 * 20));
}

#[test]
fn a_conversation_from_rendezvous_to_end() {
    let options = PupOptions {
        packet: 4,
        ..PupOptions::default()
    };
    let mut lab = Lab::new(options, &[]);
    lab.end(0).send(b"abcdefghij");
    lab.end(0).mark(5);
    lab.end(0).send(b"k");
    lab.until(ms(200));
    assert_eq!(read(lab.end(1)), "abcdefghij[5]k");
    lab.end(1).interrupt(7);
    lab.end(0).end();
    lab.until(ms(20_000));
    assert_eq!(lab.end(0).take_interrupt(), Some(7));
    assert_eq!(
        (read(lab.end(0)).as_str(), read(lab.end(1)).as_str()),
        ("END", "END")
    );
    for side in 0..2 {
        assert_eq!(lab.end(side).state(), &PupState::Closed(None));
    }
    let log = "\
0 ms -> Rfc 0 of 6
10 ms <- Rfc 0 of 6
20 ms -> AData 0 of 4
30 ms <- Ack 4 of 6
40 ms -> Data 4 of 4
40 ms -> Data 8 of 2
40 ms -> Mark 10 of 1
40 ms -> AData 11 of 1
50 ms <- Ack 12 of 6
200 ms -> End 0 of 0
200 ms <- Interrupt 0 of 2
210 ms -> InterruptReply 0 of 0
210 ms <- EndReply 0 of 0
220 ms -> EndReply 0 of 0
";
    assert_eq!(lab.log, log);
}

#[test]
fn a_lost_packet_makes_the_sender_go_back_to_it_and_a_lost_question_is_put_again() {
    let options = PupOptions {
        packet: 4,
        ..PupOptions::default()
    };
    // The second data packet of the burst; later the answer.
    let fates = [
        vec![Fate::Passes; 5],
        vec![Fate::Lost],
        vec![Fate::Passes; 3],
        vec![Fate::Lost],
    ]
    .concat();
    let mut lab = Lab::new(options, &fates);
    lab.end(0).send(b"abcdefghijklmnop");
    lab.until(ms(2000));
    assert_eq!(read(lab.end(1)), "abcdefghijklmnop");
    let log = "\
0 ms -> Rfc 0 of 6
10 ms <- Rfc 0 of 6
20 ms -> AData 0 of 4
30 ms <- Ack 4 of 6
40 ms -> Data 4 of 4
40 ms -> Data 8 of 4 Lost
40 ms -> AData 12 of 4
50 ms <- Ack 8 of 6
60 ms -> Data 8 of 4
60 ms -> AData 12 of 4 Lost
110 ms -> AData 8 of 4
120 ms <- Ack 12 of 6
130 ms -> AData 12 of 4
140 ms <- Ack 16 of 6
";
    assert_eq!(lab.log, log);
}

#[test]
fn whoever_does_not_read_stops_the_sender_and_lets_it_go_on() {
    let options = PupOptions {
        packet: 10,
        receive_buffer: 20,
        send_buffer: 1000,
        ..PupOptions::default()
    };
    let mut lab = Lab::new(options, &[]);
    lab.end(0).send(&[b'x'; 100]);
    lab.until(ms(5000));
    assert_eq!(lab.end(1).readable(), 20);
    let before = lab.sent;
    let mut all = 0;
    for step in 1..20 {
        all += read(lab.end(1)).len();
        lab.until(ms(5000 + 50 * step));
    }
    assert_eq!(all, 100);
    // Nothing waits for a timer while it is read.
    assert!(lab.sent - before <= 40, "{}", lab.log);
}

#[test]
fn who_is_not_there_is_given_up_and_an_abort_says_why() {
    let mut lab = Lab::new(
        PupOptions {
            tries: 2,
            ..PupOptions::default()
        },
        &[Fate::Lost; 100],
    );
    lab.until(ms(60_000));
    assert_eq!(
        lab.end(0).state(),
        &PupState::Closed(Some("no answer came".into()))
    );
    assert_eq!(lab.sent, 3);
    let mut lab = Lab::new(PupOptions::default(), &[]);
    lab.until(ms(100));
    lab.end(1).abort("full");
    lab.until(ms(200));
    assert_eq!(lab.end(0).state(), &PupState::Closed(Some("full".into())));
    // One whose path is cut in the middle.
    let mut lab = Lab::new(
        PupOptions {
            tries: 2,
            idle: Some(Duration(1_000_000_000)),
            ..PupOptions::default()
        },
        &[],
    );
    lab.until(ms(100));
    lab.fates = vec![Fate::Lost; 1000];
    lab.until(ms(60_000));
    assert!(
        lab.end(0).is_closed() && lab.end(1).is_closed(),
        "{}",
        lab.log
    );
}

#[test]
fn answers_that_come_twice_do_not_double_what_is_sent() {
    let options = PupOptions {
        packet: 100,
        receive_buffer: 1000,
        ..PupOptions::default()
    };
    let run = |fates: &[Fate]| {
        let mut lab = Lab::new(options, fates);
        for _ in 0..40 {
            lab.end(0).send(&[b'x'; 500]);
            let until = lab.now + Duration(100_000_000);
            lab.until(until);
            read(lab.end(1));
        }
        lab.sent
    };
    let (usual, doubled) = (run(&[]), run(&[Fate::Twice; 12]));
    assert!(doubled <= usual + 12, "{doubled} for {usual}");
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![5 => Just(Fate::Passes), 1 => Just(Fate::Lost), 1 => Just(Fate::Twice), 1 => Just(Fate::Late)];
    prop::collection::vec(fate, 0..200)
}

proptest! {
    #[test]
    fn everything_arrives_once_in_order_and_marks_where_they_were(
        fates in fates(), pieces in prop::collection::vec((0..60_usize, any::<bool>()), 1..20), packet in 1..40_u16, buffer in 40..200_usize,
    ) {
        let options = PupOptions { packet, receive_buffer: buffer, tries: 50, ..PupOptions::default() };
        let mut lab = Lab::new(options, &fates);
        let (mut wanted, mut came) = (String::new(), String::new());
        for (at, (count, marks)) in pieces.iter().enumerate() {
            let letters: Vec<u8> = (0..*count).map(|letter| b'a' + ((at + letter) % 26) as u8).collect();
            prop_assert_eq!(lab.end(0).send(&letters), *count);
            wanted.push_str(&String::from_utf8_lossy(&letters));
            if *marks {
                lab.end(0).mark(at as u8);
                wanted.push_str(&format!("[{at}]"));
            }
        }
        lab.end(0).interrupt(9);
        lab.end(0).end();
        for _ in 0..4000 {
            let until = lab.now + Duration(500_000_000);
            lab.until(until);
            if let Some(end) = &mut lab.ends[1] {
                came.push_str(&read(end));
            }
            if lab.ends.iter().flatten().filter(|end| end.is_closed()).count() == 2 {
                break;
            }
        }
        prop_assert_eq!(came.trim_end_matches("END"), wanted, "{}", lab.log);
        prop_assert_eq!(lab.end(1).take_interrupt(), Some(9));
        prop_assert_eq!(lab.end(1).take_interrupt(), None);
    }

    #[test]
    fn no_packets_of_a_stranger_make_it_send_more_than_they_are(packets in prop::collection::vec((1..23_u8, any::<u32>(), prop::collection::vec(any::<u8>(), 0..20)), 0..100)) {
        let mut end = Lab::new(PupOptions::default(), &[]);
        end.until(ms(100));
        let own = end.end(0);
        let mut said = 0;
        for (kind, id, data) in &packets {
            let near = if id % 2 == 0 { 0xffff_fff0_u32.wrapping_add(id % 8) } else { *id };
            let mut bytes = PupPacket { kind: PupPacketKind::Data, id: near, to: LISTENS, from: LISTENS, data }.bytes(false);
            bytes[3] = *kind;
            if let Ok(packet) = PupPacket::read(&bytes) {
                own.handle(ms(200), &packet);
            }
            while own.poll(ms(200)).is_some() {
                said += 1;
            }
        }
        prop_assert!(said <= packets.len() + 1, "{said}");
    }
}
