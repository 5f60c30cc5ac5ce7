//! What keeps a run from being carried out, in words for a user.

use std::fmt;

/// Why a run could not be carried out: one sentence with the cause, and what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// One sentence with the cause.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Why an endpoint goes no further.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It was asked to end; not a failure by itself.
    Ended,
    /// It cannot go on.
    Failed(Failure),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What an endpoint's operations return.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// The peer closed or reset the connection at a wrong moment.
pub(crate) fn vanished(when: &str) -> Fault {
    Failure::new(format!("the peer closed the connection {when}"))
        .hint("it ended early, by its `timeout` option or because the two sides of the procedure do not agree")
        .into()
}
