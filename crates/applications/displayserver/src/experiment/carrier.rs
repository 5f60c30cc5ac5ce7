//! Parses `--over`: what carries requests and answers in a simulation.

use crate::simulated::DisplaySceneCarrier;
use stackline_core::error::{Error, Result};
use stackline_core::plan::{Stack, World};
use stackline_core::quantity::{parse_duration, parse_size};
use stackline_core::time::Duration;
use stackline_proto::papers::pup::{self, packet::MOST_DATA};
use stackline_runner::network_stack::parse_stack;

/// What carries requests and answers.
pub(crate) enum DisplayCarrierStack {
    /// `tcp`, with its options at the client's end and at the display's end.
    Tcp([Stack; 2]),
    /// Blasts, stop-and-wait, or a sliding window.
    Blast(Stack),
    /// V's messages.
    Ikp,
    /// PUP.
    Pup(pup::PupOptions),
    /// A serial line with this many bits per character.
    Line(u32),
}

impl DisplayCarrierStack {
    pub(crate) const fn carrier(&self) -> DisplaySceneCarrier<'_> {
        match self {
            Self::Tcp([client, display]) => DisplaySceneCarrier::Tcp([client, display]),
            Self::Blast(stack) => DisplaySceneCarrier::Blast(stack),
            Self::Ikp => DisplaySceneCarrier::Ikp,
            Self::Pup(options) => DisplaySceneCarrier::Pup(*options),
            Self::Line(bits) => DisplaySceneCarrier::Line(*bits),
        }
    }
}

/// Parses `--over`, and `--display-over` for the display's end.
pub(crate) fn read(over: &str, display_over: Option<&str>) -> Result<DisplayCarrierStack> {
    let (name, options) = named(over)?;
    let carrier = match name {
        "tty" => DisplayCarrierStack::Line(bits(over, &options)?),
        "pup" => DisplayCarrierStack::Pup(pup_options(&options)?),
        _ => stack(over, display_over)?,
    };
    match (&carrier, display_over) {
        (DisplayCarrierStack::Tcp(_), _) | (_, None) => Ok(carrier),
        _ => Err(Error::input(format!(
            "--over {over}: only tcp has separate options for each end"
        ))
        .hint("omit --display-over, or use tcp for both")),
    }
}

/// Examples for the hint of an error about `--over`.
const EXAMPLES: &str = "as in --over 'tcp(nodelay)', --over pup, --over blast, --over ikp, \
                        --over tty, --over 'tty(bits = 8)'";
/// The options of PUP.
const PUP_OPTIONS: &str = "pup takes packet = 1 to 532 (bytes of data), send_buffer and receive_buffer = SIZE, and timeout = TIME (fixed; otherwise it adapts to the round-trip time)";

fn stack(over: &str, display_over: Option<&str>) -> Result<DisplayCarrierStack> {
    if let Some(other) = display_over.filter(|other| matches!(named(other), Ok(("pup" | "tty", _))))
    {
        return Err(Error::input(format!(
            "--display-over {other}: only tcp has separate options for each end"
        ))
        .hint("specify it with --over instead of --display-over"));
    }
    let client = parse_stack(over, World::Simulated)?;
    let display = display_over
        .map(|over| parse_stack(over, World::Simulated))
        .transpose()?;
    let display = display.unwrap_or_else(|| client.clone());
    if let (Some(other), "tcp") = (
        display_over.filter(|_| display.name != "tcp"),
        client.name.as_str(),
    ) {
        return Err(Error::input(format!(
            "--display-over {other}: the display's end of tcp must also be tcp"
        ))
        .hint("as in --over tcp --display-over 'tcp(nodelay)'"));
    }
    match (client.name.as_str(), display.name.as_str()) {
        ("tcp", "tcp") => Ok(DisplayCarrierStack::Tcp([client, display])),
        ("blast" | "saw" | "window", _) => Ok(DisplayCarrierStack::Blast(client)),
        ("ikp", _) if client.options.is_empty() => Ok(DisplayCarrierStack::Ikp),
        ("ikp", _) => Err(Error::input(format!(
            "--over {over}: ikp takes no options: display messages are 1024 bytes long"
        ))
        .hint("use --over ikp, without options")),
        _ => Err(Error::input(format!(
            "--over {over}: requests can be sent over tcp, pup, blast, saw, window, ikp or a serial line"
        ))
        .hint(EXAMPLES)),
    }
}

/// Splits `name(option, option = value)`.
fn named(over: &str) -> Result<(&str, Vec<(&str, &str)>)> {
    let text = over.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return Ok((text, Vec::new()));
    };
    let inner = rest.strip_suffix(')').ok_or_else(|| {
        Error::input(format!("--over {over} has an unclosed bracket"))
            .hint("close it, as in 'tcp(nodelay)'")
    })?;
    Ok((
        name.trim(),
        inner
            .split(',')
            .filter(|option| !option.trim().is_empty())
            .map(option)
            .collect(),
    ))
}

/// Splits `name = value`; a name alone has the value "".
fn option(text: &str) -> (&str, &str) {
    text.split_once('=')
        .map_or((text.trim(), ""), |(name, value)| {
            (name.trim(), value.trim())
        })
}

/// The bits of a character on a serial line: 10 for `tty` (with start and stop bit), 8 for `tty(bits = 8)`.
fn bits(over: &str, options: &[(&str, &str)]) -> Result<u32> {
    let bits = match options {
        [] => Some(10),
        [("bits", number)] => number.parse().ok(),
        _ => None,
    };
    bits.filter(|bits| (5..=12).contains(bits)).ok_or_else(|| {
        Error::input(format!("--over {over} is not a valid serial line"))
            .hint("use `tty`, or `tty(bits = 8)` with 5 to 12 bits")
    })
}

fn pup_options(options: &[(&str, &str)]) -> Result<pup::PupOptions> {
    let mut own = pup::PupOptions::default();
    for (name, value) in options {
        let refused =
            |why: &str| Error::input(format!("--over pup({name}): {why}")).hint(PUP_OPTIONS);
        let bytes = || parse_size(&value.replace(' ', "")).map_err(|why: String| refused(&why));
        match *name {
            "packet" => {
                let packet = value.parse().or_else(|_| bytes())?;
                let packet = u16::try_from(packet)
                    .ok()
                    .filter(|packet| (1..=MOST_DATA as u16).contains(packet));
                own.packet =
                    packet.ok_or_else(|| refused("a packet holds 1 to 532 bytes of data"))?;
            }
            "send_buffer" | "receive_buffer" => {
                let bytes = usize::try_from(bytes()?).unwrap_or(0);
                if !(1..=1 << 24).contains(&bytes) {
                    return Err(refused("a buffer must hold 1 byte to 16 MiB"));
                }
                *(if *name == "send_buffer" {
                    &mut own.send_buffer
                } else {
                    &mut own.receive_buffer
                }) = bytes;
            }
            "timeout" => {
                let time =
                    parse_duration(&value.replace(' ', "")).map_err(|why: String| refused(&why))?;
                own.fixed_timeout = Some(Duration::from_seconds(time.as_secs_f64()))
                    .filter(|time| *time > Duration::ZERO);
                own.fixed_timeout
                    .ok_or_else(|| refused("a timeout must be greater than zero"))?;
            }
            _ => return Err(refused("unknown option")),
        }
    }
    Ok(own)
}
