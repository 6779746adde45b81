//! The signals that end a command: Ctrl-C and similar ones.

#[cfg(not(unix))]
use std::io;

#[cfg(unix)]
pub(crate) use unix::on_interrupt;

/// Runs a function on a thread of its own when a signal asks the command to end. The function gets
/// the status that shells show for that signal.
#[cfg(not(unix))]
pub(crate) fn on_interrupt(run: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let mut run = Some(run);
    let handler = move || run.take().into_iter().for_each(|run| run(130));
    ctrlc::try_set_handler(handler).map_err(io::Error::other)
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read};
    use std::mem::MaybeUninit;
    use std::os::fd::IntoRawFd;
    use std::ptr;
    use std::sync::atomic::{AtomicI32, Ordering};

    use libc::c_int;

    /// The signals that ask a command to end.
    const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    /// The end of a pipe to which [`arrived`] writes signals. It is never closed.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    /// Runs a function on a thread of its own when a signal asks the command to end. The function
    /// gets the status that shells show for that signal. A signal that is ignored stays ignored:
    /// `nohup` ignores SIGHUP, and a shell without job control ignores SIGINT for its background.
    pub(crate) fn on_interrupt(run: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
        let (mut reader, writer) = io::pipe()?;
        PIPE.store(writer.into_raw_fd(), Ordering::Release);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut signal = [0];
            if reader.read_exact(&mut signal).is_ok() {
                run(128 + i32::from(signal[0]));
            }
        })?;
        SIGNALS.into_iter().try_for_each(handle)
    }

    /// Sends a signal to [`arrived`], unless it is ignored.
    fn handle(signal: c_int) -> io::Result<()> {
        let checked = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: `action` has room for what the call writes, and nothing is set.
        checked(unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so it filled `action`.
        let mut action = unsafe { action.assume_init() };
        if action.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let handler: extern "C" fn(c_int) = arrived;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: `action` is one that the system gave out, with a handler of the form that its
        // flags ask for. The handler only makes a call that is allowed in signal handlers.
        checked(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) })
    }

    extern "C" fn arrived(signal: c_int) {
        let byte = signal as u8;
        // SAFETY: `write` may be called in a signal handler, and the byte outlives the call. The
        // descriptor is that of a pipe that is never closed.
        let _ = unsafe { libc::write(PIPE.load(Ordering::Acquire), (&raw const byte).cast(), 1) };
    }
}
