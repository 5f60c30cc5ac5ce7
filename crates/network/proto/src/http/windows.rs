//! The window in which an end receives (RFC 9113, 5.2), with h2's rule for offering new room: when what was taken is at least half of what
//! the sender may still send. Of a window that is full at the beginning that is a third.

/// A window of a stream or of a connection, at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveWindow {
    /// What the sender may still send, bytes.
    offered: i64,
    /// What it could be offered, bytes.
    room: i64,
}

impl ReceiveWindow {
    /// A window that the sender knows.
    #[must_use]
    pub fn new(bytes: u32) -> Self {
        Self {
            offered: i64::from(bytes),
            room: i64::from(bytes),
        }
    }

    /// Its size changes; what the sender knows does not.
    pub fn resize(&mut self, from: u32, to: u32) {
        self.room += i64::from(to) - i64::from(from);
    }

    /// Bytes have come.
    pub fn receive(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.offered = self.offered.saturating_sub(bytes);
        self.room = self.room.saturating_sub(bytes);
    }

    /// Bytes were taken, and their room is free.
    pub fn release(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.room = self.room.saturating_add(bytes);
    }

    /// Offers what is free, if it is worth a WINDOW_UPDATE: the increment.
    pub fn offer(&mut self) -> Option<u32> {
        let free = self.room - self.offered;
        if free <= 0 || free < self.offered / 2 {
            return None;
        }
        self.offered = self.room;
        u32::try_from(free).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_room_is_offered_when_a_third_was_taken() {
        let mut window = ReceiveWindow::new(90_000);
        window.receive(29_999);
        window.release(29_999);
        assert_eq!(window.offer(), None);
        window.receive(1);
        window.release(1);
        assert_eq!(window.offer(), Some(30_000));
        assert_eq!(window.offer(), None);
    }

    #[test]
    fn what_is_not_taken_makes_no_room() {
        let mut window = ReceiveWindow::new(1000);
        window.receive(1000);
        assert_eq!(window.offer(), None);
        window.release(1);
        assert_eq!(window.offer(), Some(1));
    }

    #[test]
    fn a_window_that_was_enlarged_is_offered_at_once() {
        let mut window = ReceiveWindow::new(65_535);
        window.resize(65_535, 5 << 20);
        assert_eq!(window.offer(), Some((5 << 20) - 65_535));
        let mut smaller = ReceiveWindow::new(65_535);
        smaller.resize(65_535, 10_000);
        assert_eq!(smaller.offer(), None);
    }
}
