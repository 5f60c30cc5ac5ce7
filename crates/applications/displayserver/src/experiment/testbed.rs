//! The testbed of a simulated display: client, display and what lies between them, as the flags say. Invalid combinations are refused.

use super::carrier::{self, DisplayCarrierStack};
use crate::simulated::{
    DisplayDrawingCosts, DisplaySceneClass, SimulatedDisplayScene, SymbolDrawMoment,
};
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::quantity::parse_duration;
use stackline_core::random::Seed;
use stackline_report::display::DisplayRateRow;

/// The hosts on a network and what lies between them, as a person describes them.
#[derive(Clone, Debug, PartialEq)]
pub struct DisplaySceneOptions {
    /// The name of the network, if the specification has several.
    pub network: Option<String>,
    /// The client's host; `None`: the network's last host.
    pub client: Option<String>,
    /// The display's host; `None`: the network's first host.
    pub display: Option<String>,
    /// A host with an internet server, where the client's stream ends.
    pub internet: Option<String>,
    /// How the application is divided between the hosts.
    pub class: DisplaySceneClass,
    /// What carries requests and answers.
    pub over: Option<String>,
    /// The tcp stack of the display's end, if it differs.
    pub display_over: Option<String>,
    /// How long the display's work takes.
    pub draw: DisplayDrawingCosts,
    /// When a picture that is being defined is drawn.
    pub shown: SymbolDrawMoment,
    /// Bytes of requests that the client hands over at a time.
    pub gathers: u64,
    /// Bytes that the request of a rectangle has more than that of a line.
    pub rectangle_bytes: u64,
    /// Bytes of the request of a call.
    pub call_bytes: u64,
}

/// Everything that is simulated, except the picture.
pub struct DisplayTestbed {
    /// The network.
    pub network: Network,
    carrier_stack: DisplayCarrierStack,
    over: String,
    from: String,
    to: String,
    internet: Option<String>,
    class: DisplaySceneClass,
    drawing: DisplayDrawingCosts,
    shown: SymbolDrawMoment,
    gathers: u64,
    rectangle_bytes: u64,
    call_bytes: u64,
}

impl DisplayTestbed {
    /// The testbed that the flags describe.
    ///
    /// # Errors
    /// If the flags do not go together.
    pub fn from_flags(flags: &DisplaySceneOptions, network: Network) -> Result<Self> {
        stackline_sim::CAPABILITIES.accepts(&network)?;
        if network.has_imps() {
            let name = &network.name;
            return Err(Error::input(format!(
                "the network {name} consists of IMPs, over which no display can be simulated"
            ))
            .hint("use two 56 kbit/s lines instead: `link near - middle 56 kbit/s 10 ms;`"));
        }
        if flags.class == DisplaySceneClass::Local
            && (flags.over.is_some() || flags.display_over.is_some())
        {
            let error = Error::input("a local application uses no transport between hosts");
            return Err(error.hint("omit --over and --display-over"));
        }
        let usual = if flags.class == DisplaySceneClass::Messages {
            "ikp"
        } else {
            "tcp"
        };
        let over = flags.over.as_deref().unwrap_or(usual);
        let carrier_stack = carrier::read(over, flags.display_over.as_deref())?;
        let to = named(&network, flags.display.as_deref(), false)?;
        let from = match (&flags.client, flags.class) {
            (None, DisplaySceneClass::Local) => to.clone(),
            (name, _) => named(&network, name.as_deref(), true)?,
        };
        let internet = flags
            .internet
            .as_deref()
            .map(|name| named(&network, Some(name), false))
            .transpose()?;
        Ok(Self {
            carrier_stack,
            over: over.to_owned(),
            from,
            to,
            internet,
            class: flags.class,
            drawing: flags.draw,
            shown: flags.shown,
            gathers: flags.gathers,
            rectangle_bytes: flags.rectangle_bytes,
            call_bytes: flags.call_bytes,
            network,
        })
    }

    /// The scene to simulate, with that seed.
    #[must_use]
    pub fn scene(&self, seed: u64) -> SimulatedDisplayScene<'_> {
        SimulatedDisplayScene {
            network: &self.network,
            from: self.from.clone(),
            to: self.to.clone(),
            internet: self.internet.clone(),
            class: self.class,
            carrier: self.carrier_stack.carrier(),
            drawing: self.drawing,
            shown: self.shown,
            gathers: self.gathers,
            rectangle_bytes: self.rectangle_bytes,
            call_bytes: self.call_bytes,
            seed: Seed::root(seed),
        }
    }

    /// The host with that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn host(&self, name: &str) -> Result<String> {
        named(&self.network, Some(name), false)
    }

    /// The client's host.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.from
    }

    /// The place of the client relative to the display, in words.
    #[must_use]
    pub fn place(&self) -> String {
        match self.class {
            DisplaySceneClass::Local => "the client's host".to_owned(),
            _ => format!("{}, client at {}, over {}", self.to, self.from, self.over),
        }
    }

    /// Adds the reason to a rate that is absent.
    #[must_use]
    pub fn explained(&self, row: DisplayRateRow) -> DisplayRateRow {
        let absent = row.trials.is_empty().then(|| match row.rate {
            "construction" => {
                format!(
                    "no rate: host {} has no cost for operations, messages or bytes",
                    self.client()
                )
            }
            "display" => "no rate: --draw sets no cost for anything that is drawn".to_owned(),
            _ => "no rate: hosts, drawing and links all cost nothing".to_owned(),
        });
        DisplayRateRow { absent, ..row }
    }

    /// The display's host and the client's host.
    #[must_use]
    pub fn hosts(&self) -> [String; 2] {
        [self.to.clone(), self.from.clone()]
    }
}

/// The error if no step takes any time.
#[must_use]
pub fn no_rate() -> Error {
    Error::input("every step has zero cost, so no rate can be computed").hint( "give hosts a cost, as in `host vax { work 2 ms per operation; }`, and the display a cost with --draw 'pixel = 5 us'", )
}

/// The host with that name; without a name the last or the first host.
fn named(network: &Network, name: Option<&str>, last: bool) -> Result<String> {
    let usual = if last {
        network.hosts.last()
    } else {
        network.hosts.first()
    };
    let host = name.map_or(usual, |name| network.host(name));
    host.map(|host| host.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = network
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect();
        Error::input(format!(
            "the network {} has no host {}",
            network.name,
            name.unwrap_or("at all")
        ))
        .hint(format!("its hosts: {}", names.join(", ")))
    })
}

/// Parses costs such as `pixel = 5 us, rectangle = 0.7 ms`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_drawing_costs(text: &str) -> Result<DisplayDrawingCosts, String> {
    let mut drawing = DisplayDrawingCosts::default();
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let (name, time) = one
            .split_once('=')
            .ok_or_else(|| format!("`{one}` needs a time, as in `pixel = 5 us`"))?;
        let place = match name.trim() {
            "request" => &mut drawing.request,
            "pixel" => &mut drawing.pixel,
            "rectangle" => &mut drawing.rectangle,
            "letter" => &mut drawing.letter,
            "added" => &mut drawing.added,
            "added_rectangle" => &mut drawing.added_rectangle,
            "answer" => &mut drawing.answer,
            other => {
                return Err(format!(
                    "`{other}` cannot be given a time: choose request, pixel, rectangle, letter, added, added_rectangle or answer"
                ));
            }
        };
        *place = parse_duration(&time.replace(' ', ""))?.as_secs_f64() * 1e9;
    }
    Ok(drawing)
}
