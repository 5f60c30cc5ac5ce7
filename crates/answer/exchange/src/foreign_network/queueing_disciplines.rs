//! Lines of `tc qdisc`: netem, tbf and queue disciplines of one interface, as the link from its host. tc(8), tc-netem(8),
//! tc-tbf(8) and their units; what netem does with packets is in the kernel's `net/sched/sch_netem.c`.

mod netem;

use super::foreign_form::ForeignForm;
use super::network_text::{LinkText, NetworkText, NodeKind, shown};
use super::shell_words::{
    WordReader, commands, rate_text, rounded, size_text, tc_number, tc_rate, tc_size, tc_time,
    time_text, words,
};
use netem::NetemOptions;
use stackline_core::error::{Error, Result};

pub(super) const FORM: ForeignForm = ForeignForm {
    name: "tc",
    what: "lines of `tc qdisc add`: netem, tbf, fq_codel, codel, pie, red, pfifo, bfifo",
    recognises: |text| {
        commands(text)
            .iter()
            .any(|line| line.split_whitespace().any(|word| word == "qdisc"))
    },
    read,
};

/// Kinds that have no single equivalent, each with what comes closest.
const UNLIKE: &[(&str, &str)] = &[
    (
        "htb",
        "write the rate of a class as the rate of a link, or `queue classes(...)` for classes of service",
    ),
    (
        "hfsc",
        "write the rate of a class as the rate of a link, or `queue classes(...)` for classes of service",
    ),
    ("prio", "write `queue classes(ef strict, default weight 1)`"),
    (
        "drr",
        "write `queue classes(...)` with a weight for each class",
    ),
    (
        "cake",
        "write `queue fq_codel shape RATE burst 3 KB`, which comes closest",
    ),
    ("dualpi2", "write `queue dualpi2`"),
    (
        "sfq",
        "write `queue 127 packets fq_codel`, which comes closest",
    ),
    ("fq", "write `pace RATE` in the braces of the host"),
    (
        "ingress",
        "write the lines of the interface at the other end",
    ),
    (
        "clsact",
        "write the lines of the interface at the other end",
    ),
];

/// What the lines of one interface say about the packets that leave by it.
#[derive(Debug, Default)]
struct InterfaceOptions {
    device: String,
    netem: Option<NetemOptions>,
    /// Words behind the delay: `shape 1 Mbit/s burst 4 KiB latency 400 ms`.
    shaper: Option<String>,
    /// `queue 100 packets`
    queue: Option<String>,
    /// The rate that packets have at most beside the shaper's, bit/s.
    peak: Option<f64>,
}

fn read(text: &str) -> Result<NetworkText> {
    let mut interfaces: Vec<InterfaceOptions> = Vec::new();
    let mut network = NetworkText::default();
    for line in commands(text) {
        let words = words(&line)?;
        let begins = words.iter().position(|word| word == "qdisc");
        let Some(begins) = begins else {
            let message = format!("`{}` is not a line of `tc qdisc`", shown(&line));
            return Err(Error::input(message).hint(
                "classes and filters have no equivalent in one line; keep the lines of `tc qdisc`",
            ));
        };
        let mut reader = WordReader::new(words.get(begins + 1..).unwrap_or_default());
        discipline(&mut reader, &mut interfaces, &mut network)?;
    }
    if interfaces.len() > 2 {
        let message = format!(
            "the lines set {} interfaces; a link has two ends",
            interfaces.len()
        );
        return Err(Error::input(message).hint("give the lines of one link at a time"));
    }
    let (a, b) = (
        network.node(NodeKind::Host, "a")?,
        network.node(NodeKind::Host, "b")?,
    );
    let ways = [(&a, &b), (&b, &a)];
    for (index, ends) in ways.into_iter().enumerate() {
        let link = match interfaces.get(index) {
            Some(interface) => interface.link(ends.0, ends.1, &mut network)?,
            None => LinkText {
                one_way: true,
                ..LinkText::plain(ends.0, ends.1)
            },
        };
        network.link(link)?;
    }
    if interfaces.len() == 1 {
        network
            .comment("tc shapes what leaves an interface, so the way back is as fast as it was.");
    }
    network
        .behind
        .push("stackline net exec FILE a -- ping -c 3 b".into());
    Ok(network)
}

/// Reads a line behind the word `qdisc`.
fn discipline(
    reader: &mut WordReader<'_>,
    interfaces: &mut Vec<InterfaceOptions>,
    network: &mut NetworkText,
) -> Result<()> {
    let mut device = String::from("eth0");
    match reader.next() {
        Some("add" | "replace" | "change" | "link") => {}
        Some("del" | "delete" | "show" | "ls" | "list") => return Ok(()),
        other => {
            let message = format!(
                "`tc qdisc {}` sets no queue discipline",
                shown(other.unwrap_or(""))
            );
            return Err(Error::input(message).hint("write `tc qdisc add dev eth0 root ...`"));
        }
    }
    loop {
        match reader.next() {
            Some("dev") => device = reader.value("dev")?.to_owned(),
            Some(word @ ("handle" | "parent")) => _ = reader.value(word)?,
            Some("root") => {}
            Some(kind) => {
                let at = interfaces.iter().position(|known| known.device == device);
                let at = at.unwrap_or_else(|| {
                    interfaces.push(InterfaceOptions {
                        device,
                        ..InterfaceOptions::default()
                    });
                    interfaces.len() - 1
                });
                if let Some(interface) = interfaces.get_mut(at) {
                    interface.read(kind, reader, network)?;
                }
                return Ok(());
            }
            None => {
                return Err(Error::input(
                    "the line of `tc qdisc` names no kind, such as `netem`",
                ));
            }
        }
    }
}

impl InterfaceOptions {
    fn read(
        &mut self,
        kind: &str,
        reader: &mut WordReader<'_>,
        network: &mut NetworkText,
    ) -> Result<()> {
        match kind {
            "netem" => {
                let options = NetemOptions::read(reader)?;
                if self.netem.replace(options).is_some() {
                    return Err(Error::input("the interface has netem twice")
                        .hint("add up their delays in one line"));
                }
            }
            "tbf" => self.token_bucket(reader)?,
            "pfifo" | "bfifo" | "pfifo_fast" | "fq_codel" | "codel" | "pie" | "red" => {
                self.queue = queue(kind, reader, network)?;
            }
            "noqueue" | "mq" => {}
            _ => {
                let unlike = UNLIKE.iter().find(|(word, _)| *word == kind);
                let error = Error::input(format!(
                    "`{}` has no equivalent that can be printed",
                    shown(kind)
                ));
                return Err(
                    error.hint(unlike.map_or("write the link in the language", |found| found.1))
                );
            }
        }
        Ok(())
    }

    /// `rate 1mbit burst 32kbit latency 400ms`, tc-tbf(8).
    fn token_bucket(&mut self, reader: &mut WordReader<'_>) -> Result<()> {
        let (mut rate, mut burst, mut wait) = (None, None, None);
        while let Some(word) = reader.next() {
            let value = reader.value(word)?;
            match word {
                "rate" => rate = Some(read_as(word, value, tc_rate)?),
                // The size of a cell may stand behind the burst.
                "burst" | "buffer" | "maxburst" => {
                    let size = value.split('/').next().unwrap_or(value);
                    burst = Some(read_as(word, size, tc_size)?);
                }
                "latency" => {
                    wait = Some(format!(
                        "latency {}",
                        time_text(read_as(word, value, tc_time)?)
                    ))
                }
                "limit" => {
                    wait = Some(format!(
                        "limit {}",
                        size_text(read_as(word, value, tc_size)?)
                    ))
                }
                "peakrate" => self.peak = Some(read_as(word, value, tc_rate)?),
                "mtu" | "minburst" | "mpu" | "overhead" | "linklayer" => {}
                _ => return Err(unknown("tbf", word)),
            }
        }
        let (Some(rate), Some(burst), Some(wait)) = (rate, burst, wait) else {
            let error = Error::input("tbf needs a rate, a burst, and a latency or limit");
            return Err(error.hint("for example `tbf rate 1mbit burst 32kbit latency 400ms`"));
        };
        self.shaper = Some(format!(
            "shape {} burst {} {wait}",
            rate_text(rate),
            size_text(burst)
        ));
        Ok(())
    }

    /// The link from the interface's host.
    fn link(&self, from: &str, to: &str, network: &mut NetworkText) -> Result<LinkText> {
        let mut link = LinkText {
            one_way: true,
            ..LinkText::plain(from, to)
        };
        if let Some(netem) = &self.netem {
            let limited = self.queue.is_none() && self.shaper.is_none();
            netem.write(&mut link, limited, network)?;
        }
        if let Some(peak) = self.peak {
            link.rate = rate_text(peak);
        }
        link.clauses.extend(self.shaper.clone());
        link.clauses.extend(self.queue.clone());
        Ok(link)
    }
}

/// A value as a number, or an error that names the word before it.
fn read_as<T>(word: &str, value: &str, read: fn(&str) -> Option<T>) -> Result<T> {
    read(value).ok_or_else(|| {
        let message = format!(
            "`{}` cannot be the value of `{}`",
            shown(value),
            shown(word)
        );
        Error::input(message).hint("write it as tc does: `10mbit`, `50ms`, `32kbit`, `1%`")
    })
}

fn unknown(kind: &str, word: &str) -> Error {
    let message = format!("the word `{}` of {kind} is not known", shown(word));
    Error::input(message).hint("omit it, or write the link in the language")
}

/// The clause of a queue discipline; `None` for what every interface has.
fn queue(
    kind: &str,
    reader: &mut WordReader<'_>,
    network: &mut NetworkText,
) -> Result<Option<String>> {
    let (mut limit, mut settings) = (None, Vec::new());
    let mut ecn = kind == "fq_codel";
    while let Some(word) = reader.next() {
        match word {
            "ecn" => ecn = true,
            "noecn" => ecn = false,
            "bytemode" | "nobytemode" | "harddrop" | "adaptive" | "nodrop" => {}
            _ => {
                let value = reader.value(word)?;
                match (kind, word) {
                    (_, "limit") => limit = Some(read_as(word, value, tc_size)?),
                    ("codel" | "fq_codel" | "pie", "target")
                    | ("codel" | "fq_codel", "interval") => {
                        settings.push(format!(
                            "{word} = {}",
                            time_text(read_as(word, value, tc_time)?)
                        ));
                    }
                    ("pie", "tupdate") => {
                        settings.push(format!(
                            "update = {}",
                            time_text(read_as(word, value, tc_time)?)
                        ));
                    }
                    ("fq_codel", "flows") => {
                        settings.push(format!("flows = {}", read_as(word, value, tc_number)?))
                    }
                    ("fq_codel", "quantum") | ("red", "min" | "max") => {
                        settings.push(format!("{word} = {} B", read_as(word, value, tc_size)?));
                    }
                    ("red", "probability") => {
                        let share: f64 = value.parse().unwrap_or(0.02);
                        settings.push(format!("probability = {}%", rounded(share * 100.0)));
                    }
                    ("red", "avpkt" | "burst" | "bandwidth")
                    | ("pie", "alpha" | "beta")
                    | (_, "memory_limit" | "ce_threshold" | "drop_batch") => {
                        network.comment(format!(
                            "`{word}` of {kind} is left out: this model has no such setting."
                        ));
                    }
                    _ => return Err(unknown(kind, word)),
                }
            }
        }
    }
    Ok(queue_clause(kind, limit, &settings, ecn))
}

/// `queue 100 packets codel(target = 5 ms) ecn`, with tc's limits where none is given.
fn queue_clause(kind: &str, limit: Option<f64>, settings: &[String], ecn: bool) -> Option<String> {
    let limit = match kind {
        "red" | "bfifo" => limit.map(size_text),
        "fq_codel" => Some(format!("{} packets", limit.unwrap_or(10_240.0))),
        "codel" | "pie" => Some(format!("{} packets", limit.unwrap_or(1000.0))),
        _ => limit.map(|packets| format!("{packets} packets")),
    };
    let discipline = if kind.ends_with("fifo") || kind == "pfifo_fast" {
        ""
    } else {
        kind
    };
    let settings = match settings {
        [] => String::new(),
        some => format!("({})", some.join(", ")),
    };
    let mut clause = String::from("queue");
    for word in [
        limit,
        Some(format!("{discipline}{settings}")),
        ecn.then(|| "ecn".into()),
    ]
    .into_iter()
    .flatten()
    {
        if !word.is_empty() {
            clause.push(' ');
            clause.push_str(&word);
        }
    }
    (clause != "queue").then_some(clause)
}
