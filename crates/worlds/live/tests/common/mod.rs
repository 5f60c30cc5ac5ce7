//! Agents in this process, spoken with over the pipe that a coordinator has, and tasks out of texts.
#![allow(dead_code, reason = "each test binary uses some of it")]

use stackline_core::plan::Measurement;
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_endpoint::{EndpointTask, SideObservation};
use stackline_live::agent::AgentGrants;
use stackline_live::control::{self, AgentTask, FromAgent, ToAgent};
use stackline_live::error::{Error, Result};
use stackline_live::{CAPABILITIES, agent, stacks};
use stackline_spec::{Available, CheckContext, Overrides, check};
use std::io::{BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the connections of one run prove themselves with; another each time, as names of sockets are made of it.
fn token() -> [u8; 16] {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let mut token = *b"........run only";
    token[..4].copy_from_slice(&std::process::id().to_le_bytes());
    token[4..8].copy_from_slice(&RUNS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    token
}

/// What is not said by then is never said.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// An agent and the coordinator's end of its pipe.
pub(crate) struct Agent {
    to: UnixStream,
    from: BufReader<UnixStream>,
    serves: JoinHandle<Result<()>>,
}

impl Agent {
    /// One that has greeted.
    pub(crate) fn start() -> Self {
        let (to, input) = UnixStream::pair().expect("a pipe");
        let (output, from) = UnixStream::pair().expect("a pipe");
        from.set_read_timeout(Some(HANGS)).expect("a timeout");
        let serves =
            std::thread::spawn(move || agent::serve(input, output, AgentGrants::default()));
        let mut agent = Self {
            to,
            from: BufReader::new(from),
            serves,
        };
        let greeting = agent.hear();
        assert!(
            matches!(greeting, Some(FromAgent::Hello(_))),
            "{greeting:?}"
        );
        agent
    }

    pub(crate) fn say(&mut self, message: &ToAgent) {
        control::write(&mut self.to, message).expect("it listens");
    }

    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).expect("it listens");
    }

    /// Its next message; `None` when it has closed its end.
    pub(crate) fn hear(&mut self) -> Option<FromAgent> {
        control::read_from_agent(&mut self.from).expect("a message")
    }

    /// Its pipe closes, as when its coordinator dies; what its serving came to.
    pub(crate) fn abandon(self) -> Result<()> {
        drop(self.to);
        self.serves.join().expect("it does not panic")
    }

    /// What its serving came to, when it ends by itself.
    pub(crate) fn ended(mut self) -> Result<()> {
        while self.hear().is_some() {}
        self.serves.join().expect("it does not panic")
    }

    /// Listens as job 1; the addresses.
    pub(crate) fn listen(&mut self, task: AgentTask) -> Vec<String> {
        let task = Box::new(task);
        self.say(&ToAgent::Listen { job: 1, task });
        match self.hear() {
            Some(FromAgent::Listening { job: 1, addresses }) => addresses,
            other => panic!("{other:?}"),
        }
    }

    /// Connects as job 1, to where those listen.
    pub(crate) fn connect(&mut self, task: AgentTask, listening: &[String]) {
        let one_host = stacks::find_stack(&task.stack.name).is_some_and(|s| s.table().one_host);
        let address = |port: &String| {
            if one_host {
                port.clone()
            } else {
                format!("127.0.0.1:{port}")
            }
        };
        let addresses = listening.iter().map(address).collect();
        let task = Box::new(task);
        self.say(&ToAgent::Connect {
            job: 1,
            task,
            addresses,
        });
    }

    /// Its initiators stand at their clock start.
    pub(crate) fn is_ready(&mut self) {
        assert_eq!(self.hear(), Some(FromAgent::Ready { job: 1 }));
    }

    pub(crate) fn go(&mut self) {
        self.say(&ToAgent::Go { job: 1 });
    }

    pub(crate) fn end(&mut self, now: bool) {
        self.say(&ToAgent::End { job: 1, now });
    }

    /// How job 1 ended.
    pub(crate) fn outcome(&mut self) -> std::result::Result<SideObservation, Error> {
        match self.hear() {
            Some(FromAgent::Done { job: 1, observed }) => Ok(*observed),
            Some(FromAgent::Failed { job: 1, error }) => Err(error),
            other => panic!("{other:?}"),
        }
    }
}

/// The first measurement of a text, where the live world takes it.
pub(crate) fn measurement(text: &str) -> Option<Measurement> {
    let tables = stacks::stack_tables();
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &tables,
    }];
    let read_file = |_: &str| Err("no file".to_string());
    let context = CheckContext {
        worlds: &worlds,
        read_file: &read_file,
        cores: &[],
    };
    let plan = check(text, &context, &Overrides::default()).plan?;
    plan.measurements.into_iter().next()
}

/// Both tasks of a part.
pub(crate) fn tasks_of_part(measurement: &Measurement, part: usize) -> [AgentTask; 2] {
    let token = token();
    [PairSide::Initiator, PairSide::Responder].map(|side| task(measurement, part, side, token))
}

fn task(measurement: &Measurement, part: usize, side: PairSide, token: [u8; 16]) -> AgentTask {
    let part = &measurement.parts[part];
    let reliable = stacks::find_stack(&part.stack.name)
        .is_some_and(|s| s.table().with_options_of(&part.stack).reliable);
    AgentTask {
        work: EndpointTask::new(measurement, part, side, Seed::root(1), reliable),
        stack: part.stack.clone(),
        source: part.source.clone(),
        destination: part.destination.clone(),
        cpu: None,
        cores: Vec::new(),
        nice: 0,
        token,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        flow: None,
    }
}

/// Both tasks of a text of one part.
pub(crate) fn tasks(text: &str) -> [AgentTask; 2] {
    let measurement = measurement(text).unwrap_or_else(|| panic!("{text} is not live"));
    tasks_of_part(&measurement, 0)
}

/// Two agents whose pairs stand before their clock start: of the initiators and of the responders.
pub(crate) fn ready(tasks: [AgentTask; 2]) -> [Agent; 2] {
    let [initiate, respond] = tasks;
    let (mut initiators, mut responders) = (Agent::start(), Agent::start());
    let addresses = responders.listen(respond);
    initiators.connect(initiate, &addresses);
    initiators.is_ready();
    [initiators, responders]
}

/// One run of a text; what both sides saw.
pub(crate) fn run(text: &str) -> [SideObservation; 2] {
    let [mut initiators, mut responders] = ready(tasks(text));
    responders.go();
    initiators.go();
    let seen = [&mut initiators, &mut responders]
        .map(|side| side.outcome().unwrap_or_else(|e| panic!("{text}: {e}")));
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
    seen
}
