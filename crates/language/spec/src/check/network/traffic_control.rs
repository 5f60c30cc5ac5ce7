//! Checks what a link does to packets by rate: shapers, policers, code points, and packets that skip the delay.

use super::figures::{LARGEST_BUFFER, delay, number, positive_rate, share};
use super::full_size_packets::senders;
use crate::check::evaluate::fixed;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::tree::{BucketItem, LinkItem, NetworkItem, ReorderItem, ShaperLimit, SpecValue};
use alloc::format;
use stackline_core::network::{
    DelaySkipping, LARGEST_DSCP, LinkQueue, LinkRate, Network, NetworkLink, Policer, TokenBucket,
};

/// Most packets between two that skip the delay.
const MOST_GAP: u64 = 1_000_000;

/// Fills in what the clauses `shape`, `police`, `dscp` and `reorder` say of a link.
pub(super) fn resolve(item: &LinkItem, link: &mut NetworkLink, report: &mut DiagnosticReport) {
    if let Some(shaper) = &item.shaper {
        link.shaper = bucket(&shaper.bucket, "shape", link, report);
        if let (Some(limit), Some(bucket)) = (&shaper.limit, link.shaper) {
            waiting(limit, bucket, link, report);
        }
        no_effect(&shaper.bucket, link, report);
    }
    if let Some(policer) = &item.policer {
        let remark = policer.remark.as_ref();
        link.policer = bucket(&policer.bucket, "police", link, report).map(|bucket| Policer {
            bucket,
            remark: remark.and_then(|value| report.keep(dscp(value))),
        });
    }
    link.dscp = item
        .dscp
        .as_ref()
        .and_then(|value| report.keep(dscp(value)));
    link.skipping = item.reorder.as_ref().map(|item| skipping(item, report));
}

/// Reports what a switch with cells cannot do: it forwards cells, which have no code points and wait for nothing.
pub(super) fn report_cells(item: &NetworkItem, network: &Network, report: &mut DiagnosticReport) {
    let cuts = |name: &str| {
        let mut switches = network.switches.iter();
        switches.any(|switch| switch.name == name && switch.cell_bytes.is_some())
    };
    for (item, link) in item.links.iter().zip(&network.links) {
        let Some(name) = senders(link)
            .chain([link.ends.1.as_str()])
            .find(|name| cuts(name))
        else {
            continue;
        };
        let clauses = [
            (
                "shape",
                item.shaper.as_ref().map(|shaper| shaper.bucket.span),
            ),
            (
                "police",
                item.policer.as_ref().map(|policer| policer.bucket.span),
            ),
            ("dscp", item.dscp.as_ref().map(|value| value.span)),
            ("reorder", item.reorder.as_ref().map(|item| item.share.span)),
        ];
        for (word, span) in clauses {
            let Some(span) = span else { continue };
            let message = format!("`{word}` has no meaning for the cells of `{name}`");
            let label = "a switch with `cells` sends and receives cells on its links";
            let hint = "write it on a link farther away, or omit the switch's `cells`";
            report.push(Diagnostic::error(span, message, label).hint(hint));
        }
    }
}

/// A code point, 0 to 63.
pub(super) fn dscp(value: &SpecValue) -> Result<u8, Diagnostic> {
    let number = fixed(value, "a code point", 0, u64::from(LARGEST_DSCP)).map_err(|mistake| {
        mistake.hint("DSCP has six bits; the byte that other tools call TOS is four times as large")
    })?;
    Ok(u8::try_from(number).unwrap_or_default())
}

fn bucket(
    item: &BucketItem,
    word: &str,
    link: &NetworkLink,
    report: &mut DiagnosticReport,
) -> Option<TokenBucket> {
    let what = format!("the rate of `{word}`");
    let hint = "`loss 100%` is a link that delivers nothing";
    let bit_s = report.keep(positive_rate(&item.rate, &what, "nothing would pass", hint));
    let burst_bytes = report.keep(fixed(&item.burst, "a burst", 1, LARGEST_BUFFER))?;
    let packet = link.charge.bytes(link.mtu());
    if burst_bytes < packet {
        let message = format!(
            "a packet of {} bytes, the link's MTU, takes {packet} bytes of a bucket of {burst_bytes}",
            link.mtu()
        );
        let diagnostic = Diagnostic::error(
            item.burst.span,
            message,
            "no full-size packet would ever pass",
        );
        report.push(diagnostic.hint(format!("make the burst at least {packet} B")));
    }
    Some(TokenBucket {
        bit_s: bit_s?,
        burst_bytes,
    })
}

/// The limit of the queue before a shaper: as tc-tbf(8) computes it from a latency, what the rate passes in that time and
/// a bucket more.
fn waiting(
    limit: &ShaperLimit,
    bucket: TokenBucket,
    link: &mut NetworkLink,
    report: &mut DiagnosticReport,
) {
    let (value, bytes) = match limit {
        ShaperLimit::Bytes(value) => (
            value,
            report.keep(fixed(value, "a limit", 1, LARGEST_BUFFER)),
        ),
        ShaperLimit::Latency(value) => {
            let latency = report.keep(delay(value, "the latency of a shaper"));
            let bytes = latency.map(|latency| bytes_within(bucket, latency.seconds()));
            (value, bytes)
        }
    };
    let queue = link.queue.get_or_insert_with(LinkQueue::default);
    if queue.limit_bytes.is_some() || queue.limit_packets.is_some() {
        return report.push(twice(value.span));
    }
    queue.limit_bytes = bytes;
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number that is cut to the largest buffer"
)]
fn bytes_within(bucket: TokenBucket, seconds: f64) -> u64 {
    let flown = (bucket.bit_s / 8.0 * seconds) as u64;
    flown.saturating_add(bucket.burst_bytes).min(LARGEST_BUFFER)
}

fn twice(span: TextSpan) -> Diagnostic {
    let message = "the limit of the queue is given twice: with `queue` and with `shape`";
    Diagnostic::error(span, message, "a shaper's packets wait in the link's queue")
        .hint("omit one of them")
}

/// Warns of a shaper that never holds anything back.
fn no_effect(item: &BucketItem, link: &NetworkLink, report: &mut DiagnosticReport) {
    let (LinkRate::Constant(rate), Some(shaper)) = (&link.rate, link.shaper) else {
        return;
    };
    if shaper.bit_s >= *rate {
        let message = "the link is not faster than its shaper, which has no effect";
        let diagnostic = Diagnostic::warning(item.rate.span, message, "expected a lower rate");
        report.push(diagnostic.hint("the rate behind the ends is that of the link itself"));
    }
}

fn skipping(item: &ReorderItem, report: &mut DiagnosticReport) -> DelaySkipping {
    let whole = "a link cannot reorder more than 100% of packets";
    let correlated = item.correlation.as_ref();
    let gap = item.gap.as_ref();
    let gap = gap.and_then(|value| report.keep(fixed(value, "a gap", 1, MOST_GAP)));
    if let Some(value) = correlated.filter(|value| number(value) >= 100.0) {
        report.push(constant(value));
    }
    DelaySkipping {
        share: report.keep(share(&item.share, whole)).unwrap_or_default(),
        correlation: correlated.map_or(0.0, |value| number(value).min(100.0) / 100.0),
        gap: gap.map_or(1, |gap| u32::try_from(gap).unwrap_or(1)),
    }
}

/// A correlation with which nothing would ever change.
pub(super) fn constant(value: &SpecValue) -> Diagnostic {
    Diagnostic::error(
        value.span,
        "a correlation must be below 100 per cent",
        "every draw would equal the first",
    )
    .hint("`25%` lets the packet before decide a quarter")
}
