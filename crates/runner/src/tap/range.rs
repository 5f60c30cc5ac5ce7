//! Which bytes of which stream a packet carries.

/// Which bytes of which stream a packet carries, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// The data unit, where the packet tells its number itself.
    pub(crate) unit: Option<i64>,
    /// See [`unit::stream`].
    pub(crate) stream: Option<i64>,
    /// Of its first byte of data, counted from the first byte after connecting.
    pub(crate) offset: Option<u64>,
    /// Bytes of data.
    pub(crate) bytes: Option<u64>,
    /// Whether packets with some of them were seen before: at its host's own port that says that they are sent again.
    pub(crate) seen_before: bool,
}
