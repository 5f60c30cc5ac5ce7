//! Texts of the statements that a client prepared, by their names: at most so many of them.

use super::{DissectorEvent, LONGEST_NAME, RedactedName};
use crate::left_out::Bound;
use std::collections::BTreeMap;

/// Statements of one connection of which the text is known.
const MOST: usize = Bound::Statements.most();

#[derive(Debug, Default)]
pub(super) struct StatementTexts(BTreeMap<Vec<u8>, RedactedName>);

impl StatementTexts {
    pub(super) fn learn(
        &mut self,
        statement: &[u8],
        text: &RedactedName,
        found: &mut Vec<DissectorEvent>,
    ) {
        let statement = cut(statement);
        if self.0.len() < MOST || self.0.contains_key(statement) {
            self.0.insert(statement.to_vec(), text.clone());
        } else {
            found.push(DissectorEvent::LeftOut(Bound::Statements, 1));
        }
    }

    pub(super) fn forget(&mut self, statement: &[u8]) {
        self.0.remove(cut(statement));
    }

    /// The text of a statement; of one that is not known, its name.
    pub(super) fn of(&self, statement: &[u8]) -> RedactedName {
        let statement = cut(statement);
        self.0
            .get(statement)
            .cloned()
            .unwrap_or_else(|| RedactedName::identifier("statement ", statement))
    }

    /// The same, where it is known.
    pub(super) fn get(&self, statement: &[u8]) -> Option<RedactedName> {
        self.0.get(cut(statement)).cloned()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn cut(statement: &[u8]) -> &[u8] {
    &statement[..statement.len().min(LONGEST_NAME)]
}
