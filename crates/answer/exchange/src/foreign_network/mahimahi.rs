//! Command lines of mahimahi's shells, `mm-link`, `mm-delay` and `mm-loss`, one in another, as the link between a host
//! `inside` and a host `outside` (Netravali and others, USENIX ATC 2015; their manual pages).

use super::foreign_form::ForeignForm;
use super::network_text::{LinkText, NetworkText, NodeKind, shown};
use super::shell_words::{WordReader, commands, rounded, size_text, time_text, words};
use stackline_core::error::{Error, Result};

pub(super) const FORM: ForeignForm = ForeignForm {
    name: "mahimahi",
    what: "a command line of `mm-link`, `mm-delay` and `mm-loss`",
    recognises: |text| {
        commands(text)
            .iter()
            .any(|line| line.split_whitespace().any(|word| word.starts_with("mm-")))
    },
    read,
};

/// What the shells do to packets in one direction.
#[derive(Debug, Default)]
struct DirectionOptions {
    trace: Option<String>,
    kind: Option<String>,
    arguments: Option<String>,
    /// The share of packets that pass.
    passed: Option<f64>,
}

/// What all shells of a line do: up is from inside to outside.
#[derive(Debug, Default)]
struct ShellOptions {
    up: DirectionOptions,
    down: DirectionOptions,
    delay_ms: f64,
}

fn read(text: &str) -> Result<NetworkText> {
    let lines = commands(text);
    let [line] = lines.as_slice() else {
        let error = Error::input(format!(
            "{} command lines are given; one describes a link",
            lines.len()
        ));
        return Err(
            error.hint("write the shells in one line: `mm-delay 20 mm-link up.trace down.trace`")
        );
    };
    let words = words(line)?;
    let mut reader = WordReader::new(&words);
    let mut shells = ShellOptions::default();
    while let Some(word) = reader.next() {
        match word {
            "mm-delay" => {
                let value = reader.value(word)?;
                shells.delay_ms += number(word, value)?;
            }
            "mm-loss" => shells.loss(&mut reader)?,
            "mm-link" => shells.link(&mut reader)?,
            "--" => {}
            _ if word.starts_with("mm-") => {
                let message = format!("`{}` has no equivalent", shown(word));
                return Err(Error::input(message).hint("`mm-link`, `mm-delay` and `mm-loss` have one; for `mm-onoff` write `schedule(...)` as the rate"));
            }
            // The command that the innermost shell runs.
            _ => break,
        }
    }
    shells.network()
}

fn number(word: &str, value: &str) -> Result<f64> {
    let parsed: Option<f64> = value.parse().ok();
    parsed
        .filter(|number| (0.0..=1e9).contains(number))
        .ok_or_else(|| {
            Error::input(format!(
                "`{}` is not a number behind `{word}`",
                shown(value)
            ))
        })
}

impl ShellOptions {
    /// `mm-loss uplink 0.1`
    fn loss(&mut self, reader: &mut WordReader<'_>) -> Result<()> {
        let direction = match reader.value("mm-loss")? {
            "uplink" => &mut self.up,
            "downlink" => &mut self.down,
            other => {
                let message = format!("`{}` is not a direction of `mm-loss`", shown(other));
                return Err(Error::input(message)
                    .hint("write `mm-loss uplink 0.1` or `mm-loss downlink 0.1`"));
            }
        };
        let share = number("mm-loss", reader.value("mm-loss")?)?;
        if share > 1.0 {
            let message = "the loss of `mm-loss` is a share from 0 to 1";
            return Err(Error::input(message).hint("`mm-loss uplink 0.1` loses one packet in ten"));
        }
        *direction.passed.get_or_insert(1.0) *= 1.0 - share;
        Ok(())
    }

    /// `mm-link UP DOWN [OPTION]...`; options may stand before the traces.
    fn link(&mut self, reader: &mut WordReader<'_>) -> Result<()> {
        if self.up.trace.is_some() {
            let error = Error::input("`mm-link` stands twice in the line");
            return Err(error.hint("write two links in a row in the language: `host a, b; switch s; link a - s ...; link s - b ...;`"));
        }
        let mut traces = Vec::new();
        while let Some(word) = reader.peek() {
            if word == "--" || traces.len() == 2 && !word.starts_with("--") {
                break;
            }
            reader.next();
            let Some(option) = word.strip_prefix("--") else {
                traces.push(word.to_owned());
                continue;
            };
            self.option(option)?;
        }
        let mut traces = traces.into_iter();
        (self.up.trace, self.down.trace) = (traces.next(), traces.next());
        if self.down.trace.is_none() {
            return Err(Error::input("`mm-link` needs two traces")
                .hint("write `mm-link up.trace down.trace`"));
        }
        Ok(())
    }

    /// An option without its `--`.
    fn option(&mut self, option: &str) -> Result<()> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let place = match name {
            "uplink-queue" => &mut self.up.kind,
            "downlink-queue" => &mut self.down.kind,
            "uplink-queue-args" => &mut self.up.arguments,
            "downlink-queue-args" => &mut self.down.arguments,
            // Logs and meters do nothing to packets.
            _ if name.contains("log") || name.contains("meter") => return Ok(()),
            _ => {
                let message = format!("`--{}` of mm-link has no equivalent", shown(name));
                return Err(Error::input(message).hint("omit it; a trace begins again at its end"));
            }
        };
        *place = Some(value.to_owned());
        Ok(())
    }

    fn network(&self) -> Result<NetworkText> {
        let mut network = NetworkText::default();
        let inside = network.node(NodeKind::Host, "inside")?;
        let outside = network.node(NodeKind::Host, "outside")?;
        for (ends, direction) in [
            ((&inside, &outside), &self.up),
            ((&outside, &inside), &self.down),
        ] {
            let mut link = LinkText {
                one_way: true,
                delay: time_text(self.delay_ms / 1000.0),
                ..LinkText::plain(ends.0, ends.1)
            };
            direction.write(&mut link)?;
            network.link(link)?;
        }
        if self.up.trace.is_some() {
            network.comment("A trace's lines are milliseconds; at each of them up to 1504 bytes leave, as in mm-link. The files are looked for beside this text.");
            if self.up.kind.is_none() {
                network.comment(
                    "mm-link's queue is infinite unless it says otherwise, and so is this one.",
                );
            }
        }
        network.comment("mahimahi lets its command reach the machine's own network; here the other end is the host `outside`, where servers run: `net exec FILE outside -- SERVER`.");
        network
            .behind
            .push("stackline net exec FILE inside -- COMMAND".into());
        Ok(network)
    }
}

impl DirectionOptions {
    fn write(&self, link: &mut LinkText) -> Result<()> {
        if let Some(trace) = &self.trace {
            if trace.contains(['"', '\n']) {
                return Err(Error::input("the name of a trace has a quotation mark"));
            }
            link.rate = format!("trace \"{trace}\"");
        }
        let lost = self
            .passed
            .map_or(0.0, |passed| rounded((1.0 - passed) * 100.0));
        if lost > 0.0 {
            link.clauses.push(format!("loss {lost}%"));
        }
        link.clauses.extend(self.queue()?);
        Ok(())
    }

    /// The clause of its queue: `queue 100 packets codel(target = 5 ms)`.
    fn queue(&self) -> Result<Option<String>> {
        let discipline = match self.kind.as_deref() {
            None | Some("infinite") => return Ok(None),
            Some("droptail") => "",
            Some("drophead") => " drop_head",
            Some("codel") => " codel",
            Some("pie") => " pie",
            Some(other) => {
                let message = format!("the queue `{}` of mm-link is not known", shown(other));
                return Err(Error::input(message)
                    .hint("known queues: infinite, droptail, drophead, codel, pie"));
            }
        };
        let (mut limit, mut settings) = (None, Vec::new());
        let arguments = self.arguments.as_deref().unwrap_or("");
        for argument in arguments
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty())
        {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            let value = number(name.trim(), value.trim())?;
            match name.trim() {
                "packets" => limit = Some(format!("{value} packets")),
                "bytes" => limit = Some(size_text(value)),
                "target" | "qdelay_ref" => settings.push(format!("target = {value} ms")),
                "interval" => settings.push(format!("interval = {value} ms")),
                "max_burst" => {}
                name => {
                    let message = format!(
                        "the setting `{}` of mm-link's queue is not known",
                        shown(name)
                    );
                    return Err(Error::input(message)
                        .hint("known settings: packets, bytes, target, interval, qdelay_ref"));
                }
            }
        }
        let Some(limit) = limit else {
            let error = Error::input("a queue of mm-link needs a limit");
            return Err(error.hint("write `--uplink-queue-args=\"packets=100\"`"));
        };
        let settings = match settings.as_slice() {
            [] => String::new(),
            some => format!("({})", some.join(", ")),
        };
        Ok(Some(format!("queue {limit}{discipline}{settings}")))
    }
}
