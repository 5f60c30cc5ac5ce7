//! A client of HTTP/2 and a server of hyper's: what is asked, what comes, and whose fault an error is.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};
use stackline_core::catalogue::OptionValue;
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::error::{Error, Result};
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::contract::{LiveConnectParameters, LiveConnection};
use stackline_live::stacks::find_stack;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// A body that goes on for ever.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[7; 16384])))))
    }
}

type ServedBody = BoxBody<Bytes, Infallible>;

fn served(bytes: impl Into<Bytes>) -> ServedBody {
    Full::new(bytes.into()).boxed()
}

/// A message of gRPC with the status behind it: that the server serves, or what it was sent.
fn grpc_answer(message: Option<Bytes>) -> ServedBody {
    let message = message.unwrap_or_else(|| Bytes::from_static(&[0, 0, 0, 0, 2, 8, 1]));
    let status = [("grpc-status", "0")].map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    let trailers = async move { Some(Ok(HeaderMap::from_iter(status))) };
    Full::new(message).with_trailers(trailers).boxed()
}

/// Answers a GET with 3000 bytes, anything else with what it carries; `/gone` is not there, `/slow` takes a minute, `/full` has no room for
/// what it is sent, the body of `/endless` does not end.
async fn answer(request: Request<Incoming>) -> hyper::Result<Response<ServedBody>> {
    let mut response = Response::new(served(vec![7; 3000]));
    match request.uri().path() {
        "/gone" => *response.status_mut() = StatusCode::NOT_FOUND,
        "/full" => *response.status_mut() = StatusCode::INSUFFICIENT_STORAGE,
        "/slow" => tokio::time::sleep(Duration::from_secs(60)).await,
        "/endless" => *response.body_mut() = Endless.boxed(),
        "/grpc.health.v1.Health/Check" => *response.body_mut() = grpc_answer(None),
        "/test.Echo/Call" => {
            assert_eq!(request.headers()["content-type"], "application/grpc");
            let carried = request.into_body().collect().await?.to_bytes();
            *response.body_mut() = grpc_answer(Some(carried));
        }
        // The newer version of reflection is not there; the older one is.
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
            let question = request.into_body().collect().await?.to_bytes();
            *response.body_mut() = grpc_answer(Some(reflected(&question)));
        }
        "/shop.Orders/Put" => {
            let carried = request.into_body().collect().await?.to_bytes();
            assert_eq!(carried[..], *b"\0\0\0\0\x09\x0a\x03ann\x12\x02\x08\x07");
            *response.body_mut() = grpc_answer(Some(carried));
        }
        "/test.Echo/None" | "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" => {
            let fields = response.headers_mut();
            fields.insert("grpc-status", HeaderValue::from_static("12"));
            *response.body_mut() = served("");
        }
        _ if request.method() == Method::GET => {}
        _ => {
            let carried = request.into_body().collect().await?.to_bytes();
            *response.body_mut() = served(carried);
        }
    }
    Ok(response)
}

/// A service `shop.Orders`, whose method takes a message with a name and an article.
fn types() -> FileDescriptorSet {
    let field = |name: &str, number, kind: Type, of: Option<&str>| FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: of.map(Into::into),
        ..FieldDescriptorProto::default()
    };
    let message = |name: &str, field| DescriptorProto {
        name: Some(name.into()),
        field,
        ..DescriptorProto::default()
    };
    let article = vec![field("id", 1, Type::Int64, None)];
    let order = vec![
        field("name", 1, Type::String, None),
        field("article", 2, Type::Message, Some(".shop.Article")),
    ];
    let put = MethodDescriptorProto {
        name: Some("Put".into()),
        input_type: Some(".shop.Order".into()),
        output_type: Some(".shop.Order".into()),
        ..MethodDescriptorProto::default()
    };
    let orders = ServiceDescriptorProto {
        name: Some("Orders".into()),
        method: vec![put],
        ..ServiceDescriptorProto::default()
    };
    let file = |name: &str| FileDescriptorProto {
        name: Some(name.into()),
        package: Some("shop".into()),
        syntax: Some("proto3".into()),
        ..FileDescriptorProto::default()
    };
    let articles = FileDescriptorProto {
        message_type: vec![message("Article", article)],
        ..file("article.proto")
    };
    let orders = FileDescriptorProto {
        dependency: vec!["article.proto".into()],
        message_type: vec![message("Order", order)],
        service: vec![orders],
        ..file("order.proto")
    };
    FileDescriptorSet {
        file: vec![articles, orders],
    }
}

/// What a server with these types answers to a question of its reflection: one file each time.
fn reflected(question: &[u8]) -> Bytes {
    let names = |name: &[u8]| question.windows(name.len()).any(|part| part == name);
    let [articles, orders] = <[_; 2]>::try_from(types().file).unwrap();
    // Field 4 has the name of a symbol, field 3 that of a file.
    let file = match (question[5], names(b"shop.Orders"), names(b"article.proto")) {
        (0x22, true, _) => Some(orders.encode_to_vec()),
        (0x1a, _, true) => Some(articles.encode_to_vec()),
        _ => None,
    };
    let within = |key: u8, bytes: &[u8]| {
        let mut message = vec![key];
        prost::encode_length_delimiter(bytes.len(), &mut message).unwrap();
        message.extend_from_slice(bytes);
        message
    };
    // Files, or an error with its code and its reason.
    let message = match file {
        Some(file) => within(0x22, &within(0x0a, &file)),
        None => within(0x3a, b"\x08\x05\x12\x07unknown"),
    };
    let mut answer = vec![0];
    answer.extend_from_slice(&(message.len() as u32).to_be_bytes());
    answer.extend_from_slice(&message);
    answer.into()
}

/// A server in a thread of its own, for as long as the test runs.
fn server() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let builder = http2::Builder::new(TokioExecutor::new());
                let serving = builder.serve_connection(TokioIo::new(socket), service_fn(answer));
                tokio::spawn(serving);
            }
        });
    });
    address
}

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).unwrap()
}

fn connected(address: &str, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
    connected_with(address, &[], buffers)
}

fn connected_with(
    address: &str,
    words: &[(&str, &str)],
    buffers: &mut LiveThreadBuffers,
) -> Result<Box<dyn LiveConnection>> {
    let scheme = address.split("://").next().unwrap();
    let stack = find_stack(if scheme == "grpc" {
        "grpc_call"
    } else {
        scheme
    })
    .unwrap();
    let mut options = BTreeMap::from([("timeout".to_string(), OptionValue::Seconds(1.0))]);
    for (name, word) in words {
        options.insert((*name).into(), OptionValue::Word((*word).into()));
    }
    if scheme == "http" {
        options.insert("version".to_string(), OptionValue::Word("http2".into()));
    }
    let parameters = LiveConnectParameters {
        stack: stack.table().stack(options),
        token: [0; 16],
        carries_data: true,
        replica: 0,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        member: None,
        foreign: Arc::default(),
    };
    stack.connector(&parameters, address)?.connect(buffers)
}

#[test]
fn requests_and_bodies_of_http2() {
    let (address, mut buffers) = (server(), memory());
    let buffers = &mut buffers;
    let mut connection = connected(&format!("http://{address}/page?x=1"), buffers).unwrap();
    let since = Instant::default();
    for _ in 0..100 {
        assert!(connection.call(0, 0, since, buffers).unwrap());
    }
    assert_eq!(connection.settings()["body"], "3000 B");
    // Larger than any window of a stream.
    assert!(connection.call(4 << 20, 0, since, buffers).unwrap());
    assert_eq!(connection.settings()["body"], "4194304 B");
    connection.start_bulk(BulkDirection::Get, buffers).unwrap();
    assert_eq!(connection.receive(1000, 10, buffers).unwrap(), 10);
    connection.stop_bulk(BulkDirection::Get, buffers).unwrap();
    connection.start_bulk(BulkDirection::Put, buffers).unwrap();
    assert_eq!(connection.send(100_000, 30, buffers).unwrap(), 30);
    connection.stop_bulk(BulkDirection::Put, buffers).unwrap();
    assert_eq!(connection.settings()["body"], "3000000 B");
    connection.disconnect(buffers).unwrap();
}

#[test]
fn methods_of_a_grpc_server_are_called_and_their_statuses_named() {
    let (address, mut buffers) = (server(), memory());
    let since = Instant::default();
    let mut call = |path: &str, bytes| -> Result<String> {
        let mut connection = connected(&format!("grpc://{address}{path}"), &mut buffers)?;
        connection.call(bytes, 0, since, &mut buffers)?;
        Ok(connection.settings()["body"].clone())
    };
    assert_eq!(call("", 0).unwrap(), "7 B");
    // The prefix of five bytes, the key and the length of the field, and the bytes.
    assert_eq!(call("/test.Echo/Call", 100).unwrap(), "107 B");
    assert_eq!(call("/test.Echo/Call", 0).unwrap(), "5 B");
    let none = call("/test.Echo/None", 0).unwrap_err();
    assert!(none.message.contains("status 12 UNIMPLEMENTED"), "{none}");
    let plain = call("/page", 10).unwrap_err();
    assert!(plain.message.contains("without a gRPC status"), "{plain}");
    let gone = call("/gone", 10).unwrap_err();
    assert!(gone.message.contains("status 404"), "{gone}");
}

#[test]
fn a_request_in_json_has_the_types_of_the_server_or_of_a_file() {
    let (address, mut buffers) = (server(), memory());
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let json = r#"{"name": "ann", "article": {"id": "7"}}"#;
    let (request, types) = (
        file("request.json", json.as_bytes()),
        file("types.pb", &types().encode_to_vec()),
    );
    let mut call = |path: &str, words: &[(&str, &str)], bytes| -> Result<String> {
        let to = format!("grpc://{address}{path}");
        let mut connection = connected_with(&to, words, &mut buffers)?;
        connection.call(bytes, 0, Instant::default(), &mut buffers)?;
        Ok(connection.settings()["message"].clone())
    };
    let put = "/shop.Orders/Put";
    assert_eq!(call(put, &[("message", json)], 0).unwrap(), "9 B");
    assert_eq!(call(put, &[("message", &request)], 0).unwrap(), "9 B");
    let both = [("message", json), ("types", &types)];
    assert_eq!(call(put, &both, 0).unwrap(), "9 B");
    let garbage = file("garbage.pb", b"\xff\xff");
    for (path, words, message) in [
        (
            put,
            &[("message", "{\"nam\": 1}")][..],
            "does not fit `shop.Order`",
        ),
        (
            "/shop.Orders/Get",
            &both[..],
            "`shop.Orders` has no method `Get`",
        ),
        (
            "/shop.None/Get",
            &both[..],
            "the types have no gRPC service `shop.None`",
        ),
        (
            "/shop.None/Get",
            &both[..1],
            "says nothing of `shop.None` (code 5): unknown",
        ),
        (
            put,
            &[("message", "nowhere.json")],
            "names nowhere.json, which cannot be read",
        ),
        (
            put,
            &[("message", json), ("types", &garbage)],
            "is not a set of descriptors",
        ),
    ] {
        let refused = call(path, words, 0).unwrap_err();
        assert!(refused.message.contains(message), "{refused}");
    }
    let data = call(put, &both, 100).unwrap_err();
    assert!(data.message.contains("but the call has data"), "{data}");
}

#[test]
fn a_server_that_refuses_a_put_early_is_reported_with_its_status() {
    let mut buffers = memory();
    let address = format!("http://{}/full", server());
    let mut connection = connected(&address, &mut buffers).unwrap();
    connection
        .start_bulk(BulkDirection::Put, &mut buffers)
        .unwrap();
    let sent = connection.send(1 << 20, 1000, &mut buffers);
    let refused = sent.unwrap_err();
    assert!(refused.message.contains("status 507"), "{refused}");
}

#[test]
fn an_answer_without_end_ends_soon_after_the_time_limit() {
    let mut buffers = memory();
    let address = format!("http://{}/endless", server());
    let mut connection = connected(&address, &mut buffers).unwrap();
    buffers.flags.reach_limit();
    let called = connection.call(0, 0, Instant::default(), &mut buffers);
    let endless = called.unwrap_err();
    assert!(
        endless.message.contains("5 s after the time limit"),
        "{endless}"
    );
}

#[test]
fn errors_of_a_server_of_http2_name_it() {
    let address = server();
    let refused = |address: String| -> Error {
        let mut buffers = memory();
        let called = connected(&address, &mut buffers)
            .and_then(|mut connection| connection.call(0, 0, Instant::default(), &mut buffers));
        called.err().unwrap()
    };
    let gone = refused(format!("http://{address}/gone"));
    assert!(
        gone.message.contains("answered with status 404 Not Found"),
        "{gone}"
    );
    let slow = refused(format!("http://{address}/slow"));
    assert!(
        slow.message.contains("does not answer for 1.00 s"),
        "{slow}"
    );
    // A server of HTTP/1.1, as far as it gets.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut socket, _) = plain.accept().unwrap();
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        std::thread::sleep(Duration::from_secs(1));
    });
    let wrong = refused(format!("http://{other}/"));
    assert!(wrong.message.contains("does not speak HTTP/2"), "{wrong}");
}
