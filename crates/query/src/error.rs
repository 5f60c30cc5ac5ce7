//! Why a query has no answer: what is wrong, what helps, and the exit code.

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) message: String,
    pub(crate) hint: String,
    /// 1 the query failed, 2 the input is wrong.
    pub(crate) code: u8,
}

impl Error {
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            code: 2,
        }
    }
}
