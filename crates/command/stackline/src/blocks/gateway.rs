//! `stackline blocks gateway`: serves sets of blocks to HTTP clients until Ctrl-C or SIGTERM, which are its normal
//! end.

use crate::exit::{Exit, Result};
use crate::flags::BlocksGateway;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_blockserver::client::{self, BlockClient};
use stackline_blockserver::gateway::{self, GatewayOptions, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which it checks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// Shortest interval between two messages about closed connections.
const REST: Duration = Duration::from_secs(10);

/// Serves until it is interrupted. The first line on stdout is the address.
pub(crate) fn gateway(flags: &BlocksGateway) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let options = GatewayOptions {
        listen: flags.listen,
        master: flags.master.clone(),
        patience: limits::Patience::default(),
        connections: limits::CONNECTIONS,
        room: limits::ROOM,
    };
    let running = gateway::start(options)?;
    output::print(&format!("http://{}/\n", running.address()))?;
    if !running.address().ip().is_loopback() {
        output::say(&"anyone who can reach that address can read every set: reading needs no key");
    }
    let master = flags.master.clone();
    // The gateway serves meanwhile: with each request it asks the master for what it needs. This only warns when the
    // master cannot be reached.
    std::thread::spawn(move || {
        if let Err(error) = BlockClient::connect(&master, client::BlockClientOptions::default()) {
            output::say(&format!(
                "{}; until the master is available, requests are answered with 503",
                error.message
            ));
        }
    });
    let (mut reported, mut said) = (0, None::<Instant>);
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
        let closed = running.closed_for_room();
        if closed > reported && said.is_none_or(|said| said.elapsed() >= REST) {
            let words = "connections closed because their clients did not read while others waited for buffer space";
            output::say(&format!("{words}: {}", closed - reported));
            (reported, said) = (closed, Some(Instant::now()));
        }
    }
    running.stop();
    Ok(Exit::Done)
}
