//! Specifications over the whole space of the language, to be predicted: rates, distances, queues, losses, stacks, sizes and
//! pairs, each as likely in every order of magnitude. It draws and writes; what they come to is for others to find out.

use serde::Serialize;
use stackline_truth::dice::ScenarioDice;
use std::fmt::Write;

/// A specification, and what is special about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// What it was drawn from.
    pub seed: u64,
    /// The specification.
    pub text: String,
    /// In words: what is done, over which stack, and what lies in its way.
    pub traits: Vec<&'static str>,
}

/// Bytes that a run moves at most, so that it is over in seconds of a processor's time.
const MOST_BYTES: f64 = 20e6;
/// How long a run may last, s of its own clock.
const MOST_S: f64 = 100.0;

/// One direction of the way.
struct DrawnLinkDirection {
    rate_bit_s: f64,
    delay_s: f64,
    queue_bytes: Option<f64>,
    loss: String,
}

impl DrawnLinkDirection {
    fn pipe_bytes(&self) -> f64 {
        self.rate_bit_s * 2.0 * self.delay_s / 8.0
    }

    fn link(&self, ends: &str) -> String {
        let queue = self
            .queue_bytes
            .map_or_else(String::new, |bytes| format!(" queue {bytes:.0} bytes"));
        format!(
            "  link {ends} {:.0} bit/s {:.0} us{}{queue};\n",
            self.rate_bit_s,
            self.delay_s * 1e6,
            self.loss
        )
    }
}

impl Question {
    /// The question of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut dice = ScenarioDice::of(seed, "space");
        let mut question = Self {
            seed,
            text: String::new(),
            traits: Vec::new(),
        };
        let way = question.way(&mut dice);
        let network = question.network(&mut dice, &way);
        let pairs = if dice.chance(0.2) {
            dice.log(2.0, 12.0) as u32
        } else {
            1
        };
        let stack = question.stack(&mut dice, &way);
        let work = question.work(&mut dice, &way, f64::from(pairs));
        let several = if pairs > 1 {
            format!("{pairs} ")
        } else {
            String::new()
        };
        question.note(pairs > 1, "several pairs");
        let measured = format!("{several}from a to b {work} over {stack}");
        let runs = 9;
        let load = if dice.chance(0.12) {
            question.load(&mut dice, &way)
        } else {
            String::new()
        };
        let _ = match load.as_str() {
            "" => write!(
                question.text,
                "seed {seed};\n\n{network}\n{runs} {measured} across n in simulated;\n"
            ),
            load => write!(
                question.text,
                "seed {seed};\n\n{network}\n{runs} background across n in simulated: {measured} | {load};\n"
            ),
        };
        question
    }

    fn note(&mut self, is: bool, what: &'static str) {
        if is {
            self.traits.push(what);
        }
    }

    /// The narrowest link.
    fn way(&mut self, dice: &mut ScenarioDice) -> DrawnLinkDirection {
        let (rate_bit_s, delay_s) = (dice.log(0.2e6, 1e9), dice.log(0.1e-3, 150e-3));
        let pipe = rate_bit_s * 2.0 * delay_s / 8.0;
        let queue_bytes = dice
            .chance(0.75)
            .then(|| (pipe * dice.log(0.05, 5.0)).max(4.0 * 1500.0));
        let loss = match dice.unit() {
            u if u < 0.68 => String::new(),
            u if u < 0.9 => format!(" loss {:.4}%", 100.0 * dice.log(1e-4, 3e-2)),
            _ => format!(
                " loss gilbert_elliott({:.4}%, {:.2}%)",
                100.0 * dice.log(1e-4, 5e-3),
                100.0 * dice.log(0.1, 0.6)
            ),
        };
        self.note(
            queue_bytes.is_some_and(|bytes| bytes < 0.5 * pipe),
            "small queue",
        );
        self.note(
            queue_bytes.is_some_and(|bytes| bytes >= 0.5 * pipe),
            "queue",
        );
        self.note(loss.contains("gilbert"), "bursts of loss");
        self.note(!loss.is_empty() && !loss.contains("gilbert"), "loss");
        DrawnLinkDirection {
            rate_bit_s,
            delay_s,
            queue_bytes,
            loss,
        }
    }

    fn network(&mut self, dice: &mut ScenarioDice, way: &DrawnLinkDirection) -> String {
        let copies = dice.chance(0.08);
        self.note(copies, "hosts copy");
        let host = if copies {
            format!(
                " {{ copy {:.2} us per packet, {:.5} us per byte; }}",
                dice.log(1.0, 200.0),
                dice.log(1e-4, 0.05)
            )
        } else {
            ";".to_owned()
        };
        let (mut text, last) = if dice.chance(0.4) {
            let wide = DrawnLinkDirection {
                rate_bit_s: way.rate_bit_s * dice.log(1.2, 20.0),
                delay_s: way.delay_s * dice.log(0.05, 1.0),
                queue_bytes: None,
                loss: String::new(),
            };
            (
                format!(
                    "network n {{\n  host a, b{host}\n  router r;\n{}",
                    wide.link("a - r")
                ),
                "r",
            )
        } else {
            (format!("network n {{\n  host a, b{host}\n"), "a")
        };
        if dice.chance(0.12) {
            self.note(true, "narrow way back");
            let back = DrawnLinkDirection {
                rate_bit_s: way.rate_bit_s * dice.log(0.002, 0.5),
                loss: String::new(),
                ..*way
            };
            text += &way.link(&format!("{last} -> b"));
            text += &back.link(&format!("b -> {last}"));
        } else {
            text += &way.link(&format!("{last} - b"));
        }
        text + "}\n"
    }

    fn stack(&mut self, dice: &mut ScenarioDice, way: &DrawnLinkDirection) -> String {
        match dice.unit() {
            u if u < 0.12 => return self.named("udp"),
            u if u < 0.16 => return self.named("blast"),
            u if u < 0.19 => {
                self.note(true, "window");
                return format!("window(n = {})", dice.log(1.0, 64.0) as u32);
            }
            u if u < 0.21 => return self.named("saw"),
            _ => self.note(true, "tcp"),
        }
        let mut options = Vec::new();
        let buffer =
            |dice: &mut ScenarioDice| (way.pipe_bytes() * dice.log(0.1, 3.0)).max(8e3) as u64;
        if dice.chance(0.4) {
            options.push("congestion = reno".to_owned());
        }
        if dice.chance(0.5) {
            options.push("nodelay".to_owned());
        }
        if dice.chance(0.15) {
            self.note(true, "receive buffer");
            options.push(format!("receive_buffer = {} B", buffer(dice)));
        }
        if dice.chance(0.1) {
            self.note(true, "send buffer");
            options.push(format!("send_buffer = {} B", buffer(dice)));
        }
        if options.is_empty() {
            "tcp".to_owned()
        } else {
            format!("tcp({})", options.join(", "))
        }
    }

    fn named(&mut self, stack: &'static str) -> String {
        self.note(true, stack);
        stack.to_owned()
    }

    fn work(&mut self, dice: &mut ScenarioDice, way: &DrawnLinkDirection, pairs: f64) -> String {
        let trip_s = 2.0 * way.delay_s;
        let rate = way.rate_bit_s / pairs;
        let datagrams = self.traits.contains(&"udp");
        match dice.unit() {
            u if u < 0.6 => {
                self.note(true, "bulk");
                let most = (rate * MOST_S / 8.0).min(MOST_BYTES / pairs);
                let unit = dice
                    .log(256.0, if datagrams { 1472.0 } else { 256e3 })
                    .min(most) as u64;
                let count = (dice.log(1e3_f64.min(most), most) / unit as f64).ceil() as u64;
                let name = if dice.chance(0.5) {
                    "bulk_put"
                } else {
                    "bulk_get"
                };
                format!("{name} {unit} B*{}", count.max(1))
            }
            u if u < 0.9 => {
                self.note(true, "calls");
                let most = (rate * 5.0 / 8.0).clamp(2.0, if datagrams { 1472.0 } else { 200e3 });
                let (request, response) = (dice.log(1.0, most) as u64, dice.log(1.0, most) as u64);
                let each_s = trip_s + 8.0 * (request + response) as f64 / rate;
                let count = (dice.log(0.3, 20.0) / each_s).clamp(5.0, 2000.0 / pairs) as u64;
                let pace = if dice.chance(0.25) {
                    self.note(true, "paced");
                    format!(
                        " exponential({:.1} us)",
                        1e6 * each_s * pairs * dice.log(1.2, 10.0)
                    )
                } else {
                    String::new()
                };
                format!("rr {request} B, {response} B*{}{pace}", count.max(5))
            }
            _ => {
                self.note(true, "connections");
                "connect_disconnect 1*50".to_owned()
            }
        }
    }

    fn load(&mut self, dice: &mut ScenarioDice, way: &DrawnLinkDirection) -> String {
        if dice.chance(0.6) {
            self.note(true, "beside tcp");
            "from a to b bulk_put 16 KiB over tcp".to_owned()
        } else {
            self.note(true, "beside udp");
            let interval_us = 1e6 * 8.0 * 1000.0 / (way.rate_bit_s * dice.between(0.1, 0.8));
            format!("from a to b stream 1000 B constant({interval_us:.1} us) over udp")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_question() {
        assert_eq!(Question::draw(7), Question::draw(7));
        assert_ne!(Question::draw(7).text, Question::draw(8).text);
    }
}
