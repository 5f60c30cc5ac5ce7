//! `program`: a stack that is two programs of the user's, a server and a client, which take commands on their standard input and answer on
//! their standard output, a line each (`docs/STACKS.md`). The data goes between the programs in their own way; an operation lasts from its
//! command to its answer.

mod answer;
mod child;
mod connection;

use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack, OwnCode,
};
use crate::stacks::plugin::MOST_OPTIONS;
use child::{CommandPatience, OwnProgram, SharedProgram};
use connection::ProgramConnection;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::plan::Stack;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

static TABLE: StackTable = StackTable {
    name: "program",
    summary: "a stack of your own: two programs that take commands on their standard input",
    files: false,
    own_data: true,
    options: &[
        OptionTable::new(
            "server",
            OptionKind::PATH,
            "none: it has to be written",
            "the responder's program on its agent's host; a relative path begins where the agent was started",
        ),
        OptionTable::new(
            "client",
            OptionKind::PATH,
            "none: it has to be written",
            "the initiator's program on its agent's host",
        ),
        OptionTable::new(
            "options",
            OptionKind::Text(MOST_OPTIONS),
            "none: the command `options` is not sent",
            "a text that both programs get with their second command",
        ),
    ],
    required: &["server", "client"],
    mapping: ServiceMapping(
        "\
ConnectRequest -> the command `connect ADDRESS` to the client
AwaitConnectIndication -> the command `accept` to the server
DataRequest -> `send BYTES TIMES`, in portions of about 5 ms
AwaitDataIndication -> `receive BYTES TIMES`
RPCCall -> `call REQUEST RESPONSE`
RPCAwaitCallInd -> `await_call BYTES`
RPCReturn -> `reply BYTES`
StartBulkGet, StartBulkPut -> `start_bulk get`, `start_bulk put`
AwaitStartBulkGet, AwaitStartBulkPut -> `await_start_bulk get`, `await_start_bulk put`
StopBulkGet, StopBulkPut -> `stop_bulk get`, `stop_bulk put`
AwaitStopBulkGet, AwaitStopBulkPut -> `await_stop_bulk get`, `await_stop_bulk put`
end of stream (time limit) -> `finish`
DisconnectRequest -> `disconnect`
AwaitDisconnectIndication -> `await_disconnect`",
    ),
    ..StackTable::RELIABLE
};

/// The stack `program`.
pub(super) struct ProgramStack;

impl LiveStack for ProgramStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn own_code(&self, stack: &Stack) -> Option<OwnCode> {
        let path = |option: &str| stack.text(option).unwrap_or_default().to_owned();
        Some(OwnCode {
            name: format!("the programs {} and {}", path("server"), path("client")),
            in_agent: false,
        })
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        let mut program = started(parameters, "server")?;
        // Nothing ends a job before its responder listens; the patience does.
        let flags = LiveCancelFlags::default();
        let command = format_args!("listen {}", parameters.bind);
        let address = program.ask_for_text(command, &flags)?;
        Ok(Box::new(ProgramListener {
            settings: settings(parameters, &program),
            program: Arc::new(Mutex::new(program)),
            address,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let program = started(parameters, "client")?;
        Ok(Box::new(ProgramConnector {
            settings: settings(parameters, &program),
            program: Arc::new(Mutex::new(program)),
            address: address.to_owned(),
        }))
    }
}

/// Starts the program that is this side of a pair, and greets it.
fn started(parameters: &LiveConnectParameters, side: &str) -> Result<OwnProgram> {
    let stack = &parameters.stack;
    let mut program = OwnProgram::start(stack.text(side).unwrap_or_default())?;
    let token = parameters
        .token
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
    program.greet(side, parameters.replica, &token)?;
    if let Some(options) = stack.text("options") {
        let flags = LiveCancelFlags::default();
        program.ask(
            format_args!("options {options}"),
            &flags,
            CommandPatience::Bounded,
        )?;
    }
    Ok(program)
}

/// What is recorded of a program and its options.
fn settings(parameters: &LiveConnectParameters, program: &OwnProgram) -> BTreeMap<String, String> {
    let written = ["server", "client", "options"].into_iter();
    let mut settings: BTreeMap<String, String> = written
        .filter_map(|option| Some((option.into(), parameters.stack.text(option)?.into())))
        .collect();
    if !program.of_itself().is_empty() {
        settings.insert("name".into(), program.of_itself().into());
    }
    settings
}

struct ProgramListener {
    program: SharedProgram,
    address: String,
    settings: BTreeMap<String, String>,
}

impl LiveListener for ProgramListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let command = format_args!("accept");
        program.ask(command, &buffers.flags, CommandPatience::UntilEnded)?;
        Ok(Box::new(ProgramConnection::new(
            &self.program,
            &self.settings,
        )))
    }
}

struct ProgramConnector {
    program: SharedProgram,
    address: String,
    settings: BTreeMap<String, String>,
}

impl Connector for ProgramConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let command = format_args!("connect {}", self.address);
        program.ask(command, &buffers.flags, CommandPatience::Bounded)?;
        Ok(Box::new(ProgramConnection::new(
            &self.program,
            &self.settings,
        )))
    }
}
