//! What is simulated: two hosts, how the application is divided between them, what carries its messages, what the display takes.

use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_proto::papers::pup;

/// How an application is divided between the two hosts (2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplaySceneClass {
    /// A: on the display's host; each message is answered when it is carried out.
    Local,
    /// B: on another host, by the same messages, over `ikp`.
    Messages,
    /// C: on another host, over a transport; an agent on the display's host takes what comes. Over `ikp` the remote host has an agent too,
    /// behind a pipe.
    Agent,
    /// D: through a pseudo-terminal and TELNET: an agent at each end, and answers travel as if they were typed.
    Terminal,
    /// E: as C, and the agent has the picture: what changes is sent alone, and it is drawn again from there.
    Distributed,
}

stackline_core::named_values!(DisplaySceneClass,
    Local = "local", "A: on the display's host, via messages";
    Messages = "messages", "B: on another host, via messages over ikp";
    Agent = "agent", "C: over a transport, with an agent at the display";
    Terminal = "terminal", "D: through a pseudo-terminal and TELNET, with an agent at each end";
    Distributed = "distributed", "E: the agent has the picture, and only changes are sent");

/// When a symbol that is shown and being defined is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SymbolDrawMoment {
    /// Item by item, as they come.
    #[default]
    Growing,
    /// Whole, once it is complete.
    Complete,
}

stackline_core::named_values!(SymbolDrawMoment,
    Growing = "growing", "Item by item, as items arrive";
    Complete = "complete", "All at once, when complete");

/// What carries requests and answers between the hosts.
#[derive(Clone, Copy, Debug)]
pub enum DisplaySceneCarrier<'n> {
    /// `tcp`, with its options at the client's end and at the display's.
    Tcp([&'n Stack; 2]),
    /// PUP, with its options.
    Pup(pup::PupOptions),
    /// `blast`, `saw` or `window`, with its options.
    Blast(&'n Stack),
    /// V's messages.
    Ikp,
    /// Characters over the only link between the hosts, each of so many bits: 10 with a start and a stop bit, 8 without.
    Line(u32),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulatedDisplayScene<'n> {
    /// The network; its hosts' `work` and `cpu` are what programs take.
    pub network: &'n Network,
    /// The client's host.
    pub from: String,
    /// The display's host.
    pub to: String,
    /// The host of an internet server at which the client's stream ends, where that is a program of its own: the display's or another one.
    pub internet: Option<String>,
    /// How the application is divided.
    pub class: DisplaySceneClass,
    /// What carries requests and answers.
    pub carrier: DisplaySceneCarrier<'n>,
    /// What the display takes.
    pub drawing: DisplayDrawingCosts,
    /// When a symbol that is being defined is drawn.
    pub shown: SymbolDrawMoment,
    /// Bytes of requests that a client hands over at once, where it need not wait for an answer.
    pub gathers: u64,
    /// Bytes that the request of a rectangle has beyond those of a line.
    pub rectangle_bytes: u64,
    /// Bytes of the request of a call; 20, as all items have, where nothing else is known.
    pub call_bytes: u64,
    /// The seed.
    pub seed: Seed,
}

/// What the display takes of its processor, ns at the speed for which its host's `cpu` is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DisplayDrawingCosts {
    /// A request: reading it, and keeping what it says.
    pub request: f64,
    /// A pixel of a line's length.
    pub pixel: f64,
    /// A rectangle, and whatever else is no line and no letter.
    pub rectangle: f64,
    /// A letter.
    pub letter: f64,
    /// Beyond that, a line that is added by itself to a picture that is shown.
    pub added: f64,
    /// The same of a rectangle.
    pub added_rectangle: f64,
    /// An answer to the client.
    pub answer: f64,
}

impl DisplayDrawingCosts {
    /// Whether anything of it takes time.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        let Self {
            request,
            pixel,
            rectangle,
            letter,
            added,
            added_rectangle,
            answer,
        } = *self;
        [
            request,
            pixel,
            rectangle,
            letter,
            added,
            added_rectangle,
            answer,
        ]
        .into_iter()
        .any(|ns| ns > 0.0)
    }

    /// One item, with so many letters.
    pub(super) fn item(&self, item: &DisplayItem, letters: usize) -> f64 {
        match item.kind {
            Some(DisplayItemKind::Vector) => {
                let (wide, high) = (
                    f64::from(item.x1) - f64::from(item.x0),
                    f64::from(item.y1) - f64::from(item.y0),
                );
                self.pixel * wide.hypot(high)
            }
            Some(DisplayItemKind::Text) => self.letter * letters as f64,
            _ => self.rectangle,
        }
    }

    /// What an item by itself takes beyond being drawn.
    pub(super) const fn alone(&self, item: &DisplayItem) -> f64 {
        if matches!(item.kind, Some(DisplayItemKind::Vector)) {
            self.added
        } else {
            self.added_rectangle
        }
    }
}
