//! Follows where requests end in a byte stream to a display, to notice whether a program ended in the middle of one. It checks nothing
//! else.

use stackline_core::error::{Error, Result};
use stackline_display::protocol::{HEAD_BYTES, message_length};

/// The position in the stream so far.
#[derive(Default)]
pub(super) struct DisplayRequestTracker {
    /// The beginning of a request whose length is not known yet.
    head: Vec<u8>,
    /// Bytes of the current request that have not passed yet.
    missing: usize,
}

impl DisplayRequestTracker {
    /// Follows the next bytes.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let wanted = if self.missing > 0 {
                self.missing
            } else {
                HEAD_BYTES - self.head.len()
            };
            let (now, later) = bytes.split_at(wanted.min(bytes.len()));
            bytes = later;
            if self.missing > 0 {
                self.missing -= now.len();
                continue;
            }
            self.head.extend_from_slice(now);
            if self.head.len() == HEAD_BYTES {
                self.missing = message_length(&self.head) - HEAD_BYTES;
                self.head.clear();
            }
        }
    }

    /// # Errors
    /// If a request is incomplete.
    pub(super) fn are_whole(&self) -> Result<()> {
        if self.head.is_empty() && self.missing == 0 {
            return Ok(());
        }
        Err(
            Error::measurement("the program ended in the middle of a request")
                .hint("its output is something other than display requests, or was truncated"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_display::protocol::{DisplayRequest, write_request};

    #[test]
    fn a_request_is_whole_or_not_in_whatever_pieces_it_comes() {
        let mut bytes = Vec::new();
        write_request(
            &mut bytes,
            &DisplayRequest::CreateWindow(1, (8, 8), b"title"),
            false,
        );
        write_request(&mut bytes, &DisplayRequest::EndSymbol, true);
        for size in 1..bytes.len() {
            let mut requests = DisplayRequestTracker::default();
            bytes.chunks(size).for_each(|piece| requests.pass(piece));
            assert!(requests.are_whole().is_ok(), "{size}");
            requests.pass(&bytes[..size]);
            let ends = size == bytes.len() - 4;
            assert_eq!(requests.are_whole().is_ok(), ends, "{size}");
        }
    }
}
