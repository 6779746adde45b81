//! The driver's own explanation of a failed call.
//!
//! Since CUDA 12.9 the driver explains many errors in a log; the result code alone is often a bare
//! `CUDA_ERROR_INVALID_VALUE`. The driver passes each message to a callback while the failing call
//! runs, on the calling thread. A buffer per thread is therefore enough to match message and call.

use crate::sys::CUlogLevel;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};

/// A thread keeps this many messages; one failing call seldom logs more than three.
const KEPT: usize = 8;

thread_local! {
    static MESSAGES: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// Receives messages of the driver. It only stores them: the driver may hold locks while it runs.
pub(super) unsafe extern "C" fn remember(
    _data: *mut c_void,
    _level: CUlogLevel,
    message: *mut c_char,
    length: usize,
) {
    if message.is_null() {
        return;
    }
    // SAFETY: the driver passes `length` bytes at `message` that live for this call.
    let bytes = unsafe { std::slice::from_raw_parts(message.cast::<u8>(), length) };
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches(['\0', '\n', '\r']);
    if text.is_empty() {
        return;
    }
    // A thread that is ending has no buffer any more; its message is lost, which harms nothing.
    let _ = MESSAGES.try_with(|messages| {
        let Ok(mut messages) = messages.try_borrow_mut() else { return };
        // Several drivers in one process (tests load more than one) each register; the text is the
        // same.
        if messages.back().is_some_and(|last| last == text) {
            return;
        }
        if messages.len() == KEPT {
            messages.pop_front();
        }
        messages.push_back(text.to_owned());
    });
}

/// Takes what was logged on this thread since the last time.
pub(super) fn take() -> Option<String> {
    let messages =
        MESSAGES.try_with(|messages| messages.try_borrow_mut().map(|mut m| std::mem::take(&mut *m)));
    let messages = messages.ok()?.ok()?;
    (!messages.is_empty()).then(|| Vec::from(messages).join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) {
        // SAFETY: `text` is readable for the call, and the callback writes nothing to it.
        unsafe {
            remember(
                std::ptr::null_mut(),
                CUlogLevel::CU_LOG_LEVEL_ERROR,
                text.as_ptr().cast_mut().cast(),
                text.len(),
            );
        }
    }

    #[test]
    fn a_message_is_taken_once() {
        log("bad handle\n");
        assert_eq!(take().as_deref(), Some("bad handle"));
        assert_eq!(take(), None);
    }

    #[test]
    fn a_message_is_seen_only_by_the_thread_whose_call_failed() {
        std::thread::spawn(|| log("elsewhere")).join().unwrap();
        assert_eq!(take(), None);
    }

    #[test]
    fn messages_keep_their_order_and_the_oldest_give_way() {
        for i in 0..KEPT + 2 {
            log(&format!("m{i}"));
        }
        let text = take().unwrap();
        assert!(text.starts_with("m2; m3"), "{text}");
        assert!(text.ends_with(&format!("m{}", KEPT + 1)), "{text}");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let bytes = [0xffu8, b'x'];
        // SAFETY: the two bytes are readable for the call.
        unsafe {
            remember(
                std::ptr::null_mut(),
                CUlogLevel::CU_LOG_LEVEL_ERROR,
                bytes.as_ptr().cast_mut().cast(),
                2,
            );
        }
        assert_eq!(take().as_deref(), Some("\u{fffd}x"));
    }
}
