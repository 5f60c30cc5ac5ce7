//! Opens and accepts the wires of a pair, or of the pairs that share a connection: TCP, the introduction, and TLS if it is asked for.

use super::wire::{SimLayerWire, WireFarewells, WireLedger};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::stacks::byte_stream::{Got, SimStreamPair, StreamEnd as _};
use crate::stacks::linux_tcp;
use crate::stacks::pair::SimPairRoute;
use crate::stacks::stream::{INTRODUCTION, await_answer};
use crate::stacks::tcp::TcpPair;
use stackline_core::catalogue::OptionValue;
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_proto::tls::{TlsTerms, TlsVersion};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What opens wires.
#[derive(Debug)]
pub(super) struct WireOpener {
    pub(super) tcp: TcpPair,
    tls: Option<TlsTerms>,
    /// Sessions that the initiator can resume.
    sessions: Rc<Cell<u32>>,
    /// Ends that the initiator has left while tickets may come.
    farewells: Rc<WireFarewells>,
    /// By side: how often handshakes came about how.
    counts: [RefCell<BTreeMap<String, u64>>; 2],
    /// Of connections that were dialled and not accepted yet, by their numbers.
    ledgers: RefCell<BTreeMap<u32, Rc<WireLedger>>>,
}

impl WireOpener {
    /// With TLS where `alpn` is the protocol's name within it.
    pub(super) fn new(
        route: SimPairRoute,
        stack: &plan::Stack,
        seed: u64,
        introduces: bool,
        tls: Option<&str>,
    ) -> Self {
        let terms = |alpn: &str| TlsTerms {
            version: TlsVersion::from_stack(stack),
            alpn_bytes: alpn.len() as u64,
            resumes: stack.flag("resume"),
        };
        Self {
            tcp: TcpPair::new(route, &tcp_below(stack), seed, introduces),
            tls: tls.map(terms),
            sessions: Rc::default(),
            farewells: Rc::default(),
            counts: Default::default(),
            ledgers: RefCell::default(),
        }
    }

    /// Lets further endpoints use the connections: by side.
    pub(super) fn shared_with(mut self, sharers: [Vec<u32>; 2]) -> Self {
        self.tcp = self.tcp.shared_with(sharers);
        self
    }

    /// Whether the next connection resumes a session. A ticket of TLS 1.3 is used once (RFC 8446, C.4).
    fn resumes(&self) -> bool {
        let sessions = self.sessions.get();
        if self
            .tls
            .is_some_and(|terms| terms.version == TlsVersion::Tls13)
        {
            self.sessions.set(sessions.saturating_sub(1));
        }
        sessions > 0
    }

    /// Takes what has come at ends that the initiator has left: the tickets of the last connection are those of the next.
    fn take_farewells(&self) {
        let mut kept = self.farewells.take();
        kept.retain(|wire| wire.take_rest());
        self.farewells.borrow_mut().append(&mut kept);
    }

    /// How often handshakes of that side came about how, by name.
    pub(super) fn counts(&self, side: PairSide) -> BTreeMap<String, u64> {
        self.counts[side.index()].borrow().clone()
    }

    /// Opens the next connection.
    ///
    /// # Errors
    /// When it is refused, not answered, or lost while it is opened.
    pub(super) async fn connect(
        &self,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Rc<SimLayerWire>> {
        let introduces = self.tcp.introductions().of_next_dialled();
        let end = self.tcp.dial(&context.shared)?;
        let number = end.connection();
        let ledger = WireLedger::new();
        self.ledgers.borrow_mut().insert(number, Rc::clone(&ledger));
        if let Err(error) = await_answer(&end, context, introduces).await {
            end.abandon(&context.shared);
            return Err(error);
        }
        context.trace(|line, at| line.tcp_is_open(at));
        self.take_farewells();
        ledger.resumed.set(self.resumes());
        let wire = self.wire(end, &ledger, PairSide::Initiator, context);
        if introduces {
            wire.introduces();
        }
        self.shake_hands(&wire, PairSide::Initiator, context)
            .await?;
        if let Some((version, handshake)) = wire.agreed() {
            context.trace(|line, at| line.tls_is_open(at, version, handshake));
        }
        Ok(wire)
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// When its peer leaves before it is open.
    pub(super) async fn accept(
        &self,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Rc<SimLayerWire>> {
        let introductions = self.tcp.introductions();
        let introduces = introductions.of_next_accepted();
        let end = context.until("a connection", || self.tcp.accept()).await?;
        let number = end.connection();
        let ledger = self.ledgers.borrow_mut().remove(&number);
        let ledger = ledger.ok_or_else(|| connection_vanished("before it was accepted"))?;
        let wire = self.wire(end, &ledger, PairSide::Responder, context);
        let mut left = if introduces { INTRODUCTION } else { 0 };
        let step = || match wire.read_introduction(left) {
            _ if left == 0 => Some(true),
            Got::Bytes(bytes) => {
                left -= bytes as u64;
                (left == 0).then_some(true)
            }
            Got::Nothing => None,
            Got::End | Got::Broken => Some(false),
        };
        if introduces && !context.until("the introduction", step).await? {
            return Err(connection_vanished("before it had introduced itself"));
        }
        introductions.accepted.set(true);
        self.shake_hands(&wire, PairSide::Responder, context)
            .await?;
        Ok(wire)
    }

    fn wire(
        &self,
        end: Rc<crate::stacks::tcp::SimTcpEnd>,
        ledger: &Rc<WireLedger>,
        side: PairSide,
        context: &Rc<SimEndpointContext>,
    ) -> Rc<SimLayerWire> {
        let shared = &context.shared;
        SimLayerWire::new(
            end,
            ledger,
            side,
            shared,
            self.tls,
            &self.sessions,
            &self.farewells,
        )
    }

    async fn shake_hands(
        &self,
        wire: &SimLayerWire,
        side: PairSide,
        context: &SimEndpointContext,
    ) -> Result<()> {
        if self.tls.is_none() {
            return Ok(());
        }
        let step = || match wire.shake_hands() {
            Some(true) => Some(true),
            Some(false) => None,
            None => Some(false),
        };
        match context.until("the TLS handshake", step).await? {
            true => {
                if let Some(outcome) = wire.handshake() {
                    let mut counts = self.counts[side.index()].borrow_mut();
                    *counts.entry(outcome.count_name().into()).or_default() += 1;
                }
                Ok(())
            }
            false => Err(match wire.why_broken() {
                Some(why) => Error::measurement(format!("the TLS handshake failed: {why}")),
                None => connection_vanished("in the TLS handshake"),
            }),
        }
    }
}

/// The options of the TCP below: those of the stack that TCP has, and no Nagle's algorithm unless it is asked for.
fn tcp_below(stack: &plan::Stack) -> plan::Stack {
    let options = stack.options.iter();
    let known = options.filter(|(name, _)| linux_tcp::TABLE.option(name).is_some());
    let mut options: BTreeMap<_, _> = known
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !stack.flag("nagle") {
        options.insert("nodelay".into(), OptionValue::Set);
    }
    linux_tcp::TABLE.stack(options)
}
