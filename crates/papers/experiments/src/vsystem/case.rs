//! A case: the experiment behind a cell of a table. It says which machines take part, how the application is divided between them and what
//! is drawn, and is simulated here.

use crate::profile;
use stackline_core::error::{Error, Result};
use stackline_core::network::{LinkRate, Network, WorkKind};
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_displayserver::bench::{self, DisplayBenchResult, DisplayBenchSubject};
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel};
use stackline_displayserver::simulated::{
    DisplayDrawingCosts, DisplaySceneCarrier, DisplaySceneClass, SimulatedDisplayScene,
    SymbolDrawMoment, together,
};
use stackline_proto::papers::pup;

/// The specification of the machines, one network for each combination.
pub(super) const PROFILE: &str = concat!(
    include_str!("../../data/vsystem.stackline"),
    "\n",
    include_str!("../../data/vsystem_transport.stackline")
);
/// Trials of each rate, as printed (3.1.1).
const TRIALS: usize = 10;
/// Letters of a request of the text benchmark: with `BEFORE_LETTERS` it fills a packet of 200 bytes.
const LETTERS: usize = 176;
/// Requests of a trial of the text benchmark: enough for a steady stream of characters.
const REQUESTS: usize = 60;
/// Letters of a line of a terminal. Over PUP, Telser (the terminal server on the VAX) sends each line in a packet of its own, so that text
/// needs the most packets.
const LINE: usize = 80;
/// Bytes of a text request before its letters.
const BEFORE_LETTERS: usize = 24;

/// Bytes by which the request of a rectangle is longer than that of a line: the only difference between batches of rectangles and of lines
/// over E-IP and A-IP (180 and 220, 81 and 120 a second). The rates of Table 8-2 do not allow for these bytes.
const RECTANGLE_BYTES: u64 = 6;

/// Bytes of a call, as a request and as it is stored: a head, an id, a place and a symbol's number, without the second corner of other
/// items. With this size the structured inverters take 908 bytes (900 are printed in Table 5-2) and 7.6 s on a line of 1200 bit/s, as
/// printed.
pub(super) const CALL_BYTES: u64 = 14;

/// The options of PUP (section 6.2). The receiver has room for one packet, so that the next one is sent once it is acknowledged.
const PUP: pup::PupOptions = pup::PupOptions {
    packet: 200,
    send_buffer: 2048,
    receive_buffer: 200,
    checked: true,
    fixed_timeout: None,
    tries: 8,
    idle: None,
};

/// The additional time of the display for a line that is added alone, or for an answer, ns. One number serves for both, so that of the two
/// cells that depend on it one is a prediction.
const ALONE: f64 = 8.2e6;

/// The display's costs on a SUN of 10 MHz, ns.
const DRAWING: DisplayDrawingCosts = DisplayDrawingCosts {
    request: 0.53e6,
    // The paper's own figure (section 3.2).
    pixel: 5.0e3,
    rectangle: 0.76e6,
    letter: 0.112e6,
    added: ALONE,
    added_rectangle: 12.2e6,
    answer: ALONE,
};

/// A version of the measured programs. Tables of different versions contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Tables 3-1, 4-3, 5-1, 6-1, 6-2 and 8-1.
    Latest,
    /// Tables 4-1 and 4-2, and 3-2, which repeats a row of 4-1.
    Early,
    /// Table 4-4.
    Vax785,
    /// Table 8-2.
    Serial,
}

impl Version {
    pub(super) const ALL: [(Self, &'static str); 4] = [
        (Self::Latest, "3-1, 4-3, 5-1, 6-1, 6-2, 8-1"),
        (Self::Early, "3-2, 4-1, 4-2"),
        (Self::Vax785, "4-4"),
        (Self::Serial, "8-2"),
    ];
}

/// The connection between client and display, by the paper's names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VSystemConnection {
    Local,
    SunIkp,
    VaxIkp,
    Pup,
    Ethernet,
    Arpanet,
    Serial,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VSystemDrawing {
    Vectors,
    Rectangles,
    Text,
}

/// An experiment: one client that draws at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct VSystemCase {
    /// The name of its network in the profile.
    pub(super) network: &'static str,
    pub(super) joined: VSystemConnection,
    /// Speeds of the workstation (1 is a SUN of 10 MHz) and of the remote host (1 is a VAX-11/750).
    pub(super) cpu: [f64; 2],
    pub(super) version: Version,
    pub(super) drawn: VSystemDrawing,
    pub(super) rate: DisplayBenchSubject,
    /// The rate of the first link, bit/s, if it is not the profile's.
    pub(super) bit_s: Option<f64>,
    /// Whose work goes first at the remote host, if it is not as in the profile.
    pub(super) priority: Priority,
    /// The host of the internet server, if there is one apart from the display's agent.
    pub(super) internet: Option<&'static str>,
    /// Whether the application runs without a terminal, like a file transfer.
    pub(super) is_plain: bool,
}

/// Which program goes first at the remote host (Table 6-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// As the profile says.
    Profile,
    /// No program has priority.
    Nobody,
    /// Telser's messages go before the application's operations.
    Telser,
}

impl VSystemCase {
    pub(super) const fn new(
        network: &'static str,
        joined: VSystemConnection,
        drawn: VSystemDrawing,
        rate: DisplayBenchSubject,
    ) -> Self {
        let (cpu, version) = ([1.0, 1.0], Version::Latest);
        Self {
            network,
            joined,
            cpu,
            version,
            drawn,
            rate,
            bit_s: None,
            priority: Priority::Profile,
            internet: None,
            is_plain: false,
        }
    }

    /// Simulates the case; returns its rate in items (of text, characters) a second.
    pub(super) fn simulated(&self, machines: &Machines) -> Result<f64> {
        self.beside(&[], machines)?
            .first()
            .copied()
            .ok_or_else(|| self.nothing())
    }

    /// Simulates this case and others on its network at the same time, each with a display of its own; returns their rates in this order.
    /// The others draw the same picture at the same rate.
    pub(super) fn beside(&self, others: &[Self], machines: &Machines) -> Result<Vec<f64>> {
        let network = machines.network(self)?;
        let picture = picture(
            self.drawn,
            if self.joined == VSystemConnection::Pup {
                LINE
            } else {
                LETTERS
            },
        );
        let all = std::iter::once(self).chain(others);
        let scenes: Vec<SimulatedDisplayScene<'_>> =
            all.map(|case| case.scene(&network, machines)).collect();
        let rate = |measured: &DisplayBenchResult| {
            let trials = &measured.trials;
            // Trials follow each other without a break: what counts is how many items all of them drew.
            let rate = trials.len() as f64 / trials.iter().map(|rate| 1.0 / rate).sum::<f64>();
            if trials.is_empty() {
                Err(self.nothing())
            } else {
                Ok(rate)
            }
        };
        together(&scenes, &picture, self.rate, TRIALS)?
            .iter()
            .map(rate)
            .collect()
    }

    /// The error of a case that gave no result.
    fn nothing(&self) -> Error {
        Error::measurement(format!("no result from {self:?}"))
    }

    fn scene<'n>(&self, network: &'n Network, machines: &'n Machines) -> SimulatedDisplayScene<'n> {
        let [client, display] = machines.stacks(self);
        let carrier = match self.joined {
            VSystemConnection::SunIkp | VSystemConnection::VaxIkp => DisplaySceneCarrier::Ikp,
            VSystemConnection::Serial => DisplaySceneCarrier::Line(10),
            VSystemConnection::Pup if self.drawn == VSystemDrawing::Text => {
                DisplaySceneCarrier::Pup(pup::PupOptions {
                    packet: (BEFORE_LETTERS + LINE) as u16,
                    receive_buffer: BEFORE_LETTERS + LINE,
                    ..PUP
                })
            }
            VSystemConnection::Pup => DisplaySceneCarrier::Pup(PUP),
            VSystemConnection::Local | VSystemConnection::Ethernet | VSystemConnection::Arpanet => {
                DisplaySceneCarrier::Tcp([client, display])
            }
        };
        let from = if self.joined == VSystemConnection::Local {
            0
        } else {
            1
        };
        SimulatedDisplayScene {
            network,
            from: network.hosts[from].name.clone(),
            to: network.hosts[0].name.clone(),
            internet: self.internet.map(str::to_owned),
            class: self.class(),
            carrier,
            drawing: self.drawing(),
            shown: self.shown(),
            gathers: self.gathers(),
            rectangle_bytes: if self.version == Version::Latest {
                RECTANGLE_BYTES
            } else {
                0
            },
            call_bytes: CALL_BYTES,
            seed: Seed::root(1),
        }
    }

    const fn class(&self) -> DisplaySceneClass {
        match self.joined {
            VSystemConnection::Local => DisplaySceneClass::Local,
            VSystemConnection::SunIkp => DisplaySceneClass::Messages,
            VSystemConnection::VaxIkp => DisplaySceneClass::Agent,
            _ if self.is_plain => DisplaySceneClass::Agent,
            VSystemConnection::Pup
            | VSystemConnection::Ethernet
            | VSystemConnection::Arpanet
            | VSystemConnection::Serial => DisplaySceneClass::Terminal,
        }
    }

    /// When a symbol is drawn: earlier programs drew a picture once it was complete; characters are always drawn as they come.
    fn shown(&self) -> SymbolDrawMoment {
        let early = matches!(self.version, Version::Early | Version::Serial)
            && self.drawn != VSystemDrawing::Text;
        if early {
            SymbolDrawMoment::Complete
        } else {
            SymbolDrawMoment::Growing
        }
    }

    fn drawing(&self) -> DisplayDrawingCosts {
        match self.version {
            Version::Serial => DisplayDrawingCosts {
                rectangle: 1.75e6,
                ..DRAWING
            },
            _ => DRAWING,
        }
    }

    /// Bytes that the client gathers before it hands them over: a message of V has 1024, a packet of PUP or IP 200, and 100 across the
    /// ARPANET (section 6.2).
    const fn gathers(&self) -> u64 {
        match self.joined {
            VSystemConnection::Local | VSystemConnection::SunIkp | VSystemConnection::VaxIkp => {
                1024
            }
            VSystemConnection::Arpanet => 100,
            VSystemConnection::Pup | VSystemConnection::Ethernet | VSystemConnection::Serial => 200,
        }
    }
}

/// The benchmark of a picture that is sent at a level.
pub(super) const fn rate_at_level(level: DisplaySendLevel) -> DisplayBenchSubject {
    DisplayBenchSubject::At(level)
}

/// The benchmark's picture. That of text has requests of this many letters each.
fn picture(drawn: VSystemDrawing, letters: usize) -> DisplayPicture {
    let name = match drawn {
        VSystemDrawing::Vectors => "vectors",
        VSystemDrawing::Rectangles => "rectangles",
        VSystemDrawing::Text => "text",
    };
    let found = bench::pictures()
        .into_iter()
        .find(|picture| picture.name == name);
    let Some(mut picture) = found else {
        return bench::pictures()[0].clone();
    };
    if drawn == VSystemDrawing::Text {
        let text: Vec<u8> = (0..letters).map(|at| b' ' + 1 + (at % 94) as u8).collect();
        let line = |number: usize| {
            DisplayItem::drawn(
                DisplayItemKind::Text,
                number as u32 + 1,
                (0, 16 * (number % 50) as i16),
                (0, 0),
            )
        };
        picture.items = (0..REQUESTS)
            .map(|number| (line(number), text.clone()))
            .collect();
        picture.letters = letters * REQUESTS;
    }
    picture
}

/// The networks and TCP stacks of all cases.
pub(super) struct Machines {
    networks: Vec<Network>,
    /// The TCP of a VAX with packets of 200 bytes, the same with 100 bytes (ARPANET), and the TCP of a workstation.
    stacks: [Stack; 3],
}

impl Machines {
    pub(super) fn read() -> Result<Self> {
        let stacks = [
            "tcp(mss = 212, nodelay, quickack = off, ack_tick = 200 ms, send_buffer = 2 KiB, first_window = 100)",
            "tcp(mss = 112, nodelay, quickack = off, ack_tick = 200 ms, send_buffer = 2 KiB, first_window = 100)",
            "tcp(mss = 212, quickack = off, ack_tick = 200 ms)",
        ];
        let [vax, arpanet, sun] = stacks.map(profile::stack);
        Ok(Self {
            networks: profile::networks(PROFILE)?,
            stacks: [vax?, arpanet?, sun?],
        })
    }

    /// The network of a case, with its processor speeds, link rate and priority.
    fn network(&self, case: &VSystemCase) -> Result<Network> {
        let found = self
            .networks
            .iter()
            .find(|network| network.name == case.network);
        let none = || Error::measurement(format!("the profile has no network {}", case.network));
        let mut network = found.cloned().ok_or_else(none)?;
        for (host, cpu) in network.hosts.iter_mut().zip(case.cpu) {
            host.interface.cpu_speed = Some(cpu);
        }
        if let (Some(bit_s), Some(link)) = (case.bit_s, network.links.first_mut()) {
            link.rate = LinkRate::Constant(bit_s);
        }
        if let Some(host) = network
            .hosts
            .get_mut(1)
            .filter(|_| case.priority != Priority::Profile)
        {
            host.work.first = match case.priority {
                Priority::Telser => Some(WorkKind::Messages),
                Priority::Nobody | Priority::Profile => None,
            };
        }
        Ok(network)
    }

    /// The stacks of a case at the client's end and at the display's.
    const fn stacks(&self, case: &VSystemCase) -> [&Stack; 2] {
        let [vax, arpanet, sun] = &self.stacks;
        if matches!(case.joined, VSystemConnection::Arpanet) {
            [arpanet, sun]
        } else {
            [vax, sun]
        }
    }
}
