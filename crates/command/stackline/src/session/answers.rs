//! Lines that a session prints.

use crate::exit::{Error, Exit};
use crate::output;
use serde_json::{Value, json};

/// Prints a line. A client that reads no more ends stdin, so it is not an error when nobody takes the line.
pub(super) fn answer(line: &Value) {
    let _ = output::json(line, false);
}

/// An error as the protocol has it.
pub(super) fn error_json(error: &Error) -> Value {
    json!({
        "message": error.message,
        "hint": error.hint,
        "kind": error.blame,
        "exit_code": Exit::from(error.blame).code(),
    })
}
