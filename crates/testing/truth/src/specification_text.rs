//! A scenario as a specification. It draws nothing.

use crate::scenario::{Scenario, ScenarioLink, ScenarioWork};
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
        let loss = if self.loss > 0.0 {
            format!(" loss {}%", figure(100.0 * self.loss))
        } else {
            String::new()
        };
        writeln!(f, "  link a - l {};", link(&self.near))?;
        writeln!(
            f,
            "  link l - r {}{loss} queue {} bytes;",
            link(&self.middle),
            self.queue_bytes
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

    fn stack(&self) -> String {
        let mut options = vec![format!(
            "congestion = {}",
            if self.tcp.reno { "reno" } else { "cubic" }
        )];
        if self.tcp.nodelay {
            options.push("nodelay".into());
        }
        options.extend(
            self.tcp
                .receive_buffer
                .map(|bytes| format!("receive_buffer = {bytes} B")),
        );
        options.extend(
            self.tcp
                .send_buffer
                .map(|bytes| format!("send_buffer = {bytes} B")),
        );
        format!("tcp({})", options.join(", "))
    }
}

/// The procedure of the work: the standard ones have no delays of their own.
fn procedure(work: &ScenarioWork) -> String {
    let mut text = String::from("procedure work {\n");
    let _ = match *work {
        ScenarioWork::Transfer {
            get,
            sender_s,
            reader_s,
            ..
        } => {
            let send = format!("repeat count {{ {}DataRequest(unit); }}", delay(sender_s));
            let take = format!(
                "repeat count {{ AwaitDataIndication(unit); {}}}",
                delay(reader_s)
            );
            let (way, own, other) = if get {
                ("Get", &take, &send)
            } else {
                ("Put", &send, &take)
            };
            writeln!(
                text,
                "  initiator {{ ConnectRequest; StartMeasurement; StartBulk{way}; {own} StopBulk{way}; StopMeasurement; DisconnectRequest; }}\n  \
                 responder {{ AwaitConnectIndication; AwaitStartBulk{way}; {other} AwaitStopBulk{way}; AwaitDisconnectIndication; }}"
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
    format!(
        "{} kbit/s {}",
        figure(link.rate_bit_s / 1e3),
        time(link.delay_s)
    )
}

fn time(seconds: f64) -> String {
    format!("{} us", figure(seconds * 1e6))
}

/// Six digits say enough, and the language takes no exponent of ten here.
fn figure(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
