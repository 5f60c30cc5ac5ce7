//! Texts of the statements that a client prepared, by their names: at most so many of them.

use super::{Found, LONGEST_NAME, name_of};
use crate::left_out::Bound;
use std::collections::BTreeMap;

/// Statements of one connection of which the text is known.
const MOST: usize = Bound::Statements.most();

#[derive(Debug, Default)]
pub(super) struct Texts(BTreeMap<Vec<u8>, String>);

impl Texts {
    pub(super) fn learn(&mut self, statement: &[u8], text: &str, found: &mut Vec<Found>) {
        let statement = cut(statement);
        if self.0.len() < MOST || self.0.contains_key(statement) {
            self.0.insert(statement.to_vec(), text.to_owned());
        } else {
            found.push(Found::LeftOut(Bound::Statements, 1));
        }
    }

    pub(super) fn forget(&mut self, statement: &[u8]) {
        self.0.remove(cut(statement));
    }

    /// The text of a statement; of one that is not known, its name.
    pub(super) fn of(&self, statement: &[u8]) -> String {
        let statement = cut(statement);
        self.0.get(statement).cloned().unwrap_or_else(|| name_of(&[b"statement ", statement].concat()))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn cut(statement: &[u8]) -> &[u8] {
    &statement[..statement.len().min(LONGEST_NAME)]
}
