//! The initiator of an association: it opens the file, asks for reading or writing, and releases the association.

use super::association::{FtamAssociation, FtamTransfer};
use crate::buffers::LiveThreadBuffers;
use crate::error::Result;
use crate::stacks::contract::{LiveConnection, connection_vanished};
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_events::scope;
use stackline_proto::papers::ftam::{
    FtamEmptyPdu, FtamMessage, FtamOutcome, FtamOutcomePdu, FtamPdu,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The name of the file.
pub(super) const FILENAME: &str = "stackline";
/// How many actions the groups have, all of which have to succeed.
const OF_A_GROUP: u32 = 2;

pub(super) struct FtamInitiator {
    association: FtamAssociation,
    /// Whether the file is selected and open.
    open: bool,
    transfer: FtamTransfer,
}

impl FtamInitiator {
    pub(super) const fn new(association: FtamAssociation) -> Self {
        Self {
            association,
            open: false,
            transfer: FtamTransfer::Idle,
        }
    }

    /// Carries out a group of actions.
    fn group(&mut self, requests: [FtamPdu; 2], responses: [FtamPdu; 2]) -> Result<()> {
        let within = |begin, [first, second]: [FtamPdu; 2], end| vec![begin, first, second, end];
        let begin = FtamPdu::BeginGroupRequest {
            threshold: OF_A_GROUP,
        };
        let end = FtamPdu::Empty(FtamEmptyPdu::EndGroupRequest);
        self.association.queue_pdus(within(begin, requests, end));
        self.association.flush()?;
        let begun = FtamPdu::Empty(FtamEmptyPdu::BeginGroupResponse);
        let ended = FtamPdu::Empty(FtamEmptyPdu::EndGroupResponse);
        self.association.expect(&within(begun, responses, ended))
    }

    fn open_file(&mut self) -> Result<()> {
        if self.open {
            return Ok(());
        }
        let (outcome, filename) = (FtamOutcome::default(), FILENAME.to_string());
        let select = FtamPdu::SelectRequest {
            filename: filename.clone(),
        };
        let selected = FtamPdu::SelectResponse {
            outcome: outcome.clone(),
            filename,
        };
        let opened = FtamPdu::OpenResponse { outcome };
        self.group([select, FtamPdu::OpenRequest], [selected, opened])?;
        self.open = true;
        Ok(())
    }

    fn close_file(&mut self) -> Result<()> {
        self.end_transfer()?;
        if !self.open {
            return Ok(());
        }
        let deselect = FtamPdu::Empty(FtamEmptyPdu::DeselectRequest);
        let requests = [FtamOutcomePdu::CloseRequest.success(), deselect];
        let responses = [
            FtamOutcomePdu::CloseResponse.success(),
            FtamOutcomePdu::DeselectResponse.success(),
        ];
        self.group(requests, responses)?;
        self.open = false;
        Ok(())
    }

    /// Ends a transfer, if there is one: nothing of it is in transit then.
    fn end_transfer(&mut self) -> Result<()> {
        match self.transfer {
            FtamTransfer::Idle => return Ok(()),
            FtamTransfer::Reading { ended: false } => {
                self.association
                    .expect(&[FtamOutcomePdu::DataEnd.success()])?;
            }
            FtamTransfer::Writing { ended: false } => {
                let end = FtamOutcomePdu::DataEnd.success();
                self.association.queue_pdus(vec![end]);
            }
            FtamTransfer::Reading { ended: true } | FtamTransfer::Writing { ended: true } => {}
        }
        let request = FtamPdu::Empty(FtamEmptyPdu::TransferEndRequest);
        self.association.queue_pdus(vec![request]);
        self.association.flush()?;
        self.await_transfer_end()
    }

    fn await_transfer_end(&mut self) -> Result<()> {
        let response = FtamOutcomePdu::TransferEndResponse.success();
        self.association.expect(&[response])?;
        self.transfer = FtamTransfer::Idle;
        Ok(())
    }

    /// Has a transfer begun with what is sent next.
    fn begin(&mut self, direction: BulkDirection) -> Result<()> {
        self.open_file()?;
        self.end_transfer()?;
        let (request, transfer) = match direction {
            BulkDirection::Get => (FtamPdu::ReadRequest, FtamTransfer::Reading { ended: false }),
            BulkDirection::Put => (
                FtamPdu::WriteRequest,
                FtamTransfer::Writing { ended: false },
            ),
        };
        self.association.queue_pdus(vec![request]);
        self.transfer = transfer;
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        self.close_file()?;
        self.association.queue(&FtamMessage::Finish);
        self.association.flush()?;
        match self.association.message()? {
            FtamMessage::Disconnect => Ok(()),
            _ => Err(self.association.misplaced("F-TERMINATE response")),
        }
    }
}

impl LiveConnection for FtamInitiator {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.association.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if times > 1 && buffers.flags.limit() {
                return Ok(done);
            }
            if self.transfer != (FtamTransfer::Writing { ended: false }) {
                self.begin(BulkDirection::Put)?;
            }
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
        match self.transfer {
            FtamTransfer::Reading { ended: false } => {}
            FtamTransfer::Reading { ended: true } => return Ok(0),
            _ => {
                self.begin(BulkDirection::Get)?;
                self.association.flush()?;
            }
        }
        for done in 0..times {
            match self.association.receive_unit(bytes, buffers)? {
                None => {}
                Some(FtamMessage::Data(pdus)) if pdus == [FtamOutcomePdu::DataEnd.success()] => {
                    self.transfer = FtamTransfer::Reading { ended: true };
                    return Ok(done);
                }
                Some(_) => return Err(self.association.misplaced("F-DATA")),
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
        self.begin(BulkDirection::Put)?;
        self.association
            .queue_behind(FtamOutcomePdu::DataEnd.success());
        self.association
            .queue_behind(FtamPdu::Empty(FtamEmptyPdu::TransferEndRequest));
        self.association.send_unit(request, buffers)?;
        scope::unit_framed();
        self.await_transfer_end()?;
        if self.receive(response, 1, buffers)? == 0 {
            return Err(connection_vanished("before the response arrived"));
        }
        self.end_transfer()?;
        Ok(true)
    }

    fn start_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        self.begin(direction)?;
        self.association.flush()
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Ok(true)
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        self.close_file()
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        if self.transfer == (FtamTransfer::Writing { ended: false }) {
            let end = FtamOutcomePdu::DataEnd.success();
            self.association.queue_pdus(vec![end]);
            self.association.flush()?;
            self.transfer = FtamTransfer::Writing { ended: true };
        }
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        self.release()
    }

    /// Only the initiator of FTAM can release an association, so it does what the other side asks for.
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
