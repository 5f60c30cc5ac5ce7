//! The filter of received frames: a check here, and the same as a classic BPF program, so that foreign frames take no
//! room.

use super::format::{BlastFrame, FLAGS_AT, FORMAT, FORMAT_AT, NUMBER_AT, PREFIX, WAKE};
use super::mac::{BROADCAST, Mac};
use socket2::{SockFilter, Socket};
use stackline_proto::blast::BlastPacketKind;
use std::io;

/// Classic BPF: loads at a place, jumps, ends.
const LOAD_4: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_2: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_1: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ANY_OF: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const END: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// A jump to the end that drops the frame; the distance is filled in at the end.
const DROP: u8 = u8::MAX;

/// What of a frame is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BpfFrameKeep {
    /// All of it.
    Whole,
    /// One byte of frames with the wake flag, nothing of others.
    Wake,
    /// Nothing of any.
    Nothing,
}

/// Which frames are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    /// This end: frames to it and to everybody.
    pub(super) own: Mac,
    /// The only accepted source, once known.
    pub(super) peer: Option<Mac>,
    /// The only accepted connection, once known.
    pub(super) number: Option<u32>,
    /// Whether only opening packets are accepted: a waiting end ignores the traffic of others.
    pub(super) opening_only: bool,
}

/// Packets that begin a conversation.
const OPENING_KINDS: [BlastPacketKind; 2] = [BlastPacketKind::Open, BlastPacketKind::Send];

impl Filter {
    /// Whether a frame is accepted.
    pub(super) fn accepts(&self, frame: &BlastFrame<'_>) -> bool {
        (frame.to == self.own || frame.to == BROADCAST)
            && frame.from != self.own
            && self.peer.is_none_or(|peer| frame.from == peer)
            && self
                .number
                .is_none_or(|number| frame.number() == Some(number))
            && (!self.opening_only
                || OPENING_KINDS
                    .iter()
                    .any(|kind| frame.packet.first() == Some(&(*kind as u8))))
    }

    /// Makes the kernel drop all other frames on that socket.
    pub(super) fn attach(&self, socket: &Socket, keep: BpfFrameKeep) -> io::Result<()> {
        let steps = self.program(keep).into_iter();
        let program: Vec<_> = steps
            .map(|(code, yes, no, value)| SockFilter::new(code, yes, no, value))
            .collect();
        socket.attach_filter(&program)
    }

    /// The same as [`Filter::accepts`] for frames of the ethertype that the socket is bound to.
    fn program(&self, keep: BpfFrameKeep) -> Vec<BpfStep> {
        let mut steps = BpfProgramBuilder::default();
        if keep != BpfFrameKeep::Nothing {
            steps.to(self.own);
            steps.must(LOAD_1, FORMAT_AT, FORMAT.into());
            steps.not_from(self.own);
            if let Some(peer) = self.peer {
                let (four, two) = peer.words();
                steps.must(LOAD_4, 6, four);
                steps.must(LOAD_2, 10, two);
            }
            if let Some(number) = self.number {
                // The kernel loads big-endian.
                steps.must(LOAD_4, NUMBER_AT, number.swap_bytes());
            }
            if self.opening_only {
                let [one, other] = OPENING_KINDS;
                steps.push(LOAD_1, 0, 0, PREFIX as u32);
                steps.push(EQUAL, 1, 0, one as u32);
                steps.push(EQUAL, 0, DROP, other as u32);
            }
        }
        match keep {
            BpfFrameKeep::Whole => steps.end(u32::MAX),
            BpfFrameKeep::Wake => {
                steps.push(LOAD_1, 0, 0, FLAGS_AT as u32);
                steps.push(ANY_OF, 0, DROP, WAKE.into());
                steps.end(1)
            }
            BpfFrameKeep::Nothing => steps.end(0),
        }
    }
}

/// What to do, how many steps to leave out when it is true and when it is not, and with which value.
type BpfStep = (u16, u8, u8, u32);

/// A program that is being written.
#[derive(Default)]
struct BpfProgramBuilder(Vec<BpfStep>);

impl BpfProgramBuilder {
    fn push(&mut self, code: u16, when_true: u8, when_false: u8, value: u32) {
        self.0.push((code, when_true, when_false, value));
    }

    /// Drops the frame unless it has this value there.
    fn must(&mut self, load: u16, at: usize, value: u32) {
        self.push(load, 0, 0, at as u32);
        self.push(EQUAL, 0, DROP, value);
    }

    /// Dropped unless the destination is this address or everybody's.
    fn to(&mut self, own: Mac) {
        let ((four, two), (all_four, all_two)) = (own.words(), BROADCAST.words());
        self.push(LOAD_4, 0, 0, 0);
        self.push(EQUAL, 0, 2, four);
        self.push(LOAD_2, 0, 0, 4);
        self.push(EQUAL, 3, DROP, two);
        self.push(EQUAL, 0, DROP, all_four);
        self.must(LOAD_2, 4, all_two);
    }

    /// Drops the frame if it comes from this address: on loopback every end receives its own frames.
    fn not_from(&mut self, own: Mac) {
        let (four, two) = own.words();
        self.push(LOAD_4, 0, 0, 6);
        self.push(EQUAL, 0, 2, four);
        self.push(LOAD_2, 0, 0, 10);
        self.push(EQUAL, DROP, 0, two);
    }

    /// The program: what came so far keeps so many bytes.
    fn end(mut self, keep: u32) -> Vec<BpfStep> {
        self.push(END, 0, 0, keep);
        let drop = self.0.len();
        self.push(END, 0, 0, 0);
        let steps = self.0.into_iter().enumerate();
        let there = |jump: u8, from: usize| {
            if jump == DROP {
                (drop - from - 1) as u8
            } else {
                jump
            }
        };
        steps
            .map(|(at, (code, yes, no, value))| (code, there(yes, at), there(no, at), value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;
    use proptest::prelude::*;

    const ETHERTYPE: u16 = 0x88B5;

    /// What a program keeps of a frame, by the rules of classic BPF for the instructions used here.
    fn keeps(program: &[BpfStep], frame: &[u8]) -> u32 {
        let (mut at, mut word) = (0, 0);
        let load = |at: u32, n: usize| {
            let bytes = frame.get(at as usize..at as usize + n)?;
            Some(
                bytes
                    .iter()
                    .fold(0, |word, byte| word << 8 | u32::from(*byte)),
            )
        };
        loop {
            let (code, yes, no, value) = program[at];
            at += 1;
            let jump = match code {
                END => return value,
                EQUAL => word == value,
                ANY_OF => word & value != 0,
                _ => {
                    let bytes = if code == LOAD_4 {
                        4
                    } else if code == LOAD_2 {
                        2
                    } else {
                        1
                    };
                    // A load beyond the end drops the frame.
                    let Some(loaded) = load(value, bytes) else {
                        return 0;
                    };
                    word = loaded;
                    continue;
                }
            };
            at += usize::from(if jump { yes } else { no });
        }
    }
    /// Addresses and numbers few enough that they are often the same.
    fn mac() -> impl Strategy<Value = Mac> {
        prop_oneof![
            Just(BROADCAST),
            (0_u8..2, 0_u8..2).prop_map(|(first, last)| Mac([2, 0, 0, first, 0, last]))
        ]
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let number = prop::option::of((0_u32..2).prop_map(|number| number << 24 | 7));
        (mac(), prop::option::of(mac()), number, any::<bool>()).prop_map(
            |(own, peer, number, opening_only)| Filter {
                own,
                peer,
                number,
                opening_only,
            },
        )
    }

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let number = (0_u32..2).prop_map(|number| (number << 24 | 7).to_le_bytes());
        let kind = prop::sample::select(vec![
            BlastPacketKind::Data,
            BlastPacketKind::Open,
            BlastPacketKind::Send,
        ]);
        (mac(), mac(), kind, number, 0_u8..2, 0_u16..30).prop_map(
            |(to, from, kind, number, flags, length)| {
                let mut prefix = [0; PREFIX];
                format::write(&mut prefix, to, from, ETHERTYPE, length, flags);
                let packet: Vec<u8> = [[kind as u8; 4], number]
                    .concat()
                    .into_iter()
                    .cycle()
                    .take(length.into())
                    .collect();
                let mut frame = [&prefix[..], &packet].concat();
                frame.resize(frame.len().max(60), 0);
                frame
            },
        )
    }

    proptest! {
        #[test]
        fn the_kernel_drops_nothing_that_is_let_in(filter in filter(), frame in frame()) {
            let lets = filter.accepts(&BlastFrame::read(&frame, ETHERTYPE).unwrap());
            let whole = keeps(&filter.program(BpfFrameKeep::Whole), &frame);
            prop_assert!(!lets || whole == u32::MAX);
            // The kernel does not check whether kind and number lie inside the packet or in the padding.
            prop_assert!(lets || whole == 0 || frame[14] < 8);
            prop_assert_eq!(keeps(&filter.program(BpfFrameKeep::Wake), &frame), u32::from(whole > 0 && frame[FLAGS_AT] & WAKE > 0));
            prop_assert_eq!(keeps(&filter.program(BpfFrameKeep::Nothing), &frame), 0);
        }

        #[test]
        fn any_bytes_are_kept_or_dropped(filter in filter(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if BlastFrame::read(&bytes, ETHERTYPE).is_some_and(|frame| filter.accepts(&frame)) {
                prop_assert_eq!(keeps(&filter.program(BpfFrameKeep::Whole), &bytes), u32::MAX);
            }
        }
    }
}
