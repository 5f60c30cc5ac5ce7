//! Client, agents and display at work on their two hosts, until all trials are over.

mod agents;
mod display;
mod internet;

use super::programs::{Client, LocalAgent, PIPE, PTY, Program, RemoteAgent, Travels, Waits, bytes};
use super::scene::{Carrier, Class, Scene};
use super::script::{Action, Job, Script};
use super::ways::{Passed, Point};
use internet::Internet;
use stackline_core::error::{Error, Result};
use stackline_core::network::{Link, Loss, WorkKind};
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_net::Node;
use stackline_sim::Costs;
use stackline_sim::messages::{Happening, Messages};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// All is over by then, or never.
const AT_MOST: Instant = Instant(30 * 86_400_000_000_000);

/// What carries messages between the hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Nothing: they are on one.
    Local,
    /// A connection of `tcp` or PUP.
    Stream(u32),
    /// A serial line: bits of a second, of a character, and its delay.
    Line(f64, f64, Duration),
    /// Calls of `ikp`: of the client or its agent, and of the display's agent back.
    Calls(u32, u32),
    /// A connection of `tcp` or PUP to an internet server.
    Internet,
}

/// What is done once a processor or a moment has come.
#[derive(Clone, Debug)]
enum Task {
    /// The client has made a request.
    Made(Job),
    /// It has handed messages to the transport.
    Handed(Vec<Job>),
    /// Its host's agent looks into the pipe, or has taken what is there.
    Look,
    Taken,
    /// The agent of the display's host has taken what came.
    Came(Vec<Job>),
    /// The internet server has taken requests, or answers.
    Crossed(Vec<Job>),
    AnswersCrossed(Vec<u8>),
    /// A serial line has brought requests, or has room for more; it has brought answers.
    Over(Vec<Job>),
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
enum Who {
    Client,
    RemoteAgent,
    LocalAgent,
    Display,
    Internet,
}

impl Who {
    /// Its host: the client's, the display's, or the internet server's.
    const fn host(self) -> usize {
        match self {
            Self::Client | Self::RemoteAgent => 0,
            Self::LocalAgent | Self::Display => 1,
            Self::Internet => 2,
        }
    }
}

/// Bits a second and the delay of the only link between the two hosts.
fn line(scene: &Scene<'_>) -> Result<(f64, Duration)> {
    let joins = |link: &&Link| {
        let (a, b) = (&link.ends.0, &link.ends.1);
        (*a == scene.from && *b == scene.to) || (*a == scene.to && *b == scene.from)
    };
    let link = scene.network.links.iter().find(joins);
    let rate = link.and_then(|link| link.rate.mean_bit_s()).filter(|rate| *rate > 0.0);
    let (Some(link), Some(rate)) = (link, rate) else {
        return Err(Error::input(format!("no link with a rate joins {} and {}", scene.from, scene.to))
            .hint("a serial line is a link of its own, as in `link sun - vax 9600 bit/s 0;`"));
    };
    if link.loss != Loss::None || link.jitter.is_some() || link.rate.changes() || link.one_way {
        return Err(Error::input("a serial line has a rate and a delay, and nothing else of a link")
            .hint("leave loss, jitter and schedules out"));
    }
    Ok((rate, link.delay))
}

/// All of it.
pub(super) struct Site<'s> {
    scene: &'s Scene<'s>,
    world: Messages<Travels, ()>,
    nodes: [Node; 3],
    costs: [Option<Costs>; 3],
    way: Way,
    client: Client,
    remote: Option<RemoteAgent>,
    local: Option<LocalAgent>,
    internet: Option<Internet>,
    program: Program,
    /// When a serial line is free, both ways.
    line_free: [Instant; 2],
    tasks: BTreeMap<u64, Task>,
    last_task: u64,
    /// The points that requests have passed, where somebody wants to know.
    passed: Option<Vec<Passed>>,
}

/// What came of it.
pub(super) struct Over {
    /// What each trial took.
    pub(super) taken: Vec<Duration>,
    /// The points that requests have passed.
    pub(super) passed: Vec<Passed>,
    /// When all was over.
    pub(super) end: Instant,
}

impl<'s> Site<'s> {
    pub(super) fn new(scene: &'s Scene<'s>, nodes: [Node; 3], script: Script, traced: bool) -> Result<Self> {
        let mut world = Messages::new(scene.network, scene.seed, (), false);
        let ends = if scene.internet.is_some() { nodes[2] } else { nodes[1] };
        let mut way = match (scene.class, scene.carrier) {
            (Class::Local, _) => Way::Local,
            (_, Carrier::Ikp) => Way::Calls(world.call_to(nodes[0], nodes[1])?, world.call_to(nodes[1], nodes[0])?),
            (_, Carrier::Tcp(stacks)) => Way::Stream(world.connect(nodes[0], ends, stacks)?),
            (_, Carrier::Pup(options)) => Way::Stream(world.connect_pup(nodes[0], ends, options)?),
            (_, Carrier::Line(bits)) => {
                let (bit_s, delay) = line(scene)?;
                Way::Line(bit_s, f64::from(bits), delay)
            }
        };
        let mut internet = None;
        if let (Way::Stream(connection), true) = (way, scene.internet.is_some()) {
            let elsewhere = nodes[2] != nodes[1];
            let calls =
                elsewhere.then(|| Ok::<_, Error>((world.call_to(nodes[1], ends)?, world.call_to(nodes[1], ends)?)));
            internet = Some(Internet::new(connection, calls.transpose()?));
            way = Way::Internet;
        }
        let over_ikp = matches!(scene.carrier, Carrier::Ikp);
        let has_pipe = scene.class == Class::Terminal || (scene.class == Class::Agent && over_ikp);
        let has_agent = !matches!(scene.class, Class::Local | Class::Messages);
        let costs = nodes.map(|node| Costs::of(&scene.network.hosts[node.0 as usize]));
        Ok(Self {
            scene,
            world,
            nodes,
            costs,
            way,
            client: Client::new(script.actions),
            remote: has_pipe.then(RemoteAgent::default),
            local: has_agent.then(LocalAgent::default),
            internet,
            program: Program::new(),
            line_free: [Instant(0); 2],
            tasks: BTreeMap::new(),
            last_task: 0,
            passed: traced.then(Vec::new),
        })
    }

    /// All of it.
    pub(super) fn carry_out(mut self) -> Result<Over> {
        // Over a connection it begins when that is there.
        if !matches!(self.way, Way::Stream(_) | Way::Internet) {
            self.client()?;
        }
        while !self.client.actions.is_empty() || self.client.waits != Waits::Nothing {
            let Some((_, happening)) = self.world.next(AT_MOST)? else {
                return Err(Error::measurement("the simulated display came to no end"));
            };
            self.happened(happening)?;
        }
        let end = self.world.now();
        Ok(Over { taken: self.client.taken, passed: self.passed.unwrap_or_default(), end })
    }

    /// Requests have passed a point now.
    fn pass(&mut self, point: Point, jobs: &[Job]) {
        let at = self.world.now();
        jobs.iter().for_each(|job| self.pass_at(at, point, job.number..=job.number));
    }

    /// Requests of those numbers have passed a point at that moment; `Hello` is none.
    fn pass_at(&mut self, at: Instant, point: Point, requests: RangeInclusive<u32>) {
        if let Some(passed) = &mut self.passed {
            passed.extend(requests.filter(|request| *request > 0).map(|request| Passed { at, point, request }));
        }
    }

    fn happened(&mut self, happening: Happening<Travels>) -> Result<()> {
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
            .hint("a timeout that is shorter than the round trip, or a path that loses too much, does that")),
            Happening::Timer(token) | Happening::Worked(token) => match self.tasks.remove(&token) {
                Some(task) => self.carry_on(task),
                None => Ok(()),
            },
            Happening::Arrived { message: Travels::Requests(jobs), .. } if self.internet.is_some() => {
                self.internet_has(jobs);
                Ok(())
            }
            Happening::Arrived { message: Travels::Requests(jobs), .. }
            | Happening::Answered(_, Travels::Requests(jobs)) => {
                self.arrived(jobs);
                Ok(())
            }
            Happening::Arrived { message: Travels::Answers(answers), .. } => self.came_back(answers),
            Happening::Asked(_, Travels::Requests(jobs)) if self.local.is_some() => {
                self.arrived(jobs);
                Ok(())
            }
            Happening::Asked(_, Travels::Requests(jobs)) => {
                self.pass(Point::Arrive, &jobs);
                self.display_has(jobs)
            }
            Happening::Asked(calls, Travels::Answers(answers)) if self.internet.is_some() => {
                self.internet_asked(calls, answers);
                Ok(())
            }
            Happening::Asked(calls, Travels::Answers(answers)) => {
                self.world.answer(calls, 1, Travels::Answers(Vec::new()));
                self.came_back(answers)
            }
            Happening::Answered(calls, Travels::Answers(answers)) => self.answered(calls, &answers),
            Happening::Sent { side: Side::Initiator, .. } => self.handed_over(),
            Happening::Sent { .. } | Happening::Room { .. } => Ok(()),
        }
    }

    fn carry_on(&mut self, task: Task) -> Result<()> {
        match task {
            Task::Made(job) => {
                self.client.waits = Waits::Nothing;
                let full = bytes(&self.client.gathered) + job.length() > self.gathers();
                if full {
                    // It goes with the next ones.
                    self.hand();
                }
                self.pass(Point::Call, std::slice::from_ref(&job));
                self.client.gather(job);
                self.client()
            }
            Task::Handed(jobs) => self.transport(jobs),
            Task::Look => {
                self.work(Who::RemoteAgent, WorkKind::Messages, self.message(0), Task::Taken);
                Ok(())
            }
            Task::Taken => self.taken(),
            Task::Came(jobs) => self.agent_has(jobs),
            Task::Crossed(jobs) => {
                self.crossed(jobs);
                Ok(())
            }
            Task::AnswersCrossed(answers) => {
                self.answers_crossed(answers);
                Ok(())
            }
            Task::Over(jobs) => {
                self.arrived(jobs);
                Ok(())
            }
            Task::Room => self.handed_over(),
            Task::OverBack(answers) => self.came_back(answers),
            Task::Answers(answers) => self.answer(answers),
            Task::Back(answers) => {
                let polls = if matches!(self.way, Way::Calls(..)) { None } else { self.costs[0].as_ref() };
                let seen = polls.map_or(self.world.now(), |costs| costs.seen(self.world.now()));
                if seen > self.world.now() {
                    self.at(seen, Task::Seen(answers));
                    return Ok(());
                }
                self.seen(&answers)
            }
            Task::Seen(answers) => self.seen(&answers),
            Task::Read => self.next_job(),
            Task::Stored => self.stored(),
            Task::Drawn(piece) => self.drawn(piece),
        }
    }

    // --- processors ---

    fn at(&mut self, moment: Instant, task: Task) {
        self.last_task += 1;
        self.tasks.insert(self.last_task, task);
        self.world.set_timer(moment, self.last_task);
    }

    fn work(&mut self, program: Who, kind: WorkKind, takes: Duration, task: Task) {
        if takes == Duration::ZERO {
            return self.at(self.world.now(), task);
        }
        self.last_task += 1;
        self.tasks.insert(self.last_task, task);
        self.world.work((self.nodes[program.host()], program as u32), kind, takes, self.last_task);
    }

    fn message(&self, host: usize) -> Duration {
        self.costs[host].as_ref().map_or(Duration::ZERO, Costs::message)
    }

    /// What the client takes for a request of so many bytes.
    fn operation(&self, bytes: usize) -> Duration {
        self.costs[0].as_ref().map_or(Duration::ZERO, |costs| costs.operation(bytes as u64))
    }

    fn scaled(&self, ns: f64) -> Duration {
        let host = &self.scene.network.hosts[self.nodes[1].0 as usize];
        Duration((ns / host.interface.speed() + 0.5) as u64)
    }

    // --- the client ---

    /// Bytes that are handed over at once.
    fn gathers(&self) -> usize {
        let most = match self.way {
            Way::Calls(calls, _) => self.scene.gathers.min(self.world.room_of(calls)),
            _ => self.scene.gathers,
        };
        most as usize
    }

    /// What the client does until it has to wait.
    fn client(&mut self) -> Result<()> {
        while self.client.waits == Waits::Nothing {
            match self.client.actions.pop_front() {
                None => return Ok(()),
                Some(Action::Request(job)) => {
                    self.client.waits = Waits::Something;
                    self.work(Who::Client, WorkKind::Operations, self.operation(job.length()), Task::Made(job));
                }
                Some(Action::Hand) => self.hand(),
                Some(Action::Await) if !self.client.gathered.is_empty() => {
                    self.client.actions.push_front(Action::Await);
                    self.hand();
                }
                Some(Action::Await) => {
                    if self.client.is_answered() {
                        let completed = self.client.completed();
                        self.pass_at(self.world.now(), Point::Done, completed);
                    } else {
                        self.client.waits = Waits::Answers;
                        self.client.actions.push_front(Action::Await);
                    }
                }
                Some(Action::Begin) => self.client.begin(self.world.now()),
                Some(Action::End) => self.client.end(self.world.now()),
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
        self.client.waits = Waits::Something;
        if self.remote.is_none() {
            return self.work(Who::Client, WorkKind::Messages, self.message(0), Task::Handed(jobs));
        }
        self.client.held = Some(jobs);
        self.fill_pipe();
    }

    /// What the client holds goes into the pipe where it fits.
    fn fill_pipe(&mut self) {
        let Some(agent) = &mut self.remote else { return };
        let Some(wanted) = self.client.held.as_ref().map(|jobs| bytes(jobs)) else { return };
        // A writer that had to wait is woken when half of the pipe is free.
        let pipe = if self.scene.class == Class::Terminal { PTY } else { PIPE };
        let room = if agent.is_full { pipe / 2 } else { pipe };
        agent.is_full = !agent.pipe.is_empty() && agent.held() + wanted > room;
        if !agent.is_full
            && let Some(jobs) = self.client.held.take()
        {
            self.pass(Point::Send, &jobs);
            if let Some(agent) = &mut self.remote {
                agent.pipe.push_back(jobs);
            }
            self.client.waits = Waits::Nothing;
            self.look();
        }
    }

    /// What was handed over is taken, or carried out.
    fn handed_over(&mut self) -> Result<()> {
        if self.remote.is_some() {
            self.agent_handed_over();
            return Ok(());
        }
        self.client.waits = Waits::Nothing;
        self.client()
    }

    fn answered(&mut self, calls: u32, answers: &[u8]) -> Result<()> {
        match self.way {
            Way::Calls(_, back) if calls == back => {
                self.answer_left();
                Ok(())
            }
            Way::Internet => {
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
        let program = if self.remote.is_some() { Who::RemoteAgent } else { Who::Client };
        self.work(program, WorkKind::Messages, self.message(0), Task::Back(answers));
        Ok(())
    }

    fn seen(&mut self, answers: &[u8]) -> Result<()> {
        self.client.receive(answers)?;
        if self.client.waits == Waits::Answers && self.client.is_answered() {
            self.client.waits = Waits::Nothing;
        }
        self.client()
    }
}
