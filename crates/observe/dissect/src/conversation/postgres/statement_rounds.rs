//! Tracks what an exchange of PostgreSQL does with a statement, and whether it continues the statement of the exchange before: drivers
//! parse, describe, bind and execute a statement in one round trip or in several, with a Sync or a Flush behind each.

use super::super::RedactedName;
use super::super::statement_texts::StatementTexts;
use super::super::{DissectorEvent, LONGEST_NAME};

/// A message about a statement or a portal (a statement with its parameter values); texts are their names.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatementMessage<'m> {
    Parse(&'m [u8]),
    Bind {
        portal: &'m [u8],
        statement: &'m [u8],
    },
    DescribeStatement(&'m [u8]),
    DescribePortal(&'m [u8]),
    Execute(&'m [u8]),
    CloseStatement(&'m [u8]),
    ClosePortal(&'m [u8]),
    Sync,
}

/// What an exchange, together with those that it continues, has done with its statement.
#[derive(Clone, Debug, Default)]
struct StatementRound {
    /// The number of the exchange.
    exchange: u64,
    /// The name of the statement.
    statement: Option<Vec<u8>>,
    /// The name of the portal.
    portal: Option<Vec<u8>>,
    /// The redacted text of the statement.
    text: RedactedName,
    /// Whether a message of the exchange was seen.
    has_begun: bool,
    is_parsed: bool,
    is_bound: bool,
    is_executed: bool,
    /// Whether its own statement or portal was closed.
    is_closed: bool,
    /// Whether any statement or portal was closed.
    has_closed: bool,
    is_synced: bool,
    /// Whether it continues the exchange before.
    goes_on: bool,
}

impl StatementRound {
    /// Whether this is the name of the exchange's open statement.
    fn is_statement(&self, name: &[u8]) -> bool {
        self.statement.as_deref() == Some(cut(name)) && !self.is_closed
    }

    /// Whether this is the name of the exchange's open portal.
    fn is_portal(&self, name: &[u8]) -> bool {
        self.portal.as_deref() == Some(cut(name)) && !self.is_closed
    }

    /// Whether an exchange that begins with this message continues the statement of this one.
    fn is_continued_by(&self, message: StatementMessage<'_>) -> bool {
        match message {
            StatementMessage::Parse(_) => false,
            StatementMessage::Bind { statement, .. }
            | StatementMessage::DescribeStatement(statement) => {
                !self.is_executed && self.is_statement(statement)
            }
            StatementMessage::DescribePortal(portal) | StatementMessage::Execute(portal) => {
                !self.is_executed && self.is_portal(portal)
            }
            StatementMessage::CloseStatement(statement) => self.is_statement(statement),
            StatementMessage::ClosePortal(portal) => self.is_portal(portal),
            StatementMessage::Sync => self.has_begun && !self.is_synced,
        }
    }
}

/// The statements of the exchange in progress and of the one before it.
#[derive(Debug, Default)]
pub(super) struct StatementRounds {
    open: StatementRound,
    before: StatementRound,
    /// The texts of named portals.
    portals: StatementTexts,
}

impl StatementRounds {
    /// An exchange begins.
    pub(super) fn begin(&mut self, exchange: u64) {
        self.before = std::mem::take(&mut self.open);
        self.open.exchange = exchange;
    }

    /// Whether the exchange in progress has executed its statement, so that another statement is a request of its own.
    pub(super) const fn is_executed(&self) -> bool {
        self.open.is_executed
    }

    /// Whether the exchange in progress continues the one before it.
    pub(super) const fn goes_on(&self) -> bool {
        self.open.goes_on
    }

    /// Takes a message of the exchange in progress, with the text of its statement if it has one. Returns the name that the message gives
    /// to the exchange; empty if it gives none.
    pub(super) fn take(
        &mut self,
        message: StatementMessage<'_>,
        text: &RedactedName,
        found: &mut Vec<DissectorEvent>,
    ) -> RedactedName {
        if !std::mem::replace(&mut self.open.has_begun, true)
            && self.before.is_continued_by(message)
        {
            found.push(DissectorEvent::GoesOn {
                exchange: self.open.exchange,
                of: self.before.exchange,
            });
            let exchange = self.open.exchange;
            self.open = std::mem::take(&mut self.before);
            (self.open.exchange, self.open.goes_on) = (exchange, true);
            self.open.is_synced = false;
        }
        let open = &mut self.open;
        match message {
            StatementMessage::Parse(statement) => {
                open.statement = Some(cut(statement).to_vec());
                open.is_parsed = true;
            }
            StatementMessage::Bind { portal, statement } => {
                open.statement = Some(cut(statement).to_vec());
                open.portal = Some(cut(portal).to_vec());
                open.is_bound = true;
                if !portal.is_empty() {
                    self.portals.learn(portal, text, found);
                }
            }
            StatementMessage::DescribeStatement(statement) => {
                open.statement
                    .get_or_insert_with(|| cut(statement).to_vec());
            }
            StatementMessage::Execute(portal) => {
                open.is_executed = true;
                if !open.is_bound {
                    return self
                        .portals
                        .get(portal)
                        .map_or_else(RedactedName::default, |text| text.behind("FETCH "));
                }
            }
            StatementMessage::CloseStatement(statement) => {
                open.is_closed |= open.is_statement(statement);
                open.has_closed = true;
            }
            StatementMessage::ClosePortal(portal) => {
                open.is_closed |= open.is_portal(portal);
                open.has_closed = true;
                self.portals.forget(portal);
            }
            StatementMessage::DescribePortal(_) => {}
            StatementMessage::Sync => open.is_synced = true,
        }
        if open.text.is_empty() {
            open.text = text.clone();
        }
        match message {
            StatementMessage::Parse(_) | StatementMessage::Bind { .. } => text.clone(),
            _ => RedactedName::default(),
        }
    }

    /// The name of a complete exchange that did not execute its statement: it only prepared, described or closed it. `None` if it
    /// executed one, or continues another exchange.
    pub(super) fn name_unexecuted(&self) -> Option<RedactedName> {
        let open = &self.open;
        let is_known = !open.text.is_empty();
        match () {
            () if open.goes_on || open.is_bound || open.is_executed || !open.has_begun => None,
            () if open.is_parsed && is_known => Some(open.text.behind("PREPARE ")),
            () if open.has_closed => Some(RedactedName::fixed("CLOSE")),
            () if is_known => Some(open.text.behind("DESCRIBE ")),
            () => None,
        }
    }

    /// Forgets all portals, as the server does at the end of a transaction.
    pub(super) fn forget_portals(&mut self) {
        self.portals = StatementTexts::default();
    }
}

/// A name as far as it is remembered.
fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(LONGEST_NAME)]
}
