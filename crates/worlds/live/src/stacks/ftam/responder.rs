//! The responder of an association: each of its operations answers what the initiator asks until its own part has come.

use super::association::{FtamAssociation, FtamTransfer};
use super::initiator::FILENAME;
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_proto::papers::ftam::{
    FtamEmptyPdu, FtamMessage, FtamOutcome, FtamOutcomePdu, FtamPdu,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(super) struct FtamResponder {
    association: FtamAssociation,
    /// Whether the file is selected and open.
    open: bool,
    transfer: FtamTransfer,
    /// Whether no data unit is sent any more: what is asked for ends at once.
    silent: bool,
    /// Whether the initiator has asked for the release.
    released: bool,
}

impl FtamResponder {
    pub(super) const fn new(association: FtamAssociation) -> Self {
        Self {
            association,
            open: false,
            transfer: FtamTransfer::Idle,
            silent: false,
            released: false,
        }
    }

    /// Answers the next message.
    fn serve(&mut self) -> Result<()> {
        let message = self.association.message()?;
        self.answer(message)
    }

    fn answer(&mut self, message: FtamMessage) -> Result<()> {
        match message {
            FtamMessage::Finish if self.transfer == FtamTransfer::Idle => {
                self.released = true;
                Ok(())
            }
            FtamMessage::Data(pdus) => self.act(&pdus),
            _ => Err(self.association.misplaced("a request")),
        }
    }

    /// Carries out the requests of one P-DATA.
    fn act(&mut self, pdus: &[FtamPdu]) -> Result<()> {
        let idle = self.transfer == FtamTransfer::Idle;
        match pdus {
            [
                FtamPdu::BeginGroupRequest { .. },
                FtamPdu::SelectRequest { .. },
                FtamPdu::OpenRequest,
                FtamPdu::Empty(FtamEmptyPdu::EndGroupRequest),
            ] if !self.open => {
                self.open = true;
                let outcome = FtamOutcome::default();
                let selected = FtamPdu::SelectResponse {
                    outcome: outcome.clone(),
                    filename: FILENAME.to_string(),
                };
                self.answer_group([selected, FtamPdu::OpenResponse { outcome }])
            }
            [
                FtamPdu::BeginGroupRequest { .. },
                FtamPdu::Outcome(FtamOutcomePdu::CloseRequest, _),
                FtamPdu::Empty(FtamEmptyPdu::DeselectRequest),
                FtamPdu::Empty(FtamEmptyPdu::EndGroupRequest),
            ] if self.open && idle => {
                self.open = false;
                self.answer_group([
                    FtamOutcomePdu::CloseResponse.success(),
                    FtamOutcomePdu::DeselectResponse.success(),
                ])
            }
            [FtamPdu::ReadRequest] if self.open && idle => {
                self.transfer = FtamTransfer::Reading { ended: false };
                if self.silent { self.end_data() } else { Ok(()) }
            }
            [FtamPdu::WriteRequest] if self.open && idle => {
                self.transfer = FtamTransfer::Writing { ended: false };
                Ok(())
            }
            [FtamPdu::Outcome(FtamOutcomePdu::DataEnd, _)]
                if self.transfer == (FtamTransfer::Writing { ended: false }) =>
            {
                self.transfer = FtamTransfer::Writing { ended: true };
                Ok(())
            }
            [FtamPdu::Empty(FtamEmptyPdu::TransferEndRequest)]
                if matches!(
                    self.transfer,
                    FtamTransfer::Reading { ended: true } | FtamTransfer::Writing { ended: true }
                ) =>
            {
                self.transfer = FtamTransfer::Idle;
                let response = FtamOutcomePdu::TransferEndResponse.success();
                self.association.queue_pdus(vec![response]);
                self.association.flush()
            }
            _ => Err(self.association.misplaced("a request of the present state")),
        }
    }

    fn answer_group(&mut self, [first, second]: [FtamPdu; 2]) -> Result<()> {
        let begun = FtamPdu::Empty(FtamEmptyPdu::BeginGroupResponse);
        let ended = FtamPdu::Empty(FtamEmptyPdu::EndGroupResponse);
        self.association
            .queue_pdus(vec![begun, first, second, ended]);
        self.association.flush()
    }

    /// Ends the data that is being read, if there is any.
    fn end_data(&mut self) -> Result<()> {
        if self.transfer == (FtamTransfer::Reading { ended: false }) {
            let end = FtamOutcomePdu::DataEnd.success();
            self.association.queue_pdus(vec![end]);
            self.association.flush()?;
            self.transfer = FtamTransfer::Reading { ended: true };
        }
        Ok(())
    }

    /// Answers until the initiator reads.
    fn await_read(&mut self) -> Result<()> {
        while self.transfer != (FtamTransfer::Reading { ended: false }) {
            if self.released {
                return Err(connection_vanished("while data was in flight"));
            }
            self.serve()?;
        }
        Ok(())
    }

    /// Answers until the transfer is over.
    fn await_transfer_end(&mut self) -> Result<()> {
        while self.transfer != FtamTransfer::Idle {
            self.serve()?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        self.silent = true;
        self.end_data()?;
        while !self.released {
            self.serve()?;
        }
        self.association.queue(&FtamMessage::Disconnect);
        self.association.flush()?;
        self.association.await_close()
    }
}

impl LiveConnection for FtamResponder {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.association.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if times > 1 && buffers.flags.limit() {
                return Ok(done);
            }
            self.await_read()?;
            self.association.send_unit(bytes, buffers)?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        self.end_data()?;
        let mut done = 0;
        while done < times {
            match self.transfer {
                _ if self.released => return Ok(done),
                // The initiator wants to receive as well: it sends no more.
                FtamTransfer::Reading { ended: false } => return Ok(done),
                FtamTransfer::Writing { ended: false } => {
                    match self.association.receive_unit(bytes, buffers)? {
                        None => done += 1,
                        Some(message) => {
                            self.answer(message)?;
                            return Ok(done);
                        }
                    }
                }
                _ => self.serve()?,
            }
        }
        Ok(times)
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        // What was written before the call, by its end.
        if matches!(self.transfer, FtamTransfer::Writing { .. }) {
            self.await_transfer_end()?;
        }
        let came = self.receive(bytes, 1, buffers)? == 1;
        if came {
            self.await_transfer_end()?;
        }
        Ok(came)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.await_read()?;
        self.association
            .queue_behind(FtamOutcomePdu::DataEnd.success());
        self.association.send_unit(bytes, buffers)?;
        self.transfer = FtamTransfer::Reading { ended: true };
        self.await_transfer_end()
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        _: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        loop {
            match (self.transfer, direction) {
                _ if self.released => return Ok(false),
                (FtamTransfer::Reading { ended: false }, BulkDirection::Get)
                | (FtamTransfer::Writing { ended: false }, BulkDirection::Put) => return Ok(true),
                (FtamTransfer::Reading { ended: false }, _)
                | (FtamTransfer::Writing { ended: false }, _) => {
                    return Err(Error::measurement(
                        "the peer moves data the other way: both sides would wait without end",
                    )
                    .hint("let both sides of the procedure agree on the direction"));
                }
                _ => self.serve()?,
            }
        }
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        self.end_data()?;
        while self.open && !self.released {
            self.serve()?;
        }
        Ok(())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.silent = true;
        self.end_data()
    }

    /// Only the initiator of FTAM can release an association, so its request is awaited.
    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        self.release()
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.release()
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.association.transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.association.settings()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.association.addresses()
    }
}
