//! Launches and profiles that end in time.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use gridloom::{ErrorKind, Executable, Profile, ProfileOptions, Stream};

use crate::Failure;

/// The longest wait without a look at the clock.
const TURN: Duration = Duration::from_millis(100);
/// How many launches are enqueued before the first of them is waited for.
const IN_FLIGHT: u64 = 64;

/// Launches of one executable, with a time for all of them together.
pub(crate) struct Launches {
    executable: Arc<Executable>,
    stream: Stream,
    end: Option<(Instant, Duration)>,
}

impl Launches {
    /// Starts the time.
    pub(crate) fn new(executable: Arc<Executable>, stream: Stream, timeout: Option<Duration>) -> Self {
        let end = timeout.map(|timeout| (Instant::now() + timeout, timeout));
        Launches { executable, stream, end }
    }

    /// Launches as often as asked, and waits. `progress` is told how many launches are done.
    pub(crate) fn launch(&self, launches: u64, progress: impl Fn(u64)) -> Result<(), Failure> {
        let mut done = 0;
        while done < launches {
            let until = done.saturating_add(IN_FLIGHT).min(launches);
            for _ in done..until {
                self.executable.launch(&self.stream)?;
            }
            self.wait()?;
            done = until;
            progress(done);
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Failure> {
        let Some((end, timeout)) = self.end else { return Ok(self.stream.synchronize()?) };
        loop {
            let turn = TURN.min(end.saturating_duration_since(Instant::now()));
            match self.stream.synchronize_timeout(turn) {
                Err(error) if error.kind() == ErrorKind::Timeout && Instant::now() < end => {}
                Err(error) if error.kind() == ErrorKind::Timeout => return Err(self.stop(timeout)),
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Launches once more and returns when each node ran.
    pub(crate) fn profile(&self, options: ProfileOptions) -> Result<Profile, Failure> {
        let Some((end, timeout)) = self.end else {
            return Ok(self.executable.profile_with(&self.stream, &options)?);
        };
        // A profile waits for its launch, which may never end. Then another thread keeps waiting
        // until the command ends.
        let (sender, receiver) = mpsc::channel();
        let (executable, stream) = (self.executable.clone(), self.stream.clone());
        std::thread::spawn(move || drop(sender.send(executable.profile_with(&stream, &options))));
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(profile) => Ok(profile?),
            Err(RecvTimeoutError::Timeout) => Err(self.stop(timeout)),
            Err(RecvTimeoutError::Disconnected) => Err("the profile ended without a result".into()),
        }
    }

    fn stop(&self, timeout: Duration) -> Failure {
        self.executable.cancel();
        format!("not done after {timeout:?}, and stopped").into()
    }
}
