//! FTP's control connection as both ends write and read it (RFC 959; RFC 2428 for addresses of IPv6): lines of commands, replies that begin
//! with three digits, and where the connections for files come about.
//!
//! Nothing here holds a socket or a file: a line goes in without its end, a line comes out without it.
//!
//! ```text
//!   client                                                    server
//!   (connects) ---------------------------------------------> 220
//!   USER, PASS, TYPE I -------------------------------------> 331, 230, 200
//!   EPSV or PASV -------------------------------------------> 229 or 227, which names a port of the server's
//!   (connects to that port); RETR or STOR ------------------> 150, the file on that connection, its end, 226
//!   EPRT or PORT, which names a port of the client's -------> 200
//!   RETR or STOR -------------------------------------------> (connects to that port) 150, the file, its end, 226
//!   QUIT ---------------------------------------------------> 221
//! ```
//!
//! | module | one idea |
//! | --- | --- |
//! | [`command`] | what a client asks for |
//! | [`data_address`] | where a connection for a file goes, in commands and replies |
//! | [`reply`] | what a server answers, which may take several lines |

pub mod command;
pub mod data_address;
pub mod reply;

#[cfg(test)]
mod tests;

pub use command::FtpCommand;
pub use data_address::{
    extended_passive_reply, extended_port_command, passive_reply, port_command,
    read_extended_passive, read_passive,
};
pub use reply::{FtpReply, FtpReplyLines, FtpReplyMistake, reply_code};
