//! `plugin`: a stack in a shared library of the user's, with the C interface of `clients/c/stackline_stack.h`. Each endpoint's thread loads
//! it; its functions are called on that thread, and nothing stands between an operation and them but a note of which function it is.

mod connection;
mod loaded_plugin;

use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::foreign_call::{ForeignCall, ForeignFunction};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack, OwnCode,
};
use connection::PluginConnection;
use loaded_plugin::{LoadedPlugin, WatchedHandle, plugin_name};
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::plan::Stack;
use stackline_os::plugin::{PluginChannel, PluginListener};
use stackline_proto::datagram::DatagramToken;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most bytes of the text that is passed on to a stack of the user's.
pub(super) const MOST_OPTIONS: u64 = 1024;

static TABLE: StackTable = StackTable {
    name: "plugin",
    summary: "a stack of your own: a shared library with the C interface of clients/c/stackline_stack.h",
    options: &[
        OptionTable::new(
            "library",
            OptionKind::PATH,
            "none: it has to be written",
            "the library's path on the agent's host; a relative one begins where the agent was started",
        ),
        OptionTable::new(
            "options",
            OptionKind::Text(MOST_OPTIONS),
            "empty",
            "passed on to the library as it is",
        ),
    ],
    required: &["library"],
    mapping: ServiceMapping(
        "\
ConnectRequest -> connect; send of a 16-byte token
AwaitConnectIndication -> accept; receive of the 16-byte token; connections without it are closed
DataRequest -> send, until the whole unit is sent
AwaitDataIndication -> receive of up to max(unit, 128 KiB) until the unit is complete
RPCCall -> call; without that, send of the request, receive until the response is complete
RPCAwaitCallInd -> await_call; without that, receive until the request is complete
RPCReturn -> reply; without that, send of the response
StartBulkGet, StartBulkPut -> start_bulk; without that, send of 1 byte
AwaitStartBulkGet, AwaitStartBulkPut -> await_start_bulk; without that, receive of 1 byte
StopBulkGet, AwaitStopBulkGet -> stop_bulk, await_stop_bulk; without these, none: the last unit has arrived
StopBulkPut -> stop_bulk; without that, receive of 1 byte that confirms arrival
AwaitStopBulkPut -> await_stop_bulk; without that, send of that byte
end of stream (time limit) -> finish; the peer's receive returns 0
DisconnectRequest -> finish, close
AwaitDisconnectIndication -> receive until it returns 0, close",
    ),
    ..StackTable::RELIABLE
};

/// The stack `plugin`.
pub(super) struct PluginStack;

impl LiveStack for PluginStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn own_code(&self, stack: &Stack) -> Option<OwnCode> {
        Some(OwnCode {
            name: plugin_name(stack),
            in_agent: true,
        })
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        let plugin = LoadedPlugin::load(parameters)?;
        let listened = plugin
            .foreign
            .within(ForeignFunction::Listen, || {
                plugin.library.listen(&plugin.endpoint)
            })
            .map_err(|failure| plugin.failure("`listen`", &failure))?;
        let (listener, address) = listened;
        if address.is_empty() || address.chars().any(char::is_control) {
            let message = format!(
                "{} returned the address `{}` from `listen`",
                plugin.name,
                address.escape_debug()
            );
            return Err(Error::environment(message)
                .hint("an address is a port number, or a text without control characters"));
        }
        Ok(Box::new(LivePluginListener {
            listener: WatchedHandle::new(listener, &plugin.foreign),
            address,
            token: parameters.token,
            plugin: Arc::new(plugin),
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        Ok(Box::new(PluginConnector {
            plugin: Arc::new(LoadedPlugin::load(parameters)?),
            address: address.to_owned(),
            token: parameters.token,
        }))
    }
}

struct LivePluginListener {
    listener: WatchedHandle<PluginListener>,
    address: String,
    token: DatagramToken,
    plugin: Arc<LoadedPlugin>,
}

impl LiveListener for LivePluginListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let flags = &buffers.flags;
        loop {
            let accepted = self
                .listener
                .call(ForeignFunction::Accept, |it| it.accept(flags.stop()));
            let channel = self
                .plugin
                .checked(ForeignFunction::Accept, accepted, flags)?;
            let mut channel = WatchedHandle::new(channel, &self.plugin.foreign);
            if shows(&mut channel, &self.plugin.foreign, &self.token) {
                return Ok(Box::new(PluginConnection::new(channel, &self.plugin)));
            }
            flags.interrupted()?;
            self.plugin.foreign.expired.store(0, Ordering::Relaxed);
        }
    }
}

/// Whether a connection that was accepted begins with the token. It is given up when it takes too long, fails or ends.
fn shows(
    channel: &mut WatchedHandle<PluginChannel>,
    foreign: &ForeignCall,
    token: &DatagramToken,
) -> bool {
    let (mut shown, mut have) = (DatagramToken::default(), 0);
    while have < shown.len() {
        let room = &mut shown[have..];
        let got = channel.call(ForeignFunction::ReceiveToken, |it| {
            it.receive(room, &foreign.expired)
        });
        match got {
            Ok(0) | Err(_) => return false,
            Ok(bytes) => have += bytes,
        }
    }
    shown == *token
}

struct PluginConnector {
    plugin: Arc<LoadedPlugin>,
    address: String,
    token: DatagramToken,
}

impl Connector for PluginConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (plugin, flags) = (&self.plugin, &buffers.flags);
        let connected = plugin.foreign.within(ForeignFunction::Connect, || {
            let (endpoint, stop) = (&plugin.endpoint, flags.stop());
            plugin.library.connect(endpoint, &self.address, stop)
        });
        let channel = plugin.checked(ForeignFunction::Connect, connected, flags)?;
        let channel = WatchedHandle::new(channel, &plugin.foreign);
        let mut connection = PluginConnection::new(channel, plugin);
        connection.send_all(&self.token, flags)?;
        Ok(Box::new(connection))
    }
}
