//! Flags of `blocks gateway`.

use clap::Args;
use std::net::SocketAddr;

pub(super) const AFTER: &str = "\
Examples:
  stackline blocks gateway --master 10.0.0.5:7480
  # a block, and where its time went
  curl -D - -o block http://127.0.0.1:7481/map/17
  # a range of the whole set
  curl -r 1000000-1999999 http://127.0.0.1:7481/map
  # a picture, to pan and zoom
  xdg-open http://127.0.0.1:7481/map/view

The gateway is read-only; anyone who can reach it can read every set, and so can web pages from other sites. \
docs/GATEWAY.md describes paths, headers and limits.";

#[derive(Args, Debug)]
pub(crate) struct BlocksGateway {
    /// Address to listen on; the default is reachable from this machine only
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7481")]
    pub(crate) listen: SocketAddr,
    /// The master's address
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "STACKLINE_BLOCKS_MASTER",
        default_value = "127.0.0.1:7480"
    )]
    pub(crate) master: String,
}
