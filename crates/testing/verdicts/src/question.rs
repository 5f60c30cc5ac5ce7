//! Specifications over the whole space of the language, to be predicted: rates, distances, queues and their disciplines, losses, jitter,
//! schedules, stacks, sizes, service times, pairs and clients, each as likely in every order of magnitude. It draws and writes; what they
//! come to is for others to find out.

mod links;
mod work;

use links::DrawnLinkDirection;
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

/// Runs of each.
pub const RUNS: u32 = 9;

impl Question {
    /// The question of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut dice = ScenarioDice::new(seed, "space");
        let mut question = Self {
            seed,
            text: String::new(),
            traits: Vec::new(),
        };
        if dice.chance(0.04) {
            question.across_imps(&mut dice);
        } else {
            question.across_links(&mut dice);
        }
        question
    }

    fn note(&mut self, is: bool, what: &'static str) {
        if is {
            self.traits.push(what);
        }
    }

    fn across_imps(&mut self, dice: &mut ScenarioDice) {
        let (network, direction) = self.imps(dice);
        let work = self.work(dice, &direction, 1.0);
        let stack = match dice.unit() {
            u if u < 0.4 => "ncp".to_owned(),
            _ => format!("ncp(links = {})", dice.log(1.0, 9.0) as u32),
        };
        let measured = format!("from a to b {} over {stack}", work.text);
        self.write(work.procedures, &network, &measured, &[]);
    }

    fn across_links(&mut self, dice: &mut ScenarioDice) {
        let direction = self.direction(dice);
        let others = if dice.chance(0.08) {
            dice.log(1.0, 6.0) as usize
        } else {
            0
        };
        self.note(others > 0, "several clients");
        let network = self.network(dice, &direction, others);
        let pairs = if others == 0 && dice.chance(0.18) {
            dice.log(2.0, 12.0) as u32
        } else {
            1
        };
        self.note(pairs > 1, "several pairs");
        let stack = self.stack(dice, &direction);
        let work = self.work(dice, &direction, f64::from(pairs) + others as f64);
        let several = if pairs > 1 {
            format!("{pairs} ")
        } else {
            String::new()
        };
        let measured = format!("{several}from a to b {} over {stack}", work.text);
        let beside = if others > 0 {
            self.others(dice, &direction, [&work.text, &stack], others)
        } else if dice.chance(0.12) {
            vec![self.load(dice, &direction)]
        } else {
            Vec::new()
        };
        self.write(work.procedures, &network, &measured, &beside);
    }

    /// What further clients do: the same, or calls.
    fn others(
        &mut self,
        dice: &mut ScenarioDice,
        direction: &DrawnLinkDirection,
        [work, stack]: [&str; 2],
        others: usize,
    ) -> Vec<String> {
        let alike = dice.chance(0.7);
        let one = |other: usize| {
            let from = format!("from c{other} to b");
            if alike {
                format!("{from} {work} over {stack}")
            } else {
                let bytes = (direction.rate_bit_s * 0.05 / 8.0).clamp(10.0, 50e3) as u32;
                format!("{from} rr 100 B, {bytes} B*100 over tcp")
            }
        };
        (1..=others).map(one).collect()
    }

    fn write(&mut self, procedures: &str, network: &str, measured: &str, beside: &[String]) {
        let seed = self.seed;
        let _ = write!(self.text, "seed {seed};\n\n{procedures}{network}\n{RUNS} ");
        let _ = match beside {
            [] => writeln!(self.text, "{measured} across n in simulated;"),
            all => {
                let composer = if self.traits.contains(&"several clients") {
                    "parallel"
                } else {
                    "background"
                };
                let all = all.join(" | ");
                writeln!(
                    self.text,
                    "{composer} across n in simulated: {measured} | {all};"
                )
            }
        };
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
