//! What stands between stackline and whoever may wish it ill: files that others can influence, temporary directories that others
//! could foresee, secrets that others could read, and connections of strangers.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`files`] | reading a file that the user named, with a bound on its size |
//! | [`directory`] | files inside a directory of somebody else: regular files only, no links, nothing outside |
//! | [`scratch`] | temporary directories: private, not foreseeable, removed also after a kill |
//! | [`secret`] | a shared secret: where it comes from, how it is compared |
//! | [`socket`] | unix sockets that only programs of this user reach |
//! | [`connection_slots`] | places of connections: bounded, and the idlest gives way |
//! | [`deadline`] | one bound of time on several reads |
//! | [`attempts`] | a bound on how fast secrets can be guessed |
//! | [`interruptible`] | work that nobody has to wait for |
//! | [`keeper`] | processes that end and remove what a command leaves, however it ends |
//! | [`serve`] | one way to take connections for all services of threads |
//! | [`stop`] | a switch that ends what waits |

pub mod attempts;
pub mod connection_slots;
pub mod deadline;
pub mod directory;
pub mod files;
pub mod interruptible;
pub mod keeper;
pub mod scratch;
pub mod secret;
pub mod serve;
pub mod socket;
pub mod stop;

pub use stackline_os::descriptors::keep_from_programs as keep_descriptors_from_programs;
