//! Flags of `stackline agent`.

use clap::Args;
use stackline_core::plan::ProcessorShare;
use std::net::IpAddr;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
`stackline run` starts its agents itself, here and by ssh. An agent that listens needs no ssh:

  there:  stackline agent --listen 0.0.0.0:7777
  here:   stackline run -e 'host b via tcp \"ADDRESS:7777\"; 3 to b rr 32*100'

Both need the same secret. The agent creates it in ~/.config/stackline/agent.secret; copy that file \
to the same place here, or set STACKLINE_AGENT_SECRET. The connection is TLS 1.3 and ends unless each \
side proves that it knows the secret. The measured data goes over connections of its own: one more \
open port, such as `--over 'tcp(port = 7778)'`.

Its address is the only line on stdout.

Clients of other tools have servers too, for everybody who reaches them; each line on stdout is one:

  there:  stackline agent --serve iperf3,http:8000 --at 0.0.0.0
  here:   iperf3 -c ADDRESS; curl http://ADDRESS:8000/bytes/1000000";

fn processor_share(text: &str) -> Result<ProcessorShare, String> {
    let percent = text
        .strip_suffix('%')
        .unwrap_or(text)
        .parse::<f64>()
        .ok()
        .filter(|it| (1.0..=6400.0).contains(it));
    percent
        .map(|percent| ProcessorShare((percent * 10.0) as u32))
        .ok_or_else(|| "expected 1% to 6400%, such as 50%".into())
}

#[derive(Args, Debug)]
pub(crate) struct AgentFlags {
    /// Serve coordinators that connect to this address and know the secret, as `host b via tcp "ADDRESS:PORT"`; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Serve clients of other tools instead, until Ctrl-C: `echo`, `discard`, `chargen`, `http`, `iperf3`, `stamp`, each with another port after a `:`
    #[arg(long, value_name = "PROTOCOLS", conflicts_with_all = ["listen", "connect", "files", "share", "secret_file"])]
    pub(crate) serve: Option<String>,
    /// With --serve: the address of this host where they listen; 0.0.0.0 for all
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1",
        requires = "serve"
    )]
    pub(crate) at: IpAddr,
    /// File whose first line is the secret; by default the secret in $STACKLINE_AGENT_SECRET, else ~/.config/stackline/agent.secret, which --listen creates if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Pass stdin and stdout on to an agent that listens (started by `run`)
    #[arg(long, value_name = "HOST:PORT", hide = true, conflicts_with_all = ["listen", "files", "share", "net_namespace"])]
    pub(crate) connect: Option<String>,
    /// The only directory in which the agent may access files
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// The share of a processor that the agent gets through its own control group, such as 50%
    #[arg(long, value_name = "PERCENT", value_parser = processor_share)]
    pub(crate) share: Option<ProcessorShare>,
    /// With --listen: let coordinators, who know the secret, load plug-ins and start programs on this host (`over plugin`, `over program`)
    #[arg(long, requires = "listen")]
    pub(crate) allow_own_stacks: bool,
    /// Neither loads plug-ins nor starts programs
    #[arg(long, hide = true, conflicts_with = "allow_own_stacks")]
    pub(crate) refuse_own_stacks: bool,
    /// The network namespace the agent enters first
    #[arg(long, value_name = "PATH", hide = true)]
    pub(crate) net_namespace: Option<PathBuf>,
    /// The user namespace the agent enters before that
    #[arg(long, value_name = "PATH", hide = true, requires = "net_namespace")]
    pub(crate) user_namespace: Option<PathBuf>,
}
