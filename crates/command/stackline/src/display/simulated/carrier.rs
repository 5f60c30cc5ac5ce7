//! What `--over` names: a stack of the language, a serial line, or PUP with options of its own.

use crate::across;
use crate::exit::{Error, Result};
use crate::flags::{size::size, time::duration};
use stackline_core::plan::{Stack, World};
use stackline_core::time::Duration;
use stackline_displayserver::simulated::Carrier;
use stackline_proto::pup::{self, packet::MOST_DATA};

/// What carries requests and answers.
pub(super) enum Way {
    /// `tcp`, at the client's end and at the display's.
    Tcp([Stack; 2]),
    /// Blasts, stop-and-wait or a sliding window.
    Blast(Stack),
    /// V's messages.
    Ikp,
    /// PUP.
    Pup(pup::Options),
    /// A serial line with so many bits a character.
    Line(u32),
}

impl Way {
    pub(super) const fn carrier(&self) -> Carrier<'_> {
        match self {
            Self::Tcp([client, display]) => Carrier::Tcp([client, display]),
            Self::Blast(stack) => Carrier::Blast(stack),
            Self::Ikp => Carrier::Ikp,
            Self::Pup(options) => Carrier::Pup(*options),
            Self::Line(bits) => Carrier::Line(*bits),
        }
    }
}

/// `--over`, and `--display-over` for the other end.
pub(super) fn read(over: &str, display_over: Option<&str>) -> Result<Way> {
    let (name, options) = named(over)?;
    let way = match name {
        "tty" => Way::Line(bits(over, &options)?),
        "pup" => Way::Pup(pup_options(&options)?),
        _ => stack(over, display_over)?,
    };
    match (&way, display_over) {
        (Way::Tcp(_), _) | (_, None) => Ok(way),
        _ => Err(
            Error::input(format!("--over {over}: only tcp has options for each end"))
                .hint("leave --display-over out, or name tcp for both"),
        ),
    }
}

fn stack(over: &str, display_over: Option<&str>) -> Result<Way> {
    if let Some(other) = display_over.filter(|other| matches!(named(other), Ok(("pup" | "tty", _))))
    {
        return Err(Error::input(format!(
            "--display-over {other}: only tcp has options for each end"
        ))
        .hint("leave --display-over out, and name it by --over"));
    }
    let client = across::stack(over, World::Simulated)?;
    let display = display_over
        .map(|over| across::stack(over, World::Simulated))
        .transpose()?;
    let display = display.unwrap_or_else(|| client.clone());
    if let (Some(other), "tcp") = (
        display_over.filter(|_| display.name != "tcp"),
        client.name.as_str(),
    ) {
        return Err(Error::input(format!(
            "--display-over {other}: the display's end of tcp is tcp too"
        ))
        .hint("as in --over tcp --display-over 'tcp(nodelay)'"));
    }
    match (client.name.as_str(), display.name.as_str()) {
        ("tcp", "tcp") => Ok(Way::Tcp([client, display])),
        ("blast" | "saw" | "window", _) => Ok(Way::Blast(client)),
        ("ikp", _) if client.options.is_empty() => Ok(Way::Ikp),
        ("ikp", _) => Err(Error::input(format!("--over {over}: a display's messages are V's, of 1024 bytes"))
            .hint("--over ikp, without options")),
        _ => Err(Error::input(format!(
            "--over {over}: requests go over tcp, pup, blast, saw, window, ikp or a serial line"
        ))
        .hint("as in --over 'tcp(nodelay)', --over pup, --over blast, --over ikp, --over tty, --over 'tty(bits = 8)'")),
    }
}

/// The name and the options of `name(option, option = value)`.
fn named(over: &str) -> Result<(&str, Vec<(&str, &str)>)> {
    let text = over.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return Ok((text, Vec::new()));
    };
    let inner = rest.strip_suffix(')').ok_or_else(|| {
        Error::input(format!("--over {over} has a bracket that is not closed"))
            .hint("as in 'tcp(nodelay)'")
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

/// `name = value`, or a name alone.
fn option(text: &str) -> (&str, &str) {
    text.split_once('=')
        .map_or((text.trim(), ""), |(name, value)| {
            (name.trim(), value.trim())
        })
}

/// Bits of a character of a serial line: `tty` has start and stop bits, `tty(bits = 8)` has not.
fn bits(over: &str, options: &[(&str, &str)]) -> Result<u32> {
    let bits = match options {
        [] => Some(10),
        [("bits", number)] => number.parse().ok(),
        _ => None,
    };
    bits.filter(|bits| (5..=12).contains(bits)).ok_or_else(|| {
        Error::input(format!("--over {over} is no serial line"))
            .hint("`tty`, or `tty(bits = 8)`: from 5 to 12")
    })
}

fn pup_options(options: &[(&str, &str)]) -> Result<pup::Options> {
    let mut own = pup::Options::default();
    for (name, value) in options {
        let refused = |why: &str| {
            Error::input(format!("--over pup({name}): {why}")).hint(
                "pup has packet = 1 to 532 (bytes of data), send_buffer and receive_buffer = SIZE, timeout = TIME (fixed; else it follows the \
                 round trip)",
            )
        };
        let bytes = || size(&value.replace(' ', "")).map_err(|why: String| refused(&why));
        match *name {
            "packet" => {
                let packet = value.parse().or_else(|_| bytes())?;
                let packet = u16::try_from(packet)
                    .ok()
                    .filter(|packet| (1..=MOST_DATA as u16).contains(packet));
                own.packet =
                    packet.ok_or_else(|| refused("a packet has from 1 to 532 bytes of data"))?;
            }
            "send_buffer" | "receive_buffer" => {
                let bytes = usize::try_from(bytes()?).unwrap_or(0);
                if !(1..=1 << 24).contains(&bytes) {
                    return Err(refused("a buffer has from 1 byte to 16 MiB"));
                }
                *(if *name == "send_buffer" {
                    &mut own.send_buffer
                } else {
                    &mut own.receive_buffer
                }) = bytes;
            }
            "timeout" => {
                let time =
                    duration(&value.replace(' ', "")).map_err(|why: String| refused(&why))?;
                own.fixed_timeout = Some(Duration::from_seconds(time.as_secs_f64()))
                    .filter(|time| *time > Duration::ZERO);
                own.fixed_timeout
                    .ok_or_else(|| refused("a timeout takes some time"))?;
            }
            _ => return Err(refused("there is no such option")),
        }
    }
    Ok(own)
}
