//! A scenario as a specification. It draws nothing.

use crate::scenario::{Scenario, ScenarioLink, ScenarioStack, ScenarioWork};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {};\n", self.seed)?;
        f.write_str(&procedure(&self.work))?;
        self.network(f)?;
        let (name, data) = match self.work {
            ScenarioWork::Transfer { unit, count, .. } => ("work", format!("{unit} B*{count}")),
            ScenarioWork::Calls {
                request,
                response,
                count,
                ..
            } => ("work", format!("{request} B, {response} B*{count}")),
        };
        let measured = format!("from a to b {name} {data} over {}", self.stack());
        match self.load {
            None => writeln!(f, "1 {measured} across n in simulated;"),
            Some(load) => writeln!(
                f,
                "1 background across n in simulated: {measured} | {} from c to d bulk_put 16 KiB over tcp(nodelay);",
                load.pairs
            ),
        }
    }
}

impl Scenario {
    fn network(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("network n {\n  host a;\n")?;
        if self.copy_ns_per_byte > 0.0 {
            writeln!(
                f,
                "  host b {{ copy {} ns per byte; }}",
                figure(self.copy_ns_per_byte)
            )?;
        } else {
            f.write_str("  host b;\n")?;
        }
        f.write_str("  router l, r;\n")?;
        writeln!(f, "  link a - l {};", link(&self.near))?;
        writeln!(
            f,
            "  link l - r {} {}{}{} queue {} bytes {};",
            self.middle_rate(),
            time(self.middle.delay_s),
            self.middle_loss(),
            self.middle_jitter(),
            self.queue_bytes,
            self.conduct.discipline
        )?;
        writeln!(f, "  link r - b {};", link(&self.far))?;
        if let Some(load) = self.load {
            f.write_str("  host c, d;\n")?;
            let beside = ScenarioLink {
                rate_bit_s: self.middle.rate_bit_s,
                delay_s: self.middle.delay_s,
            };
            if load.shares {
                writeln!(
                    f,
                    "  link c - l {};\n  link r - d {};",
                    link(&self.near),
                    link(&self.far)
                )?;
            } else {
                f.write_str("  router m;\n")?;
                writeln!(f, "  link c - m {};", link(&self.near))?;
                writeln!(
                    f,
                    "  link m - d {} queue {} bytes;",
                    link(&beside),
                    self.queue_bytes
                )?;
                // Everybody reaches everybody.
                writeln!(f, "  link m - l {};", link(&self.near))?;
            }
        }
        f.write_str("}\n\n")
    }

    fn middle_rate(&self) -> String {
        let rate = rate(self.middle.rate_bit_s);
        if let Some(outage) = self.conduct.outage.filter(|outage| !outage.loses) {
            let (at, over) = (outage.at_s, outage.at_s + outage.lasts_s);
            return format!(
                "schedule(0 s {rate}, {} 0 bit/s, {} {rate})",
                time(at),
                time(over)
            );
        }
        self.conduct.rate_steps.map_or(rate.clone(), |steps| {
            let other = self::rate(self.middle.rate_bit_s * steps.factor);
            let (half, whole) = (time(steps.step_s), time(2.0 * steps.step_s));
            format!("schedule(0 s {rate}, {half} {other}) every {whole}")
        })
    }

    fn middle_loss(&self) -> String {
        let loss = format!("{}%", figure(100.0 * self.loss));
        if let Some(outage) = self.conduct.outage.filter(|outage| outage.loses) {
            let (at, over) = (outage.at_s, outage.at_s + outage.lasts_s);
            return format!(
                " loss schedule(0 s {loss}, {} 100%, {} {loss})",
                time(at),
                time(over)
            );
        }
        if self.loss > 0.0 {
            format!(" loss {loss}")
        } else {
            String::new()
        }
    }

    fn middle_jitter(&self) -> String {
        self.conduct.jitter.map_or_else(String::new, |jitter| {
            let order = if jitter.reorders { " reordering" } else { "" };
            format!(" jitter exponential({}){order}", time(jitter.mean_s))
        })
    }

    fn stack(&self) -> String {
        let congestion = if self.options.reno { "reno" } else { "cubic" };
        let mut options = vec![format!("congestion = {congestion}")];
        let bytes = |name: &str, bytes: u64| format!("{name} = {bytes} B");
        let buffers = [
            ("receive_buffer", self.options.receive_buffer),
            ("send_buffer", self.options.send_buffer),
        ];
        let buffers = buffers.map(|(name, size)| size.map(|size| bytes(name, size)));
        options.extend(buffers.into_iter().flatten());
        match self.stack {
            ScenarioStack::Udp => return "udp".to_owned(),
            ScenarioStack::Ikp => return "ikp".to_owned(),
            ScenarioStack::Tcp => {
                if self.options.nodelay {
                    options.push("nodelay".to_owned());
                }
                let segments = |window: u64| window.div_ceil(SEGMENT).min(MOST_SEGMENTS);
                let window = self.options.first_window.map(segments);
                options.extend(window.map(|segments| format!("first_window = {segments}")));
            }
            // Its window counts whole packets.
            ScenarioStack::Quic => options.extend(
                self.options
                    .first_window
                    .map(|window| format!("initial_window = {}", window * 5 / 4)),
            ),
        }
        let name = match self.stack {
            ScenarioStack::Quic => "quic",
            _ => "tcp",
        };
        format!("{name}({})", options.join(", "))
    }
}

/// Data of a segment, and the greatest number of them that a first window takes.
const SEGMENT: u64 = 1448;
const MOST_SEGMENTS: u64 = 1 << 16;

/// The procedure of the work: the standard ones have no delays of their own.
fn procedure(work: &ScenarioWork) -> String {
    let mut text = String::from("procedure work {\n");
    let _ = match *work {
        ScenarioWork::Transfer {
            get,
            sender_s,
            reader_s,
            pace_s,
            ..
        } => {
            let pace = if pace_s > 0.0 {
                format!("Pace(constant({})); ", time(pace_s))
            } else {
                String::new()
            };
            let send = format!(
                "repeat count {{ {}{pace}DataRequest(unit); }}",
                delay(sender_s)
            );
            let take = format!(
                "repeat count {{ AwaitDataIndication(unit); {}}}",
                delay(reader_s)
            );
            let (direction, own, other) = if get {
                ("Get", &take, &send)
            } else {
                ("Put", &send, &take)
            };
            writeln!(
                text,
                "  initiator {{ ConnectRequest; StartMeasurement; StartBulk{direction}; {own} StopBulk{direction}; StopMeasurement; DisconnectRequest; }}\n  \
                 responder {{ AwaitConnectIndication; AwaitStartBulk{direction}; {other} AwaitStopBulk{direction}; AwaitDisconnectIndication; }}"
            )
        }
        ScenarioWork::Calls {
            service_s,
            think_s,
            pieces,
            connects,
            ..
        } => {
            let (ahead, taken) = if pieces {
                ("DataRequest(24 B); ", "AwaitDataIndication(24 B); ")
            } else {
                ("", "")
            };
            let call = format!("{ahead}RPCCall(unit, reply); {}", delay(think_s));
            let serve = format!(
                "{taken}RPCAwaitCallInd(unit); {}RPCReturn(reply);",
                delay(service_s)
            );
            if connects {
                writeln!(
                    text,
                    "  initiator {{ StartMeasurement; repeat count {{ ConnectRequest; {call}DisconnectRequest; }} StopMeasurement; }}\n  \
                     responder {{ repeat count {{ AwaitConnectIndication; {serve} AwaitDisconnectIndication; }} }}"
                )
            } else {
                writeln!(
                    text,
                    "  initiator {{ ConnectRequest; StartMeasurement; repeat count {{ {call}}} StopMeasurement; DisconnectRequest; }}\n  \
                     responder {{ AwaitConnectIndication; repeat count {{ {serve} }} AwaitDisconnectIndication; }}"
                )
            }
        }
    };
    text + "}\n\n"
}

fn delay(seconds: f64) -> String {
    if seconds > 0.0 {
        format!("Delay(constant({})); ", time(seconds))
    } else {
        String::new()
    }
}

fn link(link: &ScenarioLink) -> String {
    format!("{} {}", rate(link.rate_bit_s), time(link.delay_s))
}

fn rate(bit_s: f64) -> String {
    format!("{} kbit/s", figure(bit_s / 1e3))
}

fn time(seconds: f64) -> String {
    format!("{} us", figure(seconds * 1e6))
}

/// Six digits say enough, and the language takes no exponent of ten here.
fn figure(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
