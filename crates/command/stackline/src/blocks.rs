//! `stackline blocks`: the command line of the parallel block server. The logic of blocks is in `stackline_blocks`;
//! sockets and disks are in `stackline_blockserver`.

mod gateway;
mod get;
mod list;
mod load;
mod progress_bar;
mod replay;
mod serving;

use crate::exit::{Error, Exit, Result};
use crate::flags::{self, BlocksCommand};
use crate::output;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::emulated::BlockPart;
use stackline_blockserver::{connection, key};

/// Carries out the subcommand of `blocks`.
pub(crate) fn blocks(flags: &flags::BlocksFlags) -> Result {
    match &flags.command {
        BlocksCommand::Key(flags) => make_key(flags),
        BlocksCommand::Master(flags) => serving::master(flags),
        BlocksCommand::Serve(flags) => serving::serve(flags),
        BlocksCommand::Load(flags) => load::load(flags),
        BlocksCommand::Get(flags) => get::get(flags),
        BlocksCommand::List(flags) => list::list(flags),
        BlocksCommand::Delete(flags) => delete(flags),
        BlocksCommand::Gateway(flags) => gateway::gateway(flags),
        BlocksCommand::Replay(flags) => replay::replay(flags),
        BlocksCommand::Part(flags) => part(flags),
    }
}

/// Creates a key file and prints its path.
fn make_key(flags: &flags::BlocksKey) -> Result {
    let path = flags
        .file
        .clone()
        .or_else(key::usual_place)
        .ok_or_else(|| {
            Error::environment("cannot store the key: there is no home directory")
                .hint("specify a file: `stackline blocks key FILE`")
        })?;
    key::create_key_file(&path)?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// Runs one part of a session on a host of an emulated network: master, disk server or client.
fn part(flags: &flags::BlocksPart) -> Result {
    match BlockPart::read(&flags.file)? {
        BlockPart::Master(part) => serving::master_part(&part),
        BlockPart::Server(part) => serving::server_part(&part),
        BlockPart::Session(part) => replay::against(&part.request, part.json),
    }
}

fn delete(flags: &flags::BlocksDelete) -> Result {
    let key = key::find_key(flags.key.key.as_deref(), |note| output::say(&note))?
        .ok_or_else(connection::no_key)?;
    let client = BlockClient::connect(
        &flags.at.master,
        BlockClientOptions {
            key: Some(key),
            ..BlockClientOptions::default()
        },
    )?;
    client.delete(&flags.set)?;
    Ok(Exit::Done)
}
