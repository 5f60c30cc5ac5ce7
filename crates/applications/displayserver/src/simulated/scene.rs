//! What is simulated: the hosts, how the application is divided between them, what carries its messages, how long the display's work takes.

use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_proto::papers::pup;

/// How an application is divided between the two hosts (section 2.4 of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplaySceneClass {
    /// A: the client is on the display's host; each message is answered when it is carried out.
    Local,
    /// B: the client is on another host, with the same messages, over `ikp`.
    Messages,
    /// C: the client is on another host, over a transport; an agent on the display's host takes what comes. Over `ikp` the remote host has
    /// an agent too, behind a pipe.
    Agent,
    /// D: through a pseudo-terminal and TELNET: there is an agent at each end, and answers travel as if they were typed.
    Terminal,
    /// E: like C, but the agent has the picture: only changes are sent, and it is drawn again from there.
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
    /// Item by item as they come.
    #[default]
    Growing,
    /// As a whole once it is complete.
    Complete,
}

stackline_core::named_values!(SymbolDrawMoment,
    Growing = "growing", "Item by item, as items arrive";
    Complete = "complete", "All at once, when complete");

/// What carries requests and answers between the hosts.
#[derive(Clone, Copy, Debug)]
pub enum DisplaySceneCarrier<'n> {
    /// `tcp`, with its options at the client's end and at the display's end.
    Tcp([&'n Stack; 2]),
    /// PUP, with its options.
    Pup(pup::PupOptions),
    /// `blast`, `saw` or `window`, with its options.
    Blast(&'n Stack),
    /// V's messages.
    Ikp,
    /// A serial line, which is the only link between the hosts, with this many bits per character: 10 with start and stop bit, 8 without.
    Line(u32),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimulatedDisplayScene<'n> {
    /// The network; the `work` and `cpu` of its hosts say how long programs take.
    pub network: &'n Network,
    /// The client's host.
    pub from: String,
    /// The display's host.
    pub to: String,
    /// The host of the internet server where the client's stream ends, if there is one: the display's host or another one.
    pub internet: Option<String>,
    /// How the application is divided.
    pub class: DisplaySceneClass,
    /// What carries requests and answers.
    pub carrier: DisplaySceneCarrier<'n>,
    /// How long the display's work takes.
    pub drawing: DisplayDrawingCosts,
    /// When a symbol that is being defined is drawn.
    pub shown: SymbolDrawMoment,
    /// Bytes of requests that a client hands over at a time if it need not wait for an answer.
    pub gathers: u64,
    /// Bytes that the request of a rectangle has more than that of a line.
    pub rectangle_bytes: u64,
    /// Bytes of the request of a call; 20 like all items, unless known otherwise.
    pub call_bytes: u64,
    /// The root seed.
    pub seed: Seed,
}

/// How long the display's work takes, ns on a host whose `cpu` is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DisplayDrawingCosts {
    /// For a request: reading and storing it.
    pub request: f64,
    /// For a pixel of a line's length.
    pub pixel: f64,
    /// For a rectangle, and any other item that is not a line or text.
    pub rectangle: f64,
    /// A letter.
    pub letter: f64,
    /// In addition, for a line that is added alone to a picture that is shown.
    pub added: f64,
    /// In addition, for a rectangle or other item that is added alone to a picture that is shown.
    pub added_rectangle: f64,
    /// For an answer to the client.
    pub answer: f64,
}

impl DisplayDrawingCosts {
    /// Whether any of them is not 0.
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

    /// The time for one item, with this many letters.
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

    /// The additional time for an item that is added alone.
    pub(super) const fn alone(&self, item: &DisplayItem) -> f64 {
        if matches!(item.kind, Some(DisplayItemKind::Vector)) {
            self.added
        } else {
            self.added_rectangle
        }
    }
}
