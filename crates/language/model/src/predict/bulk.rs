//! Predicts bulk transfers: the smallest of the limits set by rate, window, losses, buffers, hosts and pace, reduced
//! by slow start and by the exchanges at both ends.

use super::flow_limits::{FEW_SEGMENTS, FlowLimits, ModelledFlow};
use super::situation::{IntermediateValues, Situation};
use super::transfer_estimate::{SendingPace, TransferEstimate};
use super::{error_interval, uncovered};
use crate::count_to_f64;
use crate::prediction::{FigureUnit, PredictedFigure, PredictedQuantity};
use crate::response::{message_s, packet_s};
use crate::slow_start::{
    SlowStartEnd, SlowStartOutcome, SlowStartTransfer, before_first_loss, time_transfer,
};
use crate::transport::CongestionModel;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::procedure::{CountArgument, DelayArgument, SizeArgument};

/// The transfer to predict.
pub(super) struct BulkTransfer<'s> {
    /// Whether the initiator receives the data (a get).
    pub(super) get: bool,
    /// The size of a data unit.
    pub(super) unit: SizeArgument,
    /// The number of data units.
    pub(super) count: CountArgument,
    /// The delays between data units.
    pub(super) waits: &'s [DelayArgument],
    /// Whether the connection is opened within the measured time.
    pub(super) connects: bool,
}

/// Predicts the throughput of a bulk transfer.
pub(super) fn predict(
    s: &Situation<'_>,
    bulk: &BulkTransfer<'_>,
) -> Result<PredictedFigure, String> {
    let (data, acks) = if bulk.get {
        (&s.back, &s.there)
    } else {
        (&s.there, &s.back)
    };
    let unit = s.size(bulk.unit)?;
    let flow = ModelledFlow {
        s,
        data,
        acks,
        unit,
        bytes: s.bytes(bulk.count, unit),
    };
    let mut values = IntermediateValues::new();
    let limits = flow.limits(bulk.waits, &mut values)?;
    let Some((binds, steady)) = limits.least() else {
        return Err("nothing on the path takes time, so nothing limits the throughput".to_string());
    };
    let run = flow.run(bulk, &limits, steady, &mut values)?;
    let flows = f64::from(s.part.replicas);
    let limit = run.limit.unwrap_or(binds);
    let elapsed_s = run.moved.map(|(_, seconds)| seconds);
    let pace = flow.pace(bulk.waits, elapsed_s, steady);
    uncovered::transfer(
        &flow,
        &TransferEstimate {
            binds,
            limit,
            steady_bit_s: steady,
            elapsed_s: elapsed_s.unwrap_or(f64::INFINITY),
            grown_s: run.grown_s,
            rtt_s: flow.rtt_s()?,
            pace: &pace,
        },
    )?;
    uncovered::few_draws(pace.variation, pace.off, pace.draws)?;
    let assumptions = flow.assumptions(&limits, run.moved.is_none());
    let value = flows * run.throughput_bit_s;
    let moved = run.moved.map(|(bytes, seconds)| (flows * bytes, seconds));
    let [least, most] = error_interval::of_transfer(&flow, limit, value, elapsed_s);
    let interval = [(least - pace.off * value).max(0.0), most + pace.off * value];
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Throughput,
        value,
        interval,
        limit,
        values: values.0,
        assumptions,
        moved,
    })
}

/// The estimate for one transfer.
struct BulkEstimate {
    throughput_bit_s: f64,
    /// The limit if it is not the long-run limit: slow start or round trips.
    limit: Option<&'static str>,
    /// Bytes moved and time, s; absent for a transfer without end.
    moved: Option<(f64, f64)>,
    /// Time for which its window grows, s.
    grown_s: f64,
}

impl ModelledFlow<'_> {
    /// Estimates the transfer from clock start to stop.
    fn run(
        &self,
        bulk: &BulkTransfer<'_>,
        limits: &FlowLimits,
        steady: f64,
        values: &mut IntermediateValues,
    ) -> Result<BulkEstimate, String> {
        let s = self.s;
        let around_s = self
            .around_s(bulk)
            .ok_or("a link on the path has a rate of zero")?;
        let limit_s = s.measurement.time_limit.map(|time| time.seconds());
        // A transfer without end lasts as long as the time limit; its slow start is included.
        let endless = limit_s.map_or(u64::MAX, |time| bytes_in(steady, time));
        let Some(bytes) = self.bytes.or((endless < u64::MAX).then_some(endless)) else {
            return Ok(BulkEstimate {
                throughput_bit_s: steady,
                limit: None,
                moved: None,
                grown_s: 0.0,
            });
        };
        if bytes == 0 {
            return Err("no data units are moved".to_string());
        }
        let mut sending = self.sending(bytes, limits, steady)?;
        let mut moved =
            count_to_f64(bytes) * (1.0 - if s.transport.stream { 0.0 } else { self.loss() });
        if let Some(limit_s) = limit_s.filter(|limit_s| around_s + sending.time_s > *limit_s) {
            // The limit cuts off the steady part at the end.
            let over_s =
                (around_s + sending.time_s - limit_s).min(sending.time_s - sending.grown_s);
            moved = (moved - over_s * steady / 8.0).max(0.0);
            sending.time_s -= over_s;
        }
        values.add(
            "slow start",
            Some(sending.grown_s).filter(|t| *t > 0.0),
            FigureUnit::Seconds,
            "RFC 5681 section 3.1, round by round",
        );
        values.add(
            "exchanges and transit of the last packet",
            around_s,
            FigureUnit::Seconds,
            "store and forward",
        );
        let elapsed_s = around_s + sending.time_s;
        if elapsed_s <= 0.0 {
            return Err(
                "nothing on the path takes time, so nothing limits the throughput".to_string(),
            );
        }
        values.add(
            "transfer time",
            elapsed_s,
            FigureUnit::Seconds,
            "slow start, the rest at the lowest limit, and the exchanges",
        );
        let halves = [("slow start", sending.grown_s), ("round trips", around_s)];
        let limit = halves
            .into_iter()
            .find(|(_, time_s)| *time_s > elapsed_s / 2.0);
        Ok(BulkEstimate {
            throughput_bit_s: 8.0 * moved / elapsed_s,
            limit: limit.map(|(name, _)| name),
            moved: Some((moved, elapsed_s)),
            grown_s: sending.grown_s,
        })
    }

    /// The pace that the delays between units give the sender.
    fn pace(&self, waits: &[DelayArgument], elapsed_s: Option<f64>, steady: f64) -> SendingPace {
        // Below this share of the mean rate, bursts of random units seldom fill a link.
        const SELDOM_FULL: f64 = 0.3;
        // Above this share, what a transfer loses at its beginning is hardly made up for.
        const NEARLY_FULL: f64 = 0.85;
        let mean_s = self.s.waits_s(waits).unwrap_or(0.0);
        let deviation_s = self
            .s
            .waits_variance_s2(waits)
            .map_or(f64::INFINITY, libm::sqrt);
        if mean_s <= 0.0 {
            return SendingPace {
                is_kept: false,
                in_heaps: false,
                variation: 0.0,
                draws: f64::INFINITY,
                off: 0.0,
            };
        }
        let draws = self
            .bytes
            .map(|bytes| count_to_f64(bytes / self.unit.max(1)))
            .or(elapsed_s.map(|elapsed_s| elapsed_s / mean_s))
            .map_or(f64::INFINITY, |draws| draws.max(1.0));
        let line = self
            .data
            .bottleneck(self.packet())
            .and_then(|hop| hop.rate_bit_s);
        let pairs = f64::from(self.s.part.replicas);
        let packets = self.s.packets(self.unit);
        let each = count_to_f64(packets.full * packets.full_bytes + packets.last_bytes);
        let keeps = pairs * 8.0 * each / mean_s;
        let over = |share: f64| line.is_some_and(|line| keeps > share * line);
        let is_random = deviation_s > 0.0 || pairs > 1.0;
        let fills = over(SELDOM_FULL) && pairs * steady > SELDOM_FULL * line.unwrap_or(0.0);
        SendingPace {
            is_kept: true,
            in_heaps: fills && (is_random || (over(NEARLY_FULL) && !over(1.0 / NEARLY_FULL))),
            variation: deviation_s / mean_s,
            draws,
            off: error_interval::of_draws(deviation_s * deviation_s, draws) / mean_s,
        }
    }

    /// Time from the first byte until the last byte is on the bottleneck.
    fn sending(
        &self,
        bytes: u64,
        limits: &FlowLimits,
        steady: f64,
    ) -> Result<TransferTime, String> {
        let s = self.s;
        if !s.transport.stream {
            // Lost datagrams took their time too.
            let handed = steady / (1.0 - self.loss());
            return Ok(TransferTime {
                time_s: 8.0 * count_to_f64(bytes) / handed,
                grown_s: 0.0,
            });
        }
        let segment = s.transport.segment_bytes;
        let total = count_to_f64(bytes);
        let growing =
            before_first_loss(total / count_to_f64(segment), self.loss()) * count_to_f64(segment);
        // Flows that begin at the same time open their windows at the same time, like one flow as large as all.
        let flows = u64::from(self.alike());
        let transfer = SlowStartTransfer {
            bytes: bytes_of(growing.min(total)).saturating_mul(flows),
            segment_bytes: segment,
            initial_segments: if s.transport.congestion == CongestionModel::None {
                u64::MAX
            } else {
                s.transport.initial_segments.saturating_mul(flows)
            },
            rate_bit_s: limits.at_once().map(|rate| rate * count_to_f64(flows)),
            rtt_s: self.rtt_s()?,
            window_bytes: s
                .transport
                .window_bytes
                .map(|window| window * count_to_f64(flows)),
        };
        let sent = self
            .first_pieces(transfer)
            .ok_or("the window or the rate is zero")?;
        let grown_s = grown_s(&sent, transfer.rtt_s);
        let rest = 8.0 * (total - growing).max(0.0) / steady;
        // After the growth, data were sent at the rate or the window; a small buffer reduces the rate.
        let settled = sent.time_s - grown_s;
        let settled = if sent.ended == SlowStartEnd::Rate {
            settled
                * limits
                    .at_once()
                    .map_or(1.0, |rate| self.slowed(limits, rate))
        } else {
            settled
        };
        Ok(TransferTime {
            time_s: grown_s + settled + rest,
            grown_s,
        })
    }

    /// The growth of the window from the first round on. Units that leave as they are handed over (`nodelay`), each in
    /// segments of its own, fill the first window with less than full segments.
    fn first_pieces(&self, transfer: SlowStartTransfer) -> Option<SlowStartOutcome> {
        let (segments, full) = (transfer.initial_segments, transfer.segment_bytes.max(1));
        let each = self.unit.div_ceil(full).max(1);
        let small =
            self.s.part.stack.flag("nodelay") && self.unit < each * full && segments < u64::MAX;
        if !small {
            return time_transfer(&transfer);
        }
        let first = (segments / each).saturating_mul(self.unit) + segments % each * full;
        let (first, rest) = (
            first.min(transfer.bytes),
            transfer.bytes.saturating_sub(first),
        );
        // Each of these packets has a header of its own.
        let packets = first
            .div_ceil(self.unit.max(1))
            .saturating_mul(each)
            .min(segments);
        let wire = count_to_f64(first + packets * self.s.transport.header_bytes)
            * count_to_f64(full)
            / count_to_f64(self.packet());
        let first_s = transfer.rate_bit_s.map_or(0.0, |rate| 8.0 * wire / rate);
        if rest == 0 {
            return Some(SlowStartOutcome {
                time_s: first_s,
                ..time_transfer(&SlowStartTransfer {
                    bytes: first,
                    ..transfer
                })?
            });
        }
        let sent = time_transfer(&SlowStartTransfer {
            bytes: rest,
            // Each acknowledged segment lets two others go.
            initial_segments: 2 * segments,
            ..transfer
        })?;
        Some(SlowStartOutcome {
            // The next round begins with its first acknowledgement, or once the first window has
            // left.
            time_s: sent.time_s + first_s.max(transfer.rtt_s),
            rounds: sent.rounds + 1,
            ..sent
        })
    }

    /// Number of flows of this part, if they are alone on the bottleneck; otherwise 1.
    fn alike(&self) -> u32 {
        let alone = self
            .data
            .bottleneck(self.packet())
            .is_none_or(|hop| self.s.load.on(hop) == self.s.part.replicas);
        if alone { self.s.part.replicas } else { 1 }
    }

    /// The factor by which a full path is slower because of its small buffer.
    fn slowed(&self, limits: &FlowLimits, at_once: f64) -> f64 {
        let buffer = limits
            .named
            .iter()
            .find(|(name, _)| *name == "buffer")
            .and_then(|(_, value)| *value);
        buffer.map_or(1.0, |value| (at_once / value).max(1.0))
    }

    /// Time of the exchanges at both ends of the transfer, and of the last packet beyond its time at the bottleneck,
    /// s.
    fn around_s(&self, bulk: &BulkTransfer<'_>) -> Option<f64> {
        let s = self.s;
        let control = s.transport.control_bytes;
        let (there, back) = (packet_s(&s.there, control)?, packet_s(&s.back, control)?);
        let start = match (bulk.get, s.transport.start_is_answered) {
            (true, _) => there,
            (false, true) => there + back,
            (false, false) => 0.0,
        };
        let stop = if bulk.get { 0.0 } else { back };
        let packets = s.packets(self.piece());
        let through = message_s(self.data, &packets)?;
        let busiest = self
            .data
            .bottleneck(packets.last_bytes)
            .map_or(Some(0.0), |hop| {
                Some(
                    count_to_f64(packets.full) * hop.serialisation_s(packets.full_bytes)?
                        + hop.serialisation_s(packets.last_bytes)?,
                )
            })?;
        let connect = if bulk.connects { s.connect_s()? } else { 0.0 };
        Some(connect + start + stop + (through - busiest).max(0.0))
    }

    fn assumptions(&self, limits: &FlowLimits, long_run: bool) -> Vec<String> {
        let s = self.s;
        let mut all = s.assumptions();
        if s.contended(self.data) {
            all.push(
                "concurrent transfers share each link equally, each using all of its share"
                    .to_string(),
            );
        }
        if let CongestionModel::Other(name) = &s.transport.congestion {
            all.push(format!("no closed-form formula describes how {name} reacts to losses and small buffers: no reaction is assumed"));
        }
        if limits
            .named
            .iter()
            .any(|(name, value)| *name == "loss" && value.is_some())
        {
            let timeouts = if s.transport.selective {
                format!("below a window of {FEW_SEGMENTS} segments, Reno's timeouts are counted")
            } else {
                "Reno's timeouts are counted".to_string()
            };
            all.push(format!(
                "losses are independent; {timeouts}, the first after {} plus a round trip",
                stackline_core::units::format_time(s.transport.least_timeout_s)
            ));
        }
        if s.transport.stream && self.data.hops.iter().any(|hop| hop.queue_bytes.is_some()) {
            all.push("slow start does not overrun any buffer".to_string());
        }
        if !s.transport.stream && self.data.hops.iter().any(|hop| hop.queue_bytes.is_some()) {
            all.push(
                "no datagram meets a full queue, where it would be lost and reduce throughput"
                    .to_string(),
            );
        }
        if long_run {
            all.push("with no end specified, this is the long-run figure".to_string());
        }
        all
    }
}

/// The time of a transfer, s, and how much of it the window grew.
struct TransferTime {
    time_s: f64,
    grown_s: f64,
}

fn grown_s(sent: &SlowStartOutcome, rtt_s: f64) -> f64 {
    (f64::from(sent.rounds) * rtt_s).min(sent.time_s)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate"
)]
fn bytes_of(bytes: f64) -> u64 {
    (bytes as u64).max(1)
}

fn bytes_in(rate_bit_s: f64, time_s: f64) -> u64 {
    bytes_of(rate_bit_s * time_s / 8.0)
}
