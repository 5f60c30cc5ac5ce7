//! Remembers the texts of prepared statements by their names, up to a limit.

use super::{DissectorEvent, LONGEST_NAME, RedactedName};
use crate::left_out::Bound;
use std::collections::BTreeMap;

/// The most statements of one connection whose texts are remembered.
const MOST: usize = Bound::Statements.most();

/// The texts by statement name.
#[derive(Debug, Default)]
pub(super) struct StatementTexts(BTreeMap<Vec<u8>, RedactedName>);

impl StatementTexts {
    /// Remembers the text of a statement.
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

    /// Forgets a statement.
    pub(super) fn forget(&mut self, statement: &[u8]) {
        self.0.remove(cut(statement));
    }

    /// The text of a statement; if it is unknown, `statement` with the statement's name.
    pub(super) fn name_of(&self, statement: &[u8]) -> RedactedName {
        let statement = cut(statement);
        self.0
            .get(statement)
            .cloned()
            .unwrap_or_else(|| RedactedName::identifier("statement ", statement))
    }

    /// The text of a statement, if it is known.
    pub(super) fn get(&self, statement: &[u8]) -> Option<RedactedName> {
        self.0.get(cut(statement)).cloned()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The name as far as it is remembered.
fn cut(statement: &[u8]) -> &[u8] {
    &statement[..statement.len().min(LONGEST_NAME)]
}
