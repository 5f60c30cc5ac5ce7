//! Finds gRPC messages within the data of a stream: a flag byte, a length of four bytes, and the message. Their content is not read.

/// The length of the prefix of a message, in bytes.
const PREFIX: usize = 5;

/// The messages of one side of a stream.
#[derive(Debug, Default)]
pub(super) struct GrpcMessages {
    /// The bytes of the prefix so far.
    prefix: [u8; PREFIX],
    /// How many bytes of it were read.
    held: usize,
    /// How many bytes of the message are still to come.
    left: u32,
}

/// Whether a content type is that of gRPC.
pub(in crate::conversation) fn is_type(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

impl GrpcMessages {
    /// Takes bytes from the offset `at` on; calls `give` with the offset behind each complete message.
    pub(super) fn bytes(&mut self, mut at: u64, mut bytes: &[u8], mut give: impl FnMut(u64)) {
        while !bytes.is_empty() {
            let used = if self.left > 0 {
                self.message(bytes.len())
            } else {
                self.prefix(bytes)
            };
            at += used as u64;
            bytes = &bytes[used..];
            if self.is_between() {
                give(at);
            }
        }
    }

    /// Skips bytes that were not captured; returns whether the message boundaries are still known.
    pub(super) fn unseen(&mut self, at: u64, count: u64, give: impl FnOnce(u64)) -> bool {
        if count > u64::from(self.left) {
            return false;
        }
        self.message(count as usize);
        if count > 0 && self.is_between() {
            give(at + count);
        }
        true
    }

    /// Whether the input is between two messages.
    const fn is_between(&self) -> bool {
        self.left == 0 && self.held == 0
    }

    /// Skips bytes of a message; returns how many.
    fn message(&mut self, bytes: usize) -> usize {
        let used = bytes.min(self.left as usize);
        self.left -= used as u32;
        used
    }

    /// Takes bytes of a prefix; returns how many.
    fn prefix(&mut self, bytes: &[u8]) -> usize {
        let used = bytes.len().min(PREFIX - self.held);
        self.prefix[self.held..self.held + used].copy_from_slice(&bytes[..used]);
        self.held += used;
        if self.held == PREFIX {
            let [_, length @ ..] = self.prefix;
            (self.left, self.held) = (u32::from_be_bytes(length), 0);
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_where_their_lengths_say() {
        let bytes = b"\0\0\0\0\x03abc\0\0\0\0\0\x01\0\0\0\x01d\0\0";
        for piece in 1..bytes.len() {
            let (mut messages, mut ends) = (GrpcMessages::default(), Vec::new());
            for (index, bytes) in bytes.chunks(piece).enumerate() {
                messages.bytes(100 + (index * piece) as u64, bytes, |at| ends.push(at));
            }
            assert_eq!(ends, [108, 113, 119], "in pieces of {piece} bytes");
        }
    }

    #[test]
    fn a_gap_within_a_message_does_no_harm() {
        let (mut messages, mut ends) = (GrpcMessages::default(), Vec::new());
        messages.bytes(0, b"\0\0\0\0\x09abc", |at| ends.push(at));
        assert!(messages.unseen(8, 4, |_| ()));
        assert!(messages.unseen(12, 2, |at| ends.push(at)));
        assert!(!messages.unseen(14, 1, |_| ()));
        assert_eq!(ends, [14]);
    }

    #[test]
    fn types_of_grpc() {
        let is = [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x",
        ]
        .map(|name| is_type(name.as_bytes()));
        assert_eq!(is, [true; 3]);
        assert!(!is_type(b"application/grpc-web") && !is_type(b"text/html"));
    }
}
