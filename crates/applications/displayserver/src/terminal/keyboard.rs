//! The terminal a person sits at: how large it is, and the keys that leave a program or end what is typed.

use rustix::termios::tcgetwinsize;
use std::io;

/// What leaves a program that does not end, where keys go as they are typed: Ctrl-], as elsewhere.
pub(super) const LEAVES: u8 = 0x1d;
/// The key that is the end of what is typed, for a program whose terminal gathers lines: Ctrl-D.
const END: u8 = 4;

/// Columns and rows of the person's terminal, where it is one.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stdin()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// The keys that end what was typed where that came from no terminal: within a line the first one hands over the line.
pub(super) fn end(last: Option<&u8>) -> &'static [u8] {
    match last {
        None | Some(b'\n') => &[END],
        Some(_) => &[END, END],
    }
}
