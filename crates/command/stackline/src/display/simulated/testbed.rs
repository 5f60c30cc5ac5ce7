//! Client, display and what lies between them, as flags say, on a network: what cannot go together is refused.

use super::carrier::{self, DisplayCarrierStack};
use crate::exit::{Error, Result};
use crate::flags::{ClassFlag, DisplayScene, ShownFlag};
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_displayserver::simulated::{
    DisplayDrawingCosts, DisplaySceneClass, SimulatedDisplayScene, SymbolDrawMoment,
};
use stackline_report::display::DisplayRateRow;

/// All that is simulated but the picture.
pub(super) struct DisplayTestbed {
    pub(super) network: Network,
    way: DisplayCarrierStack,
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
    /// As the flags say.
    pub(super) fn of(flags: &DisplayScene, network: Network) -> Result<Self> {
        stackline_sim::CAPABILITIES.accepts(&network)?;
        if network.has_imps() {
            let name = &network.name;
            return Err(Error::input(format!(
                "the network {name} is one of IMPs, over which no display is simulated"
            ))
            .hint("two lines of 56 kbit/s stand for it: `link near - middle 56 kbit/s 10 ms;`"));
        }
        if flags.class == ClassFlag::Local && (flags.over.is_some() || flags.display_over.is_some())
        {
            let error = Error::input("a local application has no transport between its hosts");
            return Err(error.hint("leave --over and --display-over out"));
        }
        let usual = if flags.class == ClassFlag::Messages {
            "ikp"
        } else {
            "tcp"
        };
        let over = flags.over.as_deref().unwrap_or(usual);
        let way = carrier::read(over, flags.display_over.as_deref())?;
        let to = named(&network, flags.display.as_deref(), false)?;
        let from = match (&flags.client, flags.class) {
            (None, ClassFlag::Local) => to.clone(),
            (name, _) => named(&network, name.as_deref(), true)?,
        };
        let internet = flags
            .internet
            .as_deref()
            .map(|name| named(&network, Some(name), false))
            .transpose()?;
        Ok(Self {
            way,
            over: over.to_owned(),
            from,
            to,
            internet,
            class: flags.class.into(),
            drawing: flags.draw,
            shown: if flags.shown == ShownFlag::Growing {
                SymbolDrawMoment::Growing
            } else {
                SymbolDrawMoment::Complete
            },
            gathers: flags.gathers,
            rectangle_bytes: flags.rectangle_bytes,
            call_bytes: flags.call_bytes,
            network,
        })
    }

    /// What is simulated, with that seed.
    pub(super) fn scene(&self, seed: u64) -> SimulatedDisplayScene<'_> {
        SimulatedDisplayScene {
            network: &self.network,
            from: self.from.clone(),
            to: self.to.clone(),
            internet: self.internet.clone(),
            class: self.class,
            carrier: self.way.carrier(),
            drawing: self.drawing,
            shown: self.shown,
            gathers: self.gathers,
            rectangle_bytes: self.rectangle_bytes,
            call_bytes: self.call_bytes,
            seed: Seed::root(seed),
        }
    }

    /// A host of the network.
    pub(super) fn host(&self, name: &str) -> Result<String> {
        named(&self.network, Some(name), false)
    }

    /// The client's host.
    pub(super) fn client(&self) -> &str {
        &self.from
    }

    /// Where the display is, for people.
    pub(super) fn place(&self) -> String {
        match self.class {
            DisplaySceneClass::Local => "the same host".to_owned(),
            _ => format!("{} from {} over {}", self.to, self.from, self.over),
        }
    }

    /// A rate with the reason why it is absent, where it is.
    pub(super) fn explained(&self, row: DisplayRateRow) -> DisplayRateRow {
        let absent = row.trials.is_empty().then(|| match row.rate {
            "construction" => {
                format!(
                    "takes no time: its operations, messages and bytes cost host {} none",
                    self.client()
                )
            }
            "display" => "takes no time: nothing that is drawn has a time in --draw".to_owned(),
            _ => "takes no time: neither hosts, nor drawing, nor what lies between take any"
                .to_owned(),
        });
        DisplayRateRow { absent, ..row }
    }

    /// The display's host and the client's.
    pub(super) fn hosts(&self) -> [String; 2] {
        [self.to.clone(), self.from.clone()]
    }
}

/// Nothing takes any time.
pub(super) fn no_rate() -> Error {
    Error::input("nothing of it takes any time, so there is no rate").hint(
        "say what hosts take, as in `host vax { work 2 ms per operation; }`, and the display: --draw 'pixel = 5 us'",
    )
}

/// The host of that name, or the first or the last.
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
        .hint(format!("its hosts are {}", names.join(", ")))
    })
}
