//! Messages in JSON, and servers that say of their types too little or too much.

use super::*;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto,
};

fn field(name: &str, number: i32, kind: Type, of: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(Label::Optional as i32),
        r#type: Some(kind as i32),
        type_name: of.map(Into::into),
        ..FieldDescriptorProto::default()
    }
}

fn method(name: &str, is_streaming: bool) -> MethodDescriptorProto {
    MethodDescriptorProto {
        name: Some(name.into()),
        input_type: Some(".shop.Order".into()),
        output_type: Some(".shop.Order".into()),
        client_streaming: Some(is_streaming),
        ..MethodDescriptorProto::default()
    }
}

/// A service whose message has one of another file, and a time.
fn files() -> [FileDescriptorProto; 2] {
    let article = DescriptorProto {
        name: Some("Article".into()),
        field: vec![field("id", 1, Type::Int64, None)],
        ..DescriptorProto::default()
    };
    let order = DescriptorProto {
        name: Some("Order".into()),
        field: vec![
            field("name", 1, Type::String, None),
            field("article", 2, Type::Message, Some(".shop.Article")),
            field("due", 3, Type::Message, Some(".google.protobuf.Duration")),
        ],
        ..DescriptorProto::default()
    };
    let proto = |name: &str| FileDescriptorProto {
        name: Some(name.into()),
        package: Some("shop".into()),
        syntax: Some("proto3".into()),
        ..FileDescriptorProto::default()
    };
    [
        FileDescriptorProto {
            message_type: vec![article],
            ..proto("article.proto")
        },
        FileDescriptorProto {
            dependency: vec![
                "article.proto".into(),
                "google/protobuf/duration.proto".into(),
            ],
            message_type: vec![order],
            service: vec![ServiceDescriptorProto {
                name: Some("Orders".into()),
                method: vec![method("Put", false), method("PutAll", true)],
                ..ServiceDescriptorProto::default()
            }],
            ..proto("order.proto")
        },
    ]
}

fn request(method: &str, json: &str) -> GrpcJson {
    GrpcJson {
        json: json.into(),
        service: "shop.Orders".into(),
        method: method.into(),
    }
}

/// The answer of a server that has these files, one at a time, and none of those that every client has.
fn answer(question: &[u8]) -> Vec<u8> {
    let question = ReflectionQuestion::decode(question).unwrap();
    let [article, order] = files();
    let found = match (question.symbol.as_deref(), question.file.as_deref()) {
        (Some("shop.Orders"), None) => Some(order),
        (None, Some("article.proto")) => Some(article),
        _ => None,
    };
    let answer = ReflectionAnswer {
        error: found.is_none().then(|| ReflectionError {
            code: 5,
            message: "not found".into(),
        }),
        files: found.map(|file| ReflectedFiles {
            files: vec![file.encode_to_vec()],
        }),
    };
    answer.encode_to_vec()
}

#[test]
fn a_request_in_json_has_the_types_that_the_server_says() {
    let json = r#"{"name": "ann", "article": {"id": "7"}, "due": "1.5s"}"#;
    let request_of = request("Put", json);
    let types = request_of.types_of_server(&mut |q| Ok(answer(&q))).unwrap();
    let encoded = request_of.encode(&types).unwrap();
    assert_eq!(
        encoded[..],
        *b"\x0a\x03ann\x12\x02\x08\x07\x1a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"
    );
    for (method, json, message) in [
        (
            "Put",
            "{\"nam\": 1}",
            "the request in JSON does not fit `shop.Order`",
        ),
        ("Put", "{", "the request in JSON does not fit `shop.Order`"),
        (
            "Put",
            "{} {}",
            "the request in JSON does not fit `shop.Order`",
        ),
        ("Get", "{}", "`shop.Orders` has no method `Get`"),
        ("PutAll", "{}", "takes a stream of requests"),
    ] {
        let refused = request(method, json).encode(&types).unwrap_err();
        assert!(refused.message.contains(message), "{}", refused.message);
    }
}

#[test]
fn what_a_server_says_of_its_types_is_bounded() {
    let mut other = request("Put", "{}");
    other.service = "shop.Nobody".into();
    let unknown = other.types_of_server(&mut |q| Ok(answer(&q))).unwrap_err();
    assert!(
        unknown
            .message
            .contains("says nothing of `shop.Nobody` (code 5): not found")
    );
    let garbage = request("Put", "{}").types_of_server(&mut |_| Ok(vec![0xff; 9]));
    assert!(garbage.unwrap_err().message.contains("cannot be read"));
    // Each file wants another one.
    let mut asked = 0;
    let endless = request("Put", "{}").types_of_server(&mut |_| {
        asked += 1;
        let file = FileDescriptorProto {
            name: Some(format!("{asked}.proto")),
            dependency: vec![format!("{}.proto", asked + 1)],
            ..FileDescriptorProto::default()
        };
        let files = vec![file.encode_to_vec()];
        let answer = ReflectionAnswer {
            files: Some(ReflectedFiles { files }),
            error: None,
        };
        Ok(answer.encode_to_vec())
    });
    let message = endless.unwrap_err().message;
    assert!(message.contains("more than 1000 files"), "{message}");
    assert!(asked <= MOST_FILES + 1);
}
