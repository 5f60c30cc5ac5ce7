//! Client, agents and display at work on their two hosts, until all trials are over.

mod agents;
mod display;
mod internet;

use super::programs::{
    LocalAgent, PIPE, PTY, RemoteAgent, SimulatedClientWait, SimulatedDisplayClient,
    SimulatedDisplayPayload, SimulatedDisplayProgram, SimulatedDisplayTrial, bytes,
};
use super::request_events::{DisplayPointPassage, DisplayRequestPoint};
use super::scene::{DisplaySceneCarrier, DisplaySceneClass, SimulatedDisplayScene};
use super::serial_line::Serial;
use super::trial_script::{Action, DisplayTrialScript, SimulatedDisplayRequest};
use internet::Internet;
use stackline_core::error::{Error, Result};
use stackline_core::network::WorkKind;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::{NodeIndex, PortCounters};
use stackline_sim::HostWorkCosts;
use stackline_sim::messages::{Happening, MessageNetwork};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What programs read of a connection at once.
const PIECE: u64 = 16 << 10;

/// Where an application's place stands in the tokens of its tasks.
const LANE: u32 = 56;

/// What carries messages between the hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DisplaySiteRoute {
    /// Nothing: they are on one.
    Local,
    /// A connection of `tcp`, PUP or blasts.
    Stream(u32),
    /// A serial line.
    Line,
    /// Calls of `ikp`: of the client or its agent, and of the display's agent back.
    Calls(u32, u32),
    /// A connection of `tcp` or PUP to an internet server.
    Internet,
}

/// What is done once a processor or a moment has come.
#[derive(Clone, Debug)]
enum DisplaySiteTask {
    /// The client has made a request.
    Made(SimulatedDisplayRequest),
    /// It has handed messages to the transport.
    Handed(Vec<SimulatedDisplayRequest>),
    /// Its host's agent looks into the pipe, or has taken what is there.
    Look,
    Taken,
    /// The agent of the display's host has taken what came.
    Came(Vec<SimulatedDisplayRequest>),
    /// The internet server has taken requests, or answers.
    Crossed(Vec<SimulatedDisplayRequest>),
    AnswersCrossed(Vec<u8>),
    /// A serial line has brought requests, or has room for more; it has brought answers.
    Over(Vec<SimulatedDisplayRequest>),
    Room,
    OverBack(Vec<u8>),
    /// It hands an answer over.
    Answers(Vec<u8>),
    /// Answers are at the client's host, and at the client.
    Back(Vec<u8>),
    Seen(Vec<u8>),
    /// The display has taken a message, has carried a request out, has drawn a piece.
    Read,
    Stored,
    Drawn(Duration),
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

/// The network and the hosts' processors, which several applications may share.
pub(super) type DisplaySiteWorld = RefCell<MessageNetwork<SimulatedDisplayPayload, ()>>;

/// An application: client, agents and display.
pub(super) struct DisplaySite<'s> {
    scene: &'s SimulatedDisplayScene<'s>,
    world: &'s DisplaySiteWorld,
    /// Its place among applications that share the world.
    lane: u32,
    nodes: [NodeIndex; 3],
    costs: [Option<HostWorkCosts>; 3],
    way: DisplaySiteRoute,
    client: SimulatedDisplayClient,
    remote: Option<RemoteAgent>,
    local: Option<LocalAgent>,
    internet: Option<Internet>,
    program: SimulatedDisplayProgram,
    /// When a serial line is free, both ways.
    serial: Option<Serial>,
    tasks: BTreeMap<u64, DisplaySiteTask>,
    last_task: u64,
    /// The points that requests have passed, where somebody wants to know.
    passed: Option<Vec<DisplayPointPassage>>,
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

impl<'s> DisplaySite<'s> {
    pub(super) fn new(
        scene: &'s SimulatedDisplayScene<'s>,
        (world, lane): (&'s DisplaySiteWorld, u32),
        nodes: [NodeIndex; 3],
        script: DisplayTrialScript,
        traced: bool,
    ) -> Result<Self> {
        let mut messages = world.borrow_mut();
        let ends = if scene.internet.is_some() {
            nodes[2]
        } else {
            nodes[1]
        };
        let mut way = match (scene.class, scene.carrier) {
            (DisplaySceneClass::Local, _) => DisplaySiteRoute::Local,
            (_, DisplaySceneCarrier::Ikp) => DisplaySiteRoute::Calls(
                messages.call_to(nodes[0], nodes[1])?,
                messages.call_to(nodes[1], nodes[0])?,
            ),
            (_, DisplaySceneCarrier::Tcp(stacks)) => {
                DisplaySiteRoute::Stream(messages.connect(nodes[0], ends, stacks)?)
            }
            (_, DisplaySceneCarrier::Pup(options)) => {
                DisplaySiteRoute::Stream(messages.connect_pup(nodes[0], ends, options)?)
            }
            (_, DisplaySceneCarrier::Blast(stack)) => {
                DisplaySiteRoute::Stream(messages.connect_blast(nodes[0], ends, stack)?)
            }
            (_, DisplaySceneCarrier::Line(_)) => DisplaySiteRoute::Line,
        };
        let serial = match scene.carrier {
            DisplaySceneCarrier::Line(bits) if way == DisplaySiteRoute::Line => {
                Some(Serial::of(scene, bits)?)
            }
            _ => None,
        };
        if let DisplaySiteRoute::Stream(connection) = way {
            [PairSide::Initiator, PairSide::Responder]
                .into_iter()
                .for_each(|side| messages.set_piece(connection, side, PIECE));
        }
        let mut internet = None;
        if let (DisplaySiteRoute::Stream(connection), true) = (way, scene.internet.is_some()) {
            let elsewhere = nodes[2] != nodes[1];
            let calls = elsewhere.then(|| {
                Ok::<_, Error>((
                    messages.call_to(nodes[1], ends)?,
                    messages.call_to(nodes[1], ends)?,
                ))
            });
            internet = Some(Internet::new(connection, calls.transpose()?));
            way = DisplaySiteRoute::Internet;
        }
        let over_ikp = matches!(scene.carrier, DisplaySceneCarrier::Ikp);
        let has_pipe = scene.class == DisplaySceneClass::Terminal
            || (scene.class == DisplaySceneClass::Agent && over_ikp);
        let has_agent = !matches!(
            scene.class,
            DisplaySceneClass::Local | DisplaySceneClass::Messages
        );
        let costs = nodes.map(|node| HostWorkCosts::of(&scene.network.hosts[node.0 as usize]));
        Ok(Self {
            scene,
            world,
            lane,
            nodes,
            costs,
            way,
            client: SimulatedDisplayClient::new(script.actions),
            remote: has_pipe.then(RemoteAgent::default),
            local: has_agent.then(LocalAgent::default),
            internet,
            program: SimulatedDisplayProgram::new(),
            serial,
            tasks: BTreeMap::new(),
            last_task: 0,
            passed: traced.then(Vec::new),
        })
    }

    /// Begins: over a connection once that is there.
    pub(super) fn start(&mut self) -> Result<()> {
        if matches!(
            self.way,
            DisplaySiteRoute::Stream(_) | DisplaySiteRoute::Internet
        ) {
            Ok(())
        } else {
            self.client()
        }
    }

    /// Whether all trials are over.
    pub(super) fn is_over(&self) -> bool {
        self.client.actions.is_empty() && self.client.waits == SimulatedClientWait::Nothing
    }

    /// Whether a trial goes on.
    pub(super) const fn is_measured(&self) -> bool {
        self.client.is_measured()
    }

    /// What went through each direction of each link of the network, by now.
    pub(super) fn counters(&self) -> Vec<PortCounters> {
        let mut ports = self.world.borrow().counters();
        if let Some(serial) = &self.serial {
            serial.counted(&mut ports);
        }
        ports
    }

    /// What has come of it so far.
    pub(super) fn over(self) -> Over {
        let SimulatedDisplayClient { taken, trials, .. } = self.client;
        Over {
            taken,
            trials,
            passed: self.passed.unwrap_or_default(),
        }
    }

    /// Whether that happened to this application.
    pub(super) fn owns(&self, happening: &Happening<SimulatedDisplayPayload>) -> bool {
        match happening {
            Happening::Timer(token) | Happening::Worked(token) => {
                token >> LANE == u64::from(self.lane)
            }
            Happening::Connected(id)
            | Happening::Broken(id)
            | Happening::Arrived { connection: id, .. }
            | Happening::Sent { connection: id, .. }
            | Happening::Room { connection: id, .. }
            | Happening::Asked(id, _)
            | Happening::Answered(id, _) => self.has(*id),
        }
    }

    /// Whether a connection, or calls, are this application's.
    fn has(&self, id: u32) -> bool {
        let internet = self.internet.as_ref();
        match self.way {
            DisplaySiteRoute::Local | DisplaySiteRoute::Line => false,
            DisplaySiteRoute::Stream(connection) => connection == id,
            DisplaySiteRoute::Calls(there, back) => there == id || back == id,
            DisplaySiteRoute::Internet => internet.is_some_and(|internet| {
                internet.connection == id
                    || internet
                        .calls
                        .is_some_and(|(reads, writes)| reads == id || writes == id)
            }),
        }
    }

    fn now(&self) -> Instant {
        self.world.borrow().now()
    }

    /// Requests have passed a point now.
    fn pass(&mut self, point: DisplayRequestPoint, jobs: &[SimulatedDisplayRequest]) {
        let at = self.now();
        jobs.iter()
            .for_each(|job| self.pass_at(at, point, job.number..=job.number));
    }

    /// Requests of those numbers have passed a point at that moment; `Hello` is none.
    fn pass_at(&mut self, at: Instant, point: DisplayRequestPoint, requests: RangeInclusive<u32>) {
        if let Some(passed) = &mut self.passed {
            passed.extend(
                requests
                    .filter(|request| *request > 0)
                    .map(|request| DisplayPointPassage { at, point, request }),
            );
        }
    }

    pub(super) fn happened(&mut self, happening: Happening<SimulatedDisplayPayload>) -> Result<()> {
        match happening {
            Happening::Connected(_) => {
                if self.internet.as_ref().is_some_and(|internet| internet.calls.is_some()) {
                    self.ask_block();
                }
                self.client()
            }
            Happening::Broken(_) => Err(Error::measurement(
                "the connection to the simulated display was given up: what was sent was not answered in time",
            )
            .hint("a timeout that is shorter than the round trip does that, or a path that loses too much, or whose `mtu` is below a packet")),
            Happening::Timer(token) | Happening::Worked(token) => match self.tasks.remove(&token) {
                Some(task) => self.carry_on(task),
                None => Ok(()),
            },
            Happening::Arrived { message: SimulatedDisplayPayload::Requests(jobs), .. } if self.internet.is_some() => {
                self.internet_has(jobs);
                Ok(())
            }
            Happening::Arrived { message: SimulatedDisplayPayload::Requests(jobs), .. }
            | Happening::Answered(_, SimulatedDisplayPayload::Requests(jobs)) => {
                self.arrived(jobs);
                Ok(())
            }
            Happening::Arrived { message: SimulatedDisplayPayload::Answers(answers), .. } => self.came_back(answers),
            Happening::Asked(_, SimulatedDisplayPayload::Requests(jobs)) if self.local.is_some() => {
                self.arrived(jobs);
                Ok(())
            }
            Happening::Asked(_, SimulatedDisplayPayload::Requests(jobs)) => {
                self.pass(DisplayRequestPoint::Arrive, &jobs);
                self.display_has(jobs)
            }
            Happening::Asked(calls, SimulatedDisplayPayload::Answers(answers)) if self.internet.is_some() => {
                self.internet_asked(calls, answers);
                Ok(())
            }
            Happening::Asked(calls, SimulatedDisplayPayload::Answers(answers)) => {
                self.world.borrow_mut().answer(calls, 1, SimulatedDisplayPayload::Answers(Vec::new()));
                self.came_back(answers)
            }
            Happening::Answered(calls, SimulatedDisplayPayload::Answers(answers)) => self.answered(calls, &answers),
            Happening::Sent { side: PairSide::Initiator, .. } => self.handed_over(),
            Happening::Sent { .. } | Happening::Room { .. } => Ok(()),
        }
    }

    fn carry_on(&mut self, task: DisplaySiteTask) -> Result<()> {
        match task {
            DisplaySiteTask::Made(job) => {
                self.client.waits = SimulatedClientWait::Nothing;
                let full = bytes(&self.client.gathered) + job.length() > self.gathers();
                if full {
                    // It goes with the next ones.
                    self.hand();
                }
                self.client.gather(job);
                self.client()
            }
            DisplaySiteTask::Handed(jobs) => self.transport(jobs),
            DisplaySiteTask::Look => {
                self.work(
                    DisplaySiteProgram::RemoteAgent,
                    WorkKind::Messages,
                    self.message(0),
                    DisplaySiteTask::Taken,
                );
                Ok(())
            }
            DisplaySiteTask::Taken => self.taken(),
            DisplaySiteTask::Came(jobs) => self.agent_has(jobs),
            DisplaySiteTask::Crossed(jobs) => {
                self.crossed(jobs);
                Ok(())
            }
            DisplaySiteTask::AnswersCrossed(answers) => {
                self.answers_crossed(answers);
                Ok(())
            }
            DisplaySiteTask::Over(jobs) => {
                self.arrived(jobs);
                Ok(())
            }
            DisplaySiteTask::Room => self.handed_over(),
            DisplaySiteTask::OverBack(answers) => self.came_back(answers),
            DisplaySiteTask::Answers(answers) => self.answer(answers),
            DisplaySiteTask::Back(answers) => {
                let polls = if matches!(self.way, DisplaySiteRoute::Calls(..)) {
                    None
                } else {
                    self.costs[0].as_ref()
                };
                let seen = polls.map_or(self.now(), |costs| costs.seen(self.now()));
                if seen > self.now() {
                    self.at(seen, DisplaySiteTask::Seen(answers));
                    return Ok(());
                }
                self.seen(&answers)
            }
            DisplaySiteTask::Seen(answers) => self.seen(&answers),
            DisplaySiteTask::Read => self.next_job(),
            DisplaySiteTask::Stored => self.stored(),
            DisplaySiteTask::Drawn(piece) => self.drawn(piece),
        }
    }

    // --- processors ---

    /// Remembers what is to be done; its token in the world.
    fn will_do(&mut self, task: DisplaySiteTask) -> u64 {
        self.last_task += 1;
        let token = (u64::from(self.lane) << LANE) + self.last_task;
        self.tasks.insert(token, task);
        token
    }

    fn at(&mut self, moment: Instant, task: DisplaySiteTask) {
        let token = self.will_do(task);
        self.world.borrow_mut().set_timer(moment, token);
    }

    fn work(
        &mut self,
        program: DisplaySiteProgram,
        kind: WorkKind,
        takes: Duration,
        task: DisplaySiteTask,
    ) {
        if takes == Duration::ZERO {
            return self.at(self.now(), task);
        }
        let token = self.will_do(task);
        let who = (
            self.nodes[program.host()],
            DisplaySiteProgram::ALL * self.lane + program as u32,
        );
        self.world.borrow_mut().work(who, kind, takes, token);
    }

    fn message(&self, host: usize) -> Duration {
        self.costs[host]
            .as_ref()
            .map_or(Duration::ZERO, HostWorkCosts::message)
    }

    /// What the client takes for a request of so many bytes.
    fn operation(&self, bytes: usize) -> Duration {
        self.costs[0]
            .as_ref()
            .map_or(Duration::ZERO, |costs| costs.operation(bytes as u64))
    }

    fn scaled(&self, ns: f64) -> Duration {
        let host = &self.scene.network.hosts[self.nodes[1].0 as usize];
        Duration((ns / host.interface.speed() + 0.5) as u64)
    }

    // --- the client ---

    /// Bytes that are handed over at once.
    fn gathers(&self) -> usize {
        let most = match self.way {
            DisplaySiteRoute::Calls(calls, _) => self
                .scene
                .gathers
                .min(self.world.borrow_mut().room_of(calls)),
            _ => self.scene.gathers,
        };
        most as usize
    }

    /// What the client does until it has to wait.
    fn client(&mut self) -> Result<()> {
        while self.client.waits == SimulatedClientWait::Nothing {
            match self.client.actions.pop_front() {
                None => return Ok(()),
                Some(Action::Request(job)) => {
                    self.client.waits = SimulatedClientWait::Something;
                    self.pass(DisplayRequestPoint::Call, std::slice::from_ref(&job));
                    self.work(
                        DisplaySiteProgram::Client,
                        WorkKind::Operations,
                        self.operation(job.length()),
                        DisplaySiteTask::Made(job),
                    );
                }
                Some(Action::Hand) => self.hand(),
                Some(Action::Await) if !self.client.gathered.is_empty() => {
                    self.client.actions.push_front(Action::Await);
                    self.hand();
                }
                Some(Action::Await) => {
                    if self.client.is_answered() {
                        let completed = self.client.completed();
                        self.pass_at(self.now(), DisplayRequestPoint::Done, completed);
                    } else {
                        self.client.waits = SimulatedClientWait::Answers;
                        self.client.actions.push_front(Action::Await);
                    }
                }
                Some(Action::Begin) => self.client.begin(self.now()),
                Some(Action::End) => self.client.end(self.now()),
            }
        }
        Ok(())
    }

    /// The client hands over what it has.
    fn hand(&mut self) {
        let jobs = std::mem::take(&mut self.client.gathered);
        if jobs.is_empty() {
            return;
        }
        self.client.waits = SimulatedClientWait::Something;
        if self.remote.is_none() {
            return self.work(
                DisplaySiteProgram::Client,
                WorkKind::Messages,
                self.message(0),
                DisplaySiteTask::Handed(jobs),
            );
        }
        self.client.held = Some(jobs);
        self.fill_pipe();
    }

    /// What the client holds goes into the pipe where it fits.
    fn fill_pipe(&mut self) {
        let Some(agent) = &mut self.remote else {
            return;
        };
        let Some(wanted) = self.client.held.as_ref().map(|jobs| bytes(jobs)) else {
            return;
        };
        // A writer that had to wait is woken when half of the pipe is free.
        let pipe = if self.scene.class == DisplaySceneClass::Terminal {
            PTY
        } else {
            PIPE
        };
        let room = if agent.is_full { pipe / 2 } else { pipe };
        agent.is_full = !agent.pipe.is_empty() && agent.held() + wanted > room;
        if !agent.is_full
            && let Some(jobs) = self.client.held.take()
        {
            self.pass(DisplayRequestPoint::Send, &jobs);
            if let Some(agent) = &mut self.remote {
                agent.pipe.push_back(jobs);
            }
            self.client.waits = SimulatedClientWait::Nothing;
            self.look();
        }
    }

    /// What was handed over is taken, or carried out.
    fn handed_over(&mut self) -> Result<()> {
        if self.remote.is_some() {
            self.agent_handed_over();
            return Ok(());
        }
        self.client.waits = SimulatedClientWait::Nothing;
        self.client()
    }

    fn answered(&mut self, calls: u32, answers: &[u8]) -> Result<()> {
        match self.way {
            DisplaySiteRoute::Calls(_, back) if calls == back => {
                self.answer_left();
                Ok(())
            }
            DisplaySiteRoute::Internet => {
                self.answer_left();
                Ok(())
            }
            _ => {
                self.client.receive(answers)?;
                self.handed_over()
            }
        }
    }

    /// Answers are at the client's host.
    fn came_back(&mut self, answers: Vec<u8>) -> Result<()> {
        let program = if self.remote.is_some() {
            DisplaySiteProgram::RemoteAgent
        } else {
            DisplaySiteProgram::Client
        };
        self.work(
            program,
            WorkKind::Messages,
            self.message(0),
            DisplaySiteTask::Back(answers),
        );
        Ok(())
    }

    fn seen(&mut self, answers: &[u8]) -> Result<()> {
        self.client.receive(answers)?;
        if self.client.waits == SimulatedClientWait::Answers && self.client.is_answered() {
            self.client.waits = SimulatedClientWait::Nothing;
        }
        self.client()
    }
}
