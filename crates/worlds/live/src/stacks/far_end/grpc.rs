//! `grpc` and `grpcs`: a unary method of a gRPC server for each call, by HTTP/2; the health check unless the address names another one
//! (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use super::http2::{Http2Connector, Http2Form};
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::web::request_uri;
use super::{OPTIONS, TABLE, no_responder, socket};
use crate::error::Result;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveListener, LiveStack};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;

const GRPC_TABLE: StackTable = StackTable {
    // `grpc` is the stack of both ends.
    name: "grpc_call",
    scheme: Some("grpc"),
    // An empty message is a request.
    least_unit: 0,
    options: &OPTIONS,
    summary: "client of a gRPC server: the method of the address, as in grpc://127.0.0.1:50051/package.Service/Method; without one, \
the health check",
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect; the preface and SETTINGS
RPCCall -> HEADERS of POST and DATA with one message, whose field 1 has the request's bytes (without any, an empty message); HEADERS, DATA \
and the trailers with the status from the server
DisconnectRequest -> close",
    ),
    ..TABLE
};

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
        options: &TLS_OPTIONS,
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
        let uri = request_uri(&method_address(&address))?;
        let form = Http2Form { uri, is_grpc: true };
        Ok(Box::new(Http2Connector::new(
            parameters, servers, tls, form,
        )))
    }
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
