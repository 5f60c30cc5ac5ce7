//! What events and messages say of packets: the ends of their streams, and why some are not read.

use stackline_dissect::pcapng::CapturePacket;
use stackline_dissect::segment::{DissectedSegment, PacketReadError};
use std::borrow::Cow;
use std::collections::HashMap;

/// Streams whose ends are remembered as texts.
const MOST_STREAMS: usize = 1 << 12;

/// Ends of streams as texts, which are made once: who sends, who receives, and both.
#[derive(Debug, Default)]
pub(super) struct StreamEndTexts {
    by_stream: HashMap<i64, [String; 3]>,
}

impl StreamEndTexts {
    pub(super) fn of(&mut self, stream: i64, segment: &DissectedSegment) -> &[String; 3] {
        // A stream's ends do not change; beyond that many they are made anew.
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

/// Why it is not known what a packet carries.
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
