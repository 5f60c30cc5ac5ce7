//! The stacks `saw` (stop-and-wait), `window` and `blast` as experiments name them: their options, and the mapping of the communication
//! operations to their packets. The live and the simulated world share them, and leave out options that they cannot offer.

use super::options::{BlastOptions, BlastPacing, BlastStrategy, BlastTimeout};
use super::wire::{HEADER, SEAL};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::{
    FlowControl, OptionKind, OptionTable, PacketContent, PacketsInFlight, ServiceMapping,
    StackFacts, StackTable, describe_exclusion,
};
use stackline_core::plan::Stack;
use stackline_core::time::Duration;

/// A window, in packets, that is never used up.
const NEVER: u64 = 1 << 15;
/// Bytes of IPv4's and UDP's headers.
pub const BELOW: usize = 28;
/// The most data bytes in a packet: what IPv4 can carry after the headers.
const LONGEST: u64 = 65_535 - (BELOW + HEADER) as u64;
/// The bytes that a receiver grants by default.
pub const GRANT: u64 = 4 << 20;
/// The options that name a strategy, of which at most one may be given.
pub(crate) const STRATEGIES_APART: &[&str] = &["full", "full_nak", "partial", "selective"];
/// The four strategies, by option name.
const STRATEGIES: [(&str, BlastStrategy); 4] = [
    ("full", BlastStrategy::Full),
    ("full_nak", BlastStrategy::FullNak),
    ("partial", BlastStrategy::Partial),
    ("selective", BlastStrategy::Selective),
];

const PACKET: OptionTable = OptionTable::new(
    "packet",
    OptionKind::Bytes(1, LONGEST),
    "as much as the path can carry",
    "bytes of data in a packet",
);
pub(crate) const INTERVAL: OptionTable = OptionTable::new(
    "interval",
    OptionKind::Time,
    "from the measured round trips",
    "a fixed time to wait for an answer, as in the paper",
);
const BUFFER: OptionTable = OptionTable::new(
    "buffer",
    OptionKind::BUFFER,
    "4 MiB, or what the host grants",
    "bytes a receiver grants; limits the data in flight",
);
pub(crate) const PATIENCE: OptionTable = OptionTable::new(
    "patience",
    OptionKind::Time,
    "10 s",
    "a peer that is silent for this long counts as dead, even if its procedure is busy elsewhere",
);
const PACING: OptionTable = OptionTable::new(
    "pacing",
    OptionKind::Word(&["off", "auto"]),
    "auto",
    "auto: if the round trip exceeds 2 ms, packets are sent at a rate that adapts to delay and loss",
);
const RATE: OptionTable = OptionTable::new(
    "rate",
    OptionKind::Number(1000, 1_000_000_000_000),
    "no limit",
    "highest rate at which packets are sent, bit/s",
);
const CHECKED: OptionTable = OptionTable::flag(
    "checked",
    "a CRC-32C over each blast; a damaged blast is retransmitted",
);
const SEALED: OptionTable = OptionTable::flag(
    "sealed",
    "authenticated encryption of every packet with a key derived from the run's secret",
);
pub(crate) const RECEIVE: OptionTable = OptionTable::new(
    "receive",
    OptionKind::Word(&["block", "spin"]),
    "block",
    "block: sleep until something arrives; spin: poll continuously",
);
const CARRIER: OptionTable = OptionTable::new(
    "carrier",
    OptionKind::Word(&["udp", "ethernet"]),
    "udp",
    "the carrier of the packets: udp, or raw Ethernet frames",
);
const INTERFACE: OptionTable = OptionTable::new(
    "interface",
    OptionKind::Name,
    "lo for raw frames, else as the route says",
    "the interface for raw Ethernet frames; over UDP, SO_BINDTODEVICE of the initiators",
);
pub(crate) const PORT: OptionTable = OptionTable::new(
    "port",
    OptionKind::PORT,
    "any free one",
    "first port of the responders; each replica takes the next",
);

const MAPPING: ServiceMapping = ServiceMapping(
    "\
ConnectRequest -> OPEN with terms, repeated until ACCEPT
AwaitConnectIndication -> OPEN with the token; ACCEPT with what both support
DataRequest -> blasts of the data units, until the last one is acknowledged
AwaitDataIndication -> packets put in place, answers to those that request one
RPCCall -> blasts of the request, then those of the response
RPCAwaitCallInd, RPCReturn -> the same from the other side
StartBulkGet -> a blast of one byte, not awaited
AwaitStartBulkGet -> its arrival
StartBulkPut, AwaitStartBulkPut -> nothing: the first blast implies it
StopBulkGet, StopBulkPut -> nothing: every data unit is acknowledged
end of stream (time limit) -> an empty blast that signals it, acknowledged
DisconnectRequest -> CLOSE until CLOSED, for at most 1 s
AwaitDisconnectIndication -> CLOSE; CLOSED",
);

const fn table(
    name: &'static str,
    summary: &'static str,
    options: &'static [OptionTable],
) -> StackTable {
    StackTable {
        name,
        summary,
        options,
        mapping: MAPPING,
        exclusive: &[STRATEGIES_APART],
        least_mtu: |stack| {
            let seal = if stack.flag("sealed") { SEAL } else { 0 };
            (BELOW + HEADER + seal) as u64 + stack.number("packet").unwrap_or(1)
        },
        raw_frames: |stack| stack.word("carrier") == Some("ethernet"),
        unreported: (
            &["cwnd_segments", "send_buffer_limited_s"],
            "the protocol has no such mechanism",
        ),
        facts: StackFacts {
            packets: PacketContent::Blasts,
            flow_control: FlowControl::Grant(GRANT),
            ..StackTable::RELIABLE.facts
        },
        ..StackTable::RELIABLE
    }
}

const fn bounded(table: StackTable, in_flight: PacketsInFlight) -> StackTable {
    StackTable {
        facts: StackFacts {
            in_flight: Some(in_flight),
            ..table.facts
        },
        ..table
    }
}

/// The stack `saw`: stop-and-wait.
pub const SAW: StackTable = bounded(
    table(
        "saw",
        "stop-and-wait: each packet is acknowledged before the next is sent (Zwaenepoel 1985)",
        &[
            PACKET, INTERVAL, BUFFER, PATIENCE, SEALED, RECEIVE, CARRIER, INTERFACE, PORT,
        ],
    ),
    PacketsInFlight::Fixed(1),
);

/// The stack `window`: a sliding window.
pub const WINDOW: StackTable = bounded(
    table(
        "window",
        "sliding window: n packets in flight, each acknowledged individually (Zwaenepoel 1985)",
        &[
            OptionTable::new(
                "n",
                OptionKind::Number(1, NEVER),
                "unlimited: as many as the receiver grants",
                "packets that may be in flight",
            ),
            PACKET,
            INTERVAL,
            BUFFER,
            PATIENCE,
            PACING,
            RATE,
            SEALED,
            RECEIVE,
            CARRIER,
            INTERFACE,
            PORT,
        ],
    ),
    PacketsInFlight::OptionN,
);

/// The stack `blast`: many packets with one acknowledgement.
pub const BLAST: StackTable = table(
    "blast",
    "blasts of packets with one acknowledgement each and four retransmission strategies (Zwaenepoel 1985)",
    &[
        OptionTable::flag(
            "full",
            "retransmits an incomplete blast as a whole, after the interval",
        ),
        OptionTable::flag(
            "full_nak",
            "like full, but as soon as the receiver reports the loss",
        ),
        OptionTable::flag(
            "partial",
            "retransmits from the first missing packet onwards",
        ),
        OptionTable::flag("selective", "retransmits only the missing data (default)"),
        OptionTable::new(
            "size",
            OptionKind::Bytes(1, 1 << 30),
            "512 KiB; 64 KiB if more than the missing data is retransmitted",
            "bytes per blast",
        ),
        OptionTable::new(
            "flight",
            OptionKind::Number(1, NEVER),
            "8; 1 for full and full_nak, as in the paper",
            "blasts that may be in flight",
        ),
        PACKET,
        INTERVAL,
        BUFFER,
        PATIENCE,
        PACING,
        RATE,
        CHECKED,
        SEALED,
        RECEIVE,
        CARRIER,
        INTERFACE,
        PORT,
    ],
);

/// The options of one of these stacks. `packet`: the most data bytes in a packet of the path; `buffer`: the bytes that the host grants.
/// A 0 means that the value is not known yet; it stays 0 unless an option gives it.
///
/// # Errors
/// A message, when the options contradict each other or do not fit the path.
pub fn options(stack: &Stack, packet: u32, buffer: u64) -> Result<BlastOptions, String> {
    let written = stack.number("packet");
    let most = if packet == 0 {
        u64::from(u32::MAX)
    } else {
        u64::from(packet)
    };
    if let Some(written) = written.filter(|written| *written == 0 || *written > most) {
        return Err(format!(
            "this path cannot carry a packet with {written} B of data: the maximum is {most} B"
        ));
    }
    let packet = written.map_or(packet, |written| written as u32);
    let number = |name: &str, usual: u64| stack.number(name).unwrap_or(usual);
    let whole = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let base = match stack.name.as_str() {
        "saw" => BlastOptions::saw(packet),
        "window" => BlastOptions::window(packet, whole(number("n", NEVER))),
        _ => {
            let usual = BlastOptions::usual(strategy(stack, BlastStrategy::Selective)?, packet);
            let size = whole(number("size", u64::from(usual.size)));
            let flight = whole(number("flight", u64::from(usual.flight)));
            BlastOptions {
                size,
                flight,
                ..usual
            }
        }
    };
    let interval = stack.seconds("interval").map(Duration::from_seconds);
    let pacing = match (stack.number("rate"), stack.word("pacing")) {
        (Some(rate), _) => BlastPacing::Ceiling(rate as f64),
        (None, Some("off")) => BlastPacing::Off,
        (None, _) if stack.name == "saw" || interval.is_some() => BlastPacing::Off,
        (None, _) => BlastPacing::Auto,
    };
    Ok(BlastOptions {
        buffer: number("buffer", buffer).min(if buffer == 0 { u64::MAX } else { buffer }),
        interval: interval.map_or(BlastTimeout::Adaptive, BlastTimeout::Fixed),
        // Fixed intervals are the paper's conditions: the receiver only sends when requested.
        nak_delay: base.nak_delay.filter(|_| interval.is_none()),
        patience: stack
            .seconds("patience")
            .map_or(base.patience, Duration::from_seconds),
        pacing,
        checked: stack.flag("checked"),
        ..base
    })
}

/// The strategy that an option gives, or `usual`.
pub(crate) fn strategy(stack: &Stack, usual: BlastStrategy) -> Result<BlastStrategy, String> {
    let written: Vec<_> = STRATEGIES
        .iter()
        .filter(|(name, _)| stack.flag(name))
        .collect();
    match written.as_slice() {
        [] => Ok(usual),
        [(_, strategy)] => Ok(*strategy),
        [(one, _), (other, _), ..] => Err(describe_exclusion(&stack.name, one, other)),
    }
}

/// The option name of a strategy.
pub(crate) fn name(strategy: BlastStrategy) -> &'static str {
    STRATEGIES
        .iter()
        .find(|(_, known)| *known == strategy)
        .map_or("", |(name, _)| name)
}

/// The settings in force, by option name.
#[must_use]
pub fn settings(stack: &str, options: &BlastOptions) -> Vec<(&'static str, String)> {
    let bytes = |bytes: u64| stackline_core::units::format_size(bytes);
    let mut settings = alloc::vec![
        ("packet", bytes(u64::from(options.packet))),
        ("buffer", bytes(options.buffer)),
        (
            "interval",
            match options.interval {
                BlastTimeout::Fixed(interval) => interval.to_string(),
                BlastTimeout::Adaptive => "adaptive".to_string(),
            }
        ),
    ];
    match stack {
        "saw" => {}
        "window" => settings.push(("n", options.flight.to_string())),
        _ => {
            settings.push(("strategy", name(options.strategy).to_string()));
            settings.push(("size", bytes(u64::from(options.size))));
            settings.push(("flight", options.flight.to_string()));
            settings.push((
                "checked",
                if options.checked { "on" } else { "off" }.to_string(),
            ));
        }
    }
    if stack != "saw" {
        settings.push((
            "pacing",
            match options.pacing {
                BlastPacing::Off => "off".to_string(),
                BlastPacing::Auto => "auto".to_string(),
                BlastPacing::Ceiling(rate) => stackline_core::units::format_rate(rate),
            },
        ));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::catalogue::OptionValue;

    fn written(name: &str, options: &[(&str, OptionValue)]) -> Stack {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_string(), value.clone()))
            .collect();
        Stack {
            name: name.to_string(),
            options,
            ..Stack::default()
        }
    }

    #[test]
    fn stack_options_choose_the_machine() {
        let plain = options(&Stack::plain("blast"), 1440, 4 << 20)
            .unwrap()
            .fitted();
        assert_eq!(
            (plain.strategy, plain.size, plain.flight),
            (BlastStrategy::Selective, 364 * 1440, 8)
        );
        let full = options(
            &written("blast", &[("full", OptionValue::Set)]),
            1440,
            4 << 20,
        )
        .unwrap()
        .fitted();
        assert_eq!(
            (full.strategy, full.size, full.flight),
            (BlastStrategy::Full, 45 * 1440, 1)
        );
        let window = options(
            &written("window", &[("n", OptionValue::Number(8))]),
            1440,
            4 << 20,
        )
        .unwrap()
        .fitted();
        assert_eq!((window.size, window.flight), (1440, 8));
        let fixed = options(
            &written("saw", &[("interval", OptionValue::Seconds(0.1))]),
            1440,
            4 << 20,
        )
        .unwrap()
        .fitted();
        assert_eq!(
            (fixed.nak_delay, fixed.pacing, fixed.flight),
            (None, BlastPacing::Off, 1)
        );
    }

    #[test]
    fn the_table_has_the_defaults() {
        let usual = STRATEGIES.map(|(_, strategy)| BlastOptions::usual(strategy, 1024));
        let [full, full_nak, partial, selective] = &usual;
        let default_of = |name: &str| {
            BLAST
                .options
                .iter()
                .find(|option| option.name == name)
                .unwrap()
                .default
        };
        let bytes =
            |options: &BlastOptions| stackline_core::units::format_size(u64::from(options.size));
        assert_eq!(
            default_of("size"),
            format!(
                "{}; {} if more than the missing data is retransmitted",
                bytes(selective),
                bytes(full)
            )
        );
        assert_eq!((full.size, full.size), (full_nak.size, partial.size));
        let flights = format!(
            "{}; {} for full and full_nak, as in the paper",
            selective.flight, full.flight
        );
        assert_eq!(default_of("flight"), flights);
        assert_eq!(
            (full.flight, selective.flight),
            (full_nak.flight, partial.flight)
        );
    }

    #[test]
    fn contradictions_are_reported() {
        let both = written(
            "blast",
            &[("full", OptionValue::Set), ("partial", OptionValue::Set)],
        );
        assert_eq!(
            options(&both, 1440, 4 << 20).unwrap_err(),
            "blast takes either full or partial, not both"
        );
        let long = written("saw", &[("packet", OptionValue::Number(9000))]);
        assert!(
            options(&long, 1440, 4 << 20)
                .unwrap_err()
                .contains("the maximum is 1440 B")
        );
    }
}
