//! Parses IMPs (packet switches of the ARPANET) of a network: `imp BBN 516 { reassembly 10; }`.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{ImpItem, SwitchItem, Word};
use alloc::vec::Vec;

const NAME: &str = "expected an IMP name";
const MACHINE: &str = "expected the machine: `516`, `316`, `tip` or `free`";
const MACHINES: &[&str] = &["516", "316", "tip", "free"];
const STATEMENTS: &[&str] = &[
    "reassembly",
    "window",
    "channels",
    "buffers",
    "routing",
    "reservation",
    "splitting",
];
const EXPECTED: &str = "expected `reassembly`, `window`, `channels`, `buffers`, `routing`, `reservation` or `splitting`";

impl Parser<'_, '_> {
    /// Reads the IMPs of one declaration, behind the word `imp`: several names share the machine and the properties.
    pub(super) fn imps(&mut self) -> Parsed<Vec<SwitchItem>> {
        let names = self.names(NAME)?;
        let machine = self.machine()?;
        let mut imp = ImpItem::new(machine);
        self.properties(&mut |parser| parser.imp_statement(&mut imp))?;
        let one = |name| SwitchItem {
            name,
            imp: Some(imp.clone()),
            ..SwitchItem::default()
        };
        Ok(names.into_iter().map(one).collect())
    }

    /// Reads the machine: `516` and `316` are numbers, `tip` and `free` are words.
    fn machine(&mut self) -> Parsed<Word> {
        let text = match self.kind() {
            TokenKind::Number(_) => self.text(0).into(),
            _ => self.folded(0),
        };
        if !MACHINES.contains(&text.as_str()) {
            return Err(self.unexpected(MACHINE, MACHINES));
        }
        let role = if matches!(self.kind(), TokenKind::Number(_)) {
            TokenRole::Plain
        } else {
            TokenRole::Keyword
        };
        Ok(Word {
            text,
            span: self.take(role),
        })
    }

    fn imp_statement(&mut self, imp: &mut ImpItem) -> Parsed<()> {
        let word = self.folded(0);
        if !STATEMENTS.contains(&word.as_str()) {
            return Err(self.unexpected(EXPECTED, STATEMENTS));
        }
        let at = (word.as_str(), self.take(TokenRole::Keyword));
        match at.0 {
            "reassembly" | "window" | "channels" | "buffers" => {
                let count = self.figure(ExpectedUnit::Plain, "expected a number")?;
                let place = match at.0 {
                    "reassembly" => &mut imp.reassembly,
                    "window" => &mut imp.window,
                    "buffers" => &mut imp.buffers,
                    _ => &mut imp.channels,
                };
                self.set(place, count, at, "imp");
            }
            "routing" => {
                let is_september =
                    self.either("january", "september", "expected `january` or `september`")?;
                self.set(&mut imp.september, is_september, at, "imp");
            }
            _ => {
                let is_on = self.either("off", "on", "expected `on` or `off`")?;
                let place = if at.0 == "splitting" {
                    &mut imp.splitting
                } else {
                    &mut imp.reservation
                };
                self.set(place, is_on, at, "imp");
            }
        }
        self.statement_end("expected `;`", &[])
    }

    /// Reads one of two words, and returns whether it is the second, `yes`.
    pub(super) fn either(
        &mut self,
        no: &'static str,
        yes: &'static str,
        expected: &'static str,
    ) -> Parsed<bool> {
        if !self.is_word(0, &[no, yes]) {
            return Err(self.unexpected(expected, &[no, yes]));
        }
        let is_yes = self.folded(0) == yes;
        self.take(TokenRole::Keyword);
        Ok(is_yes)
    }
}

impl ImpItem {
    /// An IMP of which only the machine is written.
    const fn new(machine: Word) -> Self {
        Self {
            machine,
            reassembly: None,
            window: None,
            channels: None,
            buffers: None,
            september: None,
            reservation: None,
            splitting: None,
        }
    }
}
