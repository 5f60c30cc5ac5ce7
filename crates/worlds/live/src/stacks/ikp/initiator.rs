//! The initiator of the stack `ikp`: a client, each of whose operations sends one message and waits for the reply.

use super::failure::{from_transfer, read_failure, write_failure};
use super::options::settings;
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use crate::stacks::ip_options;
use socket2::SockRef;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_proto::ikp::stack::{IkpReplyContent, Verb};
use stackline_transfer::carrier::PacketCarrier;
use stackline_transfer::ikp::{self, IkpClientSegments, IkpUdpClient};
use std::collections::BTreeMap;

/// The initiator's end of a connection.
pub(super) struct Initiator {
    client: IkpUdpClient,
    /// Sequence number of the last message, from 1.
    number: u64,
    /// Whether the responder has replied that no more data units come.
    over: bool,
}

impl Initiator {
    pub(super) const fn new(client: IkpUdpClient) -> Self {
        Self {
            client,
            number: 0,
            over: false,
        }
    }

    /// Sends a message, which grants the server access to these segments of memory, and returns the reply.
    fn ask(&mut self, verb: Verb, segments: IkpClientSegments<'_>) -> Result<IkpReplyContent> {
        self.number += 1;
        let mut reply = [0; 1];
        let bytes = self
            .client
            .send(&verb.message(self.number), segments, &mut reply)
            .map_err(from_transfer)?;
        let answer = IkpReplyContent::read(&reply[..bytes]);
        answer.ok_or_else(|| Error::measurement("the peer's reply is malformed"))
    }

    /// Ends the connection. A peer that does not answer counts as having ended it too, because the last reply may be lost for good.
    fn part(&mut self, verb: Verb) -> Result<()> {
        self.number += 1;
        match self.client.send(
            &verb.message(self.number),
            IkpClientSegments::none(),
            &mut [],
        ) {
            Ok(_) | Err(ikp::IkpTransferError::Nobody | ikp::IkpTransferError::Silent(_)) => Ok(()),
            Err(error) => Err(from_transfer(error)),
        }
    }
}

impl LiveConnection for Initiator {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if times > 1 && buffers.flags.limit() {
                return Ok(done);
            }
            let unit = buffers
                .source
                .outgoing(bytes)
                .map_err(|error| read_failure(&error))?;
            self.ask(Verb::Put, IkpClientSegments::readable(unit))?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        for done in 0..times {
            if self.over {
                return Ok(done);
            }
            let room = buffers.destination.room(bytes);
            match self.ask(Verb::Get, IkpClientSegments::writable(room))? {
                IkpReplyContent::Done => buffers
                    .arrived(bytes)
                    .map_err(|error| write_failure(&error))?,
                IkpReplyContent::Over => {
                    self.over = true;
                    return Ok(done);
                }
            }
        }
        Ok(times)
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let readable = buffers
            .source
            .outgoing(request)
            .map_err(|error| read_failure(&error))?;
        let writable = buffers.destination.room(response);
        match self.ask(Verb::Call, IkpClientSegments { readable, writable })? {
            IkpReplyContent::Done => buffers
                .arrived(response)
                .map(|()| true)
                .map_err(|error| write_failure(&error)),
            IkpReplyContent::Over => Err(connection_vanished("before the response arrived")),
        }
    }

    fn confirms(&self) -> bool {
        true
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Ok(!self.over)
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.ask(Verb::End, IkpClientSegments::none()).map(drop)
    }

    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        self.part(Verb::Close)
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.part(Verb::Closing)
    }

    fn transport(&self) -> Option<TransportRecord> {
        let (counters, patience) = (self.client.counters(), self.client.rtt());
        Some(TransportRecord {
            retransmits: counters.repeated,
            rtt_s: patience.smoothed().unwrap_or_default().seconds(),
            rtt_var_s: Some(patience.variation().seconds()),
            mss_bytes: u64::from(self.client.options().packet),
            ..TransportRecord::default()
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = settings(self.client.options());
        let facts = self.client.carrier().facts();
        settings.insert(
            "receive_buffer".into(),
            format!("{} B", facts.receive_buffer),
        );
        settings.extend(ip_options::marks(&SockRef::from(self.client.carrier())));
        settings
    }

    fn notes(&self) -> Vec<String> {
        let violations = self.client.counters().violations;
        let note = || format!("packets dropped for exceeding the granted segment: {violations}");
        (violations > 0).then(note).into_iter().collect()
    }
}
