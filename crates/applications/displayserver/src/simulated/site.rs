//! A site: one simulated application, with the programs client, agents and display on their hosts. The programs wait for messages of one
//! another and for their processors, until all trials are over. An agent is a program that passes requests and answers between a transport
//! and the client or display on its own host.

mod agents;
mod client;
mod display;
mod internet;

use super::programs::{
    PIPE, PTY, Pipe, SimulatedDisplayClient, SimulatedDisplayPayload, SimulatedDisplayProgram,
    SimulatedDisplayTrial, bytes,
};
use super::request_events::{DisplayPointPassage, DisplayRequestPoint};
use super::scene::{
    DisplayDrawingCosts, DisplaySceneCarrier, DisplaySceneClass, SimulatedDisplayScene,
};
use super::serial_line::Serial;
use super::trial_script::{Action, SimulatedDisplayRequest};
use internet::InternetServer;
use stackline_core::error::{Error, Result};
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use stackline_net::{NodeIndex, PortCounters};
use stackline_sim::HostWorkCosts;
use stackline_sim::application::{Mailbox, ProgramContext, Signal, Simulation};
use stackline_sim::messages::{CallPort, MessagePort};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Programs read a connection in pieces of this many bytes.
const READ_AT_ONCE: u64 = 16 << 10;

/// The two ends of a connection: at the client's host, and at the display's or the internet server's.
type Ports = [MessagePort<SimulatedDisplayPayload>; 2];
/// The two ends of remote calls: the one that asks, and the one that answers.
type Calls = [CallPort<SimulatedDisplayPayload>; 2];

/// How messages travel between client and display.
enum DisplaySiteRoute {
    /// Client and display are on the same host.
    Local,
    /// A connection of `tcp`, PUP or blasts.
    Stream(Ports),
    /// A connection that ends at an internet server, from which the display's agent reads blocks.
    Internet(Ports, InternetServer),
    /// A serial line.
    Line(Box<RefCell<Serial>>),
    /// Remote calls (`ikp`): `there` with requests from the client or its agent, `back` with answers from the display's agent.
    Calls { there: Calls, back: Calls },
}

/// A program of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisplaySiteProgram {
    Client,
    RemoteAgent,
    LocalAgent,
    Display,
    Internet,
}

impl DisplaySiteProgram {
    /// How many programs a site can have.
    const ALL: u32 = 5;

    /// The index of its host in `DisplaySite::nodes`: 0 the client's, 1 the display's, 2 the internet server's.
    const fn host(self) -> usize {
        match self {
            Self::Client | Self::RemoteAgent => 0,
            Self::LocalAgent | Self::Display => 1,
            Self::Internet => 2,
        }
    }
}

/// The agent of the client's host, to which the client writes through a pipe or pseudo-terminal.
struct RemoteAgent {
    pipe: RefCell<Pipe>,
    /// Rung when requests are written to the pipe; the agent waits for it.
    filled: Signal,
    /// Rung when requests that did not fit have been written; the client waits for it.
    emptied: Signal,
}

/// The agent of the display's host.
struct LocalAgent {
    /// Requests that have arrived at the display's host and wait for the agent.
    came: Mailbox<Vec<SimulatedDisplayRequest>>,
    /// Answers of the display that wait for the agent; each item is sent by itself.
    answers: Mailbox<Vec<u8>>,
    /// Whether the agent takes no more requests because more than `KEPT` bytes wait for the display.
    is_full: Cell<bool>,
}

/// One simulated application: client, agents and display, with the route between them.
pub(super) struct DisplaySite {
    context: ProgramContext,
    /// Its index among the applications of the simulation; keeps the numbers of their programs apart.
    lane: u32,
    /// The hosts of the client, the display and the internet server.
    nodes: [NodeIndex; 3],
    /// The costs of programs on each of these hosts, if the network declares any.
    costs: [Option<HostWorkCosts>; 3],
    class: DisplaySceneClass,
    drawing: DisplayDrawingCosts,
    /// The speed of the display's processor.
    speed: f64,
    /// The client hands over gathered requests before they exceed this many bytes.
    gathers: usize,
    route: DisplaySiteRoute,
    client: RefCell<SimulatedDisplayClient>,
    /// Rung when every request that asks for an answer has been answered.
    answered: Signal,
    remote: Option<RemoteAgent>,
    local: Option<LocalAgent>,
    /// The display's state.
    program: RefCell<SimulatedDisplayProgram>,
    /// Messages that wait for the display.
    inbox: Mailbox<Vec<SimulatedDisplayRequest>>,
    /// The bytes in `inbox`.
    waiting: Cell<usize>,
    /// Replies of the display to a client on its own host.
    replies: Mailbox<Vec<u8>>,
    /// The points that requests have passed. None if the run is not traced.
    passed: Option<RefCell<Vec<DisplayPointPassage>>>,
}

/// The results of a site.
pub(super) struct Over {
    /// The time of each trial.
    pub(super) taken: Vec<Duration>,
    /// When each trial began and ended, and which requests it made.
    pub(super) trials: Vec<SimulatedDisplayTrial>,
    /// The points that requests have passed, in trials and between them; empty if not traced.
    pub(super) passed: Vec<DisplayPointPassage>,
}

impl DisplaySite {
    /// Creates the application with index `lane` on the hosts `nodes`. If `traced`, the points that requests pass are recorded.
    ///
    /// # Errors
    /// When the network has no path between the hosts, or the path does not suit the carrier.
    pub(super) fn new(
        scene: &SimulatedDisplayScene<'_>,
        simulation: &mut Simulation<'_, ()>,
        lane: u32,
        nodes: [NodeIndex; 3],
        traced: bool,
    ) -> Result<Rc<Self>> {
        let context = simulation.context();
        let route = route(scene, simulation, nodes)?;
        let over_ikp = matches!(scene.carrier, DisplaySceneCarrier::Ikp);
        let is_terminal = scene.class == DisplaySceneClass::Terminal;
        let has_pipe = is_terminal || (scene.class == DisplaySceneClass::Agent && over_ikp);
        let remote = has_pipe.then(|| RemoteAgent {
            pipe: RefCell::new(Pipe::new(if is_terminal { PTY } else { PIPE })),
            filled: context.signal(),
            emptied: context.signal(),
        });
        let has_agent = !matches!(
            scene.class,
            DisplaySceneClass::Local | DisplaySceneClass::Messages
        );
        let local = has_agent.then(|| LocalAgent {
            came: context.mailbox(),
            answers: context.mailbox(),
            is_full: Cell::new(false),
        });
        let host = |node: NodeIndex| &scene.network.hosts[node.0 as usize];
        let most = match &route {
            DisplaySiteRoute::Calls { there, .. } => there[0].room(),
            _ => u64::MAX,
        };
        Ok(Rc::new(Self {
            lane,
            nodes,
            costs: nodes.map(|node| HostWorkCosts::from_host(host(node))),
            class: scene.class,
            drawing: scene.drawing,
            speed: host(nodes[1]).interface.speed(),
            gathers: scene.gathers.min(most) as usize,
            route,
            client: RefCell::default(),
            answered: context.signal(),
            remote,
            local,
            program: RefCell::new(SimulatedDisplayProgram::new()),
            inbox: context.mailbox(),
            waiting: Cell::new(0),
            replies: context.mailbox(),
            passed: traced.then(RefCell::default),
            context,
        }))
    }

    /// Starts all programs. If there is a connection, the client begins its actions once it is established.
    pub(super) fn start(self: &Rc<Self>, actions: VecDeque<Action>) {
        self.start_carriers();
        if self.remote.is_some() {
            self.spawn(Self::forward_pipe);
        }
        if self.local.is_some() {
            self.spawn(Self::take_requests);
            self.spawn(Self::hand_answers_back);
        }
        self.spawn(Self::draw_requests);
        let site = Rc::clone(self);
        self.context.spawn(async move {
            if let DisplaySiteRoute::Stream(ports) | DisplaySiteRoute::Internet(ports, _) =
                &site.route
            {
                ports[0].connected().await;
                if let DisplaySiteRoute::Internet(ports, server) = &site.route
                    && server.calls.is_some()
                {
                    site.ask_for_block(ports, server);
                }
            }
            site.carry_out(actions).await
        });
    }

    /// Starts a program that shares this site.
    fn spawn<F: Future<Output = Result<()>> + 'static>(
        self: &Rc<Self>,
        program: impl FnOnce(Rc<Self>) -> F,
    ) {
        self.context.spawn(program(Rc::clone(self)));
    }

    /// Whether all trials are over.
    pub(super) fn is_over(&self) -> bool {
        self.client.borrow().is_over
    }

    /// Whether a trial is under way.
    pub(super) fn is_measured(&self) -> bool {
        self.client.borrow().is_measured()
    }

    /// Writes the counters of the site's serial line, if it has one, into those of all ports.
    pub(super) fn enter_line(&self, ports: &mut [PortCounters]) {
        if let DisplaySiteRoute::Line(line) = &self.route {
            line.borrow().write_counters(ports);
        }
    }

    /// Takes the results so far.
    pub(super) fn over(&self) -> Over {
        let mut client = self.client.borrow_mut();
        Over {
            taken: std::mem::take(&mut client.taken),
            trials: std::mem::take(&mut client.trials),
            passed: self.passed.as_ref().map(RefCell::take).unwrap_or_default(),
        }
    }

    // --- what all programs do ---

    fn now(&self) -> Instant {
        self.context.now()
    }

    /// Records that requests pass a point now.
    fn pass(&self, point: DisplayRequestPoint, requests: &[SimulatedDisplayRequest]) {
        for request in requests {
            self.pass_at(self.now(), point, request.number..=request.number);
        }
    }

    /// Records that the requests with these numbers passed a point at `at`. `Hello`, number 0, is left out.
    fn pass_at(&self, at: Instant, point: DisplayRequestPoint, requests: RangeInclusive<u32>) {
        if let Some(passed) = &self.passed {
            let numbers = requests.filter(|request| *request > 0);
            passed
                .borrow_mut()
                .extend(numbers.map(|request| DisplayPointPassage { at, point, request }));
        }
    }

    /// Occupies the processor of a program's host for `takes`.
    async fn work(&self, program: DisplaySiteProgram, kind: WorkKind, takes: Duration) {
        let number = DisplaySiteProgram::ALL * self.lane + program as u32;
        self.context
            .work(self.nodes[program.host()], number, kind, takes)
            .await;
    }

    /// Charges a program for receiving a message from its transport or handing one over, and for `beside` in addition.
    async fn message(&self, program: DisplaySiteProgram, beside: Duration) {
        let costs = self.costs[program.host()].as_ref();
        let takes = costs.map_or(Duration::ZERO, HostWorkCosts::message) + beside;
        self.work(program, WorkKind::Messages, takes).await;
    }

    /// The time that a program needs to handle this many bytes.
    fn of_bytes(&self, program: DisplaySiteProgram, bytes: usize) -> Duration {
        let costs = self.costs[program.host()].as_ref();
        costs.map_or(Duration::ZERO, |costs| costs.bytes(bytes as u64))
    }

    /// The time of display work that takes `ns` on a host of speed 1, scaled to the speed of the display's host and rounded.
    fn scaled(&self, ns: f64) -> Duration {
        Duration((ns / self.speed + 0.5) as u64)
    }

    /// Waits until a program of the client's host notices what has arrived: at its next poll if the host polls, else at once.
    async fn look(&self) {
        if let Some(costs) = &self.costs[0] {
            let seen = costs.seen(self.now());
            if seen > self.now() {
                self.context.sleep_until(seen).await;
            }
        }
    }

    /// Puts a message into the display's inbox.
    fn put_in_inbox(&self, requests: Vec<SimulatedDisplayRequest>) {
        self.waiting.set(self.waiting.get() + bytes(&requests));
        self.inbox.put(requests);
    }
}

/// Sets up the route between the hosts of a scene: a connection, calls, a serial line or none.
fn route(
    scene: &SimulatedDisplayScene<'_>,
    simulation: &mut Simulation<'_, ()>,
    nodes: [NodeIndex; 3],
) -> Result<DisplaySiteRoute> {
    let [from, to, third] = nodes;
    let ends = if scene.internet.is_some() { third } else { to };
    let ports: Ports = match (scene.class, scene.carrier) {
        (DisplaySceneClass::Local, _) => return Ok(DisplaySiteRoute::Local),
        (_, DisplaySceneCarrier::Line(bits)) => {
            let line = RefCell::new(Serial::from_scene(scene, bits)?);
            return Ok(DisplaySiteRoute::Line(Box::new(line)));
        }
        (_, DisplaySceneCarrier::Ikp) => {
            return Ok(DisplaySiteRoute::Calls {
                there: simulation.call(from, to)?,
                back: simulation.call(to, from)?,
            });
        }
        (_, DisplaySceneCarrier::Tcp(stacks)) => simulation.connect(from, ends, stacks)?,
        (_, DisplaySceneCarrier::Pup(options)) => simulation.connect_pup(from, ends, options)?,
        (_, DisplaySceneCarrier::Blast(stack)) => simulation.connect_blast(from, ends, stack)?,
    };
    ports.iter().for_each(|port| port.set_piece(READ_AT_ONCE));
    if scene.internet.is_none() {
        return Ok(DisplaySiteRoute::Stream(ports));
    }
    let context = simulation.context();
    let elsewhere = third != to;
    let calls = elsewhere.then(|| {
        Ok::<_, Error>(internet::BlockCalls {
            reads: simulation.call(to, ends)?,
            writes: simulation.call(to, ends)?,
        })
    });
    let server = InternetServer::new(&context, calls.transpose()?);
    Ok(DisplaySiteRoute::Internet(ports, server))
}
