//! One transfer, packet by packet: two machines, the network between their hosts, and the two processors that move packets
//! from a machine to an interface. It has no random numbers: the caller decides for each packet that arrives whether it is lost.
//!
//! It advances time by itself. As two programs on the loop of `sim`, which carries any number of hosts and connections, the same
//! transfers took one and a half times as long, and a table needs many thousands of them.

use super::experiment::BlastExperiment;
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{
    EcnMarking, NetworkPacket, NodeIndex, PacketNetwork, PacketPayload, SegmentSizes,
};
use stackline_proto::blast::{
    BlastHeader, BlastOptions, BlastPacing, BlastReceiver, BlastSender, BlastTimeout,
};

/// After this many steps without progress of time, the transfer is considered stuck.
const STEPS_AN_INSTANT: u32 = 1 << 20;
/// The number of the connection, the same at both machines.
const CONNECTION: u32 = 1;

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastTransferResult {
    /// The time from the beginning of the first copy to the end of the last.
    pub elapsed: Duration,
    /// Data packets sent.
    pub data: u64,
    /// Answers sent.
    pub answers: u64,
    /// Packets that arrived until the end of the transfer, including those that were declared lost.
    pub arrivals: u64,
}

impl<'n> BlastExperiment<'n> {
    /// One transfer in which nothing is lost.
    ///
    /// # Errors
    /// An [`Error`] when the transfer does not end: no path, packets larger than its MTU, an interface whose buffers
    /// overflow each time.
    pub fn error_free(&self) -> Result<BlastTransferResult> {
        // More data packets than this without a loss mean that it would never end.
        walk(self, 1000 + 16 * u64::from(self.packets), || false)
    }

    /// The experiment with the paper's retransmission interval: the sender waits To(1) + `interval` for an answer, where To(1) is
    /// the error-free time of a single packet. The receiver answers only when asked, and nothing is paced. `interval` is Tr of
    /// the paper's model.
    ///
    /// # Errors
    /// See [`BlastExperiment::error_free`].
    pub fn waiting(self, interval: Duration) -> Result<Self> {
        let single = Self { packets: 1, ..self }.error_free()?.elapsed;
        let options = BlastOptions {
            interval: BlastTimeout::Fixed(single + interval),
            nak_delay: None,
            pacing: BlastPacing::Off,
            ..self.options
        };
        Ok(Self { options, ..self })
    }
}

/// A packet between the machines.
#[derive(Clone, Debug)]
enum BlastTransferPayload {
    /// A data packet, with its length in bytes.
    Data(BlastHeader, u32),
    /// An answer of the receiver, with its body.
    Answer(BlastHeader, Vec<u8>),
}

impl PacketPayload for BlastTransferPayload {
    fn split(&mut self, _: u32) -> Self {
        // Packets are handed over one by one, so the network never splits one.
        self.clone()
    }

    fn mark(&mut self) {}

    fn set_dscp(&mut self, _: u8) {}

    fn again(&self) -> Self {
        self.clone()
    }
}

/// A transfer under way.
struct BlastTransferWalk<'w> {
    experiment: &'w BlastExperiment<'w>,
    network: PacketNetwork<BlastTransferPayload>,
    sender: BlastSender,
    receiver: BlastReceiver,
    now: Instant,
    /// Steps since `now` last changed.
    steps: u32,
    /// The transfer is given up after this many data packets.
    most: u64,
    answers: u64,
    arrivals: u64,
}

/// Carries out one transfer; `lost` is asked once for each packet that arrives, in their order. It is given up when it has
/// not ended after `most` data packets.
pub(super) fn walk(
    experiment: &BlastExperiment<'_>,
    most: u64,
    mut lost: impl FnMut() -> bool,
) -> Result<BlastTransferResult> {
    let mut sender = BlastSender::new(&experiment.options, CONNECTION, experiment.options.buffer);
    sender.send(u64::from(experiment.packets) * u64::from(experiment.options.packet));
    let mut walk = BlastTransferWalk {
        experiment,
        network: PacketNetwork::new(experiment.network, Seed::root(0), ()),
        sender,
        receiver: BlastReceiver::new(&experiment.options, CONNECTION),
        now: Instant(0),
        steps: 0,
        most,
        answers: 0,
        arrivals: 0,
    };
    loop {
        walk.hand_over();
        walk.go_on()?;
        while let Some(delivery) = walk.network.poll(walk.now) {
            walk.arrivals += 1;
            walk.arrived(delivery.packet.payload, lost());
            if walk.sender.is_idle() {
                return Ok(walk.done());
            }
        }
    }
}

impl BlastTransferWalk<'_> {
    /// Each processor takes packets from its machine while its interface can begin to copy one now.
    fn hand_over(&mut self) {
        let [from, to] = self.experiment.hosts;
        while self.network.begins(self.now, from) <= self.now
            && let Some(run) = self.sender.poll(self.now, 1)
        {
            let (_, bytes) = run.span(0);
            self.send(
                [from, to],
                bytes,
                BlastTransferPayload::Data(run.header(0, 0), bytes),
            );
        }
        while self.network.begins(self.now, to) <= self.now
            && let Some((header, body)) = self.receiver.poll(self.now)
        {
            self.answers += 1;
            self.send(
                [to, from],
                self.experiment.answer,
                BlastTransferPayload::Answer(header, body),
            );
        }
    }

    fn send(&mut self, [from, to]: [NodeIndex; 2], bytes: u32, payload: BlastTransferPayload) {
        let segments = SegmentSizes::one(bytes);
        let packet = NetworkPacket {
            number: 0,
            from,
            to,
            flow: 0,
            ecn: EcnMarking::NotCapable,
            dscp: 0,
            segments,
            payload,
        };
        self.network.handle(self.now, packet);
    }

    /// Advances the time to the next moment at which something can happen.
    fn go_on(&mut self) -> Result<()> {
        let [from, to] = self
            .experiment
            .hosts
            .map(|host| self.network.begins(self.now, host));
        let sends = self.sender.deadline(self.now).map(|(at, _)| at.max(from));
        let answers = self.receiver.deadline(self.now).map(|at| at.max(to));
        let moves = self.network.deadline().map(|(at, _)| at);
        let next = [sends, answers, moves].into_iter().flatten().min();
        let next = next.ok_or_else(|| self.stuck())?.max(self.now);
        self.steps = if next > self.now { 0 } else { self.steps + 1 };
        self.now = next;
        let over = self.steps > STEPS_AN_INSTANT || self.sender.counters().packets > self.most;
        if over { Err(self.stuck()) } else { Ok(()) }
    }

    /// The error of a transfer that does not end.
    fn stuck(&self) -> Error {
        Error::measurement(format!("the transfer cannot finish: nothing more arrives after {} s", self.now)).hint(
            "possible causes: no return path in the network, a packet larger than its MTU, or a receiver interface that overflows every time",
        )
    }

    /// Handles a packet that has been copied out of an interface; a lost one is discarded.
    fn arrived(&mut self, carried: BlastTransferPayload, lost: bool) {
        match carried {
            _ if lost => {}
            BlastTransferPayload::Data(header, bytes) => {
                self.receiver.handle(self.now, &header, bytes as usize);
                self.receiver.consume(self.receiver.delivered());
            }
            BlastTransferPayload::Answer(header, body) => {
                self.sender.handle(self.now, &header, &body)
            }
        }
    }

    fn done(&self) -> BlastTransferResult {
        let (data, answers, arrivals) =
            (self.sender.counters().packets, self.answers, self.arrivals);
        BlastTransferResult {
            elapsed: self.now - Instant(0),
            data,
            answers,
            arrivals,
        }
    }
}
