//! The filter of received frames: a check in this process, and the same check as a classic BPF program for the kernel, so that foreign
//! frames take no room in the ring.

use super::format::{BlastFrame, FLAGS_AT, FORMAT, FORMAT_AT, NUMBER_AT, PREFIX, WAKE};
use super::mac::{BROADCAST, Mac};
use socket2::Socket;
use stackline_os::bpf::{BpfJump, BpfProgram, BpfStep, BpfWidth, require_equal};
use stackline_proto::blast::BlastPacketKind;
use std::io;
use std::os::fd::AsFd;

/// How much of an accepted frame the kernel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BpfFrameKeep {
    /// The whole frame.
    Whole,
    /// One byte of frames with the wake flag, nothing of others.
    Wake,
    /// Nothing of any frame: all are dropped.
    Nothing,
}

/// Which frames are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    /// This end's address: frames to it and to the broadcast address are accepted, those from it are not.
    pub(super) own: Mac,
    /// The only accepted source; `None` while the peer is not known.
    pub(super) peer: Option<Mac>,
    /// The number of the only accepted connection; `None` while it is not known.
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

    /// Makes the kernel drop all frames on that socket that are not accepted.
    pub(super) fn attach(&self, socket: &Socket, keep: BpfFrameKeep) -> io::Result<()> {
        self.program(keep)?.attach(socket.as_fd())
    }

    /// The same as [`Filter::accepts`] for frames of the ethertype that the socket is bound to.
    fn program(&self, keep: BpfFrameKeep) -> io::Result<BpfProgram> {
        let mut steps = Vec::new();
        if keep != BpfFrameKeep::Nothing {
            require_destination(&mut steps, self.own);
            require(&mut steps, BpfWidth::Byte, FORMAT_AT, FORMAT.into());
            refuse_source(&mut steps, self.own);
            if let Some(peer) = self.peer {
                let (four, two) = peer.words();
                require(&mut steps, BpfWidth::Word, 6, four);
                require(&mut steps, BpfWidth::Half, 10, two);
            }
            if let Some(number) = self.number {
                // A BPF load reads big-endian, the number is little-endian.
                require(&mut steps, BpfWidth::Word, NUMBER_AT, number.swap_bytes());
            }
            if self.opening_only {
                let [one, other] = OPENING_KINDS;
                steps.push(load(BpfWidth::Byte, PREFIX));
                steps.push(BpfStep::IsEqual(
                    one as u32,
                    BpfJump::Skip(1),
                    BpfJump::NEXT,
                ));
                steps.push(require_equal(other as u32));
            }
        }
        let kept = match keep {
            BpfFrameKeep::Whole => u32::MAX,
            BpfFrameKeep::Wake => {
                steps.push(load(BpfWidth::Byte, FLAGS_AT));
                steps.push(BpfStep::HasAny(WAKE.into(), BpfJump::NEXT, BpfJump::Reject));
                1
            }
            BpfFrameKeep::Nothing => 0,
        };
        BpfProgram::assemble(&steps, kept, 0)
    }
}

/// Loads the value at byte `at` of the frame.
fn load(width: BpfWidth, at: usize) -> BpfStep {
    BpfStep::Load(width, at as i32)
}

/// Adds steps that drop the frame unless it has this value at byte `at`.
fn require(steps: &mut Vec<BpfStep>, width: BpfWidth, at: usize, value: u32) {
    steps.extend([load(width, at), require_equal(value)]);
}

/// Adds steps that drop the frame unless its destination is this address or the broadcast address. An address is compared as its first
/// four and its last two bytes.
fn require_destination(steps: &mut Vec<BpfStep>, own: Mac) {
    let ((four, two), (all_four, all_two)) = (own.words(), BROADCAST.words());
    steps.extend([
        load(BpfWidth::Word, 0),
        BpfStep::IsEqual(four, BpfJump::NEXT, BpfJump::Skip(2)),
        load(BpfWidth::Half, 4),
        BpfStep::IsEqual(two, BpfJump::Skip(3), BpfJump::Reject),
        require_equal(all_four),
    ]);
    require(steps, BpfWidth::Half, 4, all_two);
}

/// Adds steps that drop the frame if it comes from this address: on loopback every end receives its own frames.
fn refuse_source(steps: &mut Vec<BpfStep>, own: Mac) {
    let (four, two) = own.words();
    steps.extend([
        load(BpfWidth::Word, 6),
        BpfStep::IsEqual(four, BpfJump::NEXT, BpfJump::Skip(2)),
        load(BpfWidth::Half, 10),
        BpfStep::IsEqual(two, BpfJump::Reject, BpfJump::NEXT),
    ]);
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;
    use proptest::prelude::*;

    const ETHERTYPE: u16 = 0x88B5;

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
            let whole = filter.program(BpfFrameKeep::Whole).unwrap().run(&frame);
            prop_assert!(!lets || whole == u32::MAX);
            // The kernel does not check whether kind and number lie inside the packet or in the padding.
            prop_assert!(lets || whole == 0 || frame[14] < 8);
            prop_assert_eq!(filter.program(BpfFrameKeep::Wake).unwrap().run(&frame), u32::from(whole > 0 && frame[FLAGS_AT] & WAKE > 0));
            prop_assert_eq!(filter.program(BpfFrameKeep::Nothing).unwrap().run(&frame), 0);
        }

        #[test]
        fn any_bytes_are_kept_or_dropped(filter in filter(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if BlastFrame::read(&bytes, ETHERTYPE).is_some_and(|frame| filter.accepts(&frame)) {
                prop_assert_eq!(filter.program(BpfFrameKeep::Whole).unwrap().run(&bytes), u32::MAX);
            }
        }
    }
}
