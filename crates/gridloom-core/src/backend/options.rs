//! Options of streams and events.

/// The options of a stream.
///
/// ```
/// use gridloom_core::backend::StreamOptions;
///
/// let options = StreamOptions::new().priority(-1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The priority. Smaller numbers are served first, and 0 is the usual one.
    pub priority: i32,
    /// Whether the stream ignores CUDA's legacy default stream.
    pub non_blocking: bool,
}

impl StreamOptions {
    /// Creates the default options: priority 0, non-blocking.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the priority. Smaller numbers are served first. A number outside of the range of the
    /// device is clamped to it, as CUDA does.
    ///
    /// On a GPU, blocks of a kernel with a smaller number are started before waiting blocks of
    /// other kernels. Running blocks are not interrupted. The CPU device has only the priority 0,
    /// so a priority changes nothing there.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets whether the stream ignores CUDA's legacy default stream, which it does by default.
    ///
    /// Work on a blocking stream waits for earlier work on the legacy default stream, and that
    /// stream waits for it. Use a blocking stream next to CUDA code that uses the default stream.
    /// The CPU device has no default stream, so the option changes nothing there.
    #[must_use]
    pub fn non_blocking(mut self, non_blocking: bool) -> Self {
        self.non_blocking = non_blocking;
        self
    }
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions { priority: 0, non_blocking: true }
    }
}

/// The options of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventOptions {
    /// Whether the event keeps the time of its recording.
    pub timing: bool,
    /// Whether a waiting host thread sleeps instead of spinning.
    pub blocking: bool,
}

impl EventOptions {
    /// Creates the default options: with timing, and spinning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the event keeps the time of its recording.
    #[must_use]
    pub fn timing(mut self, timing: bool) -> Self {
        self.timing = timing;
        self
    }

    /// Sets whether a waiting host thread sleeps instead of spinning.
    #[must_use]
    pub fn blocking(mut self, blocking: bool) -> Self {
        self.blocking = blocking;
        self
    }
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { timing: true, blocking: false }
    }
}
