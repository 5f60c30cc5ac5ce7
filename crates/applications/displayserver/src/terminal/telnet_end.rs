//! One end of a terminal's connection by RFC 854's TELNET, which several threads write to.

use crate::stream::DisplayStream;
use stackline_proto::papers::telnet::Telnet;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a terminal's connection that are read at once.
pub(super) const PIECE: usize = 4096;

/// One end of a connection by RFC 854's TELNET: what is said is in the order in which it is sent, whoever says it.
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

    /// Sends data. False where the connection is lost.
    pub(super) fn send(&self, data: &[u8]) -> bool {
        let mut writer = self.writer();
        let bytes = {
            let mut telnet = self.telnet();
            telnet.send(data);
            telnet.output()
        };
        bytes.is_empty() || writer.write_all(&bytes).is_ok()
    }

    /// Sends what there is to be answered.
    pub(super) fn flush(&self) -> bool {
        // Nothing waits for a reader that nothing is written to.
        !self.telnet().has_output() || self.send(b"")
    }

    pub(super) fn end(&self) {
        self.writer().end();
    }
}
