//! The long-run limits of one flow: rate, cells, hosts, pace, window, a small buffer, losses.

use super::situation::{IntermediateValues, Situation, loss_of};
use crate::path::PathModel;
use crate::prediction::FigureUnit;
use crate::response::copy_s;
use crate::transport::CongestionModel;
use crate::{count_to_f64, loss, overhead, pipe};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::procedure::DelayArgument;

/// Below this average window, in segments, there are too few duplicate acknowledgements for fast retransmission to be
/// the rule.
pub(super) const FEW_SEGMENTS: f64 = 10.0;

/// Acknowledgements that a host copies for each segment: one at the beginning, one for two segments later.
const ACKS_A_SEGMENT: f64 = 0.6;

/// The long-run limits of one flow, in bit/s of payload.
pub(super) struct FlowLimits {
    /// Name and value of each limit; a value is absent where it does not limit.
    pub(super) named: Vec<(&'static str, Option<f64>)>,
}

impl FlowLimits {
    /// The smallest limit with its name.
    pub(super) fn least(&self) -> Option<(&'static str, f64)> {
        let values: Vec<Option<f64>> = self.named.iter().map(|(_, value)| *value).collect();
        pipe::find_least_limit(&values).and_then(|(at, value)| Some((self.named.get(at)?.0, value)))
    }

    /// The smallest of the limits that hold from the first byte on.
    pub(super) fn at_once(&self) -> Option<f64> {
        let later = ["loss", "buffer", "window"];
        self.named
            .iter()
            .filter(|(name, _)| !later.contains(name))
            .filter_map(|(_, value)| *value)
            .reduce(f64::min)
    }
}

/// One flow of data units.
pub(super) struct ModelledFlow<'f> {
    pub(super) s: &'f Situation<'f>,
    /// The path of the data.
    pub(super) data: &'f PathModel,
    /// The path of the acknowledgements.
    pub(super) acks: &'f PathModel,
    /// Size of a data unit, bytes.
    pub(super) unit: u64,
    /// Bytes in all; `None` for a transfer without end.
    pub(super) bytes: Option<u64>,
}

impl ModelledFlow<'_> {
    /// Payload of what is sent at once: a full segment, or a datagram.
    pub(super) fn piece(&self) -> u64 {
        if self.s.transport.stream {
            self.s.transport.segment_bytes
        } else {
            self.unit
        }
    }

    /// Size of a full packet, bytes.
    pub(super) fn packet(&self) -> u64 {
        self.s.transport.segment_bytes + self.s.transport.header_bytes
    }

    /// Number of packets; `None` for a transfer without end.
    pub(super) fn packets(&self) -> Option<u64> {
        let (bytes, piece) = (self.bytes?, self.piece().max(1));
        // Without Nagle's algorithm each unit has packets of its own, as long as the window allows sending.
        let alone = self.s.transport.stream && self.s.part.stack.flag("nodelay");
        let pieces = if alone && self.unit > 0 {
            (bytes / self.unit).saturating_mul(self.unit.div_ceil(piece))
                + (bytes % self.unit).div_ceil(piece)
        } else {
            bytes.div_ceil(piece)
        };
        Some(pieces.saturating_mul(self.s.packets(self.piece()).count()))
    }

    /// Probability that a segment or datagram is lost.
    pub(super) fn loss(&self) -> f64 {
        loss_of(self.data, &self.s.packets(self.piece()), self.packets())
    }

    pub(super) fn rtt_s(&self) -> Result<f64, String> {
        let packet = self.packet();
        self.s
            .round_trip_s(self.data, self.acks, packet)
            .ok_or_else(|| "a link on the path has a rate of zero".to_string())
    }

    /// The limits of the flow; intermediate values are added to `values`.
    pub(super) fn limits(
        &self,
        waits: &[DelayArgument],
        values: &mut IntermediateValues,
    ) -> Result<FlowLimits, String> {
        let s = self.s;
        let rtt_s = self.rtt_s()?;
        values.add(
            "round trip time",
            rtt_s,
            FigureUnit::Seconds,
            "a full packet one way, an acknowledgement back",
        );
        let mut named = Vec::new();
        let rate = self.rate(values, &mut named);
        named.push(("host", self.host()));
        let pace_s = s.waits_s(waits)?;
        named.push((
            "pace",
            Some(pace_s)
                .filter(|t| *t > 0.0)
                .map(|t| 8.0 * count_to_f64(self.unit) / t),
        ));
        let p = self.loss();
        if p >= 1.0 {
            return Err("every full-size packet is lost on the path".to_string());
        }
        values.add(
            "loss",
            Some(p).filter(|p| *p > 0.0),
            FigureUnit::Share,
            "1 - product of (1 - p) over the hops",
        );
        if s.transport.stream {
            self.pipe(rate, rtt_s, values, &mut named);
            self.under_loss(rtt_s, p, values, &mut named);
        } else {
            // Lost datagrams have used the path too.
            for (_, value) in &mut named {
                *value = value.map(|value| value * (1.0 - p));
            }
        }
        Ok(FlowLimits { named })
    }

    /// The payload rate that the bottleneck leaves for this flow.
    pub(super) fn rate(
        &self,
        values: &mut IntermediateValues,
        named: &mut Vec<(&'static str, Option<f64>)>,
    ) -> Option<f64> {
        let shared = self.s.load.share(self.data);
        let hop = shared.bottleneck(self.packet())?;
        let flows = self.s.load.on(hop);
        let line = hop.rate_bit_s.map(|rate| rate * f64::from(flows));
        values.add(
            "bottleneck rate",
            line,
            FigureUnit::BitPerSecond,
            "the hop on which a full packet takes longest",
        );
        values.add(
            "flows on the bottleneck",
            Some(f64::from(flows)).filter(|n| *n > 1.0),
            FigureUnit::Count,
            "concurrent bulk transfers, each with an equal share",
        );
        let pieces = self.s.packets(self.piece());
        let charged = pieces.full * hop.charged_bytes(pieces.full_bytes)
            + hop.charged_bytes(pieces.last_bytes);
        let share = count_to_f64(self.piece()) / count_to_f64(charged.max(1));
        values.add(
            "useful share",
            share,
            FigureUnit::Share,
            "payload as a share of all bytes the link carries, including headers and cell overhead",
        );
        let rate = hop
            .rate_bit_s
            .map(|rate| pipe::rate_limited_bit_s(rate, share));
        let name = if hop.cell_bytes.is_some() {
            "cells"
        } else {
            "rate"
        };
        if let Some(cell) = hop.cell_bytes {
            let tax =
                count_to_f64(self.packet()) / count_to_f64(overhead::in_cells(self.packet(), cell));
            values.add(
                "useful share of cells",
                tax,
                FigureUnit::Share,
                "n / (ceil((n + 8) / (cell - 5)) cell), RFC 2684 section 3",
            );
        }
        named.push((name, rate));
        rate
    }

    /// The rate that copying between memory and interface allows.
    pub(super) fn host(&self) -> Option<f64> {
        let packets = self.s.packets(self.piece());
        let copies = |interface| {
            let acks = if self.s.transport.stream {
                ACKS_A_SEGMENT * copy_s(interface, self.s.transport.ack_bytes)
            } else {
                0.0
            };
            count_to_f64(packets.full) * copy_s(interface, packets.full_bytes)
                + copy_s(interface, packets.last_bytes)
                + acks
        };
        let (mut sender, receiver) = (copies(&self.data.sender), copies(&self.data.receiver));
        if let Some(first) = self
            .data
            .hops
            .first()
            .filter(|_| self.data.sender.single_buffered && sender > 0.0)
        {
            sender += count_to_f64(packets.full) * first.serialisation_s(packets.full_bytes)?
                + first.serialisation_s(packets.last_bytes)?;
        }
        let busiest = sender.max(receiver);
        // The processor of a host serves all flows of the part.
        let each = busiest * f64::from(self.s.part.replicas);
        (each > 0.0).then(|| 8.0 * count_to_f64(self.piece()) / each)
    }

    /// Adds the limits of windows and buffers.
    pub(super) fn pipe(
        &self,
        rate: Option<f64>,
        rtt_s: f64,
        values: &mut IntermediateValues,
        named: &mut Vec<(&'static str, Option<f64>)>,
    ) {
        let s = self.s;
        let window = s.transport.window_bytes;
        if let Some(rate) = rate {
            let product = pipe::bandwidth_delay_bytes(rate, rtt_s);
            values.add(
                "bandwidth-delay product",
                product,
                FigureUnit::Bytes,
                "rate x RTT, RFC 7323 section 1.1",
            );
            values.add(
                "window needed",
                product.max(count_to_f64(s.transport.segment_bytes)),
                FigureUnit::Bytes,
                "the product, but at least one segment",
            );
        }
        values.add(
            "window",
            window,
            FigureUnit::Bytes,
            "the window that the specified buffer offers",
        );
        named.push((
            "window",
            window.and_then(|window| pipe::window_limited_bit_s(window, rtt_s)),
        ));
        self.bottleneck_buffer(rate, rtt_s, values, named);
    }

    /// Adds the limit of the buffer in front of the slowest link.
    fn bottleneck_buffer(
        &self,
        rate: Option<f64>,
        rtt_s: f64,
        values: &mut IntermediateValues,
        named: &mut Vec<(&'static str, Option<f64>)>,
    ) {
        let s = self.s;
        let window = s.transport.window_bytes;
        let Some((hop, line)) = self
            .data
            .bottleneck(self.packet())
            .and_then(|hop| Some((hop, hop.rate_bit_s?)))
        else {
            return;
        };
        let flows = s.load.on(hop);
        let product = pipe::bandwidth_delay_bytes(line, rtt_s);
        let keep = if s.transport.congestion == CongestionModel::Reno {
            loss::RENO_BETA
        } else {
            loss::CUBIC_BETA
        };
        let (wanted, source) = if flows > 1 {
            (
                pipe::buffer_for_flows_bytes(product, flows),
                "BDP / sqrt(n), Appenzeller et al. 2004, section 3",
            )
        } else {
            (
                pipe::buffer_to_fill_bytes(product, keep),
                "BDP (1 - b) / b, Villamizar and Song 1994",
            )
        };
        values.add(
            "buffer to keep the link busy",
            wanted,
            FigureUnit::Bytes,
            source,
        );
        let Some(buffer) = hop.queue_bytes else {
            return;
        };
        values.add("buffer", buffer, FigureUnit::Bytes, "as specified");
        values.add(
            "queueing delay at a full buffer",
            pipe::queueing_delay_s(buffer, line),
            FigureUnit::Seconds,
            "8 B / rate",
        );
        // A window that never overruns the buffer causes no loss there; several flows are not synchronised.
        let overruns = window.is_none_or(|window| window > product + buffer);
        if flows > 1 || !overruns {
            return;
        }
        let share = match s.transport.congestion {
            CongestionModel::Cubic => pipe::cubic_share(product, buffer, keep),
            CongestionModel::Reno => pipe::sawtooth_share(product, buffer, keep),
            CongestionModel::None | CongestionModel::Other(_) => None,
        };
        if let Some((share, rate)) = share.filter(|share| *share < 1.0).zip(rate) {
            values.add(
                "link utilisation with this buffer",
                share,
                FigureUnit::Share,
                "area under the window curve",
            );
            named.push(("buffer", Some(rate * share)));
        }
    }

    /// Adds the limit of congestion control under random loss.
    pub(super) fn under_loss(
        &self,
        rtt_s: f64,
        p: f64,
        values: &mut IntermediateValues,
        named: &mut Vec<(&'static str, Option<f64>)>,
    ) {
        let s = self.s;
        let segment = s.transport.segment_bytes;
        let (window, source) = match s.transport.congestion {
            CongestionModel::Cubic => (
                loss::cubic_window(rtt_s, p),
                "RFC 9438 section 5.1, or Reno's if larger",
            ),
            CongestionModel::Reno => (loss::mathis_window(p, 1), "Mathis et al. 1997, section 2"),
            CongestionModel::None | CongestionModel::Other(_) => (None, ""),
        };
        let Some(window) = window.filter(|_| rtt_s > 0.0) else {
            return;
        };
        values.add(
            "average window under loss",
            window,
            FigureUnit::Count,
            source,
        );
        let reno = loss::Reno {
            segment_bytes: segment,
            rtt_s,
            timeout_s: s.transport.least_timeout_s + rtt_s,
            packets_per_ack: 1,
            window_bytes: s.transport.window_bytes,
        };
        let timeouts = loss::pftk_bit_s(&reno, p);
        values.add(
            "throughput with Reno's timeouts",
            timeouts,
            FigureUnit::BitPerSecond,
            "Padhye et al. 1998, approximate form",
        );
        let steady = 8.0 * window * count_to_f64(segment) / rtt_s;
        let steady = if !s.transport.selective || window < FEW_SEGMENTS {
            steady.min(timeouts.unwrap_or(steady))
        } else {
            steady
        };
        named.push(("loss", Some(steady)));
    }
}
