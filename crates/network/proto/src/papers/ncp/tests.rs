//! Two ends of NCP over IMPs that take 50 ms a message: links, allocation, losses and the end.

use super::*;

const OPTIONS: NcpOptions = NcpOptions {
    links: 1,
    allocate: 3000,
    send_buffer: 10_000,
};

/// Two ends, between which every message takes 50 ms, and its RFNM as long.
struct Path {
    ends: [NcpConnection; 2],
    now: Instant,
    /// When what happens to which end.
    under_way: Vec<(Instant, usize, NcpMessage, bool)>,
    log: Vec<(u64, usize, NcpMessageKind, u32)>,
    lose: Option<ImpDeliveryFailure>,
}

impl Path {
    fn new(options: NcpOptions) -> Self {
        let ends = [
            NcpConnection::connect(options, Instant(0)),
            NcpConnection::listen(options, Instant(0)),
        ];
        Self {
            ends,
            now: Instant(0),
            under_way: Vec::new(),
            log: Vec::new(),
            lose: None,
        }
    }

    /// Goes on for so many ms; whoever gets data reads it at once, if `reads`.
    fn go(&mut self, ms: u64, reads: bool) {
        let until = self.now + Duration(ms * 1_000_000);
        loop {
            for at in 0..2 {
                while let Some(message) = self.ends[at].poll(self.now) {
                    self.log
                        .push((self.now.0 / 1_000_000, at, message.kind, message.bytes));
                    let trip = Duration(50_000_000);
                    if let Some(why) = self.lose.take() {
                        self.ends[at].failed(self.now, message.link, why);
                        continue;
                    }
                    self.under_way
                        .push((self.now + trip, 1 - at, message, false));
                    self.under_way
                        .push((self.now + trip + trip, at, message, true));
                }
            }
            let timers = (0..2).filter_map(|at| self.ends[at].deadline(self.now));
            let next = self
                .under_way
                .iter()
                .map(|(due, ..)| *due)
                .chain(timers)
                .min();
            let Some(next) = next.filter(|next| *next <= until) else {
                break;
            };
            self.now = next;
            let due: Vec<_> = self
                .under_way
                .extract_if(.., |(due, ..)| *due <= next)
                .collect();
            for (_, at, message, is_answer) in due {
                match is_answer {
                    true => self.ends[at].answered(next, message.link),
                    false => self.ends[at].handle(&message),
                }
                while reads && matches!(self.ends[at].receive(u64::MAX), NcpReceived::Bytes(_)) {}
            }
        }
        self.now = until;
    }

    fn data(&self) -> Vec<(u64, u32)> {
        let of_data = self
            .log
            .iter()
            .filter(|(.., kind, _)| *kind == NcpMessageKind::Data);
        of_data.map(|(at, _, _, bytes)| (*at, *bytes)).collect()
    }
}

#[test]
fn a_link_has_one_message_until_its_rfnm() {
    let mut path = Path::new(OPTIONS);
    assert_eq!(path.ends[0].send(2500), Some(2500));
    path.go(2000, true);
    // Opened at 100 ms; a message every 100.
    assert_eq!(path.data(), [(100, 1003), (200, 1003), (300, 494)]);
    assert_eq!(
        path.ends.each_ref().map(NcpConnection::state),
        [NcpState::Open; 2]
    );
    assert_eq!(path.ends[0].counts().round_trip, Duration(100_000_000));
    assert_eq!(path.ends[1].counts().received, 2500);
}

#[test]
fn more_links_have_more_messages_under_way() {
    let mut path = Path::new(NcpOptions {
        links: 2,
        allocate: 100_000,
        ..OPTIONS
    });
    path.ends[0].send(4012);
    path.go(2000, true);
    assert_eq!(
        path.data(),
        [(100, 1003), (100, 1003), (200, 1003), (200, 1003)]
    );
}

#[test]
fn nothing_goes_beyond_what_is_allocated() {
    let mut path = Path::new(OPTIONS);
    path.ends[0].send(10_000);
    path.go(2000, false);
    assert_eq!(
        path.data().iter().map(|(_, bytes)| bytes).sum::<u32>(),
        3000
    );
    let (allocation, links) = path.ends[0].waited(path.now);
    // Opened at 100 ms, the third message left at 300, the allocation was used up.
    assert_eq!(
        (allocation, links),
        (Duration(1_700_000_000), Duration(200_000_000))
    );
    // Once it is read, more is allocated.
    assert_eq!(path.ends[1].receive(2000), NcpReceived::Bytes(2000));
    path.go(2000, false);
    assert_eq!(
        path.data().iter().map(|(_, bytes)| bytes).sum::<u32>(),
        5000
    );
    path.go(1, true);
    assert_eq!(path.ends[1].receive(u64::MAX), NcpReceived::Bytes(3000));
    path.go(5000, true);
    assert_eq!(path.ends[1].counts().received, 10_000);
    let allocations = path
        .log
        .iter()
        .filter(|(.., kind, _)| *kind == NcpMessageKind::Allocate)
        .count();
    assert!((3..=6).contains(&allocations), "{:?}", path.log);
}

#[test]
fn both_close_once_all_is_delivered() {
    let mut path = Path::new(OPTIONS);
    path.ends[0].send(1500);
    path.ends[0].close();
    assert_eq!(path.ends[0].send(1), None);
    path.go(1000, true);
    assert_eq!(path.ends[1].receive(1), NcpReceived::End);
    path.ends[1].close();
    path.go(1000, true);
    assert_eq!(
        path.ends.each_ref().map(NcpConnection::state),
        [NcpState::Over; 2]
    );
    let last = path
        .log
        .iter()
        .rposition(|(.., kind, _)| *kind == NcpMessageKind::Data)
        .unwrap();
    let close = path
        .log
        .iter()
        .position(|(.., kind, _)| *kind == NcpMessageKind::Close)
        .unwrap();
    assert!(last < close);
}

#[test]
fn what_the_imps_lose_goes_again_and_comes_once() {
    let mut path = Path::new(NcpOptions {
        links: 3,
        allocate: 100_000,
        ..OPTIONS
    });
    path.go(150, true);
    path.ends[0].send(3009);
    path.lose = Some(ImpDeliveryFailure::Incomplete);
    path.go(3000, true);
    assert_eq!(path.ends[1].counts().received, 3009);
    assert_eq!((path.ends[0].counts().repeated, path.data().len()), (1, 4));
    assert_eq!(path.ends[0].waiting(), (0, 0, 0));
}

#[test]
fn it_is_given_up_when_the_other_host_stays_dead() {
    let mut one = NcpConnection::connect(OPTIONS, Instant(0));
    let (mut now, mut tries) = (Instant(0), 0);
    while one.state() == NcpState::Opening {
        assert_eq!(
            one.poll(now).map(|message| message.kind),
            Some(NcpMessageKind::Open)
        );
        now += Duration(10_000_000);
        one.failed(now, 0, ImpDeliveryFailure::DeadHost);
        tries += 1;
        now = one.deadline(now).unwrap_or(now);
    }
    assert_eq!((one.state(), one.deadline(now)), (NcpState::Broken, None));
    assert!((200..=260).contains(&tries), "{tries}");
    assert_eq!(one.receive(1), NcpReceived::Broken);
}

#[test]
fn who_gives_up_tells_the_other_end() {
    let mut path = Path::new(OPTIONS);
    path.go(200, true);
    path.ends[1].abort();
    path.go(200, true);
    assert_eq!(
        path.ends.each_ref().map(NcpConnection::state),
        [NcpState::Broken; 2]
    );
    assert_eq!(path.ends[0].send(1), None);
}
