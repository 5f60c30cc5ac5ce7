//! The request of a gRPC method as people write it, in JSON. Its types are those of a file that `protoc --descriptor_set_out` made, or
//! what the server says of itself (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use super::words::shown;
use crate::error::{Error, Result};
use bytes::Bytes;
use prost::Message;
use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, MethodDescriptor,
};
use serde_json::Deserializer;
use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The options: the request, and the file of its types.
const MESSAGE: &str = "message";
const TYPES: &str = "types";
pub(super) const MESSAGE_OPTIONS: [OptionTable; 2] = [
    OptionTable::new(
        MESSAGE,
        OptionKind::Name,
        "the bytes of the call as field 1",
        "the request in JSON: a file at the initiator, or the text itself if it begins with a brace",
    ),
    OptionTable::new(
        TYPES,
        OptionKind::Name,
        "the server is asked by its reflection",
        "a file at the initiator with the types of the request, by `protoc --include_imports --descriptor_set_out`",
    ),
];
/// What those need of each other.
pub(super) const MESSAGE_NEEDS: &[(&str, &str)] = &[(TYPES, MESSAGE)];
/// The methods of server reflection, the newer one first: both take the same messages.
pub(super) const REFLECTION: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];
/// The largest answer of server reflection, and the largest file, bytes.
pub(super) const LARGEST_ANSWER: usize = 4 << 20;
const LARGEST_FILE: u64 = 64 << 20;
/// Most names in a hint.
const MOST_NAMES: usize = 20;
/// Most files of types that a server is asked for.
const MOST_FILES: usize = 1000;

/// A question of server reflection.
#[derive(Clone, PartialEq, Message)]
struct ReflectionQuestion {
    #[prost(string, optional, tag = "3")]
    file: Option<String>,
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
}

/// What of an answer of server reflection matters.
#[derive(Clone, PartialEq, Message)]
struct ReflectionAnswer {
    #[prost(message, optional, tag = "4")]
    files: Option<ReflectedFiles>,
    #[prost(message, optional, tag = "7")]
    error: Option<ReflectionError>,
}

#[derive(Clone, PartialEq, Message)]
struct ReflectedFiles {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct ReflectionError {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// A request in JSON, as the options have it.
pub(super) struct GrpcJson {
    json: String,
    /// The name of the service, and that of the method.
    service: String,
    method: String,
}

impl GrpcJson {
    /// The option that names a file, if one does.
    pub(super) fn file_option(stack: &Stack) -> Option<&'static str> {
        let is_path = |text: &str| !text.trim_start().starts_with('{');
        if stack.word(TYPES).is_some() {
            return Some(TYPES);
        }
        stack.word(MESSAGE).is_some_and(is_path).then_some(MESSAGE)
    }

    /// The request for the method of that path, `/package.Service/Method`, if the options have one.
    pub(super) fn in_options(stack: &Stack, path: &str) -> Result<Option<Self>> {
        let Some(written) = stack.word(MESSAGE) else {
            return Ok(None);
        };
        let json = if written.starts_with('{') {
            written.to_owned()
        } else {
            let read = read_file(MESSAGE, written).map(String::from_utf8)?;
            read.map_err(|_| Error::input(format!("the file {written} is not text in UTF-8")))?
        };
        let names = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((service, method)) = names else {
            let message = format!("`{path}` is not the path of a gRPC method");
            return Err(
                Error::input(message).hint("write it as in \"grpc://HOST/package.Service/Method\"")
            );
        };
        Ok(Some(Self {
            json,
            service: service.into(),
            method: method.into(),
        }))
    }

    /// The types of the file that the options name, if they name one.
    pub(super) fn types_of_file(stack: &Stack) -> Result<Option<DescriptorPool>> {
        let Some(name) = stack.word(TYPES) else {
            return Ok(None);
        };
        let pool = DescriptorPool::decode(read_file(TYPES, name)?.as_slice());
        pool.map(Some).map_err(|e| {
            let message = format!("the file {name} is not a set of descriptors: {e}");
            Error::input(message)
                .hint("make it with `protoc --include_imports --descriptor_set_out=FILE`")
        })
    }

    /// The types that a server says it has: `ask` sends it a message, and returns the one that comes back.
    pub(super) fn types_of_server(
        &self,
        ask: &mut dyn FnMut(Vec<u8>) -> Result<Vec<u8>>,
    ) -> Result<DescriptorPool> {
        let mut files = BTreeMap::new();
        // The names that were asked for, or will be.
        let mut known = BTreeSet::new();
        let mut wanted = vec![ReflectionQuestion {
            symbol: Some(self.service.clone()),
            file: None,
        }];
        let mut bytes = 0;
        while let Some(question) = wanted.pop() {
            if question
                .file
                .as_ref()
                .is_some_and(|name| files.contains_key(name))
            {
                continue;
            }
            let answer = ask(question.encode_to_vec())?;
            bytes += answer.len() as u64;
            for file in reflected_files(&answer, &question, &self.service)? {
                for name in &file.dependency {
                    if known.len() <= MOST_FILES && known.insert(name.clone()) {
                        let file = Some(name.clone());
                        wanted.push(ReflectionQuestion { file, symbol: None });
                    }
                }
                files.insert(file.name().to_owned(), file);
            }
            if files.len() > MOST_FILES || known.len() > MOST_FILES || bytes > LARGEST_FILE {
                let message = format!("the server has more than {MOST_FILES} files of types");
                return Err(Error::measurement(message)
                    .hint(format!("name a file of them by the option `{TYPES}`")));
            }
        }
        let mut pool = DescriptorPool::new();
        let added = pool.add_file_descriptor_protos(files.into_values());
        added.map_err(|e| Error::measurement(format!("the server's types do not fit: {e}")))?;
        Ok(pool)
    }

    /// The request as the method takes it.
    pub(super) fn encode(&self, types: &DescriptorPool) -> Result<Bytes> {
        let method = self.find_method(types)?;
        let kind = method.input();
        let mut reader = Deserializer::from_str(&self.json);
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        let message = DynamicMessage::deserialize_with_options(kind.clone(), &mut reader, &options)
            .and_then(|message| reader.end().map(|()| message));
        let message = message.map_err(|e| {
            let (name, all) = (kind.full_name(), kind.fields().collect::<Vec<_>>());
            let fields = all.iter().map(FieldDescriptor::json_name);
            Error::input(format!("the request in JSON does not fit `{name}`: {e}"))
                .hint(format!("its fields: {}", listed(fields)))
        })?;
        Ok(Bytes::from(message.encode_to_vec()))
    }

    fn find_method(&self, types: &DescriptorPool) -> Result<MethodDescriptor> {
        let (service, wanted) = (&self.service, &self.method);
        let Some(found) = types.get_service_by_name(service) else {
            let all: Vec<_> = types.services().collect();
            let names = listed(all.iter().map(|one| one.full_name()));
            let message = format!("the types have no gRPC service `{service}`");
            return Err(Error::input(message).hint(format!("they have: {names}")));
        };
        let Some(method) = found.methods().find(|method| method.name() == wanted) else {
            let all: Vec<_> = found.methods().collect();
            let names = listed(all.iter().map(|one| one.name()));
            let message = format!("the gRPC service `{service}` has no method `{wanted}`");
            return Err(Error::input(message).hint(format!("it has: {names}")));
        };
        if method.is_client_streaming() {
            let message =
                format!("the method `{wanted}` of `{service}` takes a stream of requests");
            return Err(Error::input(message).hint("measure a method that takes one request"));
        }
        Ok(method)
    }
}

/// Names as a hint shows them.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names
        .take(MOST_NAMES)
        .map(|name| shown(name.as_bytes()))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// The bytes of a file that an option names.
fn read_file(option: &str, name: &str) -> Result<Vec<u8>> {
    let failed = |why: String| {
        Error::environment(format!("the option `{option}` names {name}, which {why}"))
            .hint("the file has to be where the initiator's agent runs")
    };
    let mut bytes = Vec::new();
    // A pipe without a writer would hold the agent up.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(name)
        .map_err(|e| failed(format!("cannot be read: {e}")))?;
    if !opened.metadata().is_ok_and(|known| known.is_file()) {
        return Err(failed("is not a regular file".into()));
    }
    opened
        .take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| failed(format!("cannot be read: {e}")))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(failed(format!("is larger than {LARGEST_FILE} B")));
    }
    Ok(bytes)
}

/// The files in an answer of server reflection.
fn reflected_files(
    answer: &[u8],
    question: &ReflectionQuestion,
    service: &str,
) -> Result<Vec<FileDescriptorProto>> {
    let wrong = || Error::measurement("the server's answer about its types cannot be read");
    let answer = ReflectionAnswer::decode(answer).map_err(|_| wrong())?;
    if let Some(files) = answer.files {
        let files = files.files.iter();
        let files = files.map(|file| FileDescriptorProto::decode(file.as_slice()));
        return files.collect::<Result<_, _>>().map_err(|_| wrong());
    }
    // Some servers leave out the types that every client has.
    let known = question.file.as_ref().and_then(|name| {
        let pool = DescriptorPool::global();
        pool.get_file_by_name(name)
    });
    if let Some(known) = known {
        return Ok(vec![known.file_descriptor_proto().clone()]);
    }
    let error = answer.error.ok_or_else(wrong)?;
    let said = shown(error.message.as_bytes());
    let what = question.file.as_deref().unwrap_or(service);
    Err(Error::measurement(format!(
        "the server says nothing of `{what}` (code {}): {said}",
        error.code
    ))
    .hint("check the path of the address: `/package.Service/Method`"))
}

#[cfg(test)]
mod tests;
