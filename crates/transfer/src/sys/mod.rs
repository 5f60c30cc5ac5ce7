//! System calls that have no safe wrapper. The only place of this crate with unsafe code; it decides nothing.
