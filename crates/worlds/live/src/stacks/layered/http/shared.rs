//! HTTP/2 and gRPC for several pairs on one connection (`streams = N`): each request names its pair, in a field. A pair joins a connection
//! once, by a request that lasts as long as it is there.

use super::driver::{HttpDriver, SharedHttpHandle};
use super::initiator::HttpInitiator;
use super::opening::{Http2Sender, OpenedHttp, WINDOWS, open_http2};
use super::responder::{
    ArrivedRequest, Http2PairRequests, HttpResponder, ServedHttp, serve, settings_below,
};
use super::shared_client::{SharedHttpClient, SharedHttpOpener};
use super::style::HttpStyle;
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::stacks::connection_group::GroupMember;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection, LiveListener};
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::http_exchange::{HttpExchangeKind, named_pair};
use crate::stacks::layered::stack::{LayeredStack, WireConnector, WireListener};
use crate::stacks::layered::wire::LayeredWire;
use crate::stacks::pair_queues::{PairReceivers, pair_queues};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use stackline_core::plan::Stack;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use tokio::sync::{mpsc, oneshot};

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parameters of what a group has in common, of which the group is no part: every connection begins with the token.
fn of_the_group(parameters: &LiveConnectParameters, member: &GroupMember) -> LiveConnectParameters {
    LiveConnectParameters {
        carries_data: true,
        replica: member.group_number(),
        member: None,
        ..parameters.clone()
    }
}

/// The responder's side of a pair.
pub(super) fn listen(
    style: HttpStyle,
    protocol: &LayeredStack,
    parameters: &LiveConnectParameters,
    member: &GroupMember,
) -> Result<Box<dyn LiveListener>> {
    let shared = member.common(|| {
        let (senders, arrivals) = pair_queues(usize::from(member.members()));
        let wires = WireListener::new(protocol, &of_the_group(parameters, member))?;
        Ok(SharedHttpServer {
            style,
            address: wires.address(),
            wires: Mutex::new(wires),
            runtime: EndpointRuntime::new()?,
            senders: Arc::new(senders),
            arrivals,
            last: Mutex::default(),
            accepted: AtomicU64::new(0),
            flags: OnceLock::new(),
        })
    })?;
    let member = member.number();
    Ok(Box::new(SharedHttpListener {
        arrivals: shared.arrivals.of_listener(member)?,
        shared,
        member,
    }))
}

/// The initiator's side of a pair.
pub(super) fn connector(
    style: HttpStyle,
    protocol: &LayeredStack,
    parameters: &LiveConnectParameters,
    address: &str,
    member: &GroupMember,
) -> Result<Box<dyn Connector>> {
    let shared = member.common(|| {
        let wires = WireConnector::new(protocol, &of_the_group(parameters, member), address)?;
        SharedHttpClient::new(GroupOpener(wires))
    })?;
    Ok(Box::new(SharedHttpConnector {
        style,
        shared,
        member: member.number(),
    }))
}

/// A connection as a pair of the responder gets it, when its peer has joined.
struct AcceptedHttp {
    handle: SharedHttpHandle,
    below: BTreeMap<String, String>,
    requests: Http2PairRequests,
}

/// The responder's socket of a group, and its connections.
struct SharedHttpServer {
    style: HttpStyle,
    address: String,
    /// Held by the pair that accepts for all.
    wires: Mutex<WireListener>,
    runtime: EndpointRuntime,
    /// Where the connections of each pair go, and what the pairs take.
    senders: Arc<Vec<mpsc::Sender<AcceptedHttp>>>,
    arrivals: PairReceivers<AcceptedHttp>,
    /// The connection that was accepted last.
    last: Mutex<Option<SharedHttpHandle>>,
    /// How many connections were accepted.
    accepted: AtomicU64,
    /// Those of the job, once there is a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

impl SharedHttpServer {
    /// The connection that was accepted last, unless it has ended.
    fn current(&self) -> Option<SharedHttpHandle> {
        let last = locked(&self.last).clone();
        last.filter(|last| !last.has_ended())
    }

    /// The next connection that the peer of a pair has joined.
    fn accept(
        &self,
        arrivals: &mut mpsc::Receiver<AcceptedHttp>,
        buffers: &LiveThreadBuffers,
    ) -> Result<AcceptedHttp> {
        loop {
            let seen = self.accepted.load(Ordering::Acquire);
            let current = self.current();
            // It may have come on a connection that has ended since: what that brought was handed on before.
            if let Ok(arrived) = arrivals.try_recv() {
                return Ok(arrived);
            }
            if let Some(current) = current {
                let mut ended = pin!(current.ended());
                let wait = poll_fn(|context| match arrivals.poll_recv(context) {
                    Poll::Ready(arrived) => Poll::Ready(arrived),
                    Poll::Pending => ended.as_mut().poll(context).map(|()| None),
                });
                if let Some(arrived) = self.runtime.run(&buffers.flags, wait)? {
                    return Ok(arrived);
                }
                continue;
            }
            let mut wires = locked(&self.wires);
            // Another pair may have accepted a connection meanwhile, on which this one's peer has come and gone.
            if self.accepted.load(Ordering::Acquire) == seen {
                buffers.flags.interrupted()?;
                wires.accept(buffers, |wire, stack| self.serve(wire, stack))?;
                let _ = self.flags.set(Arc::clone(&buffers.flags));
            }
        }
    }

    /// Serves a connection, and gives each pair its requests.
    fn serve(&self, wire: LayeredWire, stack: &Stack) -> Result<()> {
        let driver = HttpDriver::in_runtime(wire.shared(), &self.runtime)?;
        let handle = driver.handle();
        let desk = Http2RequestDesk::new(
            self.style,
            &self.senders,
            handle.clone(),
            served_settings(self.style, &wire, stack),
        );
        let service = service_fn(move |request: Request<Incoming>| {
            let (answer, answered) = oneshot::channel();
            desk.hand_on(ArrivedRequest { request, answer });
            answered
        });
        serve(self.style, driver, wire, stack, service)?;
        *locked(&self.last) = handle;
        self.accepted.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// The settings of the responder's side of a connection.
fn served_settings(
    style: HttpStyle,
    wire: &LayeredWire,
    stack: &Stack,
) -> BTreeMap<String, String> {
    let mut settings = settings_below(style, wire, stack);
    settings.extend(streams_setting(stack));
    settings
}

/// How many pairs share a connection, as a setting in force.
fn streams_setting(stack: &Stack) -> Option<(String, String)> {
    let streams = stack.number("streams")?;
    Some(("streams".into(), streams.to_string()))
}

impl Drop for SharedHttpServer {
    fn drop(&mut self) {
        if let Some(last) = &*locked(&self.last) {
            self.runtime.leave(self.flags.get(), last.ended());
        }
    }
}

/// Hands the requests of a connection to its pairs.
struct Http2RequestDesk {
    style: HttpStyle,
    arrivals: Arc<Vec<mpsc::Sender<AcceptedHttp>>>,
    handle: Option<SharedHttpHandle>,
    below: BTreeMap<String, String>,
    senders: Vec<mpsc::Sender<ArrivedRequest>>,
    /// Where the requests of each pair come from, until it joins.
    receivers: PairReceivers<ArrivedRequest>,
}

impl Http2RequestDesk {
    fn new(
        style: HttpStyle,
        arrivals: &Arc<Vec<mpsc::Sender<AcceptedHttp>>>,
        handle: Option<SharedHttpHandle>,
        below: BTreeMap<String, String>,
    ) -> Self {
        let (senders, receivers) = pair_queues(arrivals.len());
        Self {
            style,
            arrivals: Arc::clone(arrivals),
            handle,
            below,
            senders,
            receivers,
        }
    }

    /// Hands on a request; one that names no pair, or one of a pair that has ended, is dropped, which resets its stream.
    fn hand_on(&self, arrived: ArrivedRequest) {
        let Some(pair) = named_pair(arrived.request.headers()) else {
            return;
        };
        if self.style.kind_of(&arrived.request) != Some(HttpExchangeKind::Join) {
            if let Some(sender) = self.senders.get(pair) {
                let _ = sender.try_send(arrived);
            }
            return;
        }
        let receiver = self.receivers.take(pair);
        if let (Some(handle), Some(requests)) = (&self.handle, receiver) {
            let accepted = AcceptedHttp {
                handle: handle.clone(),
                below: self.below.clone(),
                requests: Http2PairRequests::new(requests, arrived),
            };
            let _ = self.arrivals[pair].try_send(accepted);
        }
    }
}

/// A pair of the responder.
struct SharedHttpListener {
    arrivals: mpsc::Receiver<AcceptedHttp>,
    shared: Arc<SharedHttpServer>,
    member: u16,
}

impl LiveListener for SharedHttpListener {
    fn address(&self) -> String {
        self.shared.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let accepted = self.shared.accept(&mut self.arrivals, buffers)?;
        let served = ServedHttp {
            driver: accepted.handle.driver(&self.shared.runtime, &buffers.flags),
            below: accepted.below,
        };
        // The first pair of the group reports their connection.
        let reports = self.member == 0;
        let (style, requests) = (self.shared.style, accepted.requests);
        Ok(Box::new(HttpResponder::sharing(
            style, served, requests, reports,
        )))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        // The first pair of the group reports their connections.
        match self.member {
            0 => locked(&self.shared.wires).counts(),
            _ => BTreeMap::new(),
        }
    }
}

/// Opens the connections of a group: the token goes before the protocol's first bytes.
struct GroupOpener(WireConnector);

impl SharedHttpOpener for GroupOpener {
    const REPLACES: bool = false;

    fn open(
        &mut self,
        runtime: &EndpointRuntime,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<OpenedHttp<Http2Sender>> {
        let mut wire = self.0.connect(flags)?;
        let introduced = std::io::Write::flush(&mut wire);
        introduced.map_err(|e| wire.shared().failure("send", &e))?;
        let driver = HttpDriver::in_runtime(wire.shared(), runtime)?;
        let mut opened = open_http2(driver, wire, Some(WINDOWS.or_written(&self.0.stack)))?;
        opened.below.extend(streams_setting(&self.0.stack));
        Ok(opened)
    }
}

/// A pair of the initiator.
struct SharedHttpConnector {
    style: HttpStyle,
    shared: Arc<SharedHttpClient<GroupOpener>>,
    member: u16,
}

impl Connector for SharedHttpConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (opened, usage) = self.shared.connect(self.member, &buffers.flags)?;
        let initiator = HttpInitiator::sharing(self.style, opened, self.member, usage)?;
        Ok(Box::new(initiator))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        match self.member {
            0 => self.shared.ask_opener(|opener| opener.0.counts()),
            _ => BTreeMap::new(),
        }
    }
}
