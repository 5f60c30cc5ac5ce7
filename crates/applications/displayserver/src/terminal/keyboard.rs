//! The terminal at which a person sits: its size, and the keys that leave a program or end the input.

use rustix::termios::tcgetwinsize;
use std::io;

/// The key that leaves a program which does not end, when keys are sent as they are typed: Ctrl-], as in other TELNET clients.
pub(super) const LEAVES: u8 = 0x1d;
/// The key that ends the input of a program whose terminal is line-buffered: Ctrl-D.
const END: u8 = 4;

/// Columns and rows of the person's terminal, where it is one.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdin()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The keys that end input which does not come from a terminal: within a line, the first one only submits the line.
pub(super) fn end(last: Option<&u8>) -> &'static [u8] {
    match last {
        None | Some(b'\n') => &[END],
        Some(_) => &[END, END],
    }
}
