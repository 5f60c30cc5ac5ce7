//! Unix sockets that only programs of this user can use: private from their creation, whatever the umask is, with a check of each peer's
//! user.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::net::sockopt::socket_peercred;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// Listens at a path where no file exists. The socket is created in a private directory beside it, gets mode 0600 there, and is moved to
/// its path, so that no other user can ever connect to it.
///
/// # Errors
/// The kernel's; `AddrInUse` if a file is at the path, `InvalidInput` if the path is longer than an address can be (unix(7): 107 bytes).
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    // Check the length of the final path first: the socket is bound under another name, so `bind` would not notice.
    SocketAddr::from_pathname(path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let private = tempfile::Builder::new()
        .prefix(".s")
        .rand_bytes(8)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(without_path)?;
    let fresh = private.path().join("s");
    let listener = UnixListener::bind(&fresh)?;
    std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    match renameat_with(CWD, &fresh, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(listener),
        Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) => Err(error.into()),
    }
}

/// The error without the name of the private directory.
fn without_path(error: io::Error) -> io::Error {
    match error.kind() {
        kind if kind != io::ErrorKind::Other => kind.into(),
        _ => error,
    }
}

/// Whether the other end of a unix socket is a program of this user. It may be another user's in spite of the socket's mode: root, or one
/// that was passed the descriptor.
#[must_use]
pub fn is_same_user(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_private_and_replaces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = listen(&path).unwrap();
        assert_eq!(
            std::fs::symlink_metadata(&path)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        assert_eq!(
            std::fs::read_dir(place.path()).unwrap().count(),
            1,
            "the private directory is gone"
        );
        let ours = UnixStream::connect(&path).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        assert!(is_same_user(&ours) && is_same_user(&theirs));
        assert_eq!(listen(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let missing = listen(&place.path().join("no/socket")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let long = listen(&place.path().join("x".repeat(108))).unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }
}
