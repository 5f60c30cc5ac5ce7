//! Captures of one side alone, made by hand packet by packet: what they show has the same cause as seen from the other side, and what
//! cannot be known from there is not alleged.

use crate::support::Place;
use serde_json::Value;

/// Milliseconds, in microseconds.
const MS: u64 = 1000;
const CLIENT: [u8; 4] = [10, 9, 0, 1];
const SERVER: [u8; 4] = [10, 9, 0, 2];

/// One connection as its client's interface sees it, or its server's.
pub(crate) struct Talk {
    /// From the place of the capture to the other end and back, us.
    trip: u64,
    pub(crate) now: u64,
    port: u16,
    sequence: [u32; 2],
    packets: Vec<(u64, Vec<u8>)>,
    number: u16,
    /// The side at whose interface it is seen.
    near: usize,
}

/// What a segment says beside its data.
#[derive(Clone, Copy, Default)]
struct Flags {
    syn: bool,
    fin: bool,
    reset: bool,
    closed_window: bool,
}

impl Talk {
    /// Seen at the client, whose server is so far away; the connection is there.
    pub(crate) fn at_client(trip: u64) -> Self {
        let mut talk = Self {
            trip,
            now: 0,
            port: 80,
            sequence: [1000, 5000],
            packets: Vec::new(),
            number: 0,
            near: 0,
        };
        talk.opens();
        talk
    }

    fn opens(&mut self) {
        let syn = Flags {
            syn: true,
            ..Flags::default()
        };
        self.segment(0, b"", syn);
        self.now += self.trip;
        self.segment(1, b"", syn);
        self.now += 50;
        self.segment(0, b"", Flags::default());
    }

    fn segment(&mut self, side: usize, data: &[u8], flags: Flags) {
        let sequence = self.sequence[side];
        self.sequence[side] =
            sequence.wrapping_add(data.len() as u32 + u32::from(flags.syn) + u32::from(flags.fin));
        self.packet(side, sequence, data, flags);
    }

    /// A segment with that number, which may have been there.
    fn packet(&mut self, side: usize, sequence: u32, data: &[u8], flags: Flags) {
        let (from, to) = if side == 0 {
            (CLIENT, SERVER)
        } else {
            (SERVER, CLIENT)
        };
        let (own, other) = if side == 0 {
            (40_001, self.port)
        } else {
            (self.port, 40_001)
        };
        let is_first = flags.syn && side == 0;
        let options: &[u8] = if flags.syn {
            &[2, 4, 5, 180, 3, 3, 7, 0]
        } else {
            &[]
        };
        self.number += 1;
        let mut packet = vec![0x45, 0];
        packet.extend((40 + options.len() as u16 + data.len() as u16).to_be_bytes());
        packet.extend(self.number.to_be_bytes());
        packet.extend([0x40, 0, if side == self.near { 64 } else { 58 }, 6, 0, 0]);
        packet.extend(from);
        packet.extend(to);
        packet.extend(own.to_be_bytes());
        packet.extend(other.to_be_bytes());
        packet.extend(sequence.to_be_bytes());
        let acknowledged = if is_first { 0 } else { self.sequence[1 - side] };
        packet.extend(acknowledged.to_be_bytes());
        let bits = [
            (flags.fin, 1),
            (flags.syn, 2),
            (flags.reset, 4),
            (!data.is_empty(), 8),
            (!is_first, 16),
        ];
        let bits: u8 = bits
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, bit)| bit)
            .sum();
        packet.extend([((20 + options.len() as u8) / 4) << 4, bits]);
        let window: u16 = if flags.closed_window { 0 } else { 500 };
        packet.extend(window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(options);
        packet.extend(data);
        self.packets.push((self.now, packet));
    }

    pub(crate) fn says(&mut self, side: usize, data: &[u8]) {
        for part in data.chunks(1448) {
            self.segment(side, part, Flags::default());
            self.now += 10;
        }
        self.segment(1 - side, b"", Flags::default());
    }

    /// A request that is answered after a round trip and what the server takes.
    fn asks(&mut self, path: &str, takes: u64) {
        self.says(
            0,
            format!("GET {path} HTTP/1.1\r\nHost: web\r\n\r\n").as_bytes(),
        );
        self.now += self.trip + takes;
        self.says(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }

    fn closes(&mut self) {
        let fin = Flags {
            fin: true,
            ..Flags::default()
        };
        self.segment(0, b"", fin);
        self.now += self.trip;
        self.segment(1, b"", fin);
        self.now += 50;
        self.segment(0, b"", Flags::default());
    }

    /// The capture, of bare packets of IP.
    pub(crate) fn capture(mut self) -> Vec<u8> {
        self.packets.sort_by_key(|(at, _)| *at);
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 18, 101] {
            bytes.extend(word.to_le_bytes());
        }
        for (at, packet) in self.packets {
            let seconds = 1_700_000_000 + (at / 1_000_000) as u32;
            for word in [
                seconds,
                (at % 1_000_000) as u32,
                packet.len() as u32,
                packet.len() as u32,
            ] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(packet);
        }
        bytes
    }

    /// What is found in it.
    fn found(self) -> Vec<Value> {
        let place = Place::new();
        place.write("one.pcap", self.capture());
        place.stackline(&["import", "one.pcap"]).succeeds();
        let run = place.kept().0;
        let words = ["diagnose", run.to_str().unwrap(), "--json"];
        let json = place.stackline(&words).succeeds().json();
        json["findings"].as_array().unwrap().clone()
    }
}

fn kinds(found: &[Value]) -> Vec<&str> {
    found
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect()
}

fn says(found: &Value, words: &str) -> bool {
    found["sentence"].as_str().unwrap().contains(words)
}

#[test]
fn the_network_is_not_the_servers_time() {
    for trip in [60, 120, 200] {
        let mut talk = Talk::at_client(trip * MS);
        (0..5).for_each(|at| talk.asks(&format!("/{at}"), MS));
        talk.closes();
        let found = talk.found();
        assert_eq!(kinds(&found), ["chatty_requests"], "{trip} ms: {found:?}");
        assert!(says(&found[0], "up to 5 requests"), "{found:?}");
    }
}

#[test]
fn a_slow_server_far_away_has_what_is_beyond_the_network() {
    let mut talk = Talk::at_client(40 * MS);
    talk.asks("/slow", 100 * MS);
    let found = talk.found();
    assert_eq!(kinds(&found), ["server_takes"]);
    assert!(says(&found[0], "during GET /slow"), "{found:?}");
    let each = found[0]["takes"]["each_s"].as_f64().unwrap();
    assert!((each - 0.1).abs() < 0.001, "{each}");
}

#[test]
fn a_client_without_room_for_an_answer_is_named_from_its_own_side() {
    let mut talk = Talk::at_client(20 * MS);
    talk.says(0, b"GET /w HTTP/1.1\r\nHost: web\r\n\r\n");
    talk.now += 25 * MS;
    talk.says(
        1,
        &[
            &b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"[..],
            &[b'x'; 4000],
        ]
        .concat(),
    );
    let closed = Flags {
        closed_window: true,
        ..Flags::default()
    };
    talk.segment(0, b"", closed);
    // A probe of one byte changes nothing.
    talk.now += 500 * MS;
    let next = talk.sequence[1];
    talk.packet(1, next, b"x", Flags::default());
    talk.segment(0, b"", closed);
    talk.now += 2500 * MS;
    talk.segment(0, b"", Flags::default());
    talk.now += 20 * MS;
    talk.says(1, &[b'x'; 5000]);
    talk.closes();
    let found = talk.found();
    assert_eq!(found[0]["kind"], "request_window", "{found:?}");
    assert!(found[0]["share"].as_f64().unwrap() > 0.9);
}

#[test]
fn a_hole_that_is_filled_late_is_a_loss_before_the_capture() {
    let mut talk = Talk::at_client(20 * MS);
    talk.says(0, b"GET /l HTTP/1.1\r\nHost: web\r\n\r\n");
    talk.now += 21 * MS;
    let answer = [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n"[..],
        &[b'x'; 4000],
    ]
    .concat();
    talk.segment(1, &answer[..1448], Flags::default());
    let lost = talk.sequence[1];
    talk.sequence[1] = lost.wrapping_add(1448);
    talk.segment(1, &answer[2896..], Flags::default());
    talk.now += 25 * MS;
    talk.packet(1, lost, &answer[1448..2896], Flags::default());
    talk.segment(0, b"", Flags::default());
    talk.closes();
    let found = talk.found();
    assert_eq!(found[0]["kind"], "request_loss", "{found:?}");
    let each = found[0]["takes"]["each_s"].as_f64().unwrap();
    assert!((each - 0.025).abs() < 0.001, "{each}");
}

#[test]
fn a_client_that_pauses_within_its_request_is_named() {
    let mut talk = Talk::at_client(20 * MS);
    talk.says(
        0,
        b"POST /e HTTP/1.1\r\nHost: web\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    talk.now += 20 * MS;
    talk.segment(1, b"", Flags::default());
    talk.now += 980 * MS;
    talk.says(0, b"hello");
    talk.now += 25 * MS;
    talk.says(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let found = talk.found();
    assert_eq!(found[0]["kind"], "client_pauses", "{found:?}");
    assert!(says(&found[0], "9"), "{found:?}");
}

#[test]
fn a_server_that_resets_an_idle_connection_failed_the_request() {
    let mut talk = Talk::at_client(20 * MS);
    talk.asks("/one", MS);
    talk.now += 5000 * MS;
    talk.segment(
        0,
        b"GET /two HTTP/1.1\r\nHost: web\r\n\r\n",
        Flags::default(),
    );
    talk.now += 20 * MS;
    let reset = Flags {
        reset: true,
        ..Flags::default()
    };
    talk.segment(1, b"", reset);
    let found = talk.found();
    assert_eq!(found[0]["kind"], "server_ends_connection", "{found:?}");
    assert!(
        says(&found[0], "1 of 2 requests") && says(&found[0], "reset"),
        "{found:?}"
    );
    assert!(
        says(&found[0], "idle time before that: at least 5.0"),
        "{found:?}"
    );
}

#[test]
fn keep_alives_of_one_byte_and_a_whole_upload_are_no_trouble() {
    let mut talk = Talk::at_client(20 * MS);
    talk.port = 514;
    (talk.packets, talk.sequence, talk.now) = (Vec::new(), [1000, 5000], 0);
    talk.opens();
    talk.says(0, b"<13>one line of a log\n");
    for _ in 0..30 {
        talk.now += 1000 * MS;
        let last = talk.sequence[0].wrapping_sub(1);
        talk.segment(1, b"", Flags::default());
        talk.packet(0, last, b"\n", Flags::default());
        talk.now += 20 * MS;
        talk.segment(1, b"", Flags::default());
    }
    talk.says(0, &[b'z'; 3000]);
    talk.closes();
    let found = talk.found();
    let wrong = [
        "observed_loss",
        "unanswered_requests",
        "server_ends_connection",
    ];
    assert!(
        !kinds(&found).iter().any(|kind| wrong.contains(kind)),
        "{found:?}"
    );
}

/// A sender that paces on a path which holds few segments, as BBR does, seen at the server: acknowledgements do not let its segments go.
#[test]
fn a_server_whose_stack_paces_its_answer_is_not_away() {
    let mut talk = Talk::at_client(50);
    talk.near = 1;
    talk.packets.clear();
    talk.now += 12 * MS;
    talk.segment(
        0,
        b"GET /big HTTP/1.1\r\nHost: web\r\n\r\n",
        Flags::default(),
    );
    talk.now += 50;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {:6}\r\n\r\n",
        200 * 1448 - 45
    );
    let mut answer = head.into_bytes();
    answer.resize(200 * 1448, b'x');
    let mut behind = Vec::new();
    for part in answer.chunks(1448) {
        talk.segment(1, part, Flags::default());
        behind.push(talk.sequence[1]);
        talk.now += 500;
        if let Some(received) = behind.len().checked_sub(4) {
            let sent = std::mem::replace(&mut talk.sequence[1], behind[received]);
            talk.segment(0, b"", Flags::default());
            talk.sequence[1] = sent;
        }
        talk.now += 2500;
    }
    talk.now += 12 * MS;
    talk.segment(0, b"", Flags::default());
    talk.closes();
    let found = talk.found();
    assert!(!kinds(&found).contains(&"server_takes"), "{found:#?}");
}

/// A client that sends small segments behind each other at once has set TCP_NODELAY: an acknowledgement before its body is chance.
#[test]
fn a_client_that_sends_small_segments_at_once_is_not_held_back() {
    let posts = |at_once: bool| {
        let mut talk = Talk::at_client(20 * MS);
        let head = b"POST /w HTTP/1.1\r\nHost: web\r\nContent-Length: 400\r\n\r\n";
        if at_once {
            talk.segment(0, head, Flags::default());
            talk.now += 100;
            talk.segment(0, &[b'x'; 400], Flags::default());
            talk.now += talk.trip;
            talk.says(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
        for _ in 0..5 {
            talk.segment(0, head, Flags::default());
            talk.now += 60 * MS;
            talk.segment(1, b"", Flags::default());
            talk.now += 100;
            talk.segment(0, &[b'x'; 400], Flags::default());
            talk.now += talk.trip;
            talk.says(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
        talk.closes();
        let found = talk.found();
        found.iter().any(|one| says(one, "Nagle"))
    };
    assert!(posts(false), "it is alleged where nothing refutes it");
    assert!(!posts(true));
}
