//! The command line of `net`: networks shown, run programs on, kept and changed. Nothing here touches the machine.

use super::SpecTextFlags;
use crate::exit::{Error, Result};
use clap::{Args, Subcommand};
use stackline_emu::engine::EmulatorOptions;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Net {
    #[command(subcommand)]
    pub(crate) command: NetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    /// Print networks: hosts, links, and the path between each pair of hosts
    #[command(override_usage = "stackline net show [OPTIONS] <SPEC | NETWORK | -e TEXT>")]
    Show(NetShow),
    /// Run any program on a host of an emulated network
    #[command(override_usage = "stackline net exec [OPTIONS] <SPEC | NETWORK | -e TEXT> <HOST>\n                          -- <COMMAND>...", after_help = AFTER_EXEC)]
    Exec(NetExec),
    /// Create an emulated network and keep it until `net down`
    #[command(override_usage = "stackline net up [OPTIONS] <SPEC | -e TEXT> [NETWORK]", after_help = AFTER_UP)]
    Up(NetUp),
    /// Take down a network kept by `net up`
    Down(NetDown),
    /// List the emulated networks that are up
    List(NetList),
    /// Print a network of another tool as text of the language
    #[command(override_usage = "stackline net from [OPTIONS] <FILE | WORDS>", after_help = AFTER_FROM)]
    From(NetFrom),
    /// Change a link of a network that is up: its rate, delay, loss or queue
    #[command(after_help = AFTER_SET)]
    Set(NetSet),
}

#[derive(Args, Debug)]
pub(crate) struct NetShow {
    /// The specification that declares the network (a file, or - for standard input), or the name of a network that is up
    #[arg(required_unless_present = "expression", conflicts_with = "expression")]
    pub(crate) spec: Option<PathBuf>,
    /// The specification itself
    #[arg(short = 'e', long, value_name = "TEXT")]
    pub(crate) expression: Option<String>,
    /// Show only this network; by default, all of them
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
    /// Also draw the network to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

impl NetShow {
    /// The specification, with nothing in it replaced.
    pub(crate) fn text(&self) -> SpecTextFlags {
        let (spec, expression) = (self.spec.clone(), self.expression.clone());
        SpecTextFlags {
            spec,
            expression,
            json: self.json,
            ..SpecTextFlags::default()
        }
    }
}

const AFTER_EXEC: &str = "\
Examples:
  stackline net exec wan.stackline khons -- ping -c 3 udjat
  stackline net exec wan.stackline udjat -- python3 -m http.server 80
  stackline net exec wan.stackline khons -- bash
  # wan is up, made by `net up` or by one of the above
  stackline net exec wan khons -- bash

Programs that name the same network share it. The network exists as long as any of them runs; \
nothing is left after the last one exits, unless `stackline net up` keeps the network. Programs run as you, \
with your files, the network's host names in /etc/hosts, and control over their host's own network. \
Exit codes: the program's; 128+N if signal N ended it; 127 if the program is not found; 126 if it \
cannot be started.";

#[derive(Args, Debug)]
pub(crate) struct NetExec {
    /// The specification that declares the network (a file, or - for standard input) or the name of
    /// a network that is up; then the host
    #[arg(value_name = "SPEC> <HOST", required = true, num_args = 1..=2)]
    words: Vec<PathBuf>,
    /// The specification itself
    #[arg(short = 'e', long, value_name = "TEXT")]
    expression: Option<String>,
    /// The network, if several have that host
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
    /// Join the running network with that name, even if the specification has changed
    #[arg(long, conflicts_with = "seed")]
    pub(crate) join: bool,
    /// Network seed to use instead of the one in the specification
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Trace the program's requests, as `stackline trace --on SPEC HOST -- COMMAND` does
    #[arg(long, conflicts_with_all = ["network", "join", "seed", "expression"])]
    pub(crate) trace: bool,
    /// The program is part of a trace, which itself reports on the network
    #[arg(long, hide = true)]
    pub(crate) of_trace: bool,
    /// Where to write the time at which the program exits
    #[arg(long, hide = true, value_name = "FILE", requires = "of_trace")]
    pub(crate) end_to: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl NetExec {
    /// The specification, with nothing in it replaced, and the host.
    pub(crate) fn text(&self) -> Result<(SpecTextFlags, &str)> {
        let (spec, host) = match (&self.words[..], &self.expression) {
            ([spec, host], None) => (Some(spec.clone()), host),
            ([host], Some(_)) => (None, host),
            ([_], None) => {
                let hint = "use `stackline net exec SPEC HOST -- COMMAND`";
                return Err(Error::input("a host or a specification is missing").hint(hint));
            }
            _ => {
                let hint = "use `stackline net exec -e TEXT HOST -- COMMAND`";
                return Err(Error::input(
                    "the specification was given twice: as a file and with -e",
                )
                .hint(hint));
            }
        };
        let expression = self.expression.clone();
        let host = host
            .to_str()
            .ok_or_else(|| Error::input("the host name is not valid UTF-8"))?;
        Ok((
            SpecTextFlags {
                spec,
                expression,
                seed: self.seed,
                ..SpecTextFlags::default()
            },
            host,
        ))
    }

    /// How the network is emulated.
    pub(crate) fn options(&self) -> EmulatorOptions {
        EmulatorOptions::default()
    }
}

const AFTER_UP: &str = "\
Examples:
  stackline net up wan.stackline
  stackline net exec wan khons -- ping -c 3 udjat
  stackline net set wan khons-edge --loss 2%
  stackline net down wan

The network runs in a separate background process; if that is killed, nothing is left behind.";

#[derive(Args, Debug)]
pub(crate) struct NetUp {
    /// The specification that declares the network (a file, or - for standard input), and the network's name if several are declared
    #[arg(value_name = "SPEC> <NETWORK", num_args = 0..=2)]
    words: Vec<PathBuf>,
    /// The specification itself
    #[arg(short = 'e', long, value_name = "TEXT")]
    expression: Option<String>,
    /// Network seed to use instead of the one in the specification
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
}

impl NetUp {
    /// The specification, with nothing in it replaced, and the network's name.
    pub(crate) fn text(&self) -> Result<(SpecTextFlags, Option<String>)> {
        let (spec, network) = match (&self.words[..], &self.expression) {
            ([spec], None) => (Some(spec.clone()), None),
            ([spec, network], None) => (Some(spec.clone()), Some(network)),
            ([], Some(_)) => (None, None),
            ([network], Some(_)) => (None, Some(network)),
            ([], None) => {
                let hint = "use `stackline net up SPEC` or -e TEXT";
                return Err(Error::input("no specification was given").hint(hint));
            }
            _ => {
                let hint = "use `stackline net up -e TEXT [NETWORK]`";
                return Err(Error::input(
                    "the specification was given twice: as a file and with -e",
                )
                .hint(hint));
            }
        };
        let network = network.map(|name| name.to_string_lossy().into_owned());
        Ok((
            SpecTextFlags {
                spec,
                expression: self.expression.clone(),
                seed: self.seed,
                ..SpecTextFlags::default()
            },
            network,
        ))
    }

    /// How the network is emulated.
    pub(crate) fn options(&self) -> EmulatorOptions {
        EmulatorOptions::default()
    }
}

#[derive(Args, Debug)]
pub(crate) struct NetDown {
    /// The network's name, or the specification that declares it; by default the only network that is up
    pub(crate) network: Option<String>,
}

const AFTER_FROM: &str = "\
Examples:
  stackline net from 'tc qdisc add dev eth0 root netem delay 50ms 10ms loss 1%'
  stackline net from 'mm-delay 20 mm-link up.trace down.trace' > lte.stackline
  stackline net from 'mn --topo tree,depth=2,fanout=3 --link tc,bw=10,delay=5ms'

Comments of the text say what the other tool would really do where that surprises. What has no equivalent \
is an error; nothing is executed.";

#[derive(Args, Debug)]
pub(crate) struct NetFrom {
    /// The file of the other tool, - for standard input, or its command line as one argument
    #[arg(value_name = "FILE | WORDS")]
    pub(crate) source: String,
    /// The form, instead of the one that the text seems to have: tc, mahimahi, mininet
    #[arg(long = "as", value_name = "FORM")]
    pub(crate) form: Option<String>,
    /// The network's name; by default that of the file, or `net`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct NetList {
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

const AFTER_SET: &str = "\
Examples:
  stackline net set wan khons-edge --rate '2 Mbit/s' --delay '80 ms'
  stackline net set wan khons-edge --loss 'gilbert_elliott(1%, 25%)' \\
      --queue '32 KiB'

Values are written as in a specification. The link changes in both directions; packets already \
queued leave at their original times, and paths stay the same.";

#[derive(Args, Debug)]
pub(crate) struct NetSet {
    /// The network's name, or the specification that declares it
    pub(crate) network: String,
    /// The link, by the names of its ends, such as khons-edge
    pub(crate) link: String,
    /// Its new rate, such as '2 Mbit/s'
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Its new propagation delay, such as '80 ms'
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,
    /// Its new loss, such as 2%
    #[arg(long)]
    pub(crate) loss: Option<String>,
    /// The new limit of its queues, such as '32 KiB' or '50 packets'
    #[arg(long, value_name = "LIMIT")]
    pub(crate) queue: Option<String>,
}
