//! Answers the clients' requests in a thread beside the data path: descriptions of the network, changes of links, restarts, recordings,
//! reports.

use super::Recorders;
use super::clients::EmulatorClients;
use crate::engine::Handle;
use crate::error::{self, Error, Result};
use crate::link_change_limits::{self, changed_links};
use crate::protocol::{Description, EmulationOpening, EmulatorReply, EmulatorRequest, HostHandle};
use stackline_core::network::Network;
use std::time::Instant;

/// Answers the clients' requests, and knows the state of the network they share.
pub(super) struct EmulatorRequestHandler {
    pub(super) clients: EmulatorClients,
    /// The network, seed and options that the first client opened it with.
    pub(super) opening: EmulationOpening,
    pub(super) host_handles: Vec<HostHandle>,
    /// Controls the data path.
    pub(super) handle: Handle,
    pub(super) recorders: &'static Recorders,
    /// The network as it is now.
    pub(super) network: Network,
    /// When the network was made.
    pub(super) since: Instant,
}

impl EmulatorRequestHandler {
    /// Answers the first client, which opened the network, as soon as frames are forwarded; then all requests until the last client has
    /// gone.
    pub(super) fn run(&mut self, first: u64) {
        if !self.handle.started() {
            return;
        }
        self.clients.uses(first);
        self.clients
            .answer(first, &EmulatorReply::Open(self.host_handles.clone()));
        while let Some((id, request)) = self.clients.next() {
            let answer = self
                .answer(id, request)
                .unwrap_or_else(EmulatorReply::Refused);
            self.clients.answer(id, &answer);
        }
    }

    /// Whether a client asks for the network that is up, with another seed; the seed itself is not compared.
    fn differs_only_in_seed(&self, asked: &EmulationOpening) -> bool {
        (&asked.network, &asked.options) == (&self.opening.network, &self.opening.options)
    }

    /// The network's state for a client, which itself is not counted as one of its leases.
    fn description(&self, asker: u64) -> Description {
        let up = stackline_core::time::Duration::from_seconds(self.since.elapsed().as_secs_f64());
        let (network, kept) = (self.network.clone(), self.clients.kept);
        let set = changed_links(&self.opening.network, &network);
        Description {
            network,
            set,
            kept,
            leases: self.clients.others(asker),
            up,
            seed: self.opening.seed,
        }
    }

    /// Carries out a request. An error is sent to the client as a refusal.
    fn answer(&mut self, id: u64, request: EmulatorRequest) -> Result<EmulatorReply> {
        match request {
            EmulatorRequest::Open(opening) if *opening == self.opening => {
                self.clients.uses(id);
                Ok(EmulatorReply::Open(self.host_handles.clone()))
            }
            EmulatorRequest::Open(opening) if self.differs_only_in_seed(&opening) => {
                let message = format!(
                    "the network {} already exists with a different seed",
                    self.opening.network.name
                );
                let hint = "use the seed of its first program, or wait until all programs on it have exited";
                Err(Error::input(message).hint(hint))
            }
            EmulatorRequest::Open(_) => {
                Err(Error::input("a different network is being emulated here"))
            }
            EmulatorRequest::Restart(seed, record) => {
                let record = record
                    .map(|asked| (self.recorders)(&self.opening.network, &asked))
                    .transpose();
                let record = record.map_err(error::environment)?;
                self.clients.records = record.is_some().then_some(id);
                self.handle
                    .restart(seed, record)
                    .map_err(error::environment)?;
                Ok(EmulatorReply::Restarted)
            }
            EmulatorRequest::EndRecording => {
                self.clients.records = None;
                self.handle.end_recording().map_err(error::environment)?;
                Ok(EmulatorReply::Done)
            }
            EmulatorRequest::Join => Ok(EmulatorReply::Open(self.host_handles.clone())),
            EmulatorRequest::Use => {
                self.clients.uses(id);
                Ok(EmulatorReply::Done)
            }
            EmulatorRequest::Describe => {
                Ok(EmulatorReply::Description(Box::new(self.description(id))))
            }
            EmulatorRequest::Keep(kept) => {
                self.clients.kept = kept;
                Ok(EmulatorReply::Done)
            }
            EmulatorRequest::Change(link, new) => {
                link_change_limits::check_link_change(&self.network, link, &new)?;
                self.handle.change(link, (*new).clone());
                self.network.links[link] = *new;
                Ok(EmulatorReply::Done)
            }
            EmulatorRequest::Report => Ok(EmulatorReply::Report(Box::new(self.handle.report()))),
        }
    }
}
