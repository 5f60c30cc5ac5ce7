//! Client, agents and display at work on their hosts, until all trials are over: programs that wait for one another, and for their processors.

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

/// What programs read of a connection at once.
const READ_AT_ONCE: u64 = 16 << 10;

/// The two sides of a connection, and of calls.
type Ports = [MessagePort<SimulatedDisplayPayload>; 2];
type Calls = [CallPort<SimulatedDisplayPayload>; 2];

/// What carries messages between the hosts.
enum DisplaySiteRoute {
    /// Nothing: they are on one.
    Local,
    /// A connection of `tcp`, PUP or blasts.
    Stream(Ports),
    /// The same of `tcp` or PUP, to an internet server.
    Internet(Ports, InternetServer),
    /// A serial line.
    Line(Box<RefCell<Serial>>),
    /// Calls of the client or its agent, and of the display's agent back.
    Calls { there: Calls, back: Calls },
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DisplaySiteProgram {
    Client,
    RemoteAgent,
    LocalAgent,
    Display,
    Internet,
}

impl DisplaySiteProgram {
    /// How many there are.
    const ALL: u32 = 5;

    /// Its host: the client's, the display's, or the internet server's.
    const fn host(self) -> usize {
        match self {
            Self::Client | Self::RemoteAgent => 0,
            Self::LocalAgent | Self::Display => 1,
            Self::Internet => 2,
        }
    }
}

/// The agent of the client's host, behind a pipe.
struct RemoteAgent {
    pipe: RefCell<Pipe>,
    /// There is something in the pipe, or room.
    filled: Signal,
    emptied: Signal,
}

/// The agent of the display's host.
struct LocalAgent {
    came: Mailbox<Vec<SimulatedDisplayRequest>>,
    /// Answers that wait for it, as they will be handed over.
    answers: Mailbox<Vec<u8>>,
    /// It has made the transport wait.
    is_full: Cell<bool>,
}

/// An application: client, agents and display.
pub(super) struct DisplaySite {
    context: ProgramContext,
    /// Its place among applications that share the world.
    lane: u32,
    nodes: [NodeIndex; 3],
    costs: [Option<HostWorkCosts>; 3],
    class: DisplaySceneClass,
    drawing: DisplayDrawingCosts,
    /// The speed of the display's processor.
    speed: f64,
    /// Bytes that the client hands over at once.
    gathers: usize,
    route: DisplaySiteRoute,
    client: RefCell<SimulatedDisplayClient>,
    /// All that was asked is answered.
    answered: Signal,
    remote: Option<RemoteAgent>,
    local: Option<LocalAgent>,
    program: RefCell<SimulatedDisplayProgram>,
    /// Messages for the display, and their bytes.
    inbox: Mailbox<Vec<SimulatedDisplayRequest>>,
    waiting: Cell<usize>,
    /// Its reply to a client on its own host.
    replies: Mailbox<Vec<u8>>,
    /// The points that requests have passed, where somebody wants to know.
    passed: Option<RefCell<Vec<DisplayPointPassage>>>,
}

/// What came of it.
pub(super) struct Over {
    /// What each trial took.
    pub(super) taken: Vec<Duration>,
    /// When, and by which requests.
    pub(super) trials: Vec<SimulatedDisplayTrial>,
    /// The points that requests have passed, in trials and between them.
    pub(super) passed: Vec<DisplayPointPassage>,
}

impl DisplaySite {
    /// An application at its place among those of the simulation. `traced`: the points that requests pass are kept.
    ///
    /// # Errors
    /// When a path, or what its carrier needs of it, is not there.
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
            costs: nodes.map(|node| HostWorkCosts::of(host(node))),
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

    /// Starts all programs; the client begins over a connection once that is there.
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

    /// Starts a program.
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

    /// Whether a trial goes on.
    pub(super) fn is_measured(&self) -> bool {
        self.client.borrow().is_measured()
    }

    /// Enters what went over its serial line, if it has one, among the counters of all ports.
    pub(super) fn enter_line(&self, ports: &mut [PortCounters]) {
        if let DisplaySiteRoute::Line(line) = &self.route {
            line.borrow().write_counters(ports);
        }
    }

    /// What has come of it so far.
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

    /// Requests have passed a point now.
    fn pass(&self, point: DisplayRequestPoint, requests: &[SimulatedDisplayRequest]) {
        for request in requests {
            self.pass_at(self.now(), point, request.number..=request.number);
        }
    }

    /// Requests of those numbers have passed a point at that moment; `Hello` is none.
    fn pass_at(&self, at: Instant, point: DisplayRequestPoint, requests: RangeInclusive<u32>) {
        if let Some(passed) = &self.passed {
            let numbers = requests.filter(|request| *request > 0);
            passed
                .borrow_mut()
                .extend(numbers.map(|request| DisplayPointPassage { at, point, request }));
        }
    }

    /// A program works for so long.
    async fn work(&self, program: DisplaySiteProgram, kind: WorkKind, takes: Duration) {
        let number = DisplaySiteProgram::ALL * self.lane + program as u32;
        self.context
            .work(self.nodes[program.host()], number, kind, takes)
            .await;
    }

    /// A program takes a message from its transport or hands one over, and does what else that takes.
    async fn message(&self, program: DisplaySiteProgram, beside: Duration) {
        let costs = self.costs[program.host()].as_ref();
        let takes = costs.map_or(Duration::ZERO, HostWorkCosts::message) + beside;
        self.work(program, WorkKind::Messages, takes).await;
    }

    /// What a program takes for so many bytes.
    fn of_bytes(&self, program: DisplaySiteProgram, bytes: usize) -> Duration {
        let costs = self.costs[program.host()].as_ref();
        costs.map_or(Duration::ZERO, |costs| costs.bytes(bytes as u64))
    }

    /// What the display takes for what takes so many ns at the speed for which costs were measured.
    fn scaled(&self, ns: f64) -> Duration {
        Duration((ns / self.speed + 0.5) as u64)
    }

    /// A program of the client's host that looks now and then sees what is there, at its next look.
    async fn look(&self) {
        if let Some(costs) = &self.costs[0] {
            let seen = costs.seen(self.now());
            if seen > self.now() {
                self.context.sleep_until(seen).await;
            }
        }
    }

    /// A message for the display.
    fn put_in_inbox(&self, requests: Vec<SimulatedDisplayRequest>) {
        self.waiting.set(self.waiting.get() + bytes(&requests));
        self.inbox.put(requests);
    }
}

/// What carries messages between the hosts of a scene.
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
            let line = RefCell::new(Serial::of(scene, bits)?);
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
