//! One end of a terminal's connection by RFC 854's TELNET, to which several threads write.

use crate::stream::DisplayStream;
use stackline_proto::papers::telnet::Telnet;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read from a terminal's connection at a time.
pub(super) const PIECE: usize = 4096;

/// One end of a TELNET connection. Whichever thread writes, bytes are sent in the order in which they are encoded.
pub(super) struct TerminalTelnetEnd {
    telnet: Mutex<Telnet>,
    writer: Mutex<DisplayStream>,
}

impl TerminalTelnetEnd {
    pub(super) fn new(telnet: Telnet, writer: DisplayStream) -> Arc<Self> {
        Arc::new(Self {
            telnet: Mutex::new(telnet),
            writer: Mutex::new(writer),
        })
    }

    pub(super) fn telnet(&self) -> MutexGuard<'_, Telnet> {
        self.telnet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, DisplayStream> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends data. Returns false if the connection is lost.
    pub(super) fn send(&self, data: &[u8]) -> bool {
        let mut writer = self.writer();
        let bytes = {
            let mut telnet = self.telnet();
            telnet.send(data);
            telnet.output()
        };
        bytes.is_empty() || writer.write_all(&bytes).is_ok()
    }

    /// Sends pending answers to options. Returns false if the connection is lost.
    pub(super) fn flush(&self) -> bool {
        // Without pending output the writer's lock is not taken, so that reading does not wait for a blocked writer.
        !self.telnet().has_output() || self.send(b"")
    }

    pub(super) fn end(&self) {
        self.writer().end();
    }
}
