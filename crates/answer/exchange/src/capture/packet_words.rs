//! Texts about packets: the addresses of their streams, and the reasons why some are not read.

use stackline_dissect::pcapng::CapturePacket;
use stackline_dissect::segment::{DissectedSegment, PacketReadError};
use std::borrow::Cow;
use std::collections::HashMap;

/// The most streams whose addresses are cached as texts.
const MOST_STREAMS: usize = 1 << 12;

/// A cache of addresses as texts, by stream: the sender, the receiver, and both.
#[derive(Debug, Default)]
pub(super) struct StreamEndTexts {
    by_stream: HashMap<i64, [String; 3]>,
}

impl StreamEndTexts {
    /// The texts of a stream.
    pub(super) fn texts_of(&mut self, stream: i64, segment: &DissectedSegment) -> &[String; 3] {
        // The ends of a stream do not change, so the cache can be cleared when it is full.
        if self.by_stream.len() >= MOST_STREAMS && !self.by_stream.contains_key(&stream) {
            self.by_stream.clear();
        }
        self.by_stream.entry(stream).or_insert_with(|| {
            let [from, to] = [segment.ends.0.to_string(), segment.ends.1.to_string()];
            let both = format!("{from}>{to}");
            [from, to, both]
        })
    }
}

/// The reason why a packet was not read, as the end of `packets not read because they ...`.
pub(super) fn why_unread(packet: &CapturePacket<'_>) -> Cow<'static, str> {
    let why = match packet.unread() {
        Some(PacketReadError::Link) => {
            let number = packet.link_number();
            return format!(
                "have an unsupported link type (number {number} in tcpdump.org/linktypes.html)"
            )
            .into();
        }
        Some(PacketReadError::NotIp) => "do not carry IP",
        Some(PacketReadError::Fragment) => "are IP fragments",
        Some(PacketReadError::Protocol) => "carry neither TCP nor UDP",
        Some(PacketReadError::CutOff) | None => "have truncated or damaged headers",
    };
    why.into()
}
