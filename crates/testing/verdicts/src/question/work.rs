//! What questions measure: stacks, transfers, calls, connections, and what else is on the way.

use super::Question;
use super::links::DrawnLinkDirection;
use stackline_truth::dice::ScenarioDice;

/// Bytes that a run moves at most, so that it is over in seconds of a processor's time.
const MOST_BYTES: f64 = 20e6;
/// How long a run may last, s of its own clock.
const MOST_S: f64 = 100.0;
/// Calls whose responder takes its time; the standard application has calls at moments of their own before that.
const SERVED: &str = "procedure served(service) {
  initiator { ConnectRequest; StartMeasurement; repeat count { RPCCall(unit, reply); } StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; repeat count { RPCAwaitCallInd(unit); Delay(service); RPCReturn(reply); } AwaitDisconnectIndication; }
}
";
/// A connection for each call.
const ANEW: &str = "procedure anew {
  initiator { StartMeasurement; repeat count { ConnectRequest; RPCCall(unit, reply); DisconnectRequest; } StopMeasurement; }
  responder { repeat count { AwaitConnectIndication; RPCAwaitCallInd(unit); RPCReturn(reply); AwaitDisconnectIndication; } }
}
";
/// A unit there and one back.
const TURNS: &str = "procedure turns {
  initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); AwaitDataIndication(reply); } StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); DataRequest(reply); } AwaitDisconnectIndication; }
}
";

/// What is measured, and the procedures that it needs.
#[derive(Default)]
pub(super) struct DrawnWork {
    pub(super) procedures: &'static str,
    pub(super) text: String,
}

impl Question {
    pub(super) fn stack(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
    ) -> String {
        match dice.unit() {
            u if u < 0.11 => return self.udp(dice),
            u if u < 0.14 => return self.named("blast"),
            u if u < 0.16 => {
                self.note(true, "window");
                return format!("window(n = {})", dice.log(1.0, 64.0) as u32);
            }
            u if u < 0.18 => return self.named("saw"),
            u if u < 0.21 => return self.named("ikp"),
            u if u < 0.31 => return self.quic(dice, direction),
            u if u < 0.35 => return self.named("smoltcp"),
            _ => self.note(true, "tcp"),
        }
        let mut options = Vec::new();
        if dice.chance(0.4) {
            options.push("congestion = reno".to_owned());
        } else if dice.chance(0.06) {
            self.note(true, "bbr");
            options.push("congestion = bbr".to_owned());
        }
        if dice.chance(0.5) {
            options.push("nodelay".to_owned());
        }
        self.buffers(dice, direction, &mut options);
        if dice.chance(0.06) {
            self.note(true, "first window");
            options.push(format!("first_window = {}", dice.log(1.0, 400.0) as u32));
        }
        if dice.chance(0.04) {
            self.note(true, "unsent limit");
            options.push(format!("notsent_lowat = {} B", dice.log(4e3, 200e3) as u32));
        }
        if dice.chance(0.04) {
            self.note(true, "segments");
            options.push(format!("mss = {}", dice.log(88.0, 1400.0) as u32));
        }
        if dice.chance(0.04) {
            self.note(true, "delayed acknowledgements");
            options.push(format!(
                "delayed_ack = {} ms",
                dice.one(&[0, 5, 200]).unwrap_or(0)
            ));
        }
        with("tcp", &options)
    }

    fn buffers(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
        options: &mut Vec<String>,
    ) {
        let buffer = |dice: &mut ScenarioDice| {
            (direction.pipe_bytes() * dice.log(0.1, 3.0)).clamp(8e3, 1e9) as u64
        };
        for (name, what) in [
            ("receive_buffer", "receive buffer"),
            ("send_buffer", "send buffer"),
        ] {
            if dice.chance(0.13) {
                self.note(true, what);
                options.push(format!("{name} = {} B", buffer(dice)));
            }
        }
    }

    fn quic(&mut self, dice: &mut ScenarioDice, direction: &DrawnLinkDirection) -> String {
        self.note(true, "quic");
        let mut options = Vec::new();
        if dice.chance(0.3) {
            options.push("congestion = reno".to_owned());
        }
        self.buffers(dice, direction, &mut options);
        if dice.chance(0.15) {
            self.note(true, "first window");
            options.push(format!(
                "initial_window = {}",
                dice.log(2400.0, 400e3) as u32
            ));
        }
        with("quic", &options)
    }

    fn udp(&mut self, dice: &mut ScenarioDice) -> String {
        self.note(true, "udp");
        if dice.chance(0.15) {
            self.note(true, "receive buffer");
            format!("udp(receive_buffer = {} B)", dice.log(4e3, 400e3) as u32)
        } else {
            "udp".to_owned()
        }
    }

    fn named(&mut self, stack: &'static str) -> String {
        self.note(true, stack);
        stack.to_owned()
    }

    pub(super) fn work(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
        pairs: f64,
    ) -> DrawnWork {
        match dice.unit() {
            u if u < 0.5 => self.bulk(dice, direction.rate_bit_s / pairs, pairs),
            u if u < 0.92 => self.calls(dice, direction, pairs),
            _ => {
                self.note(true, "connections");
                DrawnWork {
                    text: "connect_disconnect 1*50".to_owned(),
                    ..DrawnWork::default()
                }
            }
        }
    }

    fn bulk(&mut self, dice: &mut ScenarioDice, rate: f64, pairs: f64) -> DrawnWork {
        self.note(true, "bulk");
        let datagrams = self.traits.contains(&"udp");
        let most = (rate * MOST_S / 8.0).min(MOST_BYTES / pairs);
        let longest = if datagrams { 1472.0 } else { 256e3 };
        let unit = dice.log(256.0, longest).min(most).max(8.0) as u64;
        let count = ((dice.log(1e3_f64.min(most), most) / unit as f64).ceil() as u64).max(1);
        let name = if dice.chance(0.5) {
            "bulk_put"
        } else {
            "bulk_get"
        };
        let drawn = dice.chance(0.06);
        self.note(drawn, "sizes drawn");
        let size = if drawn {
            format!("exponential({unit} B)")
        } else {
            format!("{unit} B")
        };
        let interval = if dice.chance(0.12) {
            self.note(true, "paced");
            let us = 1e6 * 8.0 * unit as f64 / rate * dice.log(0.3, 5.0);
            let kind = dice.one(&["constant", "exponential"]).unwrap_or("constant");
            format!(" {kind}({us:.1} us)")
        } else {
            String::new()
        };
        DrawnWork {
            text: format!("{name} {size}*{count}{interval}"),
            ..DrawnWork::default()
        }
    }

    fn calls(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
        pairs: f64,
    ) -> DrawnWork {
        self.note(true, "calls");
        let rate = direction.rate_bit_s / pairs;
        let datagrams = self.traits.contains(&"udp");
        let most = (rate * 5.0 / 8.0).clamp(2.0, if datagrams { 1472.0 } else { 200e3 });
        let (request, response) = (dice.log(1.0, most) as u64, dice.log(1.0, most) as u64);
        let alone_s = 2.0 * direction.delay_s + 8.0 * (request + response) as f64 / rate;
        let service_s = if dice.chance(0.3) {
            alone_s * dice.log(0.1, 5.0)
        } else {
            0.0
        };
        let each_s = alone_s + service_s;
        let count = ((dice.log(0.3, 20.0) / each_s).clamp(5.0, 2000.0 / pairs) as u64).max(5);
        let sizes = if !datagrams && dice.chance(0.06) {
            self.note(true, "sizes drawn");
            format!("{request} B, exponential({response} B)*{count}")
        } else {
            format!("{request} B, {response} B*{count}")
        };
        let service = (service_s > 0.0).then(|| self.service(dice, service_s));
        let paced = dice.chance(0.25);
        let (procedures, text) = if paced {
            self.note(true, "paced");
            let us = 1e6 * each_s * pairs * dice.log(1.2, 10.0);
            let arrival = match dice.unit() {
                u if u < 0.7 => format!("exponential({us:.1} us)"),
                u if u < 0.85 => format!("constant({us:.1} us)"),
                _ => format!("uniform(0 us, {:.1} us)", 2.0 * us),
            };
            let service = service.map_or_else(String::new, |service| format!(" {service}"));
            ("", format!("rr {sizes} {arrival}{service}"))
        } else if let Some(service) = service {
            (SERVED, format!("served {sizes} {service}"))
        } else {
            match dice.unit() {
                u if u < 0.08 => {
                    self.note(true, "a connection a call");
                    (ANEW, format!("anew {sizes}"))
                }
                u if u < 0.14 => {
                    self.note(true, "turns");
                    (TURNS, format!("turns {sizes}"))
                }
                _ => ("", format!("rr {sizes}")),
            }
        };
        DrawnWork { procedures, text }
    }

    /// What a responder takes, of that mean.
    fn service(&mut self, dice: &mut ScenarioDice, mean_s: f64) -> String {
        self.note(true, "service");
        let us = 1e6 * mean_s;
        match dice.unit() {
            u if u < 0.2 => format!("constant({us:.1} us)"),
            u if u < 0.45 => format!("exponential({us:.1} us)"),
            u if u < 0.6 => format!("uniform(0 us, {:.1} us)", 2.0 * us),
            u if u < 0.8 => {
                let p = dice.between(0.5, 0.95);
                let (low, high) = (0.2 * us, us * (1.0 - 0.2 * p) / (1.0 - p));
                format!("bivalue({low:.1} us, {high:.1} us, {p:.3})")
            }
            u if u < 0.9 => format!("lognormal({us:.1} us, {:.1} us)", us * dice.log(0.2, 2.0)),
            _ => format!("pareto({:.1} us, 2.5)", us * 0.6),
        }
    }

    /// What else is on the way of a measured part.
    pub(super) fn load(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
    ) -> String {
        match dice.unit() {
            u if u < 0.5 => {
                self.note(true, "beside tcp");
                "from a to b bulk_put 16 KiB over tcp".to_owned()
            }
            u if u < 0.8 => {
                self.note(true, "beside udp");
                let interval_us =
                    1e6 * 8.0 * 1000.0 / (direction.rate_bit_s * dice.between(0.1, 0.8));
                format!("from a to b stream 1000 B constant({interval_us:.1} us) over udp")
            }
            _ => {
                self.note(true, "beside calls");
                let bytes = dice.log(10.0, 20e3) as u32;
                format!("from a to b rr 100 B, {bytes} B over tcp")
            }
        }
    }
}

fn with(stack: &str, options: &[String]) -> String {
    if options.is_empty() {
        stack.to_owned()
    } else {
        format!("{stack}({})", options.join(", "))
    }
}
