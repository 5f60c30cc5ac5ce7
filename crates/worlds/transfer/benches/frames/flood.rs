//! As many frames as go through: one thread sends without a pause, another takes what comes and copies the data to where it
//! belongs.

use crate::Failure;
use crate::sys::{BATCH, Bare, Many};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use stackline_proto::blast::BlastPacketKind;
use stackline_transfer::carrier::{
    CarrierPayload, CarrierWait, PacketCarrier, PacketHeadBuffer, PacketRun,
};
use stackline_transfer::frames::{FrameCarrier, FrameCarrierOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long is sent.
const FLOOD: Duration = Duration::from_millis(700);
/// After so long without a frame, nothing is in flight any more.
const SILENCE: Duration = Duration::from_millis(50);
/// Bytes before the payload: of the Ethernet header, of the carrier's own, and of the head.
const FRONT: usize = 50;
const HEAD: usize = 32;
/// Memory that is sent from and received into.
const MEMORY: usize = 1 << 20;

/// What moves frames.
#[derive(Clone, Copy)]
pub(crate) enum Mover {
    /// The carrier.
    Carrier,
    /// `sendmmsg` and `recvmmsg` of 64 frames.
    Many,
    /// `send` and `recv`.
    One,
}

impl Mover {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Carrier, Self::Many, Self::One];

    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Carrier => "carrier",
            Self::Many => "sendmmsg, recvmmsg 64",
            Self::One => "send, recv",
        }
    }
}

/// What came of it.
pub(crate) struct Flood {
    /// Frames received a second.
    pub rate: f64,
    /// The share of what was sent that did not come.
    pub lost: f64,
    /// Processor time of the sending thread per GiB of frames sent, in seconds.
    pub sender: f64,
    /// Processor time of the receiving thread per GiB of frames received, in seconds.
    pub receiver: f64,
}

/// Sends a batch; how many frames went.
type Send<'a> = Box<dyn FnMut() -> Result<usize, Failure> + std::marker::Send + 'a>;
/// Takes frames, waiting for the first for some time; how many came.
type Take<'a> = Box<dyn FnMut(&mut [u8]) -> Result<usize, Failure> + std::marker::Send + 'a>;

/// Floods the veth pair with frames of so many bytes.
pub(crate) fn flood(mover: Mover, size: usize) -> Result<Flood, Failure> {
    let data = vec![7; MEMORY];
    let payload = size.saturating_sub(FRONT);
    let (mut send, mut take) = match mover {
        Mover::Carrier => carrier(&data, payload)?,
        Mover::Many => many(&data, payload)?,
        Mover::One => one(&data, payload)?,
    };
    let sent = AtomicU64::new(0);
    let (sender, (came, seconds, receiver)) = thread::scope(|scope| {
        let receiver = scope.spawn(|| -> Result<_, Failure> {
            pin(1)?;
            let mut into = vec![0; MEMORY];
            let (mut came, mut begin, mut last) = (0, None, Instant::now());
            let before = processor_time()?;
            // The first frame may take its time.
            while begin.is_none() || last.elapsed() < SILENCE {
                let frames = take(&mut into)?;
                if frames > 0 {
                    last = Instant::now();
                    begin.get_or_insert(last);
                    came += frames as u64;
                }
            }
            let seconds = begin.map_or(0.0, |begin| (last - begin).as_secs_f64());
            Ok((came, seconds, processor_time()? - before))
        });
        let sender = scope.spawn(|| -> Result<f64, Failure> {
            pin(0)?;
            let (begin, before) = (Instant::now(), processor_time()?);
            while begin.elapsed() < FLOOD {
                sent.fetch_add(send()? as u64, Ordering::Relaxed);
            }
            Ok(processor_time()? - before)
        });
        let sender = sender.join().map_err(|_| "the sender panicked")??;
        Ok::<_, Failure>((
            sender,
            receiver.join().map_err(|_| "the receiver panicked")??,
        ))
    })?;
    let sent = sent.into_inner();
    let gib = |frames: u64| frames as f64 * size as f64 / f64::from(1 << 30);
    Ok(Flood {
        rate: came as f64 / seconds,
        lost: 1.0 - came as f64 / sent as f64,
        sender: sender / gib(sent),
        receiver: receiver / gib(came),
    })
}

/// Two ends that have fixed their peers.
fn carrier(data: &[u8], payload: usize) -> Result<(Send<'_>, Take<'_>), Failure> {
    let head = |kind: BlastPacketKind| {
        let mut head = PacketHeadBuffer::EMPTY;
        (head.0[0], head.0[4]) = (kind as u8, 1);
        head
    };
    let mut near = FrameCarrier::connect("near", FrameCarrierOptions::default())?;
    let mut far = FrameCarrier::listen("far", Some(1), FrameCarrierOptions::default())?;
    let say = |end: &mut FrameCarrier, kind| {
        end.send(PacketRun {
            head: HEAD,
            heads: &[head(kind)],
            payload: &[],
            each: 0,
        })
    };
    let hear = |end: &mut FrameCarrier| {
        end.receive(
            HEAD,
            &mut [],
            &[],
            CarrierWait::Block(Duration::from_secs(1)),
        )
    };
    say(&mut near, BlastPacketKind::Open)?;
    hear(&mut far)?;
    say(&mut far, BlastPacketKind::Accept)?;
    hear(&mut near)?;
    say(&mut near, BlastPacketKind::Answer)?;
    hear(&mut far)?;
    let heads = [head(BlastPacketKind::Data); BATCH];
    let send = move || {
        let run = PacketRun {
            head: HEAD,
            heads: &heads,
            payload: &data[..BATCH * payload],
            each: payload,
        };
        Ok(near.send(run)?)
    };
    let mut at = 0;
    let take = move |into: &mut [u8]| {
        let packets = far.receive(HEAD, &mut [], &[], CarrierWait::Block(SILENCE))?;
        for index in 0..packets {
            if let CarrierPayload::Here(bytes) = far.packet(index).payload {
                into[at..][..bytes.len()].copy_from_slice(bytes);
                at = (at + bytes.len()) % (MEMORY / 2);
            }
        }
        Ok(packets)
    };
    Ok((Box::new(send), Box::new(take)))
}

fn many(data: &[u8], payload: usize) -> Result<(Send<'_>, Take<'_>), Failure> {
    let (near, far) = (Bare::new("near")?, Bare::new("far")?);
    let (mut out, mut into_many) = (Many::new(FRONT, payload), Many::new(FRONT, payload));
    let send = move || Ok(out.send(&near, data)?);
    let take = move |into: &mut [u8]| Ok(into_many.receive(&far, into, SILENCE)?);
    Ok((Box::new(send), Box::new(take)))
}

fn one(data: &[u8], payload: usize) -> Result<(Send<'_>, Take<'_>), Failure> {
    let (near, far) = (Bare::new("near")?, Bare::new("far")?);
    let mut frame = vec![0; (FRONT + payload).max(60)];
    frame[12..14].copy_from_slice(&stackline_transfer::frames::ETHERTYPE.to_be_bytes());
    let send = move || {
        for packet in 0..BATCH {
            frame[FRONT..][..payload].copy_from_slice(&data[packet * payload..][..payload]);
            near.send(&frame)?;
        }
        Ok(BATCH)
    };
    let mut at = 0;
    let take = move |into: &mut [u8]| {
        let bytes = far.receive(&mut into[at..at + 2048], SILENCE)?;
        at = (at + bytes) % (MEMORY / 2);
        Ok(usize::from(bytes > 0))
    };
    Ok((Box::new(send), Box::new(take)))
}

/// Brings this thread to one of the processors it may run on.
pub(crate) fn pin(side: usize) -> Result<(), Failure> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let cores: Vec<usize> = (0..CpuSet::count())
        .filter(|&core| allowed.is_set(core).unwrap_or(false))
        .collect();
    let mut set = CpuSet::new();
    set.set(cores[side % cores.len()])?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Of this thread, in seconds.
pub(crate) fn processor_time() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok(
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64
            / 1e6,
    )
}
