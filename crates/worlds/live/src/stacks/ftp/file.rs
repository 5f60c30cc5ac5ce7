//! The files of one control connection, one after the other: which way the present one goes, and the connection that it is on.

use super::control::FtpControl;
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnectParameters, LiveConnection};
use crate::stacks::stream::LiveStream;
use crate::stacks::tcp::{self, TcpFlavour};
use socket2::Socket;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use std::sync::Arc;

/// Which way a file goes, and whether its sender has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FtpTransfer {
    Idle,
    /// From the responder.
    Reading {
        ended: bool,
    },
    /// To the responder.
    Writing {
        ended: bool,
    },
}

pub(super) struct FtpFiles {
    pub(super) transfer: FtpTransfer,
    parameters: Arc<LiveConnectParameters>,
    /// The connection of the last file. When both have ended it, it stays until the next one begins, for what the kernel knows of it.
    stream: Option<LiveStream<TcpFlavour>>,
    /// How many there were.
    count: u64,
}

impl FtpFiles {
    pub(super) const fn new(parameters: Arc<LiveConnectParameters>) -> Self {
        Self {
            transfer: FtpTransfer::Idle,
            parameters,
            stream: None,
            count: 0,
        }
    }

    /// What connections for files are opened with.
    pub(super) const fn parameters(&self) -> &Arc<LiveConnectParameters> {
        &self.parameters
    }

    /// Has a file begin on its connection.
    pub(super) fn begin(&mut self, socket: Socket, transfer: FtpTransfer) -> Result<()> {
        self.stream = Some(tcp::stream(socket, &self.parameters)?);
        // The bytes of commands and replies are not among those of files.
        scope::end_byte_count();
        self.transfer = transfer;
        self.count += 1;
        Ok(())
    }

    fn stream(&mut self) -> Result<&mut LiveStream<TcpFlavour>> {
        let missing = || Error::input("data can move while a file does, and none does");
        self.stream.as_mut().ok_or_else(missing)
    }

    pub(super) fn send(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        self.stream()?.send(bytes, times, buffers)
    }

    pub(super) fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        self.stream()?.receive(bytes, times, buffers)
    }

    /// Says that this end sends no more of the file.
    pub(super) fn end_sending(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.stream()?.end_stream(buffers)
    }

    /// Awaits the end of a file that is received, of which nothing may be left, and ends this end's half of the connection.
    pub(super) fn await_end(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let stream = self.stream()?;
        stream.await_disconnect(buffers)?;
        stream.end_stream(buffers)
    }

    /// The state of the transport that carried the data: of one connection, since nothing is kept of those that were before.
    pub(super) fn transport(&self, control: &FtpControl) -> Option<TransportRecord> {
        match (&self.stream, self.count) {
            _ if !self.parameters.carries_data => control.transport(),
            (Some(stream), 1) => stream.transport(),
            _ => None,
        }
    }
}
