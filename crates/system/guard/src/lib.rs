//! Protects stackline against hostile programs and users: files that others can influence, temporary directories whose names others could
//! predict, secrets that others could read, and connections of strangers (peers that have not proved who they are).
//!
//! | module | one idea |
//! | --- | --- |
//! | [`files`] | reading a file that the user named, with a bound on its size |
//! | [`directory`] | files inside a directory of another user: regular files only, no links, nothing outside |
//! | [`scratch`] | temporary directories: private, unpredictable names, removed also after a kill |
//! | [`secret`] | a shared secret: where it comes from, how it is compared |
//! | [`socket`] | unix sockets that only programs of this user reach |
//! | [`connection_slots`] | a bounded number of connections; a new one closes the one that has been idle longest |
//! | [`deadline`] | one time limit for several reads |
//! | [`attempts`] | limits how fast secrets can be guessed |
//! | [`interruptible`] | runs work in a thread, so that a stop does not have to wait for it |
//! | [`keeper`] | processes that end the programs of a command and remove its files, however it ends |
//! | [`timed_stream`] | a blocking connection whose reads and writes have a time limit |
//! | [`http_answer`] | reads and answers one HTTP/1 request |
//! | [`serve`] | the loop that accepts connections, for all services with a thread per connection |
//! | [`stop`] | a switch that wakes waiting threads so that they end |

pub mod attempts;
pub mod connection_slots;
pub mod deadline;
pub mod directory;
pub mod files;
pub mod http_answer;
pub mod interruptible;
pub mod keeper;
pub mod scratch;
pub mod secret;
pub mod serve;
pub mod socket;
pub mod stop;
pub mod timed_stream;

pub use stackline_os::close_on_exec::keep_from_programs as keep_descriptors_from_programs;
