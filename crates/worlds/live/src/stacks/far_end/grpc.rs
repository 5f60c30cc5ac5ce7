//! `grpc` and `grpcs`: a unary method of a gRPC server for each call, by HTTP/2; the health check unless the address names another one
//! (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use super::byte_stream::OPENING;
use super::grpc_message::{GrpcJson, LARGEST_ANSWER, MESSAGE_NEEDS, MESSAGE_OPTIONS, REFLECTION};
use super::http2::{GrpcCaller, Http2Connector, Http2Form};
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::web::{UploadForm, request_uri};
use super::{OPTIONS, TABLE, no_responder, socket};
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveListener, LiveStack};
use prost_reflect::DescriptorPool;
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

const GRPC_TABLE: StackTable = StackTable {
    // `grpc` is the stack of both ends.
    name: "grpc_call",
    scheme: Some("grpc"),
    // An empty message is a request.
    least_unit: 0,
    shares_connections: true,
    options: &GRPC_OPTIONS,
    needs: MESSAGE_NEEDS,
    summary: "client of a gRPC server: the method of the address, as in grpc://127.0.0.1:50051/package.Service/Method; without one, \
the health check",
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect; the preface and SETTINGS
RPCCall -> HEADERS of POST and DATA with one message, whose field 1 has the request's bytes (without any, an empty message), or with the \
message in JSON of the option `message`; HEADERS, DATA \
and the trailers with the status from the server
DisconnectRequest -> close",
    ),
    ..TABLE
};

const GRPC_OPTIONS: [OptionTable; 13] = StackTable::joined(
    &OPTIONS,
    &StackTable::joined::<3>(&MESSAGE_OPTIONS, &[OptionTable::STREAMS]),
);
const GRPCS_OPTIONS: [OptionTable; 14] = StackTable::joined(
    &TLS_OPTIONS,
    &StackTable::joined::<3>(&MESSAGE_OPTIONS, &[OptionTable::STREAMS]),
);

/// gRPC to servers of others.
pub(crate) struct GrpcFarEnd {
    table: &'static StackTable,
    port: u16,
    tls: TlsStart,
}

pub(crate) static GRPC: GrpcFarEnd = GrpcFarEnd {
    table: &GRPC_TABLE,
    port: 50051,
    tls: TlsStart::Never(Some("grpcs")),
};

pub(crate) static GRPCS: GrpcFarEnd = GrpcFarEnd {
    table: &StackTable {
        name: "grpcs_call",
        scheme: Some("grpcs"),
        summary: "the same over TLS 1.2 or 1.3, whose handshake is part of connecting",
        options: &GRPCS_OPTIONS,
        ..GRPC_TABLE
    },
    port: 443,
    tls: TlsStart::AtOnce {
        protocol: Some("h2"),
        plain: "grpc",
    },
};

impl LiveStack for GrpcFarEnd {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn file_option(&self, stack: &Stack) -> Option<&'static str> {
        GrpcJson::file_option(stack)
    }

    fn listen(&self, _: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Err(no_responder(self.table))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let address = FarEndAddress::parse(address)?;
        let servers = socket::resolve(&address.socket(self.port), &parameters.stack)?;
        let tls = self
            .tls
            .client(&address, &parameters.stack, self.table.name)?;
        let method = method_address(&address);
        let form = Http2Form {
            uri: request_uri(&method)?,
            upload: UploadForm::in_options(&parameters.stack),
            is_grpc: true,
            message: None,
        };
        let mut connector = Http2Connector::new(parameters, servers, tls, form)?;
        if let Some(json) = GrpcJson::in_options(&parameters.stack, &method.path)? {
            let types = match GrpcJson::types_of_file(&parameters.stack)? {
                Some(types) => types,
                None => types_of_server(&json, &connector)?,
            };
            connector.set_message(json.encode(&types)?);
        }
        Ok(Box::new(connector))
    }
}

/// The types that a server says it has, on a connection that nothing is measured of.
fn types_of_server(json: &GrpcJson, connector: &Http2Connector) -> Result<DescriptorPool> {
    let flags = Arc::<LiveCancelFlags>::default();
    let types = end_after(OPENING, &flags, || reflected_types(json, connector, &flags));
    match types {
        Err(_) if flags.ended() => Err(Error::measurement(format!(
            "the gRPC server needed more than {} s to say which types its request has",
            OPENING.as_secs()
        ))
        .hint(BY_FILE)),
        types => types,
    }
}

/// Does `step`, and ends it by `flags` when it takes longer than `limit`.
fn end_after<T>(limit: Duration, flags: &LiveCancelFlags, step: impl FnOnce() -> T) -> T {
    let (is_done, done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                flags.end();
            }
        });
        let result = step();
        drop(is_done);
        result
    })
}

/// How the types are known without asking the server.
const BY_FILE: &str = "name a file of them by the option `types`: `protoc --include_imports --descriptor_set_out=FILE` makes it";

fn reflected_types(
    json: &GrpcJson,
    connector: &Http2Connector,
    flags: &Arc<LiveCancelFlags>,
) -> Result<DescriptorPool> {
    let mut caller = GrpcCaller::connect(connector, flags)?;
    let mut paths = REFLECTION.into_iter().peekable();
    json.types_of_server(&mut |question| {
        while let Some(path) = paths.peek() {
            match caller.call(path, question.clone(), LARGEST_ANSWER)? {
                Some(answer) => return Ok(answer),
                None => paths.next(),
            };
        }
        let message =
            "the gRPC server has no reflection, so the types of the request are not known";
        Err(Error::measurement(message).hint(BY_FILE))
    })
}

/// What is called unless the address names a method.
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// The address of the method as requests of HTTP have it.
pub(super) fn method_address(address: &FarEndAddress) -> FarEndAddress {
    let scheme = if address.scheme == "grpcs" {
        "https"
    } else {
        "http"
    };
    let path = match address.path.as_str() {
        "" | "/" => HEALTH_CHECK,
        path => path,
    };
    FarEndAddress {
        scheme: scheme.into(),
        path: path.into(),
        ..address.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_method_the_health_is_asked_for() {
        let of = |text: &str| {
            let address = method_address(&FarEndAddress::parse(text).unwrap());
            format!("{}{}", address.scheme, address.path)
        };
        assert_eq!(of("grpc://h"), "http/grpc.health.v1.Health/Check");
        assert_eq!(of("grpcs://h/a.B/C"), "https/a.B/C");
    }
}
