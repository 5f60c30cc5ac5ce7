//! The networks of questions: one narrow link, what lies before it, and chains of IMPs.

use super::Question;
use stackline_truth::dice::ScenarioDice;

/// One direction of the way.
pub(super) struct DrawnLinkDirection {
    pub(super) rate_bit_s: f64,
    pub(super) delay_s: f64,
    queue: String,
    /// A schedule of the rate, or of the delay, in its place.
    rate: Option<String>,
    delay: Option<String>,
    /// Losses, jitter, duplicates.
    clauses: String,
}

impl DrawnLinkDirection {
    /// Without a queue, and without what packets suffer.
    fn plain(rate_bit_s: f64, delay_s: f64) -> Self {
        Self {
            rate_bit_s,
            delay_s,
            queue: String::new(),
            rate: None,
            delay: None,
            clauses: String::new(),
        }
    }

    pub(super) fn pipe_bytes(&self) -> f64 {
        self.rate_bit_s * 2.0 * self.delay_s / 8.0
    }

    fn link(&self, ends: &str) -> String {
        let rate = self
            .rate
            .clone()
            .unwrap_or_else(|| format!("{:.0} bit/s", self.rate_bit_s));
        let delay = self
            .delay
            .clone()
            .unwrap_or_else(|| format!("{:.0} us", self.delay_s * 1e6));
        format!(
            "  link {ends} {rate} {delay}{}{};\n",
            self.clauses, self.queue
        )
    }
}

impl Question {
    /// The narrowest link.
    pub(super) fn direction(&mut self, dice: &mut ScenarioDice) -> DrawnLinkDirection {
        let (rate_bit_s, delay_s) = (dice.log(0.2e6, 1e9), dice.log(0.1e-3, 150e-3));
        let mut direction = DrawnLinkDirection::plain(rate_bit_s, delay_s);
        direction.queue = self.queue(dice, direction.pipe_bytes());
        direction.clauses = self.losses(dice);
        self.changes(dice, &mut direction);
        self.jitter(dice, &mut direction);
        if dice.chance(0.03) {
            self.note(true, "duplicates");
            direction.clauses += &format!(" duplicate {:.4}%", 100.0 * dice.log(1e-4, 2e-2));
        }
        direction
    }

    fn queue(&mut self, dice: &mut ScenarioDice, pipe: f64) -> String {
        if !dice.chance(0.75) {
            return String::new();
        }
        let bytes = (pipe * dice.log(0.05, 5.0)).max(4.0 * 1500.0);
        self.note(bytes < 0.5 * pipe, "small queue");
        self.note(bytes >= 0.5 * pipe, "queue");
        let discipline = match dice.unit() {
            u if u < 0.80 => "",
            u if u < 0.85 => " codel",
            u if u < 0.90 => " fq_codel",
            u if u < 0.94 => " pie",
            u if u < 0.98 => " red",
            _ => " drop_head",
        };
        self.note(!discipline.is_empty(), "queue discipline");
        let marks = !discipline.is_empty() && discipline != " drop_head" && dice.chance(0.3);
        self.note(marks, "ecn");
        format!(
            " queue {bytes:.0} bytes{discipline}{}",
            if marks { " ecn" } else { "" }
        )
    }

    fn losses(&mut self, dice: &mut ScenarioDice) -> String {
        match dice.unit() {
            u if u < 0.70 => String::new(),
            u if u < 0.88 => {
                self.note(true, "loss");
                format!(" loss {:.4}%", 100.0 * dice.log(1e-4, 3e-2))
            }
            u if u < 0.96 => {
                self.note(true, "bursts of loss");
                format!(
                    " loss gilbert_elliott({:.4}%, {:.2}%)",
                    100.0 * dice.log(1e-4, 5e-3),
                    100.0 * dice.log(0.1, 0.6)
                )
            }
            u if u < 0.98 => {
                self.note(true, "loss schedule");
                let step_s = dice.log(0.2, 20.0);
                format!(
                    " loss schedule(0 s 0%, {:.3} s {:.3}%) every {:.3} s",
                    step_s,
                    100.0 * dice.log(1e-3, 3e-2),
                    2.0 * step_s
                )
            }
            _ => {
                self.note(true, "loss");
                format!(" loss every {}", dice.log(50.0, 5000.0) as u32)
            }
        }
    }

    /// A rate or a delay that changes while the run lasts.
    fn changes(&mut self, dice: &mut ScenarioDice, direction: &mut DrawnLinkDirection) {
        let step_s = dice.log(0.1, 20.0);
        let repeats = if dice.chance(0.7) {
            format!(" every {:.3} s", 2.0 * step_s)
        } else {
            String::new()
        };
        match dice.unit() {
            u if u < 0.05 => {
                self.note(true, "delay schedule");
                let other_us = 1e6 * direction.delay_s * dice.log(0.1, 10.0);
                direction.delay = Some(format!(
                    "schedule(0 s {:.0} us, {step_s:.3} s {other_us:.0} us){repeats}",
                    1e6 * direction.delay_s
                ));
            }
            u if u < 0.09 => {
                self.note(true, "rate schedule");
                let other = direction.rate_bit_s * dice.log(0.2, 2.0);
                direction.rate = Some(format!(
                    "schedule(0 s {:.0} bit/s, {step_s:.3} s {other:.0} bit/s){repeats}",
                    direction.rate_bit_s
                ));
            }
            _ => {}
        }
    }

    fn jitter(&mut self, dice: &mut ScenarioDice, direction: &mut DrawnLinkDirection) {
        if !dice.chance(0.1) {
            return;
        }
        let us = 1e6 * direction.delay_s * dice.log(0.02, 2.0);
        let drawn = match dice.unit() {
            u if u < 0.4 => format!("uniform(0 us, {us:.1} us)"),
            u if u < 0.7 => format!("exponential({us:.1} us)"),
            u if u < 0.85 => format!("normal({us:.1} us, {:.1} us)", us / 3.0),
            _ => format!("lognormal({us:.1} us, {us:.1} us)"),
        };
        let order = dice.chance(0.5);
        self.note(true, if order { "jitter" } else { "reordering" });
        direction.clauses += &format!(" jitter {drawn}{}", if order { "" } else { " reordering" });
    }

    /// Hosts a and b and what is between them, and others that send to b as well.
    pub(super) fn network(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
        others: usize,
    ) -> String {
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
        let mut text = format!("network n {{\n  host a, b{host}\n");
        let last = if others > 0 || dice.chance(0.4) {
            let wide =
                || DrawnLinkDirection::plain(direction.rate_bit_s * 4.0, direction.delay_s * 0.5);
            let near = DrawnLinkDirection::plain(
                direction.rate_bit_s * dice.log(1.2, 20.0),
                direction.delay_s * dice.log(0.05, 1.0),
            );
            text += &format!("  router r;\n{}", near.link("a - r"));
            for other in 1..=others {
                text += &format!(
                    "  host c{other};\n{}",
                    wide().link(&format!("c{other} - r"))
                );
            }
            "r"
        } else {
            "a"
        };
        if dice.chance(0.12) {
            self.note(true, "narrow way back");
            let back = DrawnLinkDirection {
                queue: direction.queue.clone(),
                ..DrawnLinkDirection::plain(
                    direction.rate_bit_s * dice.log(0.002, 0.5),
                    direction.delay_s,
                )
            };
            text += &direction.link(&format!("{last} -> b"));
            text += &back.link(&format!("b -> {last}"));
        } else {
            text += &direction.link(&format!("{last} - b"));
        }
        text + "}\n"
    }

    /// A chain of IMPs between the hosts a and b, with the rate and the delay of all its lines together.
    pub(super) fn imps(&mut self, dice: &mut ScenarioDice) -> (String, DrawnLinkDirection) {
        self.note(true, "imps");
        let lines = dice.log(1.0, 8.0) as usize;
        let mut text = "network n {\n".to_owned();
        let machine = dice.one(&["516", "316", "tip"]).unwrap_or("516");
        for at in 0..=lines {
            text += &format!("  imp I{at} {machine};\n");
        }
        text += "  host a, b;\n  link a - I0 100 kbit/s 0 us;\n";
        let (mut slowest, mut delay_s) = (f64::INFINITY, 0.0);
        for at in 1..=lines {
            let rate: f64 = dice.one(&[19_200.0, 50e3, 50e3, 230.4e3]).unwrap_or(50e3);
            let far_s = dice.log(10e-6, 15e-3);
            (slowest, delay_s) = (rate.min(slowest), delay_s + far_s);
            text += &format!(
                "  link I{} - I{at} {rate:.0} bit/s {:.0} us;\n",
                at - 1,
                far_s * 1e6
            );
        }
        text += &format!("  link I{lines} - b 100 kbit/s 0 us;\n}}\n");
        // Each IMP stores a packet before it sends it on.
        let stored_s = lines as f64 * 1160.0 / slowest;
        (text, DrawnLinkDirection::plain(slowest, delay_s + stored_s))
    }
}
