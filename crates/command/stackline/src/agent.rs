//! `stackline agent`: serves one coordinator over stdin and stdout; or listens and serves many (`--listen`); or passes
//! the bytes of a coordinator on to a listening agent (`--connect`).

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::interrupt;
use crate::output;
use stackline_guard::secret::SecretSource;
use stackline_guard::stop::StopSwitch;
use stackline_live::agent::AgentGrants;
use stackline_live::remote::agent_listener::{AgentListener, ListeningAgentOptions};
use stackline_live::remote::{SECRET, agent_connection};
use stackline_live::services::StockServices;
use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;

/// Serves until the pipe closes, or, when it listens, until Ctrl-C.
pub(crate) fn agent(flags: &flags::AgentFlags) -> Result {
    if let Some(list) = &flags.serve {
        return serve_others(list, flags);
    }
    match (&flags.listen, &flags.connect) {
        (Some(address), _) => listen(address, flags),
        (None, Some(address)) => connect(address, flags),
        (None, None) => serve_pipe(flags),
    }
}

fn serve_pipe(flags: &flags::AgentFlags) -> Result {
    if stdin().is_terminal() {
        output::say(
            &"the agent reads from a pipe and is started automatically by `stackline run` (Ctrl-D exits); to serve other machines, use --listen",
        );
    }
    if let Some(net) = &flags.net_namespace {
        // Done while this process has one thread: a user namespace can be entered only then.
        stackline_emu::enter::enter_network(flags.user_namespace.as_deref(), net)?;
    }
    stackline_live::agent::serve(
        stdin(),
        stdout().lock(),
        AgentGrants {
            files: flags.files.as_deref(),
            share: flags.share,
            own_stacks: !flags.refuse_own_stacks,
        },
    )?;
    Ok(Exit::Done)
}

/// Serves clients of other tools.
fn serve_others(list: &str, flags: &flags::AgentFlags) -> Result {
    let services = StockServices::bind(list, flags.at)?;
    let failed = |error| Error::environment(format!("cannot wait for Ctrl-C: {error}"));
    let stop = StopSwitch::new().map_err(failed)?;
    interrupt::throw_on_ctrl_c(&stop)?;
    let line = |(name, address)| format!("{name} {address}\n");
    let lines: String = services.addresses().into_iter().map(line).collect();
    output::print(&lines)?;
    services.serve(&stop);
    Ok(Exit::Done)
}

fn secret_source(flags: &flags::AgentFlags) -> SecretSource<'_> {
    SecretSource {
        file: flags.secret_file.as_deref(),
        variable: SECRET,
        usual: "agent.secret",
    }
}

fn listen(address: &str, flags: &flags::AgentFlags) -> Result {
    if let Some(directory) = flags.files.as_ref().filter(|path| !path.is_dir()) {
        return Err(
            Error::input(format!("{} is not a directory", directory.display()))
                .hint("create it, or name another one with --files"),
        );
    }
    let found = secret_source(flags).find_or_make()?;
    found.note.iter().for_each(output::say);
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let options = ListeningAgentOptions {
        program,
        files: flags.files.clone(),
        share: flags.share,
        own_stacks: flags.allow_own_stacks,
        secret: found.secret,
        say: |line| output::say(&line),
    };
    let failed = |error| Error::environment(format!("cannot listen on {address}: {error}"));
    let stop = StopSwitch::new().map_err(failed)?;
    let listener = AgentListener::bind(listening_address(address)?, options)?;
    interrupt::throw_on_ctrl_c(&stop)?;
    output::print(&format!("{}\n", listener.address().map_err(failed)?))?;
    listener.serve(&stop);
    Ok(Exit::Done)
}

fn listening_address(text: &str) -> std::result::Result<SocketAddr, Error> {
    let every = text.strip_prefix(':').map(|port| format!("[::]:{port}"));
    let wrong = |why: String| {
        Error::input(format!("cannot listen on `{text}`: {why}"))
            .hint("write ADDRESS:PORT, such as 0.0.0.0:7777 for every IPv4 address of this host")
    };
    every
        .as_deref()
        .unwrap_or(text)
        .to_socket_addrs()
        .map_err(|error| wrong(error.to_string()))?
        .next()
        .ok_or_else(|| wrong("the name has no address".into()))
}

fn connect(address: &str, flags: &flags::AgentFlags) -> Result {
    let found = secret_source(flags).find()?.ok_or_else(|| {
        Error::environment(format!("there is no secret for the agent at {address}")).hint(
            "copy ~/.config/stackline/agent.secret from its host to the same place here, or set STACKLINE_AGENT_SECRET",
        )
    })?;
    // Reads from the descriptor directly: Rust's `stdin` has a buffer in which bytes could wait unseen.
    let input = stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Error::environment(format!("stdin: {error}")))?;
    agent_connection::connect(address, &found.secret, File::from(input), stdout().lock())?;
    Ok(Exit::Done)
}
