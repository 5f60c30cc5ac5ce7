//! `unix:PATH`: a unix socket, for programs of this user.

use super::scheme::{DisplayScheme, ParsedAddress, Refused};
use super::variants::DisplayAddress;
use crate::acceptor::{DisplayAcceptor, once_free};
use crate::stream::DisplayStream;
use stackline_core::error::Result;
use stackline_guard::socket;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The path of the socket.
pub(super) struct UnixAddress<'a>(pub(super) &'a Path);

/// Parses `unix:PATH`.
pub(super) fn parse(text: &str) -> Option<ParsedAddress> {
    let path = text.strip_prefix("unix:")?;
    let address = (!path.is_empty()).then(|| DisplayAddress::Unix(path.into()));
    Some(address.ok_or_else(|| "expected a path after `unix:`".into()))
}

impl DisplayScheme for UnixAddress<'_> {
    fn text(&self) -> String {
        format!("unix:{}", self.0.display())
    }

    fn connect(&self, absent: Refused<'_>) -> Result<DisplayStream> {
        let stream = UnixStream::connect(self.0).map_err(absent)?;
        Ok(DisplayStream::Unix(stream))
    }

    fn listen(&self, failed: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>> {
        let listens = || {
            remove_left_behind(self.0);
            socket::listen(self.0)
        };
        Ok(Box::new(UnixAcceptor {
            listener: once_free(listens).map_err(failed)?,
            path: self.0.to_owned(),
        }))
    }

    fn socket_file(&self) -> Option<PathBuf> {
        Some(self.0.to_owned())
    }

    fn elsewhere(&self) -> String {
        "unix:ANOTHER_PATH".into()
    }
}

/// A listening socket; its file is removed on drop.
#[derive(Debug)]
struct UnixAcceptor {
    listener: UnixListener,
    path: PathBuf,
}

impl DisplayAcceptor for UnixAcceptor {
    fn accept(&self) -> io::Result<DisplayStream> {
        loop {
            let (stream, _) = self.listener.accept()?;
            if socket::is_same_user(&stream) {
                return Ok(DisplayStream::Unix(stream));
            }
        }
    }

    fn address(&self) -> DisplayAddress {
        DisplayAddress::Unix(self.path.clone())
    }
}

impl Drop for UnixAcceptor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the file of a socket on which nobody listens any more, and nothing else.
fn remove_left_behind(path: &Path) {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        let _ = std::fs::remove_file(path);
    }
}
